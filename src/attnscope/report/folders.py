"""Results and units, finished or in training, in the folders that a report is made of.

Nothing outside the given folders is read, whatever links and names inside them say; the one thing
that a result's folder brings along is the units that it lists, from its own workspace.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from attnscope.errors import WorkspaceError
from attnscope.runs.result import Result, read_result
from attnscope.runs.workspace import RESULTS, unreadable_folders, workspace_of


@dataclass(frozen=True)
class FoundResult:
    """A result, its folder, and the name of the workspace that the user gave."""

    result: Result
    folder: Path
    workspace: str

    @property
    def units(self) -> list[Path]:
        """Where its units would lie: in the workspace that it was written into."""
        try:
            units = workspace_of(self.folder.resolve(), self.result) / "units"
        except WorkspaceError:
            return []
        named = [name for name in self.result.units if Path(name).name == name]
        return [units / name for name in named if not (units / name).is_symlink()]


@dataclass
class Contents:
    """Everything that a report can show, and a sentence for each thing that it cannot."""

    results: list[FoundResult] = field(default_factory=list)
    units: list[Path] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def find_contents(folders: Sequence[Path]) -> Contents:
    """Return the results and units of workspaces, or of folders of a single result or unit."""
    found = Contents()
    for folder in dict.fromkeys(folders):
        if not folder.is_dir():
            raise WorkspaceError(
                f"There is no folder {folder}; name a workspace, as given to --out, or a folder "
                "of results."
            )
        if (folder / "result.json").is_file():
            _add_result(found, folder, folder, folder.resolve().name)
            _add_listed_units(found, folder)
        elif _is_unit(folder):
            found.units.append(folder)
        else:
            _add_workspace(found, folder)
    if not found.results and not found.units:
        names = ", ".join(str(folder) for folder in folders)
        found.notices.append(f"There is no result and no unit in {names} yet.")
    return found


def inside(path: Path, folder: Path) -> bool:
    """Return whether a path, links followed, is inside a folder."""
    return path.resolve().is_relative_to(folder.resolve())


def _add_workspace(found: Contents, folder: Path) -> None:
    for hidden in unreadable_folders(folder):
        found.notices.append(f"{hidden} cannot be read (Permission denied): it is left out.")
    for path in _within(found, folder, RESULTS):
        if path.parts[len(folder.parts)] != "units":
            _add_result(found, path.parent, folder, folder.resolve().name)
    units = _within(found, folder, ("units/*/config.json",))
    found.units += [path.parent for path in units]


def _add_result(found: Contents, folder: Path, root: Path, workspace: str) -> None:
    if not inside(folder / "result.json", root):
        found.notices.append(f"{folder / 'result.json'} is outside {root} and left out.")
        return
    try:
        with warnings.catch_warnings(record=True) as said:
            result = read_result(folder / "result.json")
        found.notices += [str(warning.message) for warning in said]
        found.results.append(FoundResult(result, folder, workspace))
    except WorkspaceError as error:
        # A result of another version names each of its fields: the first line says enough.
        found.notices.append(f"{str(error).splitlines()[0].rstrip('.')}: it is left out.")


def _add_listed_units(found: Contents, folder: Path) -> None:
    """Add the units that one result lists."""
    for each in found.results:
        if each.folder == folder:
            found.units += [place for place in each.units if _is_unit(place)]


def _is_unit(folder: Path) -> bool:
    try:
        return all((folder / name).is_file() for name in ("config.json", "environment.json"))
    except (OSError, ValueError):  # A name that is too long, or has NUL in it.
        return False


def _within(found: Contents, folder: Path, patterns: Sequence[str]) -> Iterator[Path]:
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            if inside(path, folder):
                yield path
            else:
                found.notices.append(f"{path} is outside {folder} and left out.")
