"""Results and verdicts as a reader sees them in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from attnscope.claims.wording import number, sentence

if TYPE_CHECKING:
    from attnscope.recipes.entry import Entry
    from attnscope.recipes.verdicts import Judged
    from attnscope.runs.result import Measurement

_STYLES = {"holds": "green", "fails": "red", "undecided": "yellow"}


def recipe_table(recipes: Iterable[Entry]) -> Table:
    """Return what `attnscope list` shows."""
    table = Table(title="Recipes", title_justify="left")
    table.add_column("recipe", no_wrap=True)
    for column in ("what it shows", "needs"):
        table.add_column(column)
    for column in ("CPU min", "GPU min"):
        table.add_column(column, justify="right")
    for recipe in recipes:
        gpu = "–" if recipe.gpu_minutes is None else f"{recipe.gpu_minutes:g}"
        table.add_row(recipe.name, recipe.title, recipe.needs, f"{recipe.cpu_minutes:g}", gpu)
    return table


def headline_table(rows: Sequence[Measurement], title: str, hidden: Iterable[str] = ()) -> Table:
    """Return the measurements that a recipe puts first, narrow enough for 80 columns.

    ``hidden`` names the axes that all of them share.
    """
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    printed = any(row.published is not None for row in rows)
    table.add_column("measured", no_wrap=True)
    short = all(len(row.dataset) <= 14 for row in rows)
    table.add_column("data set", overflow="fold", no_wrap=short)
    table.add_column("of", overflow="fold")
    for column in ("value", "95 % interval", "n", *(["paper"] if printed else [])):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        interval = "" if row.low is None else f"{number(row.low)} … {number(row.high)}"
        cells = [row.name, row.dataset, _axes(row, hidden), number(row.value), interval, str(row.n)]
        table.add_row(*cells, *([number(row.published)] if printed else []))
    return table


def _axes(row: Measurement, hidden: Iterable[str]) -> str:
    split = {} if row.split == "val" else {"split": row.split}
    known = split | row.axes | row.found
    parts = {key: value for key, value in known.items() if key not in hidden}
    told = (v if isinstance(v, str) else f"{key} {number(v)}" for key, v in parts.items())
    return ", ".join(told)


def print_verdicts(console: Console, judged: Iterable[Judged]) -> None:
    """Print one paragraph per claim: verdict, statement, evidence, deviation, note."""
    for claim in judged:
        shown = claim.quick or claim.verdict
        label = f"quick, would say: {shown}" if claim.quick else str(shown)
        console.print(f"[{_STYLES[shown]}]{label}[/] [bold]{claim.id}[/] ({claim.where})")
        for text in (
            claim.statement,
            sentence(claim.evidence),
            claim.deviation and f"Deviation: {claim.deviation}.",
            claim.note and f"Note: {claim.note}",
        ):
            if text:
                console.print(f"    {text}", markup=False, highlight=False, soft_wrap=True)
