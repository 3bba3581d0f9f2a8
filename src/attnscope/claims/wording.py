"""Numbers and evidence as a reader wants them, in a terminal or on a page."""

from __future__ import annotations

from typing import Any


def number(value: Any) -> str:
    """Return a number in at most four digits, as a reader wants it."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e6 else f"{value:.3g}"
    return str(value)


def sentence(value: Any) -> str:
    """Return evidence in one line."""
    if isinstance(value, dict):
        return "; ".join(f"{key}: {sentence(part)}" for key, part in value.items())
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(sentence(part) for part in value)}]"
    return number(value)
