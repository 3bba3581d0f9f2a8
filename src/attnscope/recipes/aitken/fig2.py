"""Figure 2: how VED, AED and AO solve one-to-one translation, reversed and sorted (§3).

All networks are analysed on fresh sequences and on their own words. Reversed sequences have one
length: the source of an output word otherwise depends on the length, which a network without
recurrence cannot know; both kinds are trained with varying lengths too, and reported. Sizes of
sorting are not the paper's, which gives none.

Where the paper sets the attention of temporal components into a corner of their path, it is a
panel here, next to the mean attention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, get_args

import torch
from pydantic import BeforeValidator, Field, field_validator

from attnscope.analysis import dictionary
from attnscope.analysis.measures import attention, components, pictures, terms
from attnscope.analysis.measures.numbers import Numbers, number
from attnscope.analysis.network import Network
from attnscope.analysis.temporal_attention import attention_of_terms, mean_attention
from attnscope.claims.published import published_value
from attnscope.claims.symbols import product_in_figures
from attnscope.data.sequence_tasks import OneToOne, Reversed, SequenceTask
from attnscope.errors import suggestion
from attnscope.figures.charts import Axis, beside
from attnscope.figures.component_planes import path_panel, plane_panel
from attnscope.figures.palette import WORDS
from attnscope.recipes.aitken.panels import matrix_panel
from attnscope.recipes.aitken.section_claims import SECTION_3, SORTING_TERM
from attnscope.recipes.aitken.units import (
    KINDS,
    ArchitectureName,
    Group,
    TaskConfig,
    Trained,
    train,
)
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.plots import dots
from attnscope.recipes.kit.settings import EachOnce, Several, several
from attnscope.recipes.recipe import Charts
from attnscope.runs.pictures import Matrix, Plane
from attnscope.runs.result import Measurement, Result

__all__ = ["CLAIMS", "HEADLINE", "QUICK", "Config", "draw", "measure"]

Records = list[Measurement | Matrix | Plane]
Shown = Callable[[Group, Network], Iterator[Matrix | Plane]]

# Word accuracy at which one-to-one translation counts as solved (aitken.one-to-one).
ONE_TO_ONE_SOLVED = 0.99
BOUNDARY = "boundary"
_CLOUD = 6  # input-delta components of a word and a side
# Fig. 2h: terms whose attention is shown for an example of sorting.
EXAMPLE_TERMS = {
    "temporal": ("temporal", "temporal"),
    "chiD.deltahE": ("word", "delta"),
    "deltahD.chiE": ("delta", "word"),
}


TaskName = Literal[
    "one-to-one", "five-words", "reversed", "reversed-varying", "sorting", "sorting-repeated"
]
TASKS: tuple[TaskName, ...] = get_args(TaskName)


class Config(TaskConfig):
    """Settings of figure 2."""

    tasks: Annotated[tuple[TaskName, ...], Several, EachOnce] = Field(TASKS, min_length=1)
    """Tasks; fewer of them for more networks of some. Other cells are those on one-to-one."""
    seeds: int = Field(5, ge=1)
    """Networks of each architecture and task."""
    circle_seeds: int = Field(25, ge=1)
    """Networks of AED on one-to-one; the paper shows the circle of one, here the median has it."""
    cells: Annotated[tuple[str, ...], BeforeValidator(several)] = tuple(KINDS)
    """Other networks on one-to-one; empty leaves them out."""
    cell_seeds: int = Field(10, ge=1)
    """Networks of each of these cells."""

    @field_validator("cells", mode="after")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(filter(None, names))
        for name in names:
            if name not in KINDS:
                raise ValueError(f"no kind of network {name!r}; {suggestion(name, KINDS)}")
        return names


QUICK = {
    "accepted": 0.0,  # so short a run solves nothing, and is analysed all the same
    "seeds": 2,
    "circle_seeds": 2,
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
CLAIMS = SECTION_3


def groups(config: Config) -> dict[Group, Shown | None]:
    """Return all networks, and the pictures of the first one of each seed where it has some."""
    simple, letters = config.one_to_one, config.sorting
    varying = Reversed(shortest=config.shortest, longest=config.longest)
    five = simple.model_copy(update={"words": 5})
    repeated = letters.model_copy(update={"drawn": "repeated"})
    tasks: list[tuple[TaskName, SequenceTask, tuple[ArchitectureName, ...], Shown | None]] = [
        ("one-to-one", simple, ("ao", "ved"), planes),
        ("five-words", five, ("aed", "ao"), None),
        ("reversed", config.reversed, ("aed", "ao"), planes),
        ("reversed-varying", varying, ("aed", "ao"), None),
        ("sorting", letters, ("aed",), example),
        ("sorting", letters, ("ao", "ved"), None),
        ("sorting-repeated", repeated, ("aed",), None),
    ]
    found: dict[Group, Shown | None] = {}
    if "one-to-one" in config.tasks:
        found[Group(simple, "aed", max(config.seeds, config.circle_seeds))] = planes
    for name, task, models, shown in tasks:
        if name in config.tasks:
            found |= {Group(task, model, config.seeds): shown for model in models}
    for kind in (KINDS[name] for name in config.cells if "one-to-one" in config.tasks):
        for model in kind.architectures:
            found[Group(simple, model, config.cell_seeds, kind.cell, kind.attention)] = None
    return found


def measure(config: Config, lab: Lab) -> Records:
    """Train all networks, and decompose those that solve their task."""
    shown = groups(config)
    rows: Records = []
    for trained in train(config, lab, list(shown)):
        group, networks, sheet = trained.group, trained.networks, trained.sheet
        rows += _of_every(trained, config.accepted)
        rows += sheet.over_seeds([numbers(network) for network in networks])
        explained = [components.explained(network, words(network)) for network in networks]
        rows += sheet.over_seeds(explained, published=_explained_in_print(group))
        picture = shown[group]
        rows += picture(group, networks[0]) if picture and networks else ()
        rows += _by_length(group, networks)
    return rows


def _of_every(trained: Trained, threshold: float) -> Records:
    """Return accuracies, and where the first output attends: at the end, where networks fail."""
    sheet, every = trained.sheet_of_every, trained.every
    values = [network.accuracy for network in every]
    first = [network.first_word_accuracy for network in every]
    solved, accepted = (
        sum(value >= bound for value in values) for bound in (ONE_TO_ONE_SOLVED, threshold)
    )
    attended = [attention.first_output(network) for network in every if network.attends]
    return [
        sheet.mean("word_accuracy", values),
        sheet.mean("first_word_accuracy", first),
        sheet.rate("solved", solved, len(values)),
        sheet.rate("accepted", accepted, len(values), {"accuracy": threshold}),
        *sheet.over_seeds(attended),
    ]


def words(network: Network) -> torch.Tensor:
    """Return the words of the task without EOS; on both sides they have the same ids."""
    return torch.arange(_task(network).end)


def _task(network: Network) -> SequenceTask:
    assert isinstance(network.source, SequenceTask)
    return network.source


def numbers(network: Network) -> Numbers:
    """Return the numbers of a network; which ones there are depends on its architecture alone."""
    found = (
        components.of_states(network, "delta_share", "input_delta_size", "orthogonality")
        | components.cross_angles(network)
        | components.circles(network)
        | components.simplex(network, words(network))
    )
    if not network.attends:
        return found | components.whole_path(network)
    shares = terms.shares_of(network)
    return (
        found
        | of_attention(network)
        | of_readout(network)
        | terms.nine(network, shares)
        | terms.lead(network, shares, SORTING_TERM)
    )


def of_attention(network: Network) -> Numbers:
    """Return what temporal components alone give of attention, and how both lie to the gold."""
    return attention.agreement(network) | attention.in_line(network) | attention.gold_mass(network)


def of_readout(network: Network) -> Numbers:
    """Return the readout as a dictionary, and for AED what its decoder half is worth."""
    model, seen = network.model, network.states.encoder.seen.nonzero()[:, 0]
    best = dictionary.raised_most(dictionary.linear_effects(network, seen), seen)
    pairs = dictionary.pairs_of(network.source)
    found = {number("dictionary"): dictionary.share_right(best, pairs)}
    if model.output.weight.shape[1] > dictionary.context_readout(model).shape[1]:
        silenced = replace(network, model=dictionary.without_state_readout(model))
        halves = model.output.weight.detach().chunk(2, 1)
        drop = network.accuracy - silenced.accuracy
        found[number("accuracy_drop", without="state readout")] = drop
        found[number("readout_norms")] = float(halves[1].norm() / halves[0].norm())
    return found


def _explained_in_print(group: Group) -> float | None:
    """Return the paper's share, a lower bound for all its plots of one-to-one (footnote 4)."""
    if not group.task.dataset.startswith("one-to-one"):
        return None
    percent = published_value("aitken", "text-s3", "one-to-one", "variance_explained(PCs)")
    return None if percent is None else percent / 100


def _by_length(group: Group, networks: Sequence[Network]) -> list[Measurement]:
    """Return what depends on the length, on sequences of one length and their own components.

    That is the attention on reversed sequences, and where VED's path ends (the claim's T).
    """
    task, rows = group.task, []
    assert isinstance(task, SequenceTask)
    if isinstance(task, Reversed):
        measure = of_attention
    elif isinstance(task, OneToOne) and group.model == "ved":
        measure = components.whole_path
    else:
        return []
    if not networks or task.shortest == task.longest:
        return []
    lengths = networks[0].sequences.target_lengths
    for length in lengths.unique().tolist():
        sheet = group.sheet([network.seed for network in networks])
        sheet = replace(sheet, axes={**sheet.axes, "length": length})
        rows += sheet.over_seeds([measure(network.only(lengths == length)) for network in networks])
    return rows


def planes(group: Group, network: Network) -> Iterator[Matrix | Plane]:
    """Yield temporal paths, input components, and the mean attention where there is one."""
    names = [_word(network, word) for word in range(len(network.source.output_words))]
    clouds = [
        *pictures.clouds_of(network, "encoder", "state", names, _CLOUD, evenly=True),
        *pictures.clouds_of(network, "decoder", "decoder state", names, _CLOUD, evenly=True),
    ]
    ids = words(network)
    outputs = [names[word] for word in ids]
    yield pictures.path(network, group.axes, network.paths)
    yield pictures.input_plane(
        network, group.axes, ids, outputs, clouds, names=names, from_mean=True
    )
    for of, mean in mean_attention(network).items() if network.attends else ():
        yield pictures.matrix("mean_attention", network, {**group.axes, "of": of}, mean)


def _word(network: Network, word: int) -> str:
    if word >= _task(network).end:
        return BOUNDARY
    inputs, outputs = _task(network).pairs[word]
    return inputs if inputs == outputs else f"{inputs} → {outputs}"


def example(group: Group, network: Network) -> Iterator[Matrix]:
    """Yield the attention of one of the longest sequences, and that of some of its terms."""
    trace = next(network.passes())
    row = int(trace.batch.target_lengths.argmax())
    batch = trace.batch.rows(slice(row, row + 1)).trimmed()
    labels = {
        "inputs": network.source.input_words.decode(batch.inputs[0].tolist()),
        "outputs": network.source.output_words.decode(batch.targets[0].tolist()),
    }
    found = attention_of_terms(network, trace, row, EXAMPLE_TERMS)
    for of, weights in found.items():
        axes = {**group.axes, "of": of}
        yield pictures.matrix("example_attention", network, axes, weights, **labels)


PANELS = {
    ("one-to-one-3", "aed"): "AED",
    ("one-to-one-3", "ao"): "AO",
    ("reversed-3", "aed"): "AED, reversed",
    ("reversed-3", "ao"): "AO, reversed",
    # Last, since it has no attention to show.
    ("one-to-one-3", "ved"): "VED",
}
_MEANS = {"temporal": "from time alone, softmax(μ·μ)", "attention": "mean attention"}
# Clockwise from the top left, as in Fig. 2h.
_EXAMPLES = {
    "attention": "whole attention, h·h",
    "temporal": f"{product_in_figures('muD.muE')}, alone",
    "deltahD.chiE": f"{product_in_figures('deltahD.chiE')}, alone",
    "chiD.deltahE": f"{product_in_figures('chiD.deltahE')}, alone",
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw paths, input components and attention of each network, and sorting's example."""
    panels: list[Any] = []
    for (dataset, model), name in PANELS.items():
        if result.select_pictures(Plane, "temporal_path", dataset, model=model):
            panels += _network(result, dataset, model, name)
    found = {"fig2": beside(*panels, columns=4)} if panels else {}
    if result.select_pictures(Matrix, "example_attention"):
        found["fig2-sorting"] = beside(*_sorting(result), columns=2)
    return found


def _network(result: Result, dataset: str, model: str, name: str) -> Iterator[Any]:
    usual = {"model": model, "cell": "gru"}
    path = result.picture(Plane, "temporal_path", dataset, **usual)
    plane = result.picture(Plane, "input_plane", dataset, **usual)
    labels = dict.fromkeys(point.label for point in plane.points if point.group == "component")
    colours = dict(zip(labels, WORDS.values(), strict=False)) | {BOUNDARY: WORDS["<eos>"]}
    yield path_panel(path, f"{name}: temporal components")
    yield plane_panel(plane, f"{name}: input components", colours)
    for of, title in _MEANS.items():
        for mean in result.select_pictures(Matrix, "mean_attention", dataset, of=of, **usual):
            yield matrix_panel(mean, f"{name}: {title}", value_title="weight")


def _sorting(result: Result) -> Iterator[Any]:
    for of, title in _EXAMPLES.items():
        weights = result.picture(Matrix, "example_attention", model="aed", of=of)
        yield matrix_panel(weights, f"AED, sorting: {title}", value_title="weight")
    dataset = result.picture(Matrix, "example_attention", model="aed", of="attention").dataset
    for form, title in (("centred", "row-centred"), ("raw", "raw")):
        yield dots(
            result.select("term_share", dataset, model="aed", form=form),
            Axis("share of absolute contributions", domain=(0, 1)),
            label=lambda row: product_in_figures(str(row.axes["term"])),
            title=f"AED, sorting: terms, {title}",
        )
