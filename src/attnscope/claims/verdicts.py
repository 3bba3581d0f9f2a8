"""Verdicts over finished runs: every claim of the catalogue, and those that users add.

Quick runs never decide: where there is nothing else, they show what they would say, marked as
such. Among runs with several settings `deciding` chooses. The predicates are handed in by whoever
knows the recipes (`attnscope.running.verdicts`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from attnscope.analysis.intervals import Interval
from attnscope.claims.catalogue import CatalogueEntry, catalogue
from attnscope.claims.decide import Verdict
from attnscope.claims.papers import PAPERS
from attnscope.claims.pool import Decision, Pool, undecided
from attnscope.claims.published import published
from attnscope.claims.readings import RULE_FIXED, WORDS_FIXED, Reading, Readings
from attnscope.claims.table import NotMeasured
from attnscope.claims.wording import plain_setting
from attnscope.errors import AttnscopeError
from attnscope.runs.result import Measurement, Result

Predicate = Callable[[Pool], Decision]
"""A `Claim`, or any function that decides one on pooled measurements."""

NOT_LISTED = "Not one of the papers' claims"
_QUICK = "Only a quick run was made; quick runs never decide"


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict and everything that a reader needs to weigh it.

    ``published`` are the numbers that the paper prints there in its text and figures; those of its
    tables stand next to the measurements they belong to. ``quick`` is the verdict of a quick run
    where no full run has been made; it never counts. ``readings`` are the paper's words and the
    stricter rule, of a claim that has both: the first gives the verdict.
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
    readings: tuple[Reading, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON values; an interval is its value, its two ends and its n."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return plain | {
            "evidence": plain_evidence(self.evidence),
            "recipes": list(self.recipes),
            "published": list(self.published),
            "readings": [plain_evidence(vars(reading)) for reading in self.readings],
        }


def judge(
    results: Iterable[Result], predicates: Mapping[str, Mapping[str, Predicate]]
) -> list[Judged]:
    """Decide every claim on some results.

    Parameters
    ----------
    results
        Of any recipes; those that a claim is about are pooled.
    predicates
        By recipe and claim.

    Returns
    -------
    list of Judged
        One per claim of the catalogue, in its order; then those that only a recipe knows, with a
        note that says so.
    """
    results = list(results)
    by_claim: dict[str, Predicate] = {}
    recipes: dict[str, list[str]] = {}
    for recipe, own in predicates.items():
        by_claim |= own
        for name in own:
            recipes.setdefault(name, []).append(recipe)
    listed = {entry.id: entry for entry in catalogue()}
    entries = [*listed.values()]
    for name, rule in by_claim.items():
        if name not in listed:
            entries.append(_unlisted(name, rule, recipes[name]))
    return [_judge(entry, by_claim.get(entry.id), results) for entry in entries]


def deciding(results: Iterable[Result]) -> tuple[Result, ...]:
    """Return the results that decide, where a recipe was run with several settings.

    Of each part of a recipe (say a corpus) those at the defaults decide; where there are none,
    those with the fewest other settings, and among these the latest. Settings that say how much is
    measured (`AMOUNTS`) do not distinguish them: such runs are pooled.
    """
    parts: dict[tuple[str, str], dict[str, list[Result]]] = {}
    found = list(results)
    for result in found:
        groups = parts.setdefault((result.recipe, result.part), {})
        # Taken out and put back, so that the group of the latest result is the last one.
        own = groups.pop(key := _settings(result), [])
        groups[key] = [*own, result]
    kept: set[int] = set()
    for groups in parts.values():
        # The first of the reversed groups with the fewest settings is the latest of them.
        best = min(reversed(groups.values()), key=lambda group: len(_others(group[0])))
        kept |= {id(result) for result in best}
    return tuple(result for result in found if id(result) in kept)


# Settings that say how much is measured, and nothing of how.
AMOUNTS = (
    "seeds",
    "circle_seeds",
    "task_seeds",
    "cell_seeds",
    "text_seeds",
    "further_seeds",
    "tasks",
    "cells",
    "attention",  # of tutek's tables, which measure each by itself
)


def _others(result: Result) -> dict[str, Any]:
    return {name: value for name, value in result.changed.items() if name not in AMOUNTS}


def _settings(result: Result) -> str:
    return json.dumps(_others(result), sort_keys=True)


def _changes(results: Sequence[Result]) -> str:
    """Return a note on settings that are not the defaults."""
    changed: dict[str, Any] = {}
    for result in results:
        changed |= _others(result)
    given = ", ".join(f"{name}={plain_setting(value)}" for name, value in changed.items())
    return f"Settings that are not the defaults: {given}" if given else ""


def _unlisted(name: str, rule: Predicate, recipes: Sequence[str]) -> CatalogueEntry:
    """Return a user's claim as an entry; a plain function has its docstring for a statement."""
    statement = getattr(rule, "statement", "") or (getattr(rule, "__doc__", "") or "")
    return CatalogueEntry(
        id=name,
        paper=name.partition(".")[0],
        where=getattr(rule, "where", ""),
        statement=statement.strip().partition("\n")[0],
        decided_by="",
        recipes=tuple(recipes),
        options=(),
        listed=False,
    )


def _judge(entry: CatalogueEntry, rule: Predicate | None, results: list[Result]) -> Judged:
    own = [result for result in results if result.recipe in entry.recipes]
    full = deciding(result for result in own if result.scale != "quick")
    quick = deciding(result for result in own if result.scale == "quick")
    pool = Pool(full or quick)
    missing = Decision(Verdict.UNDECIDED, note=f"no finished run of {', '.join(entry.recipes)}")
    decision = _decided(rule, pool) if rule and pool.results else missing
    provisional = not full and bool(quick) and rule is not None
    notes = (
        decision.note,
        "" if provisional or not full else _changes(full),
        _QUICK if provisional else "",
        "" if entry.listed else NOT_LISTED,
    )
    return Judged(
        id=entry.id,
        verdict=Verdict.UNDECIDED if provisional else decision.verdict,
        evidence=dict(decision.evidence),
        deviation=decision.deviation,
        note=" ".join(f"{part.removesuffix('.')}." for part in notes if part),
        where=entry.where,
        statement=entry.statement,
        recipes=tuple(entry.recipes),
        published=_printed(entry) if pool.results else (),
        quick=decision.verdict if provisional else None,
        setting=_setting(pool) if pool.results else {},
        readings=_readings(entry, rule, decision, pool) if isinstance(rule, Readings) else (),
    )


def _readings(
    entry: CatalogueEntry, rule: Readings, words: Decision, pool: Pool
) -> tuple[Reading, ...]:
    """Return both readings; the evidence of the first is the claim's own."""
    stricter = _decided(rule.rule, pool) if pool.results else words
    return (
        Reading(entry.words, f"{WORDS_FIXED}: {entry.because}", words.verdict),
        Reading(entry.decided_by, RULE_FIXED, stricter.verdict, stricter.evidence, stricter.note),
    )


# What a rule raises on results that are partial, of another version, or were edited.
_UNFIT = (
    AttnscopeError,
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    AssertionError,
)


def _decided(rule: Predicate, pool: Pool) -> Decision:
    try:
        return rule(pool)
    except NotMeasured as missing:
        return undecided(f"{missing} was not measured")
    except _UNFIT as error:
        reason = " ".join(str(error).split())[:120]
        return undecided(f"the results lack what the rule needs ({type(error).__name__}: {reason})")


def plain_evidence(evidence: Any) -> Any:
    """Return evidence as plain JSON values."""
    if isinstance(evidence, Mapping):
        return {key: plain_evidence(part) for key, part in evidence.items()}
    if isinstance(evidence, (list, tuple)):
        return [plain_evidence(part) for part in evidence]
    if isinstance(evidence, Interval):
        ends = asdict(evidence)
        ends.pop("values")
        return plain_evidence(ends)
    if isinstance(evidence, Measurement):
        return _measurement(evidence)
    # JSON has no NaN: an end that cannot be had is null, as in a result.
    return None if isinstance(evidence, float) and not math.isfinite(evidence) else evidence


def _measurement(row: Measurement) -> dict[str, Any]:
    ends = {"value": row.value, "low": row.low, "high": row.high, "n": row.n}
    return ends if row.published is None else ends | {"published": row.published}


# How the catalogue's places are spelled in the published figures.
_PLACES = {r"Fig (\d+)": "fig{}", r"§(\d+(?:\.\d+)?)": "text-s{}", r"(?<!\w)A\.(\d+)": "text-A.{}"}

# Notes of published figures that are not results: examples, and settings without numbers.
_NO_RESULTS = ("illustrat", "worked", "no values printed")


def _printed(entry: CatalogueEntry) -> tuple[str, ...]:
    if entry.paper not in PAPERS:
        return ()
    tables = set()
    for pattern, spelling in _PLACES.items():
        tables |= {spelling.format(number) for number in re.findall(pattern, entry.where)}
    return tuple(
        f"{row.dataset}: {row.metric} = {row.value:g} {row.unit}"
        for row in published(entry.paper)
        if row.table in tables and not any(words in row.note for words in _NO_RESULTS)
    )


def _setting(pool: Pool) -> dict[str, Any]:
    rows, configs = pool.measurements, [result.config for result in pool.results]
    given: dict[str, list[Any]] = {}
    for config in configs:
        for name, value in config.items():
            if value not in given.setdefault(name, []):
                given[name].append(value)
    devices = dict.fromkeys(result.environment.get("device") for result in pool.results)
    return {
        "config": {name: values[0] for name, values in given.items() if len(values) == 1},
        "differing": {name: values for name, values in given.items() if len(values) > 1},
        "datasets": sorted({row.dataset for row in rows}),
        "seeds": len({seed for row in rows for seed in row.seeds}),
        "devices": list(devices),
    }
