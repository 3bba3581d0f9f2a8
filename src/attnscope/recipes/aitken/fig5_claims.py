"""The claims of §4.1; those about English-French need networks on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from attnscope.analysis.intervals import Interval
from attnscope.claims.decide import Verdict, above, below, reaches, stays_within, verdict
from attnscope.claims.pool import Decision, Pool, interval_of
from attnscope.claims.table import Cell, Cells, Claim, Finding, Needs, Part, several
from attnscope.recipes.aitken.claims import (
    CELLS,
    DICTIONARY,
    ESCAN,
    HALF,
    ONE_TO_ONE,
    TEMPORAL_TERMS,
    Need,
    is_text,
    no_text,
    on_escan,
    on_text,
    stand_in,
    usual,
)
from attnscope.recipes.aitken.measures.terms import MU_MU, THREE
from attnscope.recipes.aitken.units import MODELS
from attnscope.runs.result import Measurement

_MOST_DROPS = 0.8


def average_attention(pool: Pool) -> Decision:
    """Decide aitken.average-attention: the Spearman coefficient over tasks and architectures."""
    evidence: dict[str, Any] = {}
    for cell in Cells("attention_similarity", ("dataset", "model", "cell", "attention")).find(pool):
        share = cell.select("term_share", form="raw", term=MU_MU)
        similar = cell.one("attention_similarity")
        evidence[cell.label] = {"similarity": similar, f"share of {MU_MU}": share}
    relation = _RELATION(pool)
    return replace(relation, evidence=evidence | dict(relation.evidence))


def _no_text(pool: Pool, cells: Sequence[Cell]) -> str:
    texts = [row for row in pool.named("attention_similarity") if is_text(row.dataset)]
    return no_text(pool, [Cell(pool)] if texts else [])


_RELATION = Claim(
    Cells("share_similarity_spearman", ("form",)),
    (
        Part("Spearman", "share_similarity_spearman", above, only={"form": "raw"}),
        Part("Spearman", "share_similarity_spearman"),
    ),
    Needs(also=_no_text),
    deviation=lambda pool, _: stand_in(pool, pool.datasets("attention_similarity")),
)

_LARGEST = on_escan(
    "largest_gap",
    *TEMPORAL_TERMS,
    Part(f"share of {MU_MU}, row-centred", "term_share", given={"form": "centred", "term": MU_MU}),
)


def _printed(row: Measurement) -> float:
    return math.nan if row.published is None else row.published


def _touches(interval: Interval, bound: float) -> Verdict:
    """Decide whether an interval reaches up to the paper's lower bound."""
    return verdict(interval.high >= bound, interval.high < bound)


_PRINTED = Claim(
    Cells("largest_gap", ("model",), usual(ESCAN)),
    [
        Part(f"share of {term}", "term_share", _touches, _printed, {"form": "raw", "term": term})
        for term in (MU_MU, THREE)
    ],
)


def escan_terms(pool: Pool) -> Decision:
    """Decide aitken.escan-terms by (a), for AED and AO; (b), the paper's bounds, is shown."""
    largest, printed = _LARGEST(pool), _PRINTED(pool)
    evidence = {
        "(a) largest, and three terms above .8": {**largest.evidence, "": str(largest.verdict)},
        "(b) intervals reach .77 and .87": {**printed.evidence, "": str(printed.verdict)},
    }
    note = f"(a) decides; (b) the paper's numbers: {printed.verdict}"
    return Decision(largest.verdict, evidence, note="; ".join(filter(None, [largest.note, note])))


def _maxima(cell: Cell) -> Finding:
    return Finding(None, {"maxima by step": [row.value for row in cell.select("peak_offset")]})


def _after_escan(name: str) -> Need:
    """Return a need: text decides only once both architectures are measured on eSCAN."""

    def lacking(pool: Pool, cells: Sequence[Cell]) -> str:
        rows = pool.select(name, ESCAN, cell="gru", attention="dot")
        measured = {row.axes["model"] for row in rows} >= set(MODELS)
        return no_text(pool, cells) if measured else "waits for eSCAN"

    return lacking


def _less_on_text(cell: Cell) -> Finding:
    """Decide that the drop on eSCAN is larger than on text."""
    gap = difference(cell.one("variance_drop", dataset=ESCAN), cell.one("variance_drop"))
    return Finding(above(gap), {"less than on eSCAN by": gap})


def difference(a: Measurement, b: Measurement) -> Interval:
    """Return a − b of networks that have nothing in common, from the two intervals [1]_.

    References
    ----------
    .. [1] G. Y. Zou, A. Donner. "Construction of confidence limits about effect measures: a general
       approach." Statistics in Medicine 27(10), 2008.
    """
    first, second = interval_of(a), interval_of(b)
    value = first.value - second.value
    down = math.hypot(first.value - first.low, second.high - second.value)
    up = math.hypot(first.high - first.value, second.value - second.low)
    return Interval(value, value - down, value + up, min(first.n, second.n))


CLAIMS: dict[str, Any] = {
    "aitken.average-attention": average_attention,
    "aitken.escan-terms": escan_terms,
    "aitken.offset": several(
        {
            "eSCAN": on_escan(
                "offset_spearman",
                Part("Spearman, code's line", "offset_spearman", reaches, 0.8, {"line": "code"}),
                Part("mean error, code's line", "offset_error", stays_within, 1, {"line": "code"}),
                Part("Spearman, exact line", "offset_spearman", given={"line": "exact"}),
                Part("mean error, exact line", "offset_error", given={"line": "exact"}),
                _maxima,
            ),
            "English-French": on_text(
                "offset_change",
                Part("offset_change", "offset_change", below, given={"of": "maximum"}),
                Part("width_change", "width_change", above),
                Part("diagonal_change", "diagonal_change", above),
                models=MODELS,
                also=_after_escan("offset_spearman"),
            ),
        }
    ),
    "aitken.word-variance": several(
        {
            "one-to-one": Claim(
                Cells("variance_drop", ("model",), usual(ONE_TO_ONE)),
                (Part("", "variance_drop", reaches, _MOST_DROPS),),
                Needs(each={"model": MODELS}),
            ),
            "eSCAN": on_escan("variance_drop", Part("", "variance_drop", reaches, _MOST_DROPS)),
            "English-French": on_text(
                "variance_drop",
                Part("drop", "variance_drop", stays_within, HALF),
                _less_on_text,
                also=_after_escan("variance_drop"),
            ),
        }
    ),
    "aitken.dictionary": DICTIONARY,
    "aitken.cells": CELLS,
}
