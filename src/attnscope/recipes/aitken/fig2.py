"""Figure 2: how VED, AED and AO solve one-to-one translation, reversed and sorted (§3).

All networks are analysed on fresh sequences and on their own words. Reversed sequences have one
length: where an output word comes from would else depend on the length, which a network without
recurrence cannot know; both kinds are trained with varying lengths too, and reported. Sizes of
sorting are not the paper's, which gives none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from attnscope.data.sequence_tasks import OneToOne, Reversed, SequenceTask, Sorting
from attnscope.data.source import Source
from attnscope.errors import suggestion
from attnscope.recipes.aitken.fig2_claims import CLAIMS
from attnscope.recipes.aitken.fig2_measure import numbers, of_attention, rows_of
from attnscope.recipes.aitken.fig2_network import Picture, SequenceNetwork
from attnscope.recipes.aitken.fig2_pictures import (
    attention_rows,
    example_rows,
    path_rows,
    word_rows,
)
from attnscope.recipes.aitken.groups import Wanted
from attnscope.recipes.aitken.units import KINDS, AitkenConfig, ArchitectureName
from attnscope.recipes.recipe import Charts, Lab, Logged
from attnscope.runs.result import Measurement, Result

__all__ = ["CLAIMS", "HEADLINE", "QUICK", "Config", "draw", "measure"]


def _several(value: Any) -> Any:
    """Read ``a,b`` from the command line as two values, and nothing as none."""
    return tuple(filter(None, value.split(","))) if isinstance(value, str) else value


class Config(AitkenConfig):
    """Settings of figure 2."""

    seeds: int = Field(5, ge=1)
    # Words without EOS; with it 16 to 20, the text's "15 to 20".
    shortest: int = Field(15, ge=1)
    longest: int = Field(19, ge=2)
    letters: int = Field(10, ge=3)
    sorted_shortest: int = Field(5, ge=1)
    sorted_longest: int = Field(8, ge=2)
    sorting_steps: int = Field(6000, ge=1)
    # Other networks on one-to-one: lstm, ugrnn, learned, non-gated; nothing leaves them out.
    cells: Annotated[tuple[str, ...], BeforeValidator(_several)] = tuple(KINDS)
    cell_seeds: int = Field(3, ge=1)

    @field_validator("cells", mode="after")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in KINDS:
                raise ValueError(f"no kind of network {name!r}; {suggestion(name, KINDS)}")
        return names

    def budget(self, task: Source) -> int:
        """Return the number of training steps on a task."""
        return self.sorting_steps if isinstance(task, Sorting) else self.steps


QUICK = {
    "seeds": 2,
    "hidden": 32,
    "steps": 300,
    "sorting_steps": 300,
    "batch_size": 64,
    "shortest": 5,
    "longest": 6,
    "letters": 6,
    "sorted_shortest": 3,
    "sorted_longest": 4,
    "samples": 100,
    "cells": "non-gated",
    "cell_seeds": 2,
}
HEADLINE = ("word_accuracy", "temporal_agreement", "delta_share", "dictionary")


def wanted(config: Config) -> list[tuple[Wanted, tuple[Picture, ...]]]:
    """Return all networks, those that differ in their seed together, and what is drawn of them."""
    lengths = {"shortest": config.shortest, "longest": config.longest}
    sorted_lengths = {"shortest": config.sorted_shortest, "longest": config.sorted_longest}
    simple = OneToOne(**lengths)
    letters = Sorting(letters=config.letters, **sorted_lengths)
    repeated = Sorting(letters=config.letters, drawn="repeated", **sorted_lengths)
    # Of the others numbers are enough.
    planes: tuple[Picture, ...] = (path_rows, word_rows, attention_rows)
    tasks: list[tuple[SequenceTask, tuple[ArchitectureName, ...], tuple[Picture, ...]]] = [
        (simple, ("aed", "ao", "ved"), planes),
        (OneToOne(words=5, **lengths), ("aed", "ao"), ()),
        (Reversed(shortest=config.longest, longest=config.longest), ("aed", "ao"), planes),
        (Reversed(**lengths), ("aed", "ao"), ()),
        (letters, ("aed",), (example_rows,)),
        (letters, ("ao", "ved"), ()),
        (repeated, ("aed",), ()),
    ]
    usual = [
        (Wanted(task, model, config.seeds), pictures)
        for task, models, pictures in tasks
        for model in models
    ]
    others: list[tuple[Wanted, tuple[Picture, ...]]] = [
        (Wanted(simple, model, config.cell_seeds, kind.cell, kind.attention), ())
        for kind in (KINDS[name] for name in config.cells)
        for model in kind.architectures
    ]
    return usual + others


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train all networks and take them apart."""
    groups = wanted(config)
    units = [unit for group, _ in groups for unit in group.units(config)]
    trained = iter(lab.train(units, "synthetic tasks"))
    rows: list[Measurement] = []
    for group, pictures in groups:
        members = islice(trained, group.seeds)
        networks = [SequenceNetwork.of(member, config.samples) for member in members]
        rows += rows_of(group, [numbers(network) for network in networks])
        rows += [row for picture in pictures for row in picture(group, networks[0])]
        rows += _rows_by_length(group, networks)
    return rows


def _rows_by_length(group: Wanted, networks: Sequence[SequenceNetwork]) -> list[Measurement]:
    """Return what reversed sequences of one length show, whose components are then their own."""
    task = group.task
    if not isinstance(task, Reversed) or task.shortest == task.longest:
        return []
    rows: list[Measurement] = []
    for length in networks[0].sequences.target_lengths.unique().tolist():
        found = [of_attention(network.of_length(length)) for network in networks]
        rows += rows_of(group, found, {"length": length})
    return rows


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw paths, input components and attention of each network, and sorting's example."""
    from attnscope.recipes.aitken.fig2_figures import charts

    return charts(result)
