"""The claims that Table 2's grid decides: what small and large scaling factors do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attnscope.claims.decide import Verdict, about_equal, above, all_of
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.recipes.sunlu.shared_claims import (
    OPEN,
    deviations,
    full_size,
    one,
    seeds_of,
    shown,
    wanted,
)
from attnscope.recipes.sunlu.units import CORPORA, MODELS, SCALES

_SMALL, _ONE, _LARGE = 0.001, 1.0, 10_000.0
_MARGIN, _EVEN, _SEEDS = 3.0, 0.99, 3
Rule = Callable[[Pool, str, str], tuple[Verdict, Any]]


def small_lambda(pool: Pool) -> Decision:
    """Decide sunlu.small-lambda: at λ = .001 every model is worse than at its best λ."""

    def rule(pool: Pool, dataset: str, model: str) -> tuple[Verdict, Any]:
        rows = {
            scale: one(pool.select("drop", dataset, model=model, **{"lambda": scale}))
            for scale in (_SMALL, _ONE)
        }
        told = f"drop {shown(rows[_SMALL])} at .001, {shown(rows[_ONE])} at 1"
        row = rows[_SMALL]
        return (above(interval_of(row)) if row else Verdict.UNDECIDED), told

    return _every_cell(pool, rule, _SMALL)


def large_lambda(pool: Pool) -> Decision:
    """Decide sunlu.large-lambda: at λ = 10 000 accuracy is about the best and attention even."""

    def rule(pool: Pool, dataset: str, model: str) -> tuple[Verdict, Any]:
        drop, entropy = (
            one(pool.select(name, dataset, model=model, **{"lambda": _LARGE}))
            for name in ("drop", "entropy")
        )
        if drop is None or entropy is None:
            return Verdict.UNDECIDED, "not measured"
        told = f"drop {shown(drop)}, entropy {shown(entropy, 4)}"
        parts = [about_equal(interval_of(drop), _MARGIN), above(interval_of(entropy), _EVEN)]
        return all_of(parts), told

    return _every_cell(pool, rule, _LARGE)


def _every_cell(pool: Pool, rule: Rule, scale: float) -> Decision:
    """Decide a claim about all four models on all four corpora."""
    pool = full_size(pool, ["sunlu/table2"])
    deciding = wanted(pool, "drop", CORPORA)
    found = {
        name: {model: rule(pool, name, model) for model in MODELS}
        for name in dict.fromkeys([*deciding, *pool.datasets("drop")])
    }
    evidence = {
        name: {model: told for model, (_, told) in cells.items()} for name, cells in found.items()
    }
    rows = [
        row
        for name in deciding
        for model in MODELS
        for row in pool.select("drop", name, model=model)
    ]
    cells = len(deciding) * len(MODELS)
    scales = {float(row.axes["lambda"]) for row in rows}
    enough = len([row for row in rows if row.axes["lambda"] == scale]) == cells > 0
    full = pool.results[-1].scale == "full"
    if not enough or seeds_of(rows) < pool.needed(_SEEDS) or (full and not scales >= set(SCALES)):
        note = "needs four corpora, four models, seven values of λ and three seeds at full size"
        return undecided(note, evidence)
    parts = {(n, m): found[n][m][0] for n in deciding for m in MODELS}
    against = [f"{n} {m}" for (n, m), part in parts.items() if part is not Verdict.HOLDS]
    note = f"not held for {', '.join(against)}" if against else ""
    return Decision(all_of(list(parts.values())), evidence, deviations(deciding, OPEN), note)


CLAIMS = {"sunlu.small-lambda": small_lambda, "sunlu.large-lambda": large_lambda}
