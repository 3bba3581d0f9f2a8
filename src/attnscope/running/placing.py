"""Where units are trained (``--on``): here, by workers of a shared folder, on Slurm, on Ray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnscope.errors import UsageError, suggestion
from attnscope.recipes.registry import add
from attnscope.training.engine.trainer import Trainer
from attnscope.training.engine.workers import Workers

PLACES = ("here", "workers", "slurm", "ray")


@dataclass(frozen=True)
class Placement:
    """Where to train.

    Attributes
    ----------
    on
        ``here``, ``workers``, ``slurm``, ``ray`` or ``ray:ADDRESS``.
    workers
        Number of Slurm jobs.
    jobs
        Number of processes here, if asked for.
    mixed
        Whether hosts of different versions or GPUs may take part in one sweep.
    slurm
        Parameters of `submitit`, such as ``{"slurm_partition": "gpu"}``.
    imports
        Modules of the user's, which other processes import too.
    """

    on: str = "here"
    workers: int | None = None
    jobs: int | None = None
    mixed: bool = False
    slurm: Mapping[str, Any] = field(default_factory=dict)
    imports: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.place not in PLACES or (self.on != self.place and self.place != "ray"):
            raise UsageError(f"--on {self.on} is not known; {suggestion(self.on, PLACES)}")
        if self.place != "slurm" and (self.workers is not None or self.slurm):
            raise UsageError("--workers, --partition, --time and --slurm belong to --on slurm.")
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"--workers={self.workers}: at least one is needed.")

    @property
    def place(self) -> str:
        """``on`` without an address."""
        return self.on.partition(":")[0]

    def trainer(self, workspace: Path, jobs: int) -> Trainer:
        """Return what trains there; measurements use ``jobs`` processes here."""
        if self.place == "here":
            return Workers(workspace, jobs)
        if self.place == "workers":
            from attnscope.training.engine.queued import QueuedWorkers

            return QueuedWorkers(
                workspace,
                jobs,
                here=self.jobs or 0,
                mixed=self.mixed,
                imports=self.imports,
                import_one=add,
            )
        if self.place == "slurm":
            from attnscope.training.engine.slurm import SlurmWorkers

            return SlurmWorkers(
                workspace,
                jobs,
                workers=self.workers or 1,
                parameters=self.slurm,
                mixed=self.mixed,
                imports=self.imports,
                import_one=add,
            )
        from attnscope.training.engine.ray_cluster import RayWorkers

        address = self.on.partition(":")[2] or None
        return RayWorkers(workspace, jobs, address=address, mixed=self.mixed, imports=self.imports)
