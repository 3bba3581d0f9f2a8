"""The verb ``work``: `attnscope.work` in Python."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from attnscope.cli_data import use_data
from attnscope.cli_options import Import


def work(
    folder: Annotated[Path, typer.Argument(help="The workspace, a folder that all hosts see.")],
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    jobs: Annotated[int | None, typer.Option(help="Number of processes.")] = None,
    until_idle: Annotated[
        str | None, typer.Option(help="End after so long without work, as in 90s or 10m.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of corpora on this host.")] = None,
    imports: Import = None,
) -> None:
    """Train units from a workspace's queue; any number of workers on any hosts."""
    use_data(data)
    from attnscope.running.duration import seconds_of
    from attnscope.running.work import work as train

    idle = None if until_idle is None else seconds_of(until_idle, "--until-idle")
    try:
        train(folder, device=device, jobs=jobs, until_idle=idle, imports=imports or ())  # type: ignore[arg-type]
    except KeyboardInterrupt:
        print("\nStopped; other workers go on.", file=sys.stderr)
        raise typer.Exit(130) from None
