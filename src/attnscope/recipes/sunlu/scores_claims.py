"""The claims that the words' scores decide (figures 2 to 4, §4 and §5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attnscope.claims.decide import Verdict, about_equal, above, all_of, below, verdict
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.data.token_groups import NEUTRAL
from attnscope.recipes.sunlu.flow_claims import dot_products
from attnscope.recipes.sunlu.shared_claims import (
    IMDB,
    NEWS_1,
    NEWS_2,
    OPEN,
    SST,
    deviations,
    full_size,
    one,
    shown,
    wanted,
)
from attnscope.runs.result import Measurement

_TEN, _HUNDRED = 10.0, 100.0
_DOT_SEEDS, _AGREEING = 10, 0.9
Rule = Callable[[Pool, str], tuple[Verdict, Any]]


def _each(
    pool: Pool, corpora: Sequence[str], rule: Rule, needs: str, seeds: int = 3, also: str = ""
) -> Decision:
    """Decide a claim on some of the paper's corpora; what others show stands beside."""
    pool = full_size(pool, ["sunlu/scores"])
    deciding = wanted(pool, "AUC(attention)", corpora)
    every = dict.fromkeys([*deciding, *pool.datasets("AUC(attention)")])
    found = {name: rule(pool, name) for name in every}
    evidence = {
        name: told or "not measured"
        for name, (_, told) in found.items()
        if told or name in deciding
    }
    enough = [
        min((len(row.seeds) for row in pool.select("AUC(attention)", name)), default=0)
        for name in deciding
    ]
    if min(enough, default=0) < pool.needed(seeds):
        return undecided(f"needs {needs} at full size", evidence)
    against = [name for name in deciding if found[name][0] is not Verdict.HOLDS]
    note = f"not held on {', '.join(against)}" if against else ""
    parts = [found[name][0] for name in deciding]
    return Decision(
        all_of(parts), evidence, deviations(deciding, OPEN, *filter(None, [also])), note
    )


def _cell(pool: Pool, name: str, dataset: str, **axes: Any) -> Measurement | None:
    given = {"model": "DP", "lambda": _TEN, "penalty": 0.0, "reading": "alone"} | axes
    return one(pool.select(name, dataset, **given))


def _over_neutral(pool: Pool, dataset: str, **axes: Any) -> tuple[Verdict, dict[str, str]]:
    """Decide that every label's words have larger attention scores than neutral ones."""
    given = {"model": "DP", "lambda": _TEN, "penalty": 0.0, "reading": "alone"} | axes
    rows = pool.select("AUC(attention)", dataset, **given)
    told = {f"AUC {row.axes['group']}": shown(row, 3) for row in rows}
    return all_of([above(interval_of(row), 0.5) for row in rows]), told


def polarity_sign(pool: Pool) -> Decision:
    """Decide sunlu.polarity-sign."""

    def rule(pool: Pool, dataset: str) -> tuple[Verdict, Any]:
        auc = _cell(pool, "AUC(polarity)", dataset, group="positive against negative")
        share = _cell(pool, "neutral_share", dataset)
        if auc is None or share is None:
            return Verdict.UNDECIDED, ""
        ends = interval_of(auc)
        apart = verdict(ends.low >= 0.95, ends.high < 0.95)
        told = f"AUC {shown(auc, 3)}, neutral over polar {shown(share, 3)}"
        return all_of([apart, below(interval_of(share), 1 / 3)]), told

    return _each(pool, (SST, IMDB, NEWS_1), rule, "SST, IMDB and 20News I, three seeds")


def attention_polar(pool: Pool) -> Decision:
    """Decide sunlu.attention-polar."""
    return _each(pool, (SST, IMDB, NEWS_1), _over_neutral, "SST, IMDB and 20News I, three seeds")


def multiclass(pool: Pool) -> Decision:
    """Decide sunlu.multiclass."""

    def rule(pool: Pool, dataset: str) -> tuple[Verdict, Any]:
        over, told = _over_neutral(pool, dataset)
        return over, told if len(told) > 2 else {}

    also = "the rule of three classes' groups is the one nearest to the supplement's sizes"
    return _each(pool, (NEWS_2,), rule, "20News II, three seeds", also=also)


def additive(pool: Pool) -> Decision:
    """Decide sunlu.additive: AD, and DP-A and DP-L, on SST (Fig. 4)."""

    def rule(pool: Pool, dataset: str) -> tuple[Verdict, Any]:
        found = {
            model: _over_neutral(pool, dataset, model=model) for model in ("AD", "DP-A", "DP-L")
        }
        told: dict[str, Any] = {model: shown for model, (_, shown) in found.items()}
        local = _over_neutral(pool, dataset, model="DP-L", reading="occurrences")[1]
        told["DP-L, mean over occurrences"] = local
        return all_of([part for part, _ in found.values()]), told

    return _each(pool, (SST,), rule, "SST with AD, DP-A and DP-L, three seeds")


def gap(pool: Pool) -> Decision:
    """Decide sunlu.gap: on the side of VᵀW at λ = 100, and wider than at λ = 10."""

    def rule(pool: Pool, dataset: str) -> tuple[Verdict, Any]:
        axes = {"model": "DP", "lambda": _HUNDRED, "penalty": 0.0}
        rows = [row for row in pool.select("gap", dataset, **axes) if "VW" in row.found]
        sizes = [_cell(pool, "gap_size", dataset, **{"lambda": x}) for x in (_TEN, _HUNDRED)]
        if len(rows) < pool.needed(_DOT_SEEDS) or None in sizes:
            return Verdict.UNDECIDED, f"{len(rows)} seeds" if rows else ""
        small, large = (row.value or 0.0 for row in sizes if row is not None)
        agree = {name: _agreeing(rows, name) for name in ("VW", "VW at the start")}
        told = (
            f"signs agree with VᵀW in {agree['VW']} of {len(rows)} seeds (at the start "
            f"{agree['VW at the start']}); |gap| {large:.2f} at λ = 100, {small:.2f} at λ = 10"
        )
        return verdict(agree["VW"] >= _AGREEING * len(rows) and large > small, True), told

    return _each(pool, (SST,), rule, "SST, ten seeds at λ = 10 and 100")


def _agreeing(rows: Sequence[Measurement], product: str) -> int:
    return sum((row.value or 0.0) * float(row.found[product]) > 0 for row in rows)


def healthy_polarity(pool: Pool) -> Decision:
    """Decide sunlu.healthy-polarity: at λ = 100 |s| stays and |a| shrinks."""

    def rule(pool: Pool, dataset: str) -> tuple[Verdict, Any]:
        s, a = (
            _cell(pool, f"ratio({name})", dataset, **{"lambda": _HUNDRED})
            for name in ("polarity", "attention")
        )
        if s is None or a is None:
            return Verdict.UNDECIDED, ""
        told = f"|s| ratio {shown(s, 2)}, |a| ratio {shown(a, 2)}"
        stays, shrinks = interval_of(s), interval_of(a)
        parts = [
            verdict(stays.low >= 0.8, stays.high < 0.8),
            verdict(shrinks.high <= 0.5, shrinks.low > 0.5),
        ]
        return all_of(parts), told

    return _each(pool, (SST,), rule, "SST at λ = 10 and 100, three seeds")


def regulariser(pool: Pool) -> Decision:
    """Decide sunlu.regulariser: with the penalty at λ = 100, scores above neutral and above 0."""

    def rule(pool: Pool, dataset: str) -> tuple[Verdict, Any]:
        rows = [row for row in pool.select("accuracy_change", dataset, **{"lambda": _HUNDRED})]
        if not rows:
            return Verdict.UNDECIDED, ""
        axes = {"lambda": _HUNDRED, "penalty": rows[-1].axes["penalty"]}
        over, told = _over_neutral(pool, dataset, **axes)
        given = {"model": "DP", "reading": "alone"} | axes
        means = {
            row.axes["group"]: row
            for row in pool.select("mean(attention)", dataset, **given)
            if row.axes["group"] != NEUTRAL
        }
        signs = [above(interval_of(row)) for row in means.values()]
        evidence: dict[str, Any] = dict(told)
        evidence |= {f"mean a, {group}": shown(row, 3) for group, row in means.items()}
        evidence["accuracy change"] = shown(rows[-1])
        about = about_equal(interval_of(rows[-1]), 2.0)
        return all_of([over, *signs, about]), evidence

    return _each(pool, (SST,), rule, "SST at λ = 100 with the penalty, three seeds")


CLAIMS = {
    "sunlu.dot-products": dot_products,
    "sunlu.polarity-sign": polarity_sign,
    "sunlu.attention-polar": attention_polar,
    "sunlu.gap": gap,
    "sunlu.healthy-polarity": healthy_polarity,
    "sunlu.regulariser": regulariser,
    "sunlu.multiclass": multiclass,
    "sunlu.additive": additive,
}
