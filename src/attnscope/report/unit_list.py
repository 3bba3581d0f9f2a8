"""The units of a workspace as a list: which recipes use them, on what, how far, how well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnscope.errors import AttnscopeError, WorkspaceError
from attnscope.report.units import Candidate, labels
from attnscope.runs.unit import UnitFolder
from attnscope.runs.workspace import read_results, unreadable_folders
from attnscope.training.registry import read_unit
from attnscope.training.unit import best_step


@dataclass(frozen=True)
class ListedUnit:
    """A unit of a workspace.

    Attributes
    ----------
    name
        The name of its folder.
    recipes
        The recipes whose results it is part of.
    dataset
        The corpus or task.
    label
        What distinguishes it from the other units on the same data.
    step, steps
        Steps made so far, and in all.
    accuracy
        On held-out examples, of the best weights so far; None before the first evaluation.
    finished
        Whether it is trained.
    """

    name: str
    recipes: tuple[str, ...]
    dataset: str
    label: str
    step: int
    steps: int
    accuracy: float | None
    finished: bool


def list_units(workspace: str | Path) -> tuple[list[ListedUnit], list[str]]:
    """Return the units of a workspace by data set, and a sentence for each that cannot be read."""
    folder = Path(workspace)
    used: dict[str, list[str]] = {}
    for result in read_results(folder):
        for name in result.units:
            used.setdefault(name, []).append(result.recipe)
    notices = [
        f"{each.name} is left out: Permission denied." for each in unreadable_folders(folder)
    ]
    read = []
    for path in sorted((folder / "units").glob("*/config.json")):
        try:
            read.append(_read(path.parent, folder))
        except (AttnscopeError, LookupError, TypeError, AttributeError) as error:
            notices.append(f"{path.parent.name} is left out: {error}")
    if not read and not notices:
        raise WorkspaceError(f"{folder} has no units; attnscope run trains them.")
    datasets = dict.fromkeys(dataset for _, dataset, _ in read)
    rows: list[ListedUnit] = []
    for name in sorted(datasets):
        group = [(candidate, log) for candidate, dataset, log in read if dataset == name]
        for (candidate, log), label in zip(group, labels([c for c, _ in group]), strict=True):
            rows.append(_listed(candidate, log, name, label, used.get(candidate.path.name, [])))
    return rows, notices


def _read(path: Path, root: Path) -> tuple[Candidate, str, list[dict[str, Any]]]:
    folder = UnitFolder(path, root)
    return Candidate(path, folder.config), read_unit(folder.config).source.dataset, folder.log


def _listed(
    candidate: Candidate,
    log: Sequence[Mapping[str, Any]],
    dataset: str,
    label: str,
    recipes: Sequence[str],
) -> ListedUnit:
    unit = read_unit(dict(candidate.config))
    best = best_step(log, unit.training) if log else 0
    accuracy = next((row.get("accuracy") for row in log if row["step"] == best), None)
    return ListedUnit(
        candidate.path.name,
        tuple(dict.fromkeys(recipes)),
        dataset,
        label,
        int(log[-1]["step"]) if log else 0,
        unit.training.steps,
        accuracy,
        (candidate.path / "done.json").is_file(),
    )
