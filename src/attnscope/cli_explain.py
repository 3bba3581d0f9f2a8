"""The verb ``explain``: what a name or a symbol means. In Python: `attnscope.report.explain`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from attnscope.cli_options import Json


def explain(
    name: Annotated[
        str, typer.Argument(help="As printed: A(alpha,beta_uf), β, lexical_probe, snell.probe, …")
    ] = "",
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the whole glossary as Markdown.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Explain a measured name, symbol, score, claim or recipe; without one list all names."""
    from attnscope.report.explain import explain as find, explanations, glossary_page
    from attnscope.terminal import CleanConsole

    if as_markdown:
        print(glossary_page(), end="")
        return
    found = find(name) if name else explanations()
    if as_json:
        print(json.dumps([asdict(each) for each in found], indent=1, ensure_ascii=False))
        return
    from rich.padding import Padding
    from rich.text import Text

    console = CleanConsole()
    for each in found:
        label = f"  {each.label}" if each.label else ""
        head = Text.assemble((each.name, "bold"), label, (f"  ({each.of})", "dim"))
        console.print(head, soft_wrap=True)
        if name:
            console.print(Padding(Text(each.text), (0, 0, 0, 4)))
