"""Which of the paper's findings carry over: its claims' own thresholds on other architectures.

A finding carries over (1), does not (0), or its intervals leave it open (None). The paper claims
nothing about these networks, so that no claim of it is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

from attnscope.analysis.intervals import Interval
from attnscope.claims.decide import Verdict, above, all_of, below, verdict
from attnscope.claims.pool import interval_of
from attnscope.recipes.aitken.beyond_measure import ALL_HEADS
from attnscope.recipes.aitken.shared_claims import AGREES, NEGLIGIBLE, THREE, THREE_ENOUGH
from attnscope.runs.result import Measurement, measured, select

# Fixed beforehand, as the catalogue has them: aitken.orthogonal, word-variance, translation-terms.
ORTHOGONAL, MOST, LITTLE, DOMINATES = 0.1, 0.8, 0.5, 0.5

NAMES = {
    "translator": "the translator with a bidirectional encoder",
    "transformer": "the Transformer",
}
_ENDS = {
    Verdict.HOLDS: "carries over",
    Verdict.FAILS: "does not carry over",
    Verdict.UNDECIDED: "is left open by the interval over seeds",
}
_VALUES = {Verdict.HOLDS: 1.0, Verdict.FAILS: 0.0, Verdict.UNDECIDED: nan}

# Finds the interval of a number of one architecture on one task, of one head if it has heads.
Find = Callable[..., Interval]
Decide = Callable[[Find], Verdict]


@dataclass(frozen=True)
class Finding:
    """A finding of the paper: its claim, the tasks it is about, and how it is decided.

    ``says`` is the finding as the beginning of a sentence.
    """

    claim: str
    says: str
    tasks: tuple[str, ...]
    decide: Decide
    of_heads: bool = False


def _temporal(find: Find) -> Verdict:
    return _at_least(find("temporal_agreement"), AGREES)


def _delta(find: Find) -> Verdict:
    return below(find("delta_share", side="encoder"), NEGLIGIBLE)


def _orthogonal(find: Find) -> Verdict:
    return below(find("orthogonality", side="encoder"), ORTHOGONAL)


def _terms(find: Find) -> Verdict:
    three = find("term_share", form="raw", term=THREE)
    return all_of([above(find("largest_gap", form="raw")), above(three, THREE_ENOUGH)])


def _dictionary(find: Find) -> Verdict:
    found = find("dictionary", head=ALL_HEADS).value
    return verdict(found == 1.0, found < 1.0)


def _large_drop(find: Find) -> Verdict:
    return _at_least(find("variance_drop"), MOST)


def _small_drop(find: Find) -> Verdict:
    drop = find("variance_drop")
    return verdict(drop.high <= LITTLE, drop.low > LITTLE)


def _no_term_dominates(find: Find) -> Verdict:
    largest = find("largest_share", form="raw")
    return verdict(largest.high <= DOMINATES, largest.low > DOMINATES)


def _at_least(interval: Interval, bound: float) -> Verdict:
    return verdict(interval.low >= bound, interval.high < bound)


SIMPLE, ESCAN, TEXT = "one-to-one", "escan", "grammar"
FINDINGS = (
    Finding(
        "aitken.temporal-attention",
        "That temporal components alone give the attention",
        (SIMPLE,),
        _temporal,
        of_heads=True,
    ),
    Finding("aitken.delta-small", "That delta components are negligible", (SIMPLE,), _delta),
    Finding(
        "aitken.orthogonal",
        "That temporal and input-delta components are orthogonal",
        (SIMPLE,),
        _orthogonal,
    ),
    Finding(
        "aitken.dictionary",
        "That an output word is raised most by its translation's input component",
        (SIMPLE, ESCAN),
        _dictionary,
    ),
    Finding(
        "aitken.escan-terms",
        "That μ^D·μ^E is the largest term, and with μ^D·χ^E and μ^D·Δh^E more than .8",
        (ESCAN,),
        _terms,
        of_heads=True,
    ),
    Finding(
        "aitken.word-variance",
        "That most of a word's variance is temporal",
        (SIMPLE, ESCAN),
        _large_drop,
    ),
    Finding(
        "aitken.word-variance",
        "That little of a word's variance is temporal on text",
        (TEXT,),
        _small_drop,
    ),
    Finding(
        "aitken.translation-terms",
        "That no term has more than half of the alignment on text",
        (TEXT,),
        _no_term_dominates,
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
            find = _finder(rows, axes)
            result = finding.decide(find) if seeds else Verdict.UNDECIDED
            end = _ENDS[result] if seeds else "cannot be said, as no network was accepted"
            head = f"head {axes['head']} of " if axes else ""
            says = f"{finding.says} {end}: {head}{NAMES[model]}, {dataset}."
            said = {"model": model, "finding": finding.claim, **axes}
            count = len(seeds) or trained
            found.append(_row(dataset, result, count, said, seeds, says))
    return found


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
    dataset: str,
    result: Verdict,
    count: int,
    axes: Mapping[str, str | int | float],
    seeds: Sequence[int],
    says: str,
) -> Measurement:
    value = Interval(_VALUES[result], nan, nan, count)
    return measured("carries_over", dataset, value, axes, seeds, found={"says": says})


def _heads(rows: Sequence[Measurement], finding: Finding) -> list[dict[str, str | int | float]]:
    """Return the axes of every head, or no axes for a finding about the whole network."""
    if not finding.of_heads:
        return [{}]
    heads = [row.axes["head"] for row in select(rows, "largest_gap", form="raw")]
    return [{"head": head} for head in heads] or [{}]


def _finder(rows: Sequence[Measurement], head: Mapping[str, str | int | float]) -> Find:
    def find(name: str, **axes: str | int) -> Interval:
        wanted: dict[str, Any] = {**head, **axes}
        (row,) = select(rows, name, **wanted)
        return interval_of(row)

    return find
