"""Measured numbers as comma-separated values, next to the results that they come from."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from attnscope.analysis.intervals import Interval
from attnscope.claims.fidelity import ComparedCell
from attnscope.claims.verdicts import Judged
from attnscope.claims.wording import number
from attnscope.recipes import find
from attnscope.recipes.recipe import module_of
from attnscope.report.ranges import leaves
from attnscope.runs.result import Measurement, Result, headline


def measurements_csv(results: Iterable[Result]) -> str:
    """Return the headline measurements of some results."""
    columns = ("recipe", "part", "measured", "dataset", "of", "value", "low", "high", "n", "paper")
    rows = []
    for result in results:
        module = module_of(find(result.recipe))
        for row in headline(result.numbers, module.HEADLINE):
            split = {} if row.split == "val" else {"split": row.split}
            known = split | row.axes | row.found
            axes = ", ".join(f"{key}={number(value)}" for key, value in known.items())
            ends = [_digits(end) for end in (row.value, row.low, row.high)]
            where = (result.recipe, result.part, row.name, row.dataset, axes)
            rows.append((*where, *ends, row.n, _digits(row.published)))
    return _written(columns, rows)


def fidelity_csv(cells: Iterable[ComparedCell]) -> str:
    """Return every printed result with the measured number and how near it is."""
    columns = (
        *("paper", "table", "dataset", "variant", "metric", "split", "printed", "unit"),
        *("measured", "low", "high", "corpus", "within", "inside"),
    )
    rows = []
    for cell in cells:
        row, found = cell.row, cell.measured
        variant = ";".join(f"{key}={value}" for key, value in row.variant)
        printed = (cell.paper, row.table, row.dataset, variant, row.metric, row.split)
        ends = ("", "", "") if found is None else (found.value, found.low, found.high)
        verdict = ("", "") if found is None else (cell.within, cell.inside)
        measured = [_digits(end) for end in ends]
        rows.append((*printed, f"{row.value:g}", row.unit, *measured, cell.corpus, *verdict))
    return _written(columns, rows)


def evidence_csv(judged: Iterable[Judged]) -> str:
    """Return every piece of evidence of some claims, one row each.

    ``reading`` is (a) or (b) of a claim that is read in two ways; (b) has rows of its own where its
    evidence is not that of (a).
    """
    columns = ("claim", "reading", "verdict", "of", "value", "low", "high", "n", "paper")
    rows = []
    for claim in judged:
        readings = [("a" if claim.readings else "", claim.verdict, claim.evidence)]
        for reading in claim.readings[1:]:
            if dict(reading.evidence) != claim.evidence:
                readings.append(("b", reading.verdict, dict(reading.evidence)))
        for letter, verdict, evidence in readings:
            for path, value in leaves(evidence):
                rows.append((claim.id, letter, verdict, " / ".join(path), *_piece(value)))
    return _written(columns, rows)


def _piece(value: Any) -> tuple[str, str, str, object, str]:
    """Return value, ends, sample size and printed number of one piece of evidence."""
    if isinstance(value, (Interval, Measurement)):
        low, high = _digits(value.low), _digits(value.high)
        printed = value.published if isinstance(value, Measurement) else None
        return _digits(value.value), low, high, value.n, _digits(printed)
    return number(value), "", "", "", ""


def _digits(value: object) -> str:
    if value is None or value == "" or value != value:  # NaN is not itself
        return ""
    return f"{value:.5g}"


def _written(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return stream.getvalue()
