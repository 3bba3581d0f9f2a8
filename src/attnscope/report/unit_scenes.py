"""Scenes of units: which units of a workspace are shown, and their stored scores step by step.

Units on the same source share examples, so they share a scene: models that learned their attention
are followed and compared with a model under uniform attention, the proxy and IBM Model 1. The
choice depends only on the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import ValidationError

from attnscope.errors import AttnscopeError
from attnscope.report.answers import model_answers
from attnscope.report.examples import ExampleRequest, chosen_examples, shown_example
from attnscope.report.own_sentences import displayed, extra_maps, sentence_scene
from attnscope.report.scenes import Follower, Map, Scene, Shown
from attnscope.report.stored_scores import StoredScores, agreement, compared_rows
from attnscope.report.surface import original_text
from attnscope.report.units import Candidate, chosen, distinguishing, flat, labels, read_candidate
from attnscope.runs.lock import LEASE_SECONDS, holder_of
from attnscope.runs.spec import fingerprint
from attnscope.scores.score import Score
from attnscope.scores.subwords import RULE_OF_SCORE
from attnscope.training.progress import Progress, Silent, counting
from attnscope.training.trained_unit import TrainedUnit

_MOST_STEPS = 40  # of a unit


def unit_scenes(
    paths: Sequence[Path],
    request: ExampleRequest,
    notices: list[str],
    progress: Progress | None = None,
) -> list[Scene]:
    """Return one scene for each source that some unit keeps scores of, the richest first."""
    groups: dict[tuple[Path, str], list[Candidate]] = {}
    for path in paths:
        candidate = read_candidate(path, notices)
        if candidate is not None:
            groups.setdefault((path.parent, candidate.source), []).append(candidate)
    scenes = []
    read: set[str] = set()
    sources: dict[str, str] = {}
    with counting(progress or Silent(), "reading units", len(groups)) as count:
        for group in groups.values():
            count(1)
            followed = chosen([each for each in group if each.learned and not each.is_proxy])
            if not followed:
                continue
            try:
                made = _Group(group, followed, request, notices, read).scenes()
                scenes += made
                sources |= {scene.key: followed[0].source for scene in made[:1]}
            except _UNFIT as error:
                where = followed[0].path.name
                reason = (str(error) or type(error).__name__).splitlines()[0]
                notices.append(f"{where} is not shown: {reason.rstrip('.')}.")
    notices += [
        f"No trained model here can read the sentence {sentence!r}."
        for sentence in request.sentences
        if sentence not in read
    ]
    _distinguish_titles(scenes, sources)
    return sorted(scenes, key=lambda scene: (-_richness(scene), scene.title))


# Errors that a damaged unit may raise at any point of its reading.
_UNFIT = (AttnscopeError, ValidationError, LookupError, ValueError, TypeError, RuntimeError)


def _distinguish_titles(scenes: Sequence[Scene], sources: Mapping[str, str]) -> None:
    """Add to equal titles the settings in which their sources differ."""
    titles = [scene.title for scene in scenes]
    settings = [dict(flat(json.loads(sources.get(scene.key, "{}")))) for scene in scenes]
    for scene, title, named in zip(scenes, titles, distinguishing(settings, titles), strict=True):
        if titles.count(title) > 1 and named:
            scene.title = f"{title} ({', '.join(named)})"


def _richness(scene: Scene) -> int:
    return len({each.score for each in scene.maps if not each.score.startswith("term_")})


class _Group:
    """The units of one source, which make a scene."""

    def __init__(
        self,
        group: Sequence[Candidate],
        followed: Sequence[Candidate],
        request: ExampleRequest,
        notices: list[str],
        read: set[str],
    ) -> None:
        self.request, self.notices, self.read = request, notices, read
        self.candidates = list(followed)
        self.followed = [TrainedUnit.read(each.path) for each in followed]
        uniform = [each for each in group if each.uniform and not each.is_proxy]
        proxies = [each for each in group if each.is_proxy]
        self.uniform = [TrainedUnit.read(each.path) for each in uniform[:1]]
        self.proxies = [TrainedUnit.read(each.path) for each in proxies[:1]]
        self.left_out = sum(each.learned for each in group) - len(followed)
        self.stored = self.followed[0].examples
        chosen = chosen_examples(self.followed[0], [each.path for each in followed], request)
        self.rows, self.whys, self.chosen_by = chosen.rows, chosen.whys, chosen.recipe
        self.ids = [int(self.stored.ids[row]) for row in self.rows]
        compared = compared_rows(len(self.stored))
        self.compared = [int(self.stored.ids[row]) for row in compared]
        every = sorted({*compared, *self.rows})
        self.read_of = {
            unit.folder.name: StoredScores(unit, _within(unit, every))
            for unit in (*self.followed, *self.uniform)
        }

    def scenes(self) -> list[Scene]:
        """Return the scene of stored examples, and one of the user's own sentences."""
        first = self.followed[0]
        scene = Scene(
            key=f"{first.folder.path.parent.parent.name}/{fingerprint(self.candidates[0].source)}",
            title=first.unit.source.dataset,
            note=self._note(),
            examples=self._examples(),
            units=[
                Follower(unit.folder.name, label, *_progress(unit.folder.path))
                for unit, label in zip(self.followed, labels(self.candidates), strict=True)
            ],
            maps=[],
        )
        for place, unit in enumerate(self.followed):
            scene.maps += self._stored_maps(unit, place, unit.unit.training.scores)
            scene.maps += self._final_maps(unit, place)
            scene.units[place].curves = self._curves(unit)
        for unit in self.uniform:
            scene.maps += self._stored_maps(unit, -1, unit.unit.training.scores)
        batch = self.stored.rows(torch.tensor(self.rows)).trimmed()
        scene.maps += extra_maps(self.followed, self.proxies, batch, self.notices)
        scene.maps = [each for each in scene.maps if any(any_value(row) for row in each.values)]
        return [scene, *self._own_sentences()] if scene.maps else []

    def _note(self) -> str:
        split = self.followed[0].unit.training.splits[0]
        kind = {"val": "held-out", "train": "training"}.get(split, split)
        note = f"{len(self.rows)} of {len(self.stored)} stored {kind} examples"
        note += f", chosen by {self.chosen_by}" if self.chosen_by else ""
        every = len(self.compared) == len(self.stored)
        note += (
            f"; agreement is that of {'all' if every else f'{len(self.compared)} evenly chosen'}"
        )
        return note + (
            f"; {self.left_out} more units on this source are not shown." if self.left_out else "."
        )

    def _examples(self) -> list[Shown]:
        first = self.followed[0]
        split = first.unit.training.splits[0]
        answers = model_answers(first, self.stored.rows(torch.tensor(self.rows)).trimmed())
        shown = []
        for row, key, why, answer in zip(self.rows, self.ids, self.whys, answers, strict=True):
            text = original_text(first.unit.source, split, key)
            name = f"example {key}"
            shown.append(
                shown_example(first.source, self.stored, row, name, why, text=text, answer=answer)
            )
        return shown

    def _stored_maps(self, unit: TrainedUnit, place: int, rules: Iterable[Any]) -> list[Map]:
        """Return the scores that a unit keeps at each step, of the examples that are shown."""
        stored, steps = self.read_of[unit.folder.name], _thinned(unit.folder.score_steps)
        uniform = place < 0
        maps = {
            rule.name: Map(
                score="uniform_probe" if uniform and rule.name == "lexical_probe" else rule.name,
                unit=place,
                steps=steps,
                values=[[] for _ in self.rows],
                note="of another model" if uniform else "",
                merge=RULE_OF_SCORE.get(rule.name, "max"),
            )
            for rule in rules
            # Attention that is fixed has nothing to show.
            if not (uniform and rule.name == "attention")
        }
        for step in steps:
            for rule in rules:
                if rule.name in maps:
                    score = stored.score(rule.name, step)
                    for values, found in zip(
                        maps[rule.name].values, self._values(score, rule), strict=True
                    ):
                        values.append(found)
        return list(maps.values())

    def _final_maps(self, unit: TrainedUnit, place: int) -> list[Map]:
        """Return the scores that were read after training."""
        made = []
        for rule in unit.unit.training.final_scores:
            score = self.read_of[unit.folder.name].score(rule.name, "last")
            if score is not None:
                values = [[each] for each in self._values(score, rule)]
                rule_of = RULE_OF_SCORE.get(rule.name, "max")
                made.append(Map(rule.name, place, [None], values, "after training", rule_of))
        return made

    def _values(self, score: Score | None, rule: Any) -> list[np.ndarray | None]:
        """Return the shown values of a score, example by example."""
        if score is None:
            return [None] * len(self.ids)
        places = {int(key): row for row, key in enumerate(score.batch.ids.tolist())}
        found: list[np.ndarray | None] = []
        for key in self.ids:
            row = places.get(key)
            if row is None:
                found.append(None)
                continue
            out, inp = int(score.batch.target_lengths[row]), int(score.batch.input_lengths[row])
            values = score.values[row, :out, :inp].double().numpy()
            values = np.where(score.input_mask[row, :inp].numpy(), values, np.nan)
            found.append(displayed(values, rule))
        return found

    def _curves(self, unit: TrainedUnit) -> dict[str, list[tuple[int, float]]]:
        """Return accuracy and agreement over training, in percent."""
        log = unit.log
        curves = {
            name: [(int(row["step"]), 100 * float(row[name])) for row in log if name in row]
            for name in ("accuracy",)
        }
        names = [rule.name for rule in unit.unit.training.scores]
        if "attention" not in names:
            return curves
        stored = self.read_of[unit.folder.name]
        fixed = [
            ("uniform_probe", self.read_of[other.folder.name].last("lexical_probe"))
            for other in self.uniform
        ]
        others = [name for name in names if name != "attention"]
        pairs: dict[str, list[tuple[int, float]]] = {}
        for step in _thinned(unit.folder.score_steps):
            attention = stored.score("attention", step)
            if attention is None:
                continue
            now = [(name, stored.score(name, step)) for name in others]
            for name, other in (*now, *fixed):
                value = agreement(attention, other, self.compared)
                if value is not None:
                    pairs.setdefault(f"A(attention,{name})", []).append((step, value))
        return {name: rows for name, rows in (curves | pairs).items() if rows}

    def _own_sentences(self) -> list[Scene]:
        """Return the scores of the user's sentences under the first unit, after training."""
        if not self.request.sentences:
            return []
        scenes = sentence_scene(self.followed[0], self.request.sentences)
        self.read |= {example.key for scene in scenes for example in scene.examples}
        return scenes


def _within(unit: TrainedUnit, rows: Sequence[int]) -> list[int]:
    """Return the places that a unit has: another one may store fewer examples."""
    return [row for row in rows if row < len(unit.examples)]


def any_value(row: Iterable[np.ndarray | None]) -> bool:
    """Return whether there is anything to show."""
    return any(values is not None for values in row)


def _progress(folder: Path) -> tuple[bool, bool]:
    """Return whether a unit is in training, and whether it was stopped before its end."""
    if (folder / "done.json").exists():
        return False, False
    holder = holder_of(folder / "lock")
    running = holder is not None and holder["idle"] < LEASE_SECONDS
    return running, not running


def _thinned(steps: Sequence[int]) -> list[int]:
    """Return at most so many steps, evenly chosen, the first and the last among them."""
    if len(steps) <= _MOST_STEPS:
        return list(steps)
    places = np.linspace(0, len(steps) - 1, _MOST_STEPS).round().astype(int)
    return [steps[place] for place in sorted(set(places.tolist()))]
