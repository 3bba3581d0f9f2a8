"""The claims of figure 5; what is about English-French is undecided without networks on it."""

from __future__ import annotations

import math
from typing import Any

from attnscope.analysis.intervals import Interval
from attnscope.claims.decide import Verdict, above, all_of, verdict
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.recipes.aitken.escan_units import MODELS
from attnscope.recipes.aitken.fig4_claims import offset_on_text
from attnscope.recipes.aitken.shared_claims import (
    ESCAN,
    MU_MU,
    NO_TRANSLATION,
    ONE_TO_ONE,
    THREE,
    average_attention,
    cells,
    deviation_of,
    dictionary,
    largest_term,
    translation_rows,
)
from attnscope.runs.result import Measurement

# Fixed beforehand, as the catalogue has them.
_SPEARMAN, _ERROR, _MOST, _LITTLE = 0.8, 1.0, 0.8, 0.5


def escan_terms(pool: Pool) -> Decision:
    """Decide aitken.escan-terms by (a), for AED and AO; (b), the paper's bounds, beside."""
    parts: list[Verdict] = []
    bounds: list[Verdict] = []
    evidence: dict[str, Any] = {}
    for model in MODELS:
        largest, shares = largest_term(pool, f"{model} gru dot")
        parts.append(largest)
        evidence |= shares
        for term in (MU_MU, THREE):
            rows = pool.select("term_share", ESCAN, form="raw", term=term, model=model)
            rows = [row for row in rows if row.published is not None]
            bounds += [_reaches(row) for row in rows]
            evidence |= {f"{model}: share of {term}": interval_of(row) for row in rows}
        evidence |= {
            f"{model}: share of {MU_MU}, row-centred": interval_of(row)
            for row in _usual(pool, "term_share", ESCAN, model, form="centred", term=MU_MU)
        }
    reached = all_of(bounds)
    evidence["(a) largest, and three terms above .8"] = str(all_of(parts))
    evidence["(b) intervals reach .77 and .87"] = str(reached)
    if not bounds:
        return undecided("no run on eSCAN was accepted", evidence)
    return Decision(
        all_of(parts), evidence, note=f"(a) decides; (b) the paper's numbers: {reached}"
    )


def _reaches(row: Measurement) -> Verdict:
    """Decide whether an interval reaches the paper's lower bound."""
    interval, bound = interval_of(row), row.published or 0.0
    return verdict(interval.high >= bound, interval.high < bound)


def offset(pool: Pool) -> Decision:
    """Decide aitken.offset: the maximum follows the code's line on eSCAN."""
    parts: list[Verdict] = []
    evidence: dict[str, Any] = {}
    for model in MODELS:
        for line in ("code", "exact"):
            order = pool.select("offset_spearman", ESCAN, model=model, line=line)
            error = pool.select("offset_error", ESCAN, model=model, line=line)
            if not order or not error:
                return undecided(f"no run of {model} on eSCAN was accepted", evidence)
            evidence[f"{model}, {line} line"] = {
                "Spearman": interval_of(order[0]),
                "mean absolute error": interval_of(error[0]),
            }
            if line == "code":
                parts += [at_least(order[0], _SPEARMAN), at_most(error[0], _ERROR)]
        evidence[f"{model}, maxima by step"] = [
            row.value for row in pool.select("peak_offset", ESCAN, model=model)
        ]
    french, found = offset_on_text(pool)
    evidence |= found
    deviation = deviation_of(translation_rows(pool, "offset_change"))
    note = "" if found else NO_TRANSLATION
    return Decision(all_of([*parts, french]), evidence, deviation, note)


def at_least(row: Measurement, bound: float) -> Verdict:
    """Decide that the whole interval reaches a bound, or none of it."""
    interval = interval_of(row)
    return verdict(interval.low >= bound, interval.high < bound)


def at_most(row: Measurement, bound: float) -> Verdict:
    """Decide that the whole interval is within a bound, or none of it."""
    interval = interval_of(row)
    return verdict(interval.high <= bound, interval.low > bound)


def word_variance(pool: Pool) -> Decision:
    """Decide aitken.word-variance: large drops on the synthetic tasks, small ones on text."""
    parts: list[Verdict] = []
    evidence: dict[str, Any] = {}
    for dataset in (ONE_TO_ONE, ESCAN):
        for model in MODELS:
            rows = _usual(pool, "variance_drop", dataset, model)
            if not rows:
                return undecided(f"no run of {model} on {dataset} was accepted", evidence)
            evidence[f"{dataset} {model}"] = interval_of(rows[0])
            parts.append(at_least(rows[0], _MOST))
    french = translation_rows(pool, "variance_drop")
    if not french:
        return Decision(all_of([*parts, Verdict.UNDECIDED]), evidence, note=NO_TRANSLATION)
    evidence |= {f"{row.dataset} {row.axes['model']}": interval_of(row) for row in french}
    parts += [at_most(row, _LITTLE) for row in french]
    for row in french:
        name = str(row.axes["model"])
        gap = difference(_usual(pool, "variance_drop", ESCAN, name)[0], row)
        evidence[f"eSCAN less {row.dataset}, {name}"] = gap
        parts.append(above(gap))
    return Decision(all_of(parts), evidence, deviation_of(french))


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


def _usual(pool: Pool, name: str, dataset: str, model: str, **axes: str) -> list[Measurement]:
    return pool.select(name, dataset, model=model, cell="gru", attention="dot", **axes)


CLAIMS = {
    "aitken.average-attention": average_attention,
    "aitken.escan-terms": escan_terms,
    "aitken.offset": offset,
    "aitken.word-variance": word_variance,
    "aitken.dictionary": dictionary,
    "aitken.cells": cells,
}
