"""Numbers and evidence as a reader wants them, in a terminal or on a page."""

from __future__ import annotations

import math
from typing import Any

from attnscope.analysis.intervals import Interval


def number(value: Any) -> str:
    """Return a number in at most four digits, as a reader wants it."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e6 else f"{value:.3g}"
    return str(value)


def ranged(interval: Interval) -> str:
    """Return a value with the ends of its interval, where it has them: "0.4 (0.3 to 0.5)"."""
    value, low, high = (
        None if math.isnan(end) else end for end in (interval.value, interval.low, interval.high)
    )
    return number(value) if low is None else f"{number(value)} ({number(low)} to {number(high)})"


def sentence(value: Any) -> str:
    """Return evidence in one line."""
    if isinstance(value, Interval):
        return ranged(value)
    if isinstance(value, dict):
        return "; ".join(f"{key}: {sentence(part)}" for key, part in value.items())
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(sentence(part) for part in value)}]"
    return number(value)
