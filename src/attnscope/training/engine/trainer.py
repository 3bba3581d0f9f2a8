"""The one door to training: units in, trained units out, wherever they are trained.

Units are put into groups here, by the units alone, so that every way of training them (here, by
workers of a shared folder, on Slurm, on Ray) trains the same groups and gives the same bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from attnscope.errors import AttnscopeError
from attnscope.training.engine.grouping import groups
from attnscope.training.progress import Progress, Silent
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Unit


class Trainer(ABC):
    """Trains units into a workspace; used as a context.

    Attributes
    ----------
    workspace
        The folder of the units.
    jobs
        Number of processes that measurements may use here.
    groups
        Names of the units of every group so far, in order.
    """

    def __init__(self, workspace: Path, jobs: int = 1) -> None:
        self.workspace = workspace
        self.jobs = jobs
        self.groups: list[tuple[str, ...]] = []

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """End what was started."""

    @abstractmethod
    def train_groups(self, groups: list[list[Unit]], progress: Progress, title: str) -> list[str]:
        """Train or reuse every group, whole; return a sentence per unit that failed."""

    def train(
        self, units: Sequence[Unit], progress: Progress | None = None, title: str = "training"
    ) -> list[TrainedUnit]:
        """Train units, or resume them, or reuse them; return them in the order given."""
        progress = progress or Silent()
        wanted = list({unit.folder(self.workspace).path: unit for unit in units}.values())
        grouped = groups(wanted)
        self.groups += [tuple(u.folder(self.workspace).name for u in group) for group in grouped]
        trainings = [unit.training for unit in wanted]
        steps = sum(training.steps for training in trainings)
        progress.begin(title, len(wanted), steps, sum(len(each.schedule) for each in trainings))
        try:
            failures = self.train_groups(grouped, progress, title)
        finally:
            progress.end()
        if failures:
            raise AttnscopeError(f"{len(failures)} of {len(wanted)} units failed. {failures[0]}")
        return [TrainedUnit(unit, unit.folder(self.workspace)) for unit in units]

    def name_of(self, group: Sequence[Unit]) -> str:
        """Return a group as messages name it: its unit, or its first unit and their number."""
        first = group[0].folder(self.workspace).name
        return first if len(group) == 1 else f"The group of {first} ({len(group)} units)"
