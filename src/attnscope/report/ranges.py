"""Evidence of many data sets as ranges: one line that a reader takes in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attnscope.analysis.intervals import Interval
from attnscope.claims.symbols import in_letters
from attnscope.claims.wording import formatted, number, sentence
from attnscope.runs.result import Measurement

SHORT = 360
"""How many characters of evidence are shown as they are."""
_MOST = 8


def ranges(evidence: Mapping[Any, Any]) -> str:
    """Return evidence in one line; where that is long, each name with the range of its values."""
    said = in_letters(sentence(evidence))
    if len(said) <= SHORT:
        return said
    groups: dict[str, list[Any]] = {}
    for path, value in leaves(evidence):
        groups.setdefault(path[-1], []).append(value)
    shown = [in_letters(f"{name}: {_range(values)}") for name, values in groups.items()]
    left = len(shown) - _MOST
    return "; ".join(shown[:_MOST]) + (f"; and {left} more" if left > 0 else "")


def leaves(evidence: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every single piece of evidence with the names that lead to it."""
    if isinstance(evidence, Mapping):
        for key, part in evidence.items():
            yield from leaves(part, (*path, str(key)))
    elif isinstance(evidence, (list, tuple)):
        for part in evidence:
            yield from leaves(part, path)
    else:
        yield path, evidence


def _range(values: Sequence[Any]) -> str:
    if len(values) == 1:
        return formatted(values[0])
    numbers = [value for value in map(_number, values) if value is not None]
    if not numbers:
        return ", ".join(dict.fromkeys(map(str, values)))
    paper = [v.published for v in values if isinstance(v, Measurement) and v.published is not None]
    printed = f"; paper {_ends(paper)}" if paper else ""
    return f"{_ends(numbers)} ({len(numbers)} values{printed})"


def _ends(numbers: Sequence[float]) -> str:
    low, high = number(min(numbers)), number(max(numbers))
    return low if low == high else f"{low} to {high}"


def _number(value: Any) -> float | None:
    if isinstance(value, (Interval, Measurement)):
        value = value.value
    return float(value) if isinstance(value, (int, float)) else None
