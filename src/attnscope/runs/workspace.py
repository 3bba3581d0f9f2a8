"""Where the results of a workspace lie: one folder per recipe, and one per part of it."""

from __future__ import annotations

from pathlib import Path

from attnscope.errors import WorkspaceError
from attnscope.runs.result import Result, read_result

PLACES = ("*/*", "*/*/*")
"""Patterns of a result's folder: ``<paper>/<recipe>``, and one more for a part such as a corpus."""

RESULTS = tuple(f"{place}/result.json" for place in PLACES)
"""Patterns of the results of a workspace."""


def read_results(workspace: Path) -> list[Result]:
    """Read the results of a workspace, in the order of their places."""
    if not workspace.is_dir():
        raise WorkspaceError(
            f"There is no folder {workspace}; name a workspace, as given to --out."
        )
    paths = [path for pattern in RESULTS for path in workspace.glob(pattern)]
    return [read_result(path) for path in sorted(paths)]
