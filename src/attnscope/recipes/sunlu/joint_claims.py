"""Claims that two recipes decide together: dot products of words, and which terms grow with λ."""

from __future__ import annotations

from typing import Any

from attnscope.claims.decide import Verdict, above, all_of, verdict
from attnscope.claims.table import (
    Cell,
    Cells,
    Claim,
    Finding,
    Needs,
    NotMeasured,
    Part,
    corpus_deviations,
)
from attnscope.recipes.sunlu.units import SIZES

# Sizes of runs without text that decide a claim.
SYNTHETIC_SIZES: dict[str, float] = {"embedding": 100, "epochs": 500, "texts": 6000}
_PROBLEMS: dict[str, float] = {"problems": 20}
# F counts as 0 at the start if it is less than this part of E, at λ = √d. (Where attention is all
# on one word, as at λ = .001, E is about 0 itself and says nothing of F.)
_START, _ROOT = 0.1, 10.0
_SIGNS = {"A/(B+C)": -1.0, "D/(E+F)": 1.0}


def _as_predicted(cell: Cell) -> Finding:
    """Check that A fades and D takes over as λ grows, and that F is about 0 at the start."""
    parts: list[Verdict] = []
    evidence: dict[str, Any] = {}
    for ratio, sign in _SIGNS.items():
        # One value of λ has no rank.
        rows = cell.select("rank_correlation", ratio=ratio)
        values = [row.value for row in rows if row.value is not None]
        if not values:
            raise NotMeasured("rank_correlation")
        right = sum(sign * value > 0 for value in values)
        evidence[ratio] = (
            f"rank correlation with λ {min(values):.2f} to {max(values):.2f}, "
            f"{right} of {len(values)} seeds as predicted"
        )
        parts.append(verdict(right == len(values), True))
    for row in cell.select("F/E at the start"):
        scale = float(row.axes["lambda"])
        evidence[f"F/E, λ = {scale:g}"] = row
        if scale == _ROOT:
            parts.append(verdict(row.number < _START, row.number >= _START))
    return Finding(all_of(parts), evidence)


# eᵀe' > 0 within a polarity and < 0 across, on every data set (§4).
DOT_PRODUCTS = Claim(
    Cells("dot_sign", given={"model": "DP", "lambda": 10.0}),
    (Part("", "dot_sign", above, 0.5, each="pair"),),
    Needs(3, {"sunlu/scores": SIZES, "sunlu/synthetic": SYNTHETIC_SIZES}, datasets=2),
    deviation=lambda pool, datasets: corpus_deviations(datasets),
)
LAMBDA_TERMS = Claim(
    Cells("rank_correlation", ("dataset", "when")),
    (_as_predicted,),
    Needs(
        3,
        {"sunlu/gradient-flow": _PROBLEMS, "sunlu/synthetic": SYNTHETIC_SIZES},
        each={"when": ("start",)},
    ),
    note=f"F counts as 0 at the start where mean |F| is below {_START:g} of mean |E| at λ = √d",
)
