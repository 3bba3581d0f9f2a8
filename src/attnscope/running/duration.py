"""Times as a user writes and reads them: ``90s``, ``5m``, "about 14 min"."""

from __future__ import annotations

import re

from attnscope.errors import UsageError

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def seconds_of(budget: str, name: str = "budget") -> float:
    """Return a budget or another time such as ``5m`` in seconds; an error calls it ``name``."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", budget.strip())
    if found is None:
        raise UsageError(f"{name}={budget!r}: write seconds, minutes or hours, as in 90s, 5m, 1h.")
    return float(found[1]) * _SECONDS[found[2]]


def about(seconds: float) -> str:
    """Return a time in two digits at most: "about 40 s", "about 14 min", "about 3.5 h"."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} min"
    hours = seconds / 3600
    return f"about {hours:.1f} h" if hours < 10 else f"about {round(hours)} h"
