"""Where the results of a workspace lie: one folder per recipe, and one per part of it."""

from __future__ import annotations

import os
from pathlib import Path

from attnscope.errors import WorkspaceError
from attnscope.runs.result import Result, read_result

PLACES = ("*/*", "*/*/*")
"""Patterns of a result's folder: ``<paper>/<recipe>``, and one more for a part such as a corpus."""

RESULTS = tuple(f"{place}/result.json" for place in PLACES)
"""Patterns of the results of a workspace."""

_DEPTH = 4  # workspace, paper, recipe, part


def read_results(workspace: Path) -> list[Result]:
    """Read the results of a workspace, in the order of their places."""
    if not workspace.is_dir():
        raise WorkspaceError(
            f"There is no folder {workspace}; name a workspace, as given to --out."
        )
    hidden = [each for each in unreadable_folders(workspace) if each.parent != workspace / "units"]
    if hidden:
        raise WorkspaceError(f"{hidden[0]} cannot be read (Permission denied).")
    paths = sorted(path for pattern in RESULTS for path in workspace.glob(pattern))
    for path in paths:
        if not path.resolve().is_relative_to(workspace.resolve()):
            raise WorkspaceError(f"{path} is a link that leads out of {workspace}.")
    return [read_result(path) for path in paths]


def unreadable_folders(workspace: Path) -> list[Path]:
    """Return the folders of results and units that this user may not read; patterns skip them."""
    found: list[Path] = []
    level = [workspace]
    for _ in range(_DEPTH):
        below: list[Path] = []
        for folder in level:
            if not os.access(folder, os.R_OK | os.X_OK):
                found.append(folder)
                continue
            with os.scandir(folder) as entries:
                folders = [each.name for each in entries if each.is_dir(follow_symlinks=False)]
            below += [folder / name for name in sorted(folders)]
        level = below
    return found


def workspace_of(folder: Path, result: Result) -> Path:
    """Return the workspace of a result in its folder, ``<workspace>/<paper>/<recipe>``."""
    place = result.place.split("/")
    absolute = folder.absolute()
    if list(absolute.parts[-len(place) :]) != place:
        raise WorkspaceError(f"{folder} is not the folder of {result.place}.")
    return absolute.parents[len(place) - 1]
