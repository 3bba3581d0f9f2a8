"""Scenes of results: maps and sentences that a ``result.json`` carries among its measurements.

Reference results have no units, but some recipes measure a sentence cell by cell. Each reader here
knows one form of such rows, by their axes and never by their recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from attnscope.report.scene import Follower, Map, Scene, Shown
from attnscope.runs.result import Measurement, Result

_FIXED = "As measured after training, for the result."


def result_scenes(result: Result, key: str) -> list[Scene]:
    """Return the scenes that a result's measurements hold."""
    return [
        scene for reader in READERS for scene in reader(result.measurements, f"{key}/{result.part}")
    ]


def scored_cells(rows: Sequence[Measurement], key: str) -> list[Scene]:
    """Read rows with both positions and both words in their axes, one map for each ``score``."""
    cells = [row for row in rows if {"score", "t", "l", "output", "input"} <= row.axes.keys()]
    scenes = []
    for dataset, own in _by(cells, lambda row: row.dataset).items():
        inputs, outputs = _words(own, "l", "input"), _words(own, "t", "output")
        maps = [
            Map(str(score), 0, [None], [[_matrix(part, "t", "l", outputs, inputs)]])
            for score, part in _by(own, lambda row: row.axes["score"]).items()
        ]
        example = Shown("the measured sentence", inputs, outputs)
        units = [Follower(dataset, _seeds(own))]
        scenes.append(
            Scene(f"{key}/{dataset}", f"{dataset}: one sentence", _FIXED, [example], units, maps)
        )
    return scenes


def spelled_cells(rows: Sequence[Measurement], key: str) -> list[Scene]:
    """Read rows with positions ``out`` and ``inp``, whose words are rows of their own."""
    spelled = [row for row in rows if {"side", "place", "word"} <= row.axes.keys()]
    cells = [row for row in rows if {"out", "inp"} <= row.axes.keys()]
    scenes = []
    groups = _by(spelled, lambda row: _rest(row, "side", "place", "word"))
    shared = set.intersection(*map(set, groups)) if len(groups) > 1 else set()
    for group, words in groups.items():
        sides = _by(words, lambda row: row.axes["side"])
        inputs, outputs = (_words(sides.get(s, []), "place", "word") for s in ("input", "output"))
        own = [row for row in cells if _rest(row, "out", "inp") == group]
        if not own or not inputs or not outputs:
            continue
        maps = [
            Map(name, 0, [None], [[_matrix(part, "out", "inp", outputs, inputs)]])
            for name, part in _by(own, lambda row: row.name).items()
        ]
        told = [f"{axis} {value}" for axis, value in group[1:] if (axis, value) not in shared]
        title = ", ".join([own[0].dataset, *told])
        example = Shown("the measured sentence", inputs, outputs)
        units = [Follower(title, _seeds(own))]
        scenes.append(Scene(f"{key}/{title}", title, _FIXED, [example], units, maps))
    return scenes


def read_sentences(rows: Sequence[Measurement], key: str) -> list[Scene]:
    """Read sentences word by word: rows with a place, their word beside the number."""
    words = [
        row for row in rows if {"sentence", "place"} <= row.axes.keys() and "word" in row.found
    ]
    scenes = []
    for dataset, own in _by(words, lambda row: row.dataset).items():
        models = _by(own, lambda row: _rest(row, "place", "sentence"))
        sentences = _by(own, lambda row: row.axes["sentence"])
        examples = [
            Shown(str(title), _found_words(part), [_label(rows, dataset, title)])
            for title, part in sentences.items()
        ]
        units, maps = [], []
        for place, (axes, part) in enumerate(models.items()):
            units.append(Follower(dataset, _model(axes, list(models)) or _seeds(part)))
            for name, of_name in _by(part, lambda row: row.name).items():
                by_title = _by(of_name, lambda row: row.axes["sentence"])
                values: list[list[np.ndarray | None]] = [
                    [_line(by_title.get(title, []), len(example.inputs))]
                    for title, example in zip(sentences, examples, strict=True)
                ]
                maps.append(Map(_WORD_SCORES.get(name, name), place, [None], values))
        scenes.append(
            Scene(
                f"{key}/{dataset}",
                f"{dataset}: sentences word by word",
                _FIXED,
                examples,
                units,
                maps,
            )
        )
    return scenes


# What such rows are called as scores: the probability of the predicted label from one word alone
# is the lexical probe of the model's own output.
_WORD_SCORES = {"word_probability": "lexical_probe", "word_attention": "attention"}

READERS: tuple[Callable[[Sequence[Measurement], str], list[Scene]], ...] = (
    scored_cells,
    spelled_cells,
    read_sentences,
)


def _by(rows: Iterable[Measurement], key: Callable[[Measurement], Any]) -> dict[Any, Any]:
    groups: dict[Any, list[Measurement]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _rest(row: Measurement, *taken: str) -> tuple[tuple[str, Any], ...]:
    axes = {key: value for key, value in row.axes.items() if key not in taken}
    return (("dataset", row.dataset), *sorted(axes.items()))


def _words(rows: Sequence[Measurement], place: str, word: str) -> list[str]:
    spelled = {int(row.axes[place]): str(row.axes[word]) for row in rows}
    return [spelled.get(index, "") for index in range(max(spelled, default=-1) + 1)]


def _found_words(rows: Sequence[Measurement]) -> list[str]:
    spelled = {int(row.axes["place"]): str(row.found["word"]) for row in rows}
    return [spelled.get(index, "") for index in range(max(spelled) + 1)]


def _label(rows: Sequence[Measurement], dataset: str, title: Any) -> str:
    """Return the label that the first model gives the sentence."""
    told = (
        row.found["label"]
        for row in rows
        if row.dataset == dataset and row.axes.get("sentence") == title and "label" in row.found
    )
    return str(next(told, "output"))


def _model(axes: tuple[tuple[str, Any], ...], models: Sequence[Any]) -> str:
    """Return what tells a model from the others."""
    shared = set.intersection(*(set(each) for each in models))
    return ", ".join(str(value) for axis, value in axes if (axis, value) not in shared)


def _seeds(rows: Sequence[Measurement]) -> str:
    seeds = sorted({seed for row in rows for seed in row.seeds})
    return "seed " + ", ".join(map(str, seeds)) if seeds else "measured"


def _matrix(
    rows: Sequence[Measurement],
    t: str,
    position: str,
    outputs: Sequence[str],
    inputs: Sequence[str],
) -> np.ndarray:
    values = np.full((len(outputs), len(inputs)), np.nan)
    for row in rows:
        place = int(row.axes[t]), int(row.axes[position])
        if row.value is not None and place[0] < len(outputs) and place[1] < len(inputs):
            values[place] = row.value
    return values


def _line(rows: Sequence[Measurement], length: int) -> np.ndarray | None:
    values = np.full((1, length), np.nan)
    for row in rows:
        if row.value is not None:
            values[0, int(row.axes["place"])] = row.value
    return values if rows else None
