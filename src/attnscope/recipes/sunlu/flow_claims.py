"""Claims that two recipes feed: dot products of words, and which term grows with λ (§4)."""

from __future__ import annotations

from typing import Any

from attnscope.claims.decide import Verdict, above, all_of
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.recipes.sunlu.shared_claims import as_verdict, deviations, full_size, seeds_of, shown

# Of sunlu/synthetic, which has no corpora to be read.
SYNTHETIC = {"embedding": 100, "epochs": 500, "texts": 6000}
# F counts as 0 at the start if it is less than this part of E, at λ = √d. (Where attention is all
# on one word, as at λ = .001, E is about 0 itself and says nothing of F.)
_START, _ROOT = 0.1, 10.0


def dot_products(pool: Pool) -> Decision:
    """Decide sunlu.dot-products: eᵀe' > 0 within a polarity and < 0 across, on every data set."""
    pools = [full_size(pool, ["sunlu/scores"]), full_size(pool, ["sunlu/synthetic"], SYNTHETIC)]
    rows = [row for each in pools for row in each.select("dot_sign", model="DP")]
    rows = [row for row in rows if row.axes["lambda"] == 10.0]
    evidence: dict[str, Any] = {}
    for row in rows:
        evidence.setdefault(row.dataset, {})[str(row.axes["pair"])] = shown(row, 3)
    datasets = list(evidence)
    if seeds_of(rows) < pool.needed(3) or len(datasets) < pool.needed(2):
        return undecided("needs two data sets at full size, three seeds", evidence)
    parts = {name: all_of([_above_half(r) for r in rows if r.dataset == name]) for name in datasets}
    against = [name for name, part in parts.items() if part is not Verdict.HOLDS]
    note = f"not held on {', '.join(against)}" if against else ""
    return Decision(all_of(list(parts.values())), evidence, deviations(datasets), note)


def _above_half(row: Any) -> Verdict:
    return above(interval_of(row), 0.5)


def lambda_terms(pool: Pool) -> Decision:
    """Decide sunlu.lambda-terms: A fades and D takes over as λ grows; F is about 0 at the start."""
    pools = [
        full_size(pool, ["sunlu/gradient-flow"], {"problems": 20}),
        full_size(pool, ["sunlu/synthetic"], SYNTHETIC),
    ]
    evidence: dict[str, Any] = {}
    parts: list[Verdict] = []
    least = 0
    for each in pools:
        for ratio, sign in (("A/(B+C)", -1.0), ("D/(E+F)", 1.0)):
            # One value of λ has no rank.
            rows = [r for r in each.select("rank_correlation", ratio=ratio) if r.value is not None]
            for key in dict.fromkeys((row.dataset, str(row.axes["when"])) for row in rows):
                mine = [r for r in rows if (r.dataset, str(r.axes["when"])) == key]
                values = [row.value for row in mine if row.value is not None]
                right = sum(sign * value > 0 for value in values)
                evidence.setdefault(" ".join(key), {})[ratio] = (
                    f"rank correlation with λ {min(values):.2f} to {max(values):.2f}, "
                    f"{right} of {len(mine)} seeds as predicted"
                )
                parts.append(as_verdict(right == len(mine)))
                least = min(least, len(mine)) if least else len(mine)
        for row in each.select("F/E at the start"):
            scale = float(row.axes["lambda"])
            evidence.setdefault(f"{row.dataset} start", {})[f"F/E, λ = {scale:g}"] = shown(row, 4)
            if scale == _ROOT:
                parts.append(as_verdict(None if row.value is None else row.value < _START))
    if least < pool.needed(3) or not any(name.endswith("start") for name in evidence):
        return undecided("needs three seeds at full size", evidence)
    note = f"F counts as 0 at the start where mean |F| is below {_START:g} of mean |E| at λ = √d"
    return Decision(all_of(parts), evidence, note=note)
