"""The networks on eSCAN that figures 3, 5 and 6 share, and their numbers as measurements.

Analyses are of the runs that were accepted: those with a word accuracy of at least .97, a rule
fixed before any run. How many were is reported with an interval. Numbers of single networks become
measurements with intervals over networks, since that is what the paper's claims are about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from pydantic import Field

from attnscope.analysis.intervals import Interval, mean_interval, rate_interval
from attnscope.data.escan import ExtendedScan
from attnscope.data.source import Source
from attnscope.models.cells import CellName
from attnscope.recipes.aitken.units import (
    SOLVED,
    AitkenConfig,
    ArchitectureName,
    AttentionName,
    unit,
    word_accuracy,
)
from attnscope.recipes.recipe import Lab
from attnscope.runs.result import Measurement, measured
from attnscope.training.trained import TrainedUnit

MODELS: tuple[ArchitectureName, ...] = ("aed", "ao")
# What the paper says that both architectures reach.
REACHED = 0.98

Axes = Mapping[str, str | int | float]


class EscanConfig(AitkenConfig):
    """Settings of everything that is trained on eSCAN."""

    seeds: int = Field(10, ge=1)  # about a third of the authors' AO runs were kept
    escan_steps: int = Field(10_000, ge=1)  # 5 freshly drawn sets, 2 epochs of 1000 batches each
    shortest_output: int = Field(15, ge=1)  # the text's 15 to 20; recorded runs have 10 to 15
    longest_output: int = Field(20, ge=2)
    longest_input: int = Field(27, ge=2)
    accepted: float = Field(SOLVED, ge=0, le=1)  # word accuracy of the runs that are analysed

    @property
    def escan(self) -> ExtendedScan:
        """The task."""
        return ExtendedScan(
            shortest_output=self.shortest_output,
            longest_output=self.longest_output,
            longest_input=self.longest_input,
        )

    def budget(self, task: Source) -> int:
        """Return the number of training steps on a task."""
        return self.escan_steps if isinstance(task, ExtendedScan) else self.steps


ESCAN_QUICK = {
    "seeds": 2,
    "hidden": 32,
    "escan_steps": 300,
    "batch_size": 32,
    "samples": 100,
    "shortest_output": 5,
    "longest_output": 8,
    "longest_input": 12,
    "accepted": 0.0,  # so short a run solves nothing, and is looked at all the same
}


class Wanted(NamedTuple):
    """Networks that differ in nothing but their seed."""

    task: Source
    model: ArchitectureName
    seeds: int
    cell: CellName = "gru"
    attention: AttentionName = "dot"


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
        wanted = self.wanted
        return {"model": wanted.model, "cell": wanted.cell, "attention": wanted.attention}

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


def train_groups(config: EscanConfig, lab: Lab, wanted: Sequence[Wanted]) -> list[Group]:
    """Train all networks, or reuse them, and see which are accepted."""
    units = [
        unit(
            one.task,
            one.model,
            seed,
            config=config,
            cell=one.cell,
            attention=one.attention,
        )
        for one in wanted
        for seed in range(one.seeds)
    ]
    trained = iter(lab.train(units, "networks"))
    groups = []
    for one in wanted:
        members = tuple(islice(trained, one.seeds))
        accuracies = tuple(word_accuracy(member, config.samples) for member in members)
        groups.append(Group(one, members, accuracies, config.accepted))
    return groups


def escan_groups(config: EscanConfig, lab: Lab) -> dict[str, Group]:
    """Return AED and AO on eSCAN, the networks of all three figures."""
    wanted = [Wanted(config.escan, model, config.seeds) for model in MODELS]
    groups = train_groups(config, lab, wanted)
    return {group.wanted.model: group for group in groups}


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
