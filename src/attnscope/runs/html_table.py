"""Measurements as an HTML table, for notebooks. All text is escaped; there is no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from attnscope.runs.measurement import Measurement

_COLUMNS = ("measured", "data set", "of", "value", "95 % interval", "n", "paper")
_MOST_ROWS = 40


def html_table(title: str, rows: Sequence[Measurement]) -> str:
    """Return a table of the first 40 measurements, with the number of those left out."""
    shown = "".join(_row(_cells(row), "td") for row in rows[:_MOST_ROWS])
    left_out = len(rows) - _MOST_ROWS
    more = f", {left_out} more in .measurements" if left_out > 0 else ""
    caption = f"<caption>{escape(title + more)}</caption>"
    return f"<table>{caption}{_row(_COLUMNS, 'th')}{shown}</table>"


def _cells(row: Measurement) -> list[str]:
    axes = ", ".join(f"{key} {value}" for key, value in {**row.axes, **row.found}.items())
    interval = "" if row.low is None else f"{_digits(row.low)} … {_digits(row.high)}"
    numbers = [_digits(row.value), interval, str(row.n), _digits(row.published)]
    return [row.name, row.dataset, axes, *numbers]


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _row(cells: Iterable[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
