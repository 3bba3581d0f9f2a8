"""The numbers that the papers print, one row each, to be compared with measured ones.

The files hold printed digits, misprints included, which their notes name; a bound such as "> 77 %"
is stored as its number, with "lower bound" in the note.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from attnscope.claims.papers import PAPERS
from attnscope.errors import UsageError, suggestion


@dataclass(frozen=True)
class PublishedRow:
    """One printed number.

    Attributes
    ----------
    table
        Its place: ``table5``, ``fig3``, ``text-s6.2`` (a section), ``text-A.8``.
    dataset
        The data set, spelled one way per paper.
    variant
        Anything else it depends on, for example ``(("attention", "dot"), ("model", "mlm"))``.
    metric
        Its symbol in ASCII, for example ``A(alpha,beta_uf)``.
    split
        ``train``, ``val``, ``test``, or empty.
    value, unit
        The number and its scale.
    note
        Everything else.
    """

    table: str
    dataset: str
    variant: tuple[tuple[str, str], ...]
    metric: str
    split: str
    value: float
    unit: str
    note: str


@cache
def published(paper: str) -> tuple[PublishedRow, ...]:
    """Return every printed number of a paper.

    Parameters
    ----------
    paper
        ``snell``, ``sunlu``, ``tutek`` or ``aitken``.
    """
    if paper not in PAPERS:
        raise UsageError(f"There is no paper {paper!r}; {suggestion(paper, PAPERS)}")
    path = files("attnscope.claims").joinpath("published", f"{paper}.csv")
    with path.open(encoding="utf-8") as lines:
        return tuple(_row(cells) for cells in csv.DictReader(lines))


def published_value(
    paper: str,
    table: str,
    dataset: str,
    metric: str,
    *,
    split: str | None = None,
    **variant: str | int | float,
) -> float | None:
    """Return the number that a paper prints, or None; see `published_row`."""
    row = published_row(paper, table, dataset, metric, split=split, **variant)
    return None if row is None else row.value


def published_row(
    paper: str,
    table: str,
    dataset: str,
    metric: str,
    *,
    split: str | None = None,
    **variant: str | int | float,
) -> PublishedRow | None:
    """Return a printed number with its unit, or None where the paper prints none.

    Parameters
    ----------
    paper, table, dataset, metric
        As in `PublishedRow`.
    split
        Needed only where the paper gives several.
    **variant
        As many of the row's variant as it takes to single it out, for example ``model="mlm"``;
        ``lambda`` is passed as ``**{"lambda": 10}``.

    Raises
    ------
    UsageError
        If several rows fit.
    """
    wanted = {
        (key, f"{value:g}" if isinstance(value, float) else str(value))
        for key, value in variant.items()
    }
    rows = [
        row
        for row in published(paper)
        if (row.table, row.dataset, row.metric) == (table, dataset, metric)
        and split in (None, row.split)
        and wanted <= set(row.variant)
    ]
    # A row with no more than what was asked for wins over rows that say more.
    rows = [row for row in rows if set(row.variant) == wanted] or rows
    if len(rows) > 1:
        raise UsageError(
            f"{paper} {table} has {len(rows)} values of {metric} on {dataset}; give more of "
            f"{_differing(rows)}."
        )
    return rows[0] if rows else None


def _row(cells: dict[str, str]) -> PublishedRow:
    pairs = (pair.partition("=") for pair in cells["variant"].split(";") if pair)
    return PublishedRow(
        table=cells["table"],
        dataset=cells["dataset"],
        variant=tuple((key, value) for key, _, value in pairs),
        metric=cells["metric"],
        split=cells["split"],
        value=float(cells["value"]),
        unit=cells["unit"],
        note=cells["note"],
    )


def _differing(rows: list[PublishedRow]) -> str:
    seen: dict[str, set[str]] = {}
    for row in rows:
        for key, value in (("split", row.split), *row.variant):
            seen.setdefault(key, set()).add(value)
    return ", ".join(key for key, values in seen.items() if len(values) > 1)
