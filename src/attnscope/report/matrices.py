"""Matrices of a result as scenes: maps on the same words are shown next to each other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from attnscope.claims.symbols import SCORES, in_letters, measure_words
from attnscope.report.scenes import Follower, Map, Scene, Shown
from attnscope.runs.measures import Measures
from attnscope.runs.result import Matrix, Result

_NOTE = "As measured after training, for the result."
# Axes that distinguish maps on the same words.
_MAPS = ("score", "of")
# Names of scores under other names: the probability of the predicted label from one word alone is
# the lexical probe of the model's own output.
_SCORES = {
    "word_probability": "lexical_probe",
    "word_attention": "attention",
    "example_attention": "attention",
}
K = TypeVar("K", bound=Hashable)


def matrix_scenes(result: Result, key: str, measures: Measures) -> list[Scene]:
    """Return the scenes that a result's matrices make."""
    own = [_outputs_down(each) for each in result.pictures if isinstance(each, Matrix)]
    sentences = [each for each in own if "sentence" in each.axes]
    others = [each for each in own if "sentence" not in each.axes]
    scenes = [
        _sentence_scene(same, measures)
        for same in _grouped(sentences, lambda each: each.dataset).values()
    ]
    groups = _grouped(others, lambda each: (each.dataset, each.seeds, _axes(each, *_MAPS)))
    differing = {axes for _, _, axes in groups}
    shared = set.intersection(*map(set, differing)) if len(differing) > 1 else set()
    for (_, _, axes), same in groups.items():
        fixed = [f"{axis} {value}" for axis, value in axes if (axis, value) not in shared]
        where = ", ".join([same[0].dataset, *fixed])
        scenes += [_scene(maps, where, measures) for maps in _on_the_same_words(same)]
    for scene in scenes:
        scene.key = f"{key}/{result.part}/{scene.title}"
    return scenes


def _outputs_down(matrix: Matrix) -> Matrix:
    """Return a matrix with outputs as rows, as maps of attention have them."""
    if matrix.row_axis != "input":
        return matrix
    update = {
        "row_axis": matrix.column_axis,
        "column_axis": matrix.row_axis,
        "rows": matrix.columns,
        "columns": matrix.rows,
        "values": tuple(zip(*matrix.values, strict=True)),
    }
    return matrix.model_copy(update=update)


def _on_the_same_words(matrices: Sequence[Matrix]) -> list[list[Matrix]]:
    """Return groups of matrices with the same labels.

    Matrices by position join the first group by words, if there is one.
    """
    titles = ("output", "input")
    groups = _grouped(matrices, lambda each: (each.rows, each.columns))
    positions = [key for key in groups if not _has_words(key)]
    words = [key for key in groups if _has_words(key)]
    for key in positions:
        same = groups[key]
        if words and all((each.row_axis, each.column_axis) == titles for each in same):
            groups[words[0]] += groups.pop(key)
    return list(groups.values())


def _has_words(labels: tuple[Sequence[Any], Sequence[Any]]) -> bool:
    return any(isinstance(label, str) for side in labels for label in side)


def _scene(maps: Sequence[Matrix], where: str, measures: Measures) -> Scene:
    inputs, outputs = (list(map(str, side)) for side in (maps[0].columns, maps[0].rows))
    label = measure_words(maps[0].name, measures)[0]
    return Scene(
        key="",
        title=f"{where}: {label}",
        note=_NOTE,
        examples=[Shown("the measured example", inputs, outputs)],
        units=[Follower(where, _seeds(maps))],
        maps=[_map(each, 0, [[_values(each, outputs, inputs)]], measures) for each in maps],
    )


def _sentence_scene(matrices: Sequence[Matrix], measures: Measures) -> Scene:
    """Return sentences word by word, a unit for each model that reads them."""
    sentences = _grouped(matrices, lambda each: each.axes["sentence"])
    models = _grouped(matrices, lambda each: _axes(each, "sentence"))
    shared = set.intersection(*map(set, models)) if len(models) > 1 else set()
    examples = [
        Shown(str(title), list(map(str, same[0].columns)), list(map(str, same[0].rows)))
        for title, same in sentences.items()
    ]
    dataset = matrices[0].dataset
    scene = Scene("", f"{dataset}: sentences word by word", _NOTE, examples, [], [])
    for place, (axes, read) in enumerate(models.items()):
        label = ", ".join(str(value) for axis, value in axes if (axis, value) not in shared)
        scene.units.append(Follower(dataset, label or _seeds(read)))
        for same in _grouped(read, lambda each: each.name).values():
            by_sentence = {each.axes["sentence"]: each for each in same}
            values: list[list[np.ndarray | None]] = []
            for title, example in zip(sentences, examples, strict=True):
                found = by_sentence.get(title)
                if found is None:
                    values.append([None])
                else:
                    values.append([_values(found, example.outputs, example.inputs)])
            scene.maps.append(_map(same[0], place, values, measures))
    return scene


def _map(
    matrix: Matrix, place: int, values: list[list[np.ndarray | None]], measures: Measures
) -> Map:
    score, label, meaning = _score(matrix, measures)
    return Map(score, place, [None], values, label=label, meaning=meaning)


def _score(matrix: Matrix, measures: Measures) -> tuple[str, str, str]:
    """Return the score that a matrix holds, and its label and meaning unless it is a known one."""
    part = matrix.axes.get("of", "attention")
    score = str(matrix.axes.get("score", _SCORES.get(matrix.name, matrix.name)))
    label, meaning = measure_words(matrix.name, measures)
    if part != "attention":
        return f"{matrix.name} {part}", f"{label}, {in_letters(str(part))}", meaning
    return (score, "", "") if score in SCORES else (score, label, meaning)


def _values(matrix: Matrix, outputs: Sequence[str], inputs: Sequence[str]) -> np.ndarray:
    """Return values for some words, NaN where there are none."""
    values = np.full((len(outputs), len(inputs)), np.nan)
    known = np.array(matrix.values, dtype=float)[: len(outputs), : len(inputs)]
    values[: known.shape[0], : known.shape[1]] = known
    return values


def _axes(matrix: Matrix, *without: str) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((key, value) for key, value in matrix.axes.items() if key not in without))


def _grouped(matrices: Iterable[Matrix], key: Callable[[Matrix], K]) -> dict[K, list[Matrix]]:
    groups: dict[K, list[Matrix]] = {}
    for each in matrices:
        groups.setdefault(key(each), []).append(each)
    return groups


def _seeds(matrices: Iterable[Matrix]) -> str:
    seeds = sorted({seed for each in matrices for seed in each.seeds})
    return "seed " + ", ".join(map(str, seeds)) if seeds else "measured"
