"""Networks that differ in nothing but their seed, and their numbers as measurements.

Numbers of single networks become measurements with intervals over networks, since that is what the
paper's claims are about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from attnscope.analysis.intervals import Interval, mean_interval, rate_interval
from attnscope.data.source import Source
from attnscope.models.cells import CellName
from attnscope.recipes.aitken.units import AitkenConfig, ArchitectureName, AttentionName, unit
from attnscope.runs.result import Measurement, measured
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Unit

# What the paper says that both architectures reach on eSCAN.
REACHED = 0.98

Axes = Mapping[str, str | int | float]


class Wanted(NamedTuple):
    """Networks that differ in nothing but their seed."""

    task: Source
    model: ArchitectureName
    seeds: int
    cell: CellName = "gru"
    attention: AttentionName = "dot"

    @property
    def axes(self) -> dict[str, str | int | float]:
        """What measurements call the networks."""
        attention = "none" if self.model == "ved" else self.attention
        return {"model": self.model, "cell": self.cell, "attention": attention}

    def units(self, config: AitkenConfig) -> list[Unit]:
        """Return the units, one for each seed."""
        return [
            unit(
                self.task,
                self.model,
                seed,
                config=config,
                cell=self.cell,
                attention=self.attention,
            )
            for seed in range(self.seeds)
        ]


@dataclass(frozen=True)
class Group:
    """Trained networks that differ in nothing but their seed, with their word accuracies."""

    wanted: Wanted
    units: tuple[TrainedUnit, ...]
    accuracies: tuple[float, ...]
    threshold: float

    @property
    def dataset(self) -> str:
        """The task's name."""
        return self.wanted.task.dataset

    @property
    def axes(self) -> dict[str, str | int | float]:
        """What its measurements have in common."""
        return self.wanted.axes

    @property
    def accepted(self) -> list[TrainedUnit]:
        """The networks that are analysed."""
        both = zip(self.units, self.accuracies, strict=True)
        return [unit for unit, accuracy in both if accuracy >= self.threshold]

    def row(
        self,
        name: str,
        interval: Interval,
        axes: Axes | None = None,
        seeds: Sequence[int] = (),
        published: float | None = None,
    ) -> Measurement:
        """Return an interval as a measurement of these networks."""
        all_axes = {**self.axes, **(axes or {})}
        return measured(name, self.dataset, interval, all_axes, seeds, published)

    def accuracy_rows(self) -> list[Measurement]:
        """Return the accuracies: their mean, each seed's, and how many are accepted or reach .98.

        A seed's accuracy is of one network and has no interval over networks.
        """
        seeds = [unit.unit.seed for unit in self.units]
        rows = [self.row("word_accuracy", over(self.accuracies), seeds=seeds)]
        for name, bound in (("accepted", self.threshold), ("reached", REACHED)):
            count = sum(accuracy >= bound for accuracy in self.accuracies)
            rows.append(
                self.row(name, rate_interval(count, len(seeds)), {"accuracy": bound}, seeds)
            )
        return rows + [
            self.row("seed_accuracy", Interval(accuracy, np.nan, np.nan, 1), {"seed": seed}, [seed])
            for seed, accuracy in zip(seeds, self.accuracies, strict=True)
        ]


class Key(NamedTuple):
    """The name and the axes of a number, to find the same number of another network."""

    name: str
    axes: tuple[tuple[str, str | int | float], ...] = ()


def key(name: str, **axes: str | int | float) -> Key:
    """Return the key of a number."""
    return Key(name, tuple(axes.items()))


Numbers = dict[Key, float]


def over(values: Sequence[float]) -> Interval:
    """Return the mean over networks with its interval; the same numbers give the same one."""
    return mean_interval(np.array(values), rng=np.random.default_rng(0))


def over_networks(
    group: Group, numbers: Sequence[Numbers], published: Mapping[Key, float] | None = None
) -> list[Measurement]:
    """Return the means of the accepted networks' numbers, which all have the same keys.

    A number that no network has, such as that of a word at an offset where it never stands, is
    left out.
    """
    seeds = [member.unit.seed for member in group.accepted]
    if not seeds:
        return []
    rows = [
        group.row(
            found.name,
            over([one[found] for one in numbers]),
            dict(found.axes),
            seeds,
            (published or {}).get(found),
        )
        for found in numbers[0]
    ]
    return [row for row in rows if row.n]


def of_one(group: Group, numbers: Numbers) -> list[Measurement]:
    """Return what a figure shows of the first accepted network, which has no interval."""
    seeds = [member.unit.seed for member in group.accepted[:1]]
    return [
        group.row(found.name, Interval(value, np.nan, np.nan, 1), dict(found.axes), seeds)
        for found, value in numbers.items()
    ]
