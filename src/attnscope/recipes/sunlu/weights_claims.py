"""The claim that mean attention weights decide (figure 5)."""

from __future__ import annotations

from typing import Any

from attnscope.claims.decide import SIGNIFICANT, Verdict, all_of, verdict
from attnscope.claims.pool import Decision, Pool, undecided
from attnscope.recipes.sunlu.shared_claims import OPEN, SST, deviations, full_size, wanted
from attnscope.runs.result import Measurement


def weights(pool: Pool) -> Decision:
    """Decide sunlu.weights: both groups above neutral, and a gap on the side of the scores'."""
    pool = full_size(pool, ["sunlu/weights"])
    datasets = pool.datasets("AUC(weight)")
    deciding = wanted(pool, "AUC(weight)", (SST,))
    found = {name: _one(pool, name) for name in dict.fromkeys([*deciding, *datasets])}
    evidence = {name: told for name, (_, told) in found.items()}
    for row in pool.select("outlier"):
        text = str(row.found["text, with attention scores"])
        evidence.setdefault(f"{row.dataset} outliers", {})[str(row.found["word"])] = text
    counts = [len(pool.select("gap(weight)", name)) for name in deciding]
    if min(counts, default=0) < pool.needed(3):
        return undecided("needs SST at full size, three seeds", evidence)
    parts = [found[name][0] for name in deciding]
    return Decision(all_of(parts), evidence, deviations(deciding, OPEN))


def _one(pool: Pool, dataset: str) -> tuple[Verdict, dict[str, Any]]:
    rows = pool.select("AUC(weight)", dataset)
    told: dict[str, Any] = {}
    parts = []
    for group in dict.fromkeys(str(row.axes["group"]) for row in rows):
        mine = [row for row in rows if row.axes["group"] == group]
        over = [_significant(row) for row in mine]
        held, failed = over.count(1), over.count(-1)
        told[group] = f"above neutral in {held} of {len(mine)} seeds (p < .05), below in {failed}"
        parts.append(verdict(held == len(mine), failed > 0 or 2 * held < len(mine)))
    gaps = pool.select("gap(weight)", dataset)
    agree = sum((row.value or 0.0) * float(row.found["gap of scores"]) > 0 for row in gaps)
    told["side of the gap"] = f"as that of the scores in {agree} of {len(gaps)} seeds"
    parts.append(verdict(agree == len(gaps) > 0, True))
    return all_of(parts), told


def _significant(row: Measurement) -> int:
    """Return 1 or -1 where Mann–Whitney sets a group above or below neutral words, else 0."""
    if row.value is None or not float(row.found["p"]) < SIGNIFICANT:
        return 0
    return 1 if row.value > 0.5 else -1


CLAIMS = {"sunlu.weights": weights}
