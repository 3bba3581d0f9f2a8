"""Seconds of a training step and of an evaluation, measured on this machine.

One group of each kind of unit is trained for a few steps, by the code that trains it in a run, in a
folder that is removed afterwards. Evaluations are timed on a few examples. Units of one kind differ
in seeds, numbers of steps and examples, and weights of their loss.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attnscope.data.corpus import Corpus
from attnscope.errors import AttnscopeError
from attnscope.runs.spec import fingerprint
from attnscope.training.engine.grouping import groups
from attnscope.training.engine.workers import attempt
from attnscope.training.imitation import Imitation
from attnscope.training.loop import train_unit
from attnscope.training.objective import Term
from attnscope.training.unit import Unit

_STEPS = 8
_EXAMPLES = 32
# Once it has taken so many seconds, two steps are enough.
_SECONDS = 3.0
# Settings of training that change how often something is done, and not how long it takes once.
_COUNTS = ("steps", "evaluate_at", "examples", "stored")


@dataclass(frozen=True)
class Pace:
    """Seconds that a group of one kind takes."""

    start: float  # to build the models and read their data
    step: float
    example: float  # evaluated, of all splits together

    def seconds(self, unit: Unit) -> float:
        """Return the time of a group that trains as this unit does."""
        return self.start + unit.training.steps * self.step + self.evaluations(unit)

    def evaluations(self, unit: Unit) -> float:
        """Return the time of all evaluations of such a group."""
        training = unit.training
        # The scores of the last and of the best weights are read like those of an evaluation.
        times = len(training.schedule) + 2 * bool(training.final_scores)
        return times * evaluated_examples(unit) * self.example


Paces = dict[str, Pace]
"""The pace of each kind of group."""


def evaluated_examples(unit: Unit) -> int:
    """Return how many examples an evaluation has: a corpus may have fewer than are asked for."""
    wanted, source = unit.training.examples, unit.source
    return min(wanted, len(source.validation_examples)) if isinstance(source, Corpus) else wanted


def kind_of(group: Sequence[Unit]) -> str:
    """Return a key of groups that take the same time for a step and for an evaluated example."""
    config = group[0].config() | {"seed": 0, "members": len(group)}
    training = {key: value for key, value in config["training"].items() if key not in _COUNTS}
    training["objective"] = [term["kind"] for term in training["objective"]]
    return fingerprint(config | {"training": training})


def measure_paces(
    units: Sequence[Unit], known: Paces, report: Callable[[int], None] = lambda kinds: None
) -> Paces:
    """Return the pace of every kind of group among units; kinds that are known are not timed."""
    found = dict(known)
    for group in groups(units):
        kind = kind_of(group)
        if kind not in found:
            found[kind] = _timed(group)
            report(1)
    return found


def seconds_of_units(units: Sequence[Unit], paces: Paces, jobs: int) -> float:
    """Return the time of all units in so many processes."""
    times = [paces[kind_of(group)].seconds(group[0]) for group in groups(units)]
    return max(sum(times) / jobs, max(times, default=0.0))


def seconds_of_evaluations(units: Sequence[Unit], paces: Paces) -> float:
    """Return the time of all evaluations of all units, one after another."""
    return sum(paces[kind_of(group)].evaluations(group[0]) for group in groups(units))


class _Enough(Exception):
    """A few steps have been timed."""


@dataclass
class _Watch:
    """Notes when a step, or an evaluation, has ended."""

    started: float = field(default_factory=time.perf_counter)
    steps: list[float] = field(default_factory=list)
    evaluations: list[float] = field(default_factory=list)

    def step(self, _: int) -> None:
        self.steps.append(time.perf_counter())
        if len(self.steps) > 2 and self.steps[-1] - self.started > _SECONDS:
            raise _Enough

    def evaluated(self, _: int) -> None:
        self.evaluations.append(time.perf_counter())


def _timed(group: list[Unit]) -> Pace:
    few = [_shortened(unit) for unit in group]
    with TemporaryDirectory() as folder:
        for unit in few:
            _train_bases(unit, Path(folder))
        watch = _Watch()
        try:
            outcomes = attempt(few, Path(folder), watch.step, _ignored, evaluated=watch.evaluated)
        except _Enough:
            outcomes = []
        seconds = [row["seconds"] for row in few[0].folder(Path(folder)).log]
    failed = [message for status, message in outcomes if status == "failed"]
    if failed:
        raise AttnscopeError(failed[0])
    # The first step also allocates memory; the members of a group are evaluated in turn.
    steps = [later - earlier for earlier, later in pairwise(watch.steps)]
    examples = evaluated_examples(few[0])
    evaluation = sum(seconds) / len(seconds) * len(group)
    start = max(0.0, watch.evaluations[0] - watch.started - evaluation)
    return Pace(start, sum(steps) / len(steps) if steps else 0.0, evaluation / examples)


def _shortened(unit: Unit) -> Unit:
    training = unit.training
    few: dict[str, Any] = {
        "objective": tuple(_with_short_base(term) for term in training.objective),
        "steps": min(_STEPS, training.steps),
        "evaluate_at": (),
        "examples": min(_EXAMPLES, training.examples),
        "stored": min(_EXAMPLES, training.stored),
        "final_scores": (),
    }
    return unit.model_copy(update={"training": training.model_copy(update=few)})


def _with_short_base(term: Term) -> Term:
    if not isinstance(term, Imitation):
        return term
    return term.model_copy(update={"base": _shortened(term.base)})


def _train_bases(unit: Unit, folder: Path) -> None:
    """Train the units that a unit imitates."""
    for term in unit.training.objective:
        if isinstance(term, Imitation):
            train_unit(term.base, folder)


def _ignored(sentence: str) -> None:
    """Say nothing about the units of a folder that is removed."""
