"""The verb ``status``: `attnscope.status` in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli_options import Json

if TYPE_CHECKING:
    from attnscope.runs.status import Status

_LINES = 20


def status(
    folder: Annotated[Path, typer.Argument(help="The workspace.")] = Path("runs"),
    as_json: Json = False,
) -> None:
    """Print which units are done, running (where, at which step), waiting and failed (why)."""
    from attnscope.runs.status import status as read_status

    found = read_status(folder)
    if as_json:
        print(json.dumps(found.as_json(), indent=1))
        return
    for line in lines(found):
        print(line)


def lines(status: Status) -> list[str]:
    """Return a status as lines of text."""
    counts = (
        f"{status.done} units done, {len(status.running)} running, {status.waiting} waiting, "
        f"{len(status.failed)} failed; {status.workers} workers"
    )
    left = status.seconds_left
    text = [counts if left is None else f"{counts}; about {_duration(left)} left"]
    running = [
        f"  {unit.unit}: step {unit.step} of {unit.steps}, {unit.where}" for unit in status.running
    ]
    failed = [f"  {unit} failed: {reason}" for unit, reason in status.failed.items()]
    for part in (running, failed):
        text += part[:_LINES]
        if len(part) > _LINES:
            text.append(f"  … and {len(part) - _LINES} more (--json lists all)")
    return [*text, *status.notes]


def _duration(seconds: float) -> str:
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {name}"
    return f"{seconds:.0f} seconds"
