"""Verdicts of the recipes' claims over finished runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from attnscope.claims import verdicts as engine
from attnscope.claims.verdicts import Judged
from attnscope.recipes.recipe import module_of
from attnscope.recipes.registry import entries
from attnscope.runs.result import Result
from attnscope.runs.workspace import read_results


def verdicts(folders: Sequence[str | Path] = ("runs",)) -> list[Judged]:
    """Decide every claim of the papers on the finished runs of some workspaces.

    Parameters
    ----------
    folders
        Workspaces; runs of the same recipe are pooled.

    Returns
    -------
    list of Judged
        One per claim, those of the catalogue first and in its order.
    """
    results: list[Result] = []
    for folder in folders:
        results += read_results(Path(folder))
    return judge(results)


def judge(results: Iterable[Result]) -> list[Judged]:
    """Decide every claim on some results; only the modules of their recipes are imported."""
    results = list(results)
    measured = {result.recipe for result in results}
    modules = {entry.name: module_of(entry) for entry in entries() if entry.name in measured}
    return engine.judge(results, {name: module.CLAIMS for name, module in modules.items()})
