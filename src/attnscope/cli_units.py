"""The verb ``units``: what is trained in a workspace. In Python: `attnscope.report.list_units`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from attnscope.cli_options import Import, Json


def units(
    folder: Annotated[Path, typer.Argument(help="The workspace.")] = Path("runs"),
    imports: Import = None,
    as_json: Json = False,
) -> None:
    """List the trained units: recipe, corpus, what distinguishes each, steps, accuracy."""
    from attnscope.report.unit_list import list_units

    rows, notices = list_units(folder)
    for notice in notices:
        print(notice, file=sys.stderr)
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from attnscope.terminal import CleanConsole

    console = CleanConsole()
    for dataset, group in groupby(rows, key=lambda row: row.dataset):
        table = Table(title=dataset, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column("unit, and its folder in units")
        table.add_column("recipes", overflow="fold")
        for column in ("steps", "accuracy"):
            table.add_column(column, justify="right", no_wrap=True)
        for row in group:
            steps = f"{row.steps}" if row.finished else f"{row.step} of {row.steps}"
            accuracy = "–" if row.accuracy is None else f"{100 * row.accuracy:.1f} %"
            recipes = ", ".join(row.recipes) or "–"
            table.add_row(f"{row.label}\n  {row.name}", recipes, steps, accuracy)
        console.print(table)
