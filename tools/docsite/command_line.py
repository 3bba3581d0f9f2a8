"""The command line's reference, read from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from attnscope.cli import app
from docsite.markdown import Pages, code, table


def commands() -> Iterator[tuple[str, Any]]:
    """Yield every command with its full name."""
    yield from _under("attnscope", typer.main.get_command(app))


def _under(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield name, command
        return
    for part, child in command.commands.items():
        yield from _under(f"{name} {part}", child)


def pages() -> Pages:
    """Return the page."""
    sections = [_section(name, command) for name, command in commands()]
    intro = (
        "# Command line\n\nMade from the commands themselves. `attnscope --debug VERB …` shows "
        "full "
        "tracebacks; without it an error is one sentence on standard error and exit code 1, and an "
        "interrupted run ends with exit code 130. `--json` prints JSON where a verb has it.\n\n"
    )
    return {"command-line.md": intro + "\n".join(sections)}


def _section(name: str, command: Any) -> str:
    places = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    usage = " ".join([name, *(_place(each) for each in places), "[OPTIONS]" if options else ""])
    rows = [[code(each.name), each.help or "", ""] for each in places]
    rows += [
        [" ".join(code(part) for part in each.opts), each.help or "", _default(each)]
        for each in options
        if each.name != "help"
    ]
    says = " ".join((command.help or "").split())
    return (
        f"## {name}\n\n{says}\n\n```text\n{usage.strip()}\n```\n\n"
        f"{table(['argument or option', 'meaning', 'default'], rows)}\n"
    )


def _place(parameter: Any) -> str:
    name = parameter.name.upper()
    name = f"{name} …" if parameter.nargs == -1 else name
    return name if parameter.required else f"[{name}]"


def _default(option: Any) -> str:
    empty = option.default is None or option.default is False or option.default == ""
    return "" if empty or callable(option.default) else code(option.default)
