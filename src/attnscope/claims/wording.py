"""Numbers and evidence as text, for a terminal or a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from attnscope.analysis.intervals import Interval
from attnscope.claims.pool import interval_of
from attnscope.runs.result import Measurement


def number(value: Any) -> str:
    """Return a number in at most four digits, as a reader wants it."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e6 else f"{value:.3g}"
    return str(value)


def plain_setting(value: Any) -> str:
    """Return the value of a setting as the command line takes it."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def ranged(interval: Interval) -> str:
    """Return a value with the ends of its interval, where it has them: "0.4 (0.3 to 0.5)"."""
    value, low, high = (
        None if math.isnan(end) else end for end in (interval.value, interval.low, interval.high)
    )
    return number(value) if low is None else f"{number(value)} ({number(low)} to {number(high)})"


def sentence(evidence: Mapping[Any, Any]) -> str:
    """Return evidence in one line; parts of one name follow it in brackets."""
    return "; ".join(_named(key, value) for key, value in evidence.items())


def formatted(value: Any) -> str:
    """Return one piece of evidence as text."""
    if isinstance(value, Interval):
        return ranged(value)
    if isinstance(value, Measurement):
        return _measured(value)
    if isinstance(value, Mapping):
        return ", ".join(_named(key, part) for key, part in value.items())
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(formatted(part) for part in value)}]"
    return number(value)


def _measured(row: Measurement) -> str:
    """Return a measurement with the paper's number, in all its digits: "28 (paper 39.24)"."""
    own = ranged(interval_of(row))
    if row.published is None:
        return own
    paper = f"paper {row.published:g}"
    return f"{own[:-1]}; {paper})" if own.endswith(")") else f"{own} ({paper})"


def _named(key: object, value: Any) -> str:
    return (
        f"{key} ({formatted(value)})"
        if isinstance(value, Mapping)
        else f"{key}: {formatted(value)}"
    )
