"""The networks on eSCAN that figures 3, 5 and 6 share, and which of them are analysed.

Analyses are of accepted runs: those with a word accuracy of at least .97, a rule fixed before any
run. How many were accepted is reported with an interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from attnscope.data.escan import ExtendedScan
from attnscope.data.source import Source
from attnscope.recipes.aitken.networks import Network
from attnscope.recipes.aitken.units import MODELS, SOLVED, AitkenConfig, Group
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.recipe import Lab
from attnscope.runs.result import Measurement

# What the paper says that both architectures reach on eSCAN.
REACHED = 0.98


class EscanConfig(AitkenConfig):
    """Settings of everything that is trained on eSCAN."""

    seeds: int = Field(10, ge=1)  # about a third of the authors' AO runs were kept
    escan_steps: int = Field(10_000, ge=1)  # 5 freshly drawn sets, 2 epochs of 1000 batches each
    shortest_output: int = Field(15, ge=1)  # the text's 15 to 20; recorded runs have 10 to 15
    longest_output: int = Field(20, ge=2)
    longest_input: int = Field(27, ge=2)
    # A mark at the end of every phrase, on both sides: the text names none, a recorded run has it.
    separator: Literal["none", "marked"] = "none"
    drawing: Literal["phrase", "shape"] = "phrase"  # uniform over phrases, or over shapes first
    accepted: float = Field(SOLVED, ge=0, le=1)  # word accuracy of the runs that are analysed

    @property
    def escan(self) -> ExtendedScan:
        """The task."""
        return ExtendedScan(
            shortest_output=self.shortest_output,
            longest_output=self.longest_output,
            longest_input=self.longest_input,
            separator=self.separator,
            drawing=self.drawing,
        )

    @property
    def escan_groups(self) -> list[Group]:
        """AED and AO on eSCAN, the networks of all three figures."""
        return [Group(self.escan, model, self.seeds) for model in MODELS]

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
    "accepted": 0.0,  # so short a run solves nothing, and is analysed all the same
}


@dataclass(frozen=True)
class Trained:
    """A trained group: the word accuracy of every network by seed, and the accepted ones."""

    group: Group
    accuracies: Mapping[int, float]
    networks: Sequence[Network]

    @property
    def sheet(self) -> Sheet:
        """The sheet of the accepted networks' measurements."""
        return self.group.sheet([network.seed for network in self.networks])

    @property
    def first_sheet(self) -> Sheet:
        """The sheet of the first accepted network, which the figures show."""
        return self.group.sheet([network.seed for network in self.networks[:1]])

    def accuracy_rows(self, threshold: float, published: float | None = None) -> list[Measurement]:
        """Return the accuracies: their mean, each seed's, and how many are accepted or reach .98.

        A seed's accuracy is of one network and has no interval over networks. The authors' way of
        counting, padding included, is that of the accepted networks.
        """
        values = list(self.accuracies.values())
        sheet = self.group.sheet(list(self.accuracies))
        rows = [sheet.mean("word_accuracy", values, published=published)]
        if self.networks:
            padded = [network.padded_accuracy for network in self.networks]
            rows.append(self.sheet.mean("padded_accuracy", padded, published=published))
        for name, bound in (("accepted", threshold), ("reached", REACHED)):
            count = sum(value >= bound for value in values)
            rows.append(sheet.rate(name, count, len(values), {"accuracy": bound}))
        for seed, value in self.accuracies.items():
            rows.append(sheet.point("seed_accuracy", value, {"seed": seed}, seeds=[seed]))
        return rows


def train(config: EscanConfig, lab: Lab, groups: Sequence[Group]) -> Iterator[Trained]:
    """Train all networks, or reuse them, and yield each group with its accepted networks."""
    units = {group: group.units(config) for group in groups}
    for group, members in lab.train(units, "networks").items():
        networks = [Network.of(member, config.samples) for member in members]
        accepted = [network for network in networks if network.accuracy >= config.accepted]
        yield Trained(group, {network.seed: network.accuracy for network in networks}, accepted)
