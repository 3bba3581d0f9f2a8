"""All recipes: those of the papers, and the user's own files.

``recipes.csv`` lists the papers' recipes and ``<paper>/measures.csv`` the names that they measure:
plain tables, so that listing them imports no torch. A user's file becomes the recipe
``own/<file name>`` once the user names it; no result, unit or other stored file ever decides which
module is imported.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from attnscope.errors import UsageError, suggestion
from attnscope.runs.measures import Measures, read_measures

OWN = "own/"


@dataclass(frozen=True)
class Entry:
    """A recipe as `attnscope list` shows it.

    ``cpu_minutes`` and ``gpu_minutes`` are rough times of a full run on two CPU cores and on one
    data-centre GPU; ``gpu_minutes`` is None where a GPU does not help, and both are None where
    nobody has measured them.
    """

    name: str
    title: str
    needs: str
    cpu_minutes: float | None
    gpu_minutes: float | None
    module: str


_own: dict[str, Entry] = {}


def entries() -> tuple[Entry, ...]:
    """Return the recipes of the papers, then the user's own that were named in this process."""
    return (*_of_papers(), *_own.values())


@cache
def _of_papers() -> tuple[Entry, ...]:
    table = files("attnscope.recipes").joinpath("recipes.csv").read_text(encoding="utf-8")
    return tuple(
        Entry(
            row["name"],
            row["title"],
            row["needs"],
            float(row["cpu_minutes"]),
            float(row["gpu_minutes"]) if row["gpu_minutes"] else None,
            f"attnscope.recipes.{row['module']}",
        )
        for row in csv.DictReader(table.splitlines())
    )


def find(name: str) -> Entry:
    """Return a recipe.

    Parameters
    ----------
    name
        As in ``snell/fig3``, or the path of a Python file that is a recipe.
    """
    return _recipe(add(name), name) if name.endswith(".py") else find_known(name)


def find_known(name: str) -> Entry:
    """Return a recipe by its name alone, as a stored result has it: no file is imported."""
    by_name = {entry.name: entry for entry in entries()}
    if name in by_name:
        return by_name[name]
    notes = notes_on_missing([name])
    raise UsageError(notes[0] if notes else f"No recipe {name!r}; {suggestion(name, by_name)}")


def notes_on_missing(names: Iterable[str]) -> list[str]:
    """Return a sentence for each recipe of a user's whose file was not named in this process."""
    known = {entry.name for entry in entries()}
    missing = [name for name in dict.fromkeys(names) if name.startswith(OWN) and name not in known]
    return [
        f"The recipe {name} is in a file of its author, {argument_of(name)}; name that file, as in "
        f"attnscope run {argument_of(name)}, or elsewhere with --import {argument_of(name)}."
        for name in missing
    ]


def argument_of(name: str) -> str:
    """Return a recipe as ``attnscope run`` takes it: its name, or the file of a user's."""
    return f"{name.removeprefix(OWN)}.py" if name.startswith(OWN) else name


def add(module: str) -> ModuleType:
    """Import a module of the user's: its variants get known by their kinds, its recipe by its name.

    The command line does this with ``--import``.

    Parameters
    ----------
    module
        The path of a Python file, or the name of a module that is installed or in the current
        folder.
    """
    imported = _import_file(Path(module)) if module.endswith(".py") else _import(module, Path.cwd())
    if _is_recipe(imported):
        _recipe(imported, module)
    return imported


def _recipe(module: ModuleType, given: str) -> Entry:
    if not _is_recipe(module):
        raise UsageError(
            f"{given} is not a recipe: it must define a class Config and a function measure."
        )
    for name, value in _OPTIONAL.items():
        vars(module).setdefault(name, value)
    name = f"{OWN}{module.__name__.rpartition('.')[2]}"
    title = (module.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    return _own.setdefault(name, Entry(name, title, "", None, None, module.__name__))


def _is_recipe(module: ModuleType) -> bool:
    return {"Config", "measure"} <= set(vars(module))


def _draw_nothing(result: Any, units: Any) -> dict[str, Any]:
    return {}


# Parts that a user's recipe may leave out.
_OPTIONAL = {"QUICK": {}, "HEADLINE": (), "CLAIMS": {}, "draw": _draw_nothing}


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"There is no file {path}.")
    # Worker processes import the module by its name, so it must be the one found under that name.
    module = _import(path.stem, path.resolve().parent)
    if Path(str(module.__file__)).resolve() != path.resolve():
        raise UsageError(
            f"Another module is called {path.stem} ({module.__file__}); rename {path.name}."
        )
    return module


def _import(name: str, folder: Path) -> ModuleType:
    # At the end of the path, where the user's files cannot hide installed modules.
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        known = find_spec(name) is not None
    except (ImportError, ValueError):
        known = False
    if not known:
        raise UsageError(f"There is no module {name!r}, neither installed nor in {folder}.")
    try:
        return import_module(name)
    except Exception as error:
        raise UsageError(
            f"The module {name} cannot be imported: {type(error).__name__}: {error} "
            "(--debug shows where)."
        ) from error


def measures_of(recipe: str, module: Any = None) -> Measures | None:
    """Return the names that a recipe may measure, or None if any may.

    Parameters
    ----------
    recipe
        Its name; the paper's table is ``measures.csv`` in the paper's package.
    module
        Its module, whose own ``MEASURES`` come first.
    """
    own: Measures | None = getattr(module, "MEASURES", None)
    return own if own is not None else paper_measures(recipe.partition("/")[0])


@cache
def paper_measures(paper: str) -> Measures | None:
    """Return the names that a paper's recipes measure, or None for another name."""
    # A stored result may name anything as its paper.
    if paper not in {entry.name.partition("/")[0] for entry in _of_papers()}:
        return None
    table = files("attnscope.recipes").joinpath(paper, "measures.csv")
    if not table.is_file():
        return None
    with as_file(table) as path:
        return read_measures(path)
