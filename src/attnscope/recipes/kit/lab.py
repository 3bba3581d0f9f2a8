"""The laboratory that a recipe works in: units in, trained units out, in the same shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, overload

from attnscope.data.reading import reading_note
from attnscope.data.source import Source
from attnscope.training.engine.trainer import Trainer
from attnscope.training.memory import demand_memory
from attnscope.training.progress import Progress, Silent
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Precision, Unit

Key = TypeVar("Key")
Plan = Sequence[Any] | Mapping[Any, Any]
"""Units in lists, tuples and mappings, nested to any depth."""


@dataclass
class Lab:
    """Where a recipe trains and measures.

    Attributes
    ----------
    workers
        Train units, here or elsewhere.
    device
        Where the recipe measures.
    trains_on
        The units' device, if it is another one, as where workers have a GPU and this host has none.
    precision
        Of a GPU's products in training, where units have no other; measuring has float32.
    """

    workers: Trainer
    device: Literal["cpu", "cuda"] = "cpu"
    progress: Progress = field(default_factory=Silent)
    used: dict[str, None] = field(default_factory=dict)
    trains_on: Literal["cpu", "cuda"] | None = None
    precision: Precision = "float32"
    noted: set[Source] = field(default_factory=set)

    @overload
    def train(self, plan: Unit, title: str) -> TrainedUnit: ...
    @overload
    def train(self, plan: Sequence[Unit], title: str) -> list[TrainedUnit]: ...
    @overload
    def train(
        self, plan: Mapping[Key, Sequence[Unit]], title: str
    ) -> dict[Key, list[TrainedUnit]]: ...
    @overload
    def train(
        self, plan: Sequence[Mapping[Key, Sequence[Unit]]], title: str
    ) -> list[dict[Key, list[TrainedUnit]]]: ...
    @overload
    def train(self, plan: Plan, title: str) -> Any: ...

    def train(self, plan: Plan | Unit, title: str) -> Any:
        """Train units, or reuse them, and return them in the shape in which they were given.

        All units of a plan are trained together, so that those which differ only in their seed
        can share one vmapped model; give everything that can be trained at once as one plan::

            units = {model: [unit_of(model, seed) for seed in range(5)] for model in MODELS}
            for model, seeds in lab.train(units, "classifiers").items():
                ...

        Parameters
        ----------
        plan
            A unit, or lists, tuples and mappings of units, nested to any depth.
        title
            Heading of the progress bar.

        Returns
        -------
        The same with a `TrainedUnit` for each unit: lists and tuples stay such, mappings become
        dicts in the same order. The units are listed in the recipe's result.
        """
        self._note_readings(plan)
        placed = self.placed(plan)
        for metric in {metric for unit in placed for metric in unit.training.metrics}:
            metric.demand()
        demand_memory(placed)
        trained = self.workers.train(placed, self.progress, title)
        self.used.update(dict.fromkeys(unit.folder.name for unit in trained))
        return filled(plan, iter(trained))

    def placed(self, plan: Plan | Unit) -> list[Unit]:
        """Return the units of a plan as they train here: on the device, in the precision."""
        device = self.trains_on or self.device
        return [_placed(unit, device, self.precision) for unit in leaves(plan)]

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The units that were trained as one vmapped model, by their places in `used`."""
        places = {name: place for place, name in enumerate(self.used)}
        found = [tuple(places[name] for name in names) for names in self.workers.groups]
        return tuple(dict.fromkeys(group for group in found if len(group) > 1))

    def _note_readings(self, plan: Plan | Unit) -> None:
        """Print a sentence on each corpus whose tokens are hardly words, once."""
        for source in dict.fromkeys(unit.source for unit in leaves(plan)):
            if source not in self.noted:
                self.noted.add(source)
                if note := reading_note(source):
                    self.progress.note(note)


@dataclass(frozen=True)
class Logged:
    """The parts of a unit that figures may use: configuration, data set and log."""

    config: Mapping[str, Any]
    dataset: str
    rows: Sequence[Mapping[str, Any]]


def _placed(unit: Unit, device: str, precision: Precision) -> Unit:
    placed: dict[str, Any] = {"device": device}
    # Units of double numbers have no float32 products to make faster.
    if precision != "float32" and unit.training.dtype == "float32":
        placed["training"] = unit.training.model_copy(update={"precision": precision})
    return unit.model_copy(update=placed)


def leaves(plan: Plan | Unit) -> Iterator[Unit]:
    """Yield the units of a plan from left to right."""
    if isinstance(plan, Unit):
        yield plan
        return
    for part in plan.values() if isinstance(plan, Mapping) else plan:
        yield from leaves(part)


def filled(plan: Any, trained: Iterator[TrainedUnit]) -> Any:
    """Return a plan with the next trained unit in the place of each unit."""
    if isinstance(plan, Unit):
        return next(trained)
    if isinstance(plan, Mapping):
        return {key: filled(part, trained) for key, part in plan.items()}
    parts = [filled(part, trained) for part in plan]
    return tuple(parts) if isinstance(plan, tuple) else parts
