"""Verdicts over finished runs: every claim of the catalogue, decided by its recipe's predicate.

Only full-size runs decide. Where there are none, a quick run shows what it would say, marked as
such.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from attnscope.analysis.intervals import Interval
from attnscope.claims.catalogue import CatalogueEntry, catalogue
from attnscope.claims.decide import Verdict
from attnscope.claims.pool import Decision, Pool
from attnscope.claims.published import published
from attnscope.errors import WorkspaceError
from attnscope.recipes import entries
from attnscope.recipes.recipe import Predicate, module_of
from attnscope.runs.result import Result, read_result


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict and everything that a reader needs to weigh it.

    ``published`` are the numbers that the paper prints there in its text and figures; those of its
    tables stand beside the measurements they belong to. ``quick`` is what a quick run would say
    where no full run has been made; it never counts.
    """

    id: str
    verdict: Verdict
    evidence: dict[str, Any]
    deviation: str
    note: str
    where: str
    statement: str
    recipes: tuple[str, ...]
    published: tuple[str, ...] = ()
    quick: Verdict | None = None
    setting: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON values; an interval is its value, its two ends and its n."""
        return asdict(self) | {
            "evidence": _plain(self.evidence),
            "recipes": list(self.recipes),
            "published": list(self.published),
        }


def verdicts(folders: Sequence[str | Path] = ("runs",)) -> list[Judged]:
    """Decide every claim of the four papers on the finished runs of some workspaces.

    Parameters
    ----------
    folders
        Workspaces; runs of the same recipe are pooled.

    Returns
    -------
    list of Judged
        One per claim of the catalogue, in its order.
    """
    return judge([result for folder in folders for result in read_results(Path(folder))])


def read_results(folder: Path) -> list[Result]:
    """Read the results of a workspace."""
    if not folder.is_dir():
        raise WorkspaceError(f"There is no folder {folder}; name a workspace, as given to --out.")
    paths = [path for depth in ("*/*", "*/*/*") for path in folder.glob(f"{depth}/result.json")]
    return [read_result(path) for path in sorted(paths)]


def judge(results: Iterable[Result]) -> list[Judged]:
    """Decide every claim on some results."""
    results = list(results)
    predicates = _predicates({result.recipe for result in results})
    return [_judge(entry, predicates.get(entry.id), results) for entry in catalogue()]


def _plain(evidence: Any) -> Any:
    if isinstance(evidence, dict):
        return {key: _plain(part) for key, part in evidence.items()}
    if isinstance(evidence, (list, tuple)):
        return [_plain(part) for part in evidence]
    if isinstance(evidence, Interval):
        return _plain(asdict(evidence))
    # JSON has no NaN: an end that cannot be had is null, as in a result.
    return None if isinstance(evidence, float) and math.isnan(evidence) else evidence


def _predicates(recipes: set[str]) -> dict[str, Predicate]:
    modules = [module_of(entry) for entry in entries() if entry.name in recipes]
    return {name: rule for module in modules for name, rule in module.CLAIMS.items()}


def _judge(entry: CatalogueEntry, rule: Predicate | None, results: list[Result]) -> Judged:
    own = [result for result in results if result.recipe in entry.recipes]
    full = tuple(result for result in own if result.scale == "full")
    quick = tuple(result for result in own if result.scale == "quick")
    pool = Pool(full or quick)
    missing = Decision(Verdict.UNDECIDED, note=f"no finished run of {', '.join(entry.recipes)}")
    decision = rule(pool) if rule and pool.results else missing
    provisional = not full and bool(quick) and rule is not None
    notes = (decision.note, _QUICK if provisional else "")
    note = " ".join(f"{part.removesuffix('.')}." for part in notes if part)
    return Judged(
        id=entry.id,
        verdict=Verdict.UNDECIDED if provisional else decision.verdict,
        evidence=dict(decision.evidence),
        deviation=decision.deviation,
        note=note,
        where=entry.where,
        statement=entry.statement,
        recipes=tuple(entry.recipes),
        published=_printed(entry) if pool.results else (),
        quick=decision.verdict if provisional else None,
        setting=_setting(pool) if pool.results else {},
    )


_QUICK = "Only a quick run was made; quick runs never decide."


# How the catalogue's places are spelled in the published figures.
_PLACES = {r"Fig (\d+)": "fig{}", r"§(\d+(?:\.\d+)?)": "text-s{}", r"(?<!\w)A\.(\d+)": "text-A.{}"}

# Notes of published figures that are no result: examples, and settings of a figure without numbers.
_NO_RESULTS = ("illustrat", "worked", "no values printed")


def _printed(entry: CatalogueEntry) -> tuple[str, ...]:
    tables = {
        spelling.format(number)
        for pattern, spelling in _PLACES.items()
        for number in re.findall(pattern, entry.where)
    }
    return tuple(
        f"{row.dataset}: {row.metric} = {row.value:g} {row.unit}"
        for row in published(entry.paper)
        if row.table in tables and not any(words in row.note for words in _NO_RESULTS)
    )


def _setting(pool: Pool) -> dict[str, Any]:
    rows, configs = pool.measurements, [result.config for result in pool.results]
    given = {
        name: _distinct(config[name] for config in configs if name in config)
        for name in dict.fromkeys(name for config in configs for name in config)
    }
    return {
        "config": {name: values[0] for name, values in given.items() if len(values) == 1},
        "differing": {name: values for name, values in given.items() if len(values) > 1},
        "datasets": sorted({row.dataset for row in rows}),
        "seeds": len({seed for row in rows for seed in row.seeds}),
        "devices": _distinct(result.environment.get("device") for result in pool.results),
    }


def _distinct(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []  # a value may be a list, which no set takes
    for value in values:
        if value not in found:
            found.append(value)
    return found
