"""`work`: train groups of units from a workspace's queue, on any host that sees the folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from attnscope.errors import UsageError
from attnscope.recipes.registry import add
from attnscope.running.run import choose_device
from attnscope.runs.queue import make_queue
from attnscope.training.engine.crew import Crew, run_crew, worker_jobs


def work(
    workspace: str | Path,
    *,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    jobs: int | None = None,
    until_idle: float | None = None,
    imports: Sequence[str] = (),
) -> None:
    """Take groups of units from a workspace's queue and train them.

    Any number of workers may share a workspace. The queue is written by
    ``attnscope run … --on workers``; a worker may be started before it.

    Parameters
    ----------
    workspace
        The shared folder.
    device
        Units for this device are taken; ``auto`` takes a GPU if there is one.
    jobs
        Number of processes; by default one per CPU core, or one on a GPU.
    until_idle
        Seconds without work after which to end; None to go on.
    imports
        Modules or Python files of your own that define kinds.
    """
    place = choose_device(device)
    count = worker_jobs(place, jobs)
    if count < 1:
        raise UsageError(f"--jobs={count}: at least one process is needed.")
    for name in imports:
        add(name)  # Each process imports it again; what is wrong with it is said once, here.
    make_queue(Path(workspace))
    crew = Crew(
        Path(workspace),
        place,
        count,
        until_idle=until_idle,
        imports=imports,
        import_one=add,
        note=_say,
    )
    run_crew(crew)


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
