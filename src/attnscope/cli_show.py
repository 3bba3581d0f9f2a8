"""The verb ``show``: a recipe's settings, claims and needs, and its time on this machine.

In Python: `attnscope.running.settings_of` and `attnscope.running.estimate`. ``run RECIPE --help``
prints the same table of settings.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from attnscope.cli_data import use_data
from attnscope.cli_options import Import, Json, read_settings_of
from attnscope.errors import AttnscopeError

if TYPE_CHECKING:
    from rich.console import Console

    from attnscope.claims.catalogue import CatalogueEntry
    from attnscope.recipes.registry import Entry
    from attnscope.running.settings_list import Setting


def show(
    recipe: Annotated[str, typer.Argument(help="As in snell/fig3; or a Python file of your own.")],
    settings: Annotated[
        list[str] | None, typer.Argument(help="Settings of the run to be timed, as key=value.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Time the smaller problem.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    jobs: Annotated[int | None, typer.Option(help="Number of worker processes.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of corpora.")] = None,
    out: Annotated[Path, typer.Option(help="The workspace, whose units are reused.")] = Path(
        "runs"
    ),
    imports: Import = None,
    as_json: Json = False,
) -> None:
    """Explain a recipe: settings, claims, needs, and its time on this machine."""
    from attnscope.recipes.recipe import module_of
    from attnscope.recipes.registry import find
    from attnscope.running.settings_list import settings_of

    entry = find(recipe)
    use_data(data)
    given = read_settings_of(settings)
    rows, claims = settings_of(module_of(entry)), _claims_of(entry)
    options = {"seeds": seeds, "quick": quick, "device": device, "jobs": jobs, "out": out}
    timed = bool(given) or quick or entry.needs == "nothing"
    if as_json:
        print(json.dumps(_as_json(entry, rows, claims, _cost(recipe, given, options, timed))))
        return
    from attnscope.terminal import CleanConsole

    console = CleanConsole()
    _print_recipe(console, entry, rows, claims)
    _print_line(console, "Time", _cost(recipe, given, options, timed) or _hint(entry))


class RecipeHelp(TyperCommand):
    """A command whose ``--help`` after a recipe's name explains that recipe's settings too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the arguments: ``--help`` is handled before they are read."""
        ctx.meta["attnscope.arguments"] = list(args)
        return super().parse_args(ctx, args)

    def get_help(self, ctx: Any) -> str:
        """Return the help of the verb, then the settings of the recipe that is named."""
        text = super().get_help(ctx)
        names = [each for each in ctx.meta["attnscope.arguments"] if not each.startswith("-")]
        if not names:
            return text
        from attnscope.recipes.recipe import module_of
        from attnscope.recipes.registry import find
        from attnscope.running.settings_list import settings_of
        from attnscope.terminal import CleanConsole

        entry = find(names[0])
        console = CleanConsole()
        with console.capture() as printed:
            print_settings(console, entry, settings_of(module_of(entry)))
        return f"{text}\n{printed.get()}"


def print_settings(console: Console, entry: Entry, rows: list[Setting]) -> None:
    """Print each setting with its default, its quick value and its meaning."""
    from rich.padding import Padding
    from rich.text import Text

    console.print(Text(f"{entry.name}: {entry.title}", style="bold italic"))
    for row in rows:
        quick = "" if row.quick == row.default else f"   --quick: {value_text(row.quick)}"
        smaller = " ▾" if row.size else ""
        line = Text.assemble((row.name, "bold"), f"={value_text(row.default)}{quick}{smaller}")
        console.print(Padding(line, (0, 0, 0, 2)))
        console.print(Padding(Text(row.meaning, style="dim"), (0, 0, 0, 6)))
    smaller = ", ".join(row.name for row in rows if row.size)
    if smaller:
        _print_line(console, "▾ makes a run smaller", smaller)


def value_text(value: Any) -> str:
    """Return a value as it is written in ``key=value``."""
    if isinstance(value, tuple):
        parts = ("=".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in value)
        return ",".join(parts)
    return str(value)


def _print_recipe(
    console: Console, entry: Entry, rows: list[Setting], claims: list[CatalogueEntry]
) -> None:
    print_settings(console, entry, rows)
    needs = entry.needs or "what its author says"
    _print_line(console, "Needs", "nothing but itself" if needs == "nothing" else needs)
    _print_line(console, "Decides", f"{len(claims)} claims" if claims else "no claim of a paper")
    for claim in claims:
        console.print(f"  {claim.id}: {claim.statement}", soft_wrap=True, highlight=False)
    if entry.cpu_minutes is not None:
        gpu = "" if entry.gpu_minutes is None else f", {entry.gpu_minutes:g} min on an H200"
        recorded = f"{entry.cpu_minutes:g} min on two CPU cores{gpu}"
        _print_line(console, "Recorded time of the default settings", recorded)


def _print_line(console: Console, label: str, text: str) -> None:
    from rich.text import Text

    console.print(Text.assemble((f"{label}: ", "bold"), text))


def _claims_of(entry: Entry) -> list[CatalogueEntry]:
    from attnscope.claims.catalogue import catalogue

    return [claim for claim in catalogue() if entry.name in claim.recipes]


def _hint(entry: Entry) -> str:
    return (
        f"attnscope show {entry.name} corpus=NAME_OR_FOLDER times a few steps on this machine "
        "and multiplies."
    )


def _cost(recipe: str, given: dict[str, Any], options: dict[str, Any], timed: bool) -> str:
    if not timed:
        return ""
    from attnscope.running.cost.estimate import estimate

    try:
        return estimate(recipe, given, **options).sentence
    except AttnscopeError as error:
        return f"not known, because this run cannot start: {error}"


def _as_json(
    entry: Entry, rows: list[Setting], claims: list[CatalogueEntry], cost: str
) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "recipe": asdict(entry),
        "settings": [asdict(row) for row in rows],
        "claims": [{"id": claim.id, "statement": claim.statement} for claim in claims],
        "time": cost,
    }
