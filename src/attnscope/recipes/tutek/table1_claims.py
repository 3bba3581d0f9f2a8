"""The claims that table 1 decides, each a function of pooled measurements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scipy import stats

from attnscope.claims.decide import about_equal, all_of, share_of, verdict
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.recipes.tutek.judging import (
    against,
    cells,
    deviations,
    evidence_of,
    full_size,
    told,
    too_few,
)

# Fixed beforehand: thresholds of the catalogue.
_KEPT, _KEPT_SHARE = 3.0, 3 / 4
_CELLS, _FRAGILE = 16, {"tying": 15, "mlm": 10}
_LENGTH_CORPORA = 4
_QUERY, _QUERY_CORPORA = 2.0, 2
_OTHERS = ("tying", "mlm", "concat", "residual")
_DIABETES = "mimic-diabetes"


def performance_kept(pool: Pool) -> Decision:
    """Decide tutek.performance-kept: F1 within three points of the base model's."""
    pool = full_size(pool)
    found = {
        key: row
        for key, row in cells(pool, "f1_difference", "attention", "model").items()
        if key[2] in _OTHERS
    }
    evidence = evidence_of(found)
    corpora = {key[0] for key in found}
    if len(corpora) < pool.needed(4):
        return too_few("four corpora with five seeds", len(corpora), evidence)
    parts = [about_equal(interval_of(row), _KEPT) for row in found.values()]
    decided = share_of(parts, _KEPT_SHARE)
    return Decision(decided, evidence, deviations(pool, corpora), against(found, parts))


def fragile(pool: Pool) -> Decision:
    """Decide tutek.fragile: the tied model loses more than the base model, the MLM mostly."""
    pool = full_size(pool)
    found = cells(pool, "extra_drop", "attention", "model", "modification")
    by_model = {
        model: {key: row for key, row in found.items() if key[2] == model} for model in _FRAGILE
    }
    evidence: dict[str, Any] = {}
    holds = []
    for model, rows in by_model.items():
        extra = [row.value for row in rows.values() if row.value is not None]
        more = sum(value > 0 for value in extra)
        mean = sum(extra) / len(extra) if extra else 0.0
        evidence[model] = f"more in {more} of {len(extra)} cells, {mean:.2f} points on average"
        evidence |= evidence_of(rows)
        # A quick run has fewer cells; it says what their share would be.
        needed = -(-_FRAGILE[model] * len(extra) // _CELLS)
        holds.append(more >= needed and mean > 0)
    fewest = min(len(rows) for rows in by_model.values())
    if fewest < pool.needed(_CELLS):
        needs = "16 cells of corpus, attention and modification with five seeds"
        return too_few(needs, fewest, evidence)
    corpora = {key[0] for key in found}
    return Decision(verdict(all(holds), True), evidence, deviations(pool, corpora))


def length(pool: Pool) -> Decision:
    """Decide tutek.length: the base model's mean drop grows with the corpus's mean length."""
    pool = full_size(pool)
    words = {row.dataset: row.value for row in pool.select("avg_length") if row.value is not None}
    both = [
        cells(pool, f"f1_drop_{name}", "attention", model="base")
        for name in ("uniform", "permuted")
    ]
    losses = {
        key: -((row.value or 0.0) + (both[1][key].value or 0.0)) / 2
        for key, row in both[0].items()
        if key in both[1] and key[0] in words
    }
    attentions = list(dict.fromkeys(key[1] for key in losses))
    evidence: dict[str, Any] = {
        f"{corpus} {attention}": f"{words[corpus]:.0f} words, {loss:.1f} points lost"
        for (corpus, attention), loss in losses.items()
    }
    trends = []
    for attention in attentions:
        corpora = [key[0] for key in losses if key[1] == attention]
        if len(corpora) < _LENGTH_CORPORA:
            return too_few("four corpora with five seeds", len(corpora), evidence)
        trend = _spearman(
            [words[name] for name in corpora], [losses[name, attention] for name in corpora]
        )
        evidence[f"Spearman, {attention}"] = trend
        trends.append(trend)
    if not trends:
        return too_few("four corpora with five seeds", 0, evidence)
    decided = verdict(all(trend > 0 for trend in trends), True)
    return Decision(decided, evidence, deviations(pool, {key[0] for key in losses}))


def _spearman(x: Sequence[float], y: Sequence[float]) -> float:
    return float(stats.spearmanr(x, y).statistic)


def instance_query(pool: Pool) -> Decision:
    """Decide tutek.instance-query: F1 within two points of a learned query's."""
    pool = full_size(pool)
    found = cells(pool, "f1_difference", "attention", model="instance")
    evidence = evidence_of(found)
    corpora = {key[0] for key in found}
    if len(corpora) < pool.needed(_QUERY_CORPORA):
        return too_few("two corpora with five seeds and query=instance", len(corpora), evidence)
    parts = [about_equal(interval_of(row), _QUERY) for row in found.values()]
    return Decision(all_of(parts), evidence, deviations(pool, corpora), against(found, parts))


def diabetes(pool: Pool) -> Decision:
    """Decide tutek.diabetes: F1 is 0 under every modification of every model."""
    pool = full_size(pool)
    evidence, left = {}, []
    for name in ("uniform", "permuted"):
        trained = cells(pool, "f1_trained", "attention", "model")
        for key, row in cells(pool, f"f1_drop_{name}", "attention", "model").items():
            if key[0] == _DIABETES and key in trained:
                left.append((trained[key].value or 0.0) + (row.value or 0.0))
                evidence[" ".join((*key[1:], name))] = f"F1 {left[-1]:.2f}, {told(row)}"
    if not left:
        return undecided(
            "MIMIC may not be passed on; it is read from mimic_diabetes/ in the data folder"
        )
    # Rounding of the two numbers that are added.
    return Decision(verdict(all(abs(f1) < 1e-6 for f1 in left), True), evidence)


CLAIMS = {
    "tutek.performance-kept": performance_kept,
    "tutek.fragile": fragile,
    "tutek.length": length,
    "tutek.instance-query": instance_query,
    "tutek.diabetes": diabetes,
}
