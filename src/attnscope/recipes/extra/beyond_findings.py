"""Which of the paper's findings carry over: its claims' own thresholds on other architectures.

A finding carries over (1), does not (0), or its intervals leave it open (None). The paper claims
nothing about these networks, so that no claim of it is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any

from attnscope.analysis.intervals import Interval
from attnscope.analysis.measures.terms import THREE
from attnscope.claims.decide import Verdict, above, all_of, below, exactly, reaches, stays_within
from attnscope.claims.pool import interval_of
from attnscope.claims.table import Rule
from attnscope.recipes.aitken.claims import AGREES, NEGLIGIBLE, THREE_ENOUGH
from attnscope.runs.result import Measurement, measured, select

Axes = Mapping[str, str | int | float]

NAMES = {
    "translator": "the translator with a bidirectional encoder",
    "transformer": "the Transformer",
}
_ENDS = {
    Verdict.HOLDS: "carries over",
    Verdict.FAILS: "does not carry over",
    Verdict.UNDECIDED: "is left open by the interval over seeds",
}
ALL_HEADS = "all"  # the head of a number of all heads together
_VALUES = {Verdict.HOLDS: 1.0, Verdict.FAILS: 0.0, Verdict.UNDECIDED: nan}


@dataclass(frozen=True)
class Bounded:
    """A number of one architecture on one task, of one head if it has heads, and its bound."""

    name: str
    rule: Rule
    bound: float
    axes: Axes = field(default_factory=dict)


@dataclass(frozen=True)
class PaperFinding:
    """A finding of the paper: its claim, the tasks it is about, and the numbers that decide it.

    ``says`` is the finding as the beginning of a sentence.
    """

    claim: str
    says: str
    tasks: tuple[str, ...]
    parts: tuple[Bounded, ...]
    of_heads: bool = False


SIMPLE, ESCAN, TEXT = "one-to-one", "escan", "grammar"
_ENCODER, _RAW = {"side": "encoder"}, {"form": "raw"}
# Bounds were fixed beforehand, as the catalogue has them.
FINDINGS = (
    PaperFinding(
        "aitken.temporal-attention",
        "That temporal components alone give the attention",
        (SIMPLE,),
        (Bounded("temporal_agreement", reaches, AGREES),),
        of_heads=True,
    ),
    PaperFinding(
        "aitken.delta-small",
        "That delta components are negligible",
        (SIMPLE,),
        (Bounded("delta_share", below, NEGLIGIBLE, _ENCODER),),
    ),
    PaperFinding(
        "aitken.orthogonal",
        "That temporal and input-delta components are orthogonal",
        (SIMPLE,),
        (Bounded("orthogonality", below, 0.1, _ENCODER),),
    ),
    PaperFinding(
        "aitken.dictionary",
        "That an output word is raised most by its translation's input component",
        (SIMPLE, ESCAN),
        (Bounded("dictionary", exactly, 1.0, {"head": ALL_HEADS}),),
    ),
    PaperFinding(
        "aitken.escan-terms",
        "That μ^D·μ^E is the largest term, and with μ^D·χ^E and μ^D·Δh^E more than .8",
        (ESCAN,),
        (
            Bounded("largest_gap", above, 0.0, _RAW),
            Bounded("term_share", above, THREE_ENOUGH, {"form": "raw", "term": THREE}),
        ),
        of_heads=True,
    ),
    PaperFinding(
        "aitken.word-variance",
        "That most of a word's variance is temporal",
        (SIMPLE, ESCAN),
        (Bounded("variance_drop", reaches, 0.8),),
    ),
    PaperFinding(
        "aitken.word-variance",
        "That little of a word's variance is temporal on text",
        (TEXT,),
        (Bounded("variance_drop", stays_within, 0.5),),
    ),
    PaperFinding(
        "aitken.translation-terms",
        "That no term has more than half of the alignment on text",
        (TEXT,),
        (Bounded("largest_share", stays_within, 0.5, _RAW),),
        of_heads=True,
    ),
)


def carried_over(
    rows: Sequence[Measurement], model: str, dataset: str, seeds: Sequence[int], trained: int
) -> list[Measurement]:
    """Return what carries over to an architecture on a task, each finding with its sentence.

    Parameters
    ----------
    rows
        The measurements of these networks.
    seeds
        Of the networks that were analysed.
    trained
        How many there are, with those that were not accepted.
    """
    found = []
    for finding in FINDINGS:
        if not any(dataset.startswith(task) for task in finding.tasks):
            continue
        for axes in _heads(rows, finding):
            result, end = Verdict.UNDECIDED, "cannot be decided, as no network was accepted"
            if seeds:
                result = all_of([_decided(rows, part, axes) for part in finding.parts])
                end = _ENDS[result]
            head = f"head {axes['head']} of " if axes else ""
            says = f"{finding.says} {end}: {head}{NAMES[model]}, {dataset}."
            named = {"model": model, "finding": finding.claim, **axes}
            found.append(_row(dataset, result, len(seeds) or trained, named, seeds, says))
    return found


def _decided(rows: Sequence[Measurement], part: Bounded, head: Axes) -> Verdict:
    wanted: dict[str, Any] = {**head, **part.axes}
    (row,) = select(rows, part.name, **wanted)
    return part.rule(interval_of(row), part.bound)


def average_attention(row: Measurement) -> Measurement:
    """Return whether the paper's second contribution carries over, from the rank correlation."""
    result = above(interval_of(row))
    model = str(row.axes["model"])
    says = (
        "That temporal components matter more, the better the mean attention approximates a "
        f"sequence's, {_ENDS[result]}: {NAMES[model]}, tasks and heads."
    )
    axes = {"model": model, "finding": "aitken.average-attention"}
    return _row(row.dataset, result, row.n, axes, row.seeds, says)


def _row(
    dataset: str, result: Verdict, count: int, axes: Axes, seeds: Sequence[int], says: str
) -> Measurement:
    value = Interval(_VALUES[result], nan, nan, count)
    return measured("carries_over", dataset, value, axes, seeds, found={"says": says})


def _heads(rows: Sequence[Measurement], finding: PaperFinding) -> list[Axes]:
    """Return the axes of every head, or no axes for a finding about the whole network."""
    if not finding.of_heads:
        return [{}]
    heads = [row.axes["head"] for row in select(rows, "largest_gap", form="raw")]
    return [{"head": head} for head in heads] or [{}]
