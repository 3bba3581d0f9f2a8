"""Numbers and evidence as text, for a terminal or a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from attnscope.analysis.intervals import Interval
from attnscope.claims.pool import interval_of
from attnscope.runs.result import Measurement


def number(value: Any) -> str:
    """Return a number as a reader wants it: three digits, or whole from 100 on.

    The page rounds in the same way (``text.js``): a half goes away from 0.
    """
    if value is None:
        return "–"
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    if value.is_integer() and abs(value) < _LARGE:
        return f"{value:.0f}"
    exact = Decimal(value)
    digits = 0 if 100 <= abs(value) < _LARGE else exact.adjusted() - 2
    rounded = exact.quantize(Decimal(1).scaleb(digits), ROUND_HALF_UP).normalize()
    if _SMALL <= abs(value) < _LARGE:
        return f"{rounded:f}"
    power = rounded.adjusted()
    return f"{rounded.scaleb(-power).normalize():f}e{power:+d}"


_SMALL, _LARGE = 1e-4, 1e6
_AXES = {"at": "step {}", "tau0": "exceeded at step {}", "runs": "{} runs"}


def axis_text(key: str, value: Any, named: bool = True) -> str:
    """Return one axis of a measurement in words: "step 150", "3 x 1 runs", "model tying".

    Without ``named`` a value that is a word stands alone, as in a narrow table.
    """
    if key == "runs" or not isinstance(value, str):
        return _AXES.get(key, f"{key} {{}}").format(number(value))
    return f"{key} {value}" if named and key != "tau0" else value


def plain_setting(value: Any) -> str:
    """Return the value of a setting as the command line takes it; a pair is ``a=b``."""
    if not isinstance(value, list):
        return str(value)
    return ",".join("=".join(map(str, v)) if isinstance(v, list) else str(v) for v in value)


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
