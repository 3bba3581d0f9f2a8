"""The claims that the agreement tables decide.

The text's way of computing them decides; the numbers of the authors' code's way are shown next to
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import median

from attnscope.claims.decide import Verdict, above, below, much_greater, share_of, verdict
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.claims.table import Cell, Cells, Check, Claim, Finding, Needs, Part
from attnscope.recipes.snell.units import FULL_SIZE, OUTLIER, text_deviations
from attnscope.runs.result import Measurement

_CLASSIFICATION, _TRANSLATION = 4, 2  # corpora that a claim about every corpus needs
_TEXT = {"way": "text", "split": "val"}
# Options can leave either agreement out.
_MEASURED = ("A(alpha,beta_uf)", "kendall(alpha,beta_uf)")
_CORPORA = Cells(_MEASURED, given=_TEXT, aside=(OUTLIER,))
_MOST = partial(share_of, share=2 / 3)


def _both_kinds(pool: Pool, cells: Sequence[Cell]) -> str:
    """Return which corpora are lacking for a claim about every corpus."""
    translations = {row.dataset for row in pool.select("median_length", side="src")}
    parallel = sum(cell.dataset in translations for cell in cells)
    labelled = len(cells) - parallel
    if labelled >= pool.needed(_CLASSIFICATION) and parallel >= pool.needed(_TRANSLATION):
        return ""
    return (
        f"needs {_CLASSIFICATION} classification and {_TRANSLATION} translation corpora at the "
        f"paper's sizes; there are {labelled} and {parallel}"
    )


_EVERY = Needs(sizes=FULL_SIZE, also=_both_kinds)


def _above_chance(pair: str) -> tuple[Check, ...]:
    return (
        Part("", (f"excess({pair})", f"ratio({pair})"), much_greater, shown=False),
        Part(f"A({pair})", f"A({pair})"),
        Part("chance", "A_random"),
        Part(f"A({pair}) by the authors' code's way", f"A({pair})", given={"way": "code"}),
    )


def _every_corpus(*checks: Check, split: str = "val") -> Claim:
    cells = Cells(_MEASURED, given=_TEXT | {"split": split}, aside=(OUTLIER,))
    return Claim(cells, checks, _EVERY, deviation=text_deviations)


def contextual(cell: Cell) -> Finding:
    """Check that ξ(α, β^uf) is a quarter of the way from the floor to ξ*."""
    axes = {"agreement": "top5pct", "performance": "accuracy"}
    xi = cell.one("xi(alpha,beta_uf)", **axes)
    floor, star = cell.value("floor", **axes), cell.one("xi_star", **axes)
    reached = interval_of(xi).value >= floor + (interval_of(star).value - floor) / 4
    evidence = {"xi": xi, "at step": xi.found["tau0"], "floor": floor, "xi*": star}
    return Finding(verdict(reached, True), evidence)


def smaller_with_bleu(cell: Cell) -> Finding:
    """Check that ξ is a smaller part of ξ* with BLEU than with token accuracy."""
    parts = {}
    for performance in ("bleu", "accuracy"):
        xi = cell.value("xi(alpha,beta_uf)", performance=performance)
        star = cell.value("xi_star", performance=performance)
        if star == 0:
            return Finding(Verdict.UNDECIDED, {f"xi* by {performance}": star})
        parts[performance] = xi / star
    evidence = {f"xi/xi* by {name}": part for name, part in parts.items()}
    return Finding(verdict(parts["bleu"] < parts["accuracy"], True), evidence)


def rise_and_fall(cell: Cell) -> Finding:
    """Check for an inner maximum with both ends lower, and little inflation."""
    curve = _curve(cell, "curve(alpha,beta_uf)")
    if len(curve) < 3:
        return Finding(Verdict.UNDECIDED, {"evaluation steps": len(curve)})
    start, end = curve[0], curve[-1]
    top = max(curve, key=lambda row: interval_of(row).value)
    inner = top not in (start, end)
    highest = interval_of(top)
    ends = [interval_of(row) for row in (start, end)]
    apart = inner and all(each.high < highest.low for each in ends)
    lower = inner and all(each.value < highest.value for each in ends)
    inflation = cell.value("inflation")
    evidence = {
        "at the start": start,
        "highest": top,
        "at step": top.axes["step"],
        "at the end": end,
        "inflation": inflation,
    }
    return Finding(verdict(apart and inflation < 1, not lower or inflation >= 1), evidence)


def two_stages(cell: Cell) -> Finding:
    """Check that word knowledge comes first, while attention is near uniform."""
    chance = cell.value("A_random")
    known = _half_reached(_curve(cell, "curve(alpha,beta)"), chance)
    attended = _half_reached(_curve(cell, "curve(alpha,alpha)"), chance)
    if known is None or attended is None:
        return Finding(Verdict.UNDECIDED, {"half of the excess": "never reached"})
    entropy = cell.value("entropy(alpha)", step=known)
    evidence = {"probe at step": known, "entropy there": entropy, "attention at step": attended}
    return Finding(verdict(entropy >= 0.9 and attended > known, True), evidence)


def _curve(cell: Cell, name: str) -> list[Measurement]:
    cell.one(name)
    rows = [row for row in cell.select(name) if row.value is not None]
    return sorted(rows, key=lambda row: row.axes["step"])


def _half_reached(curve: Sequence[Measurement], chance: float) -> int | None:
    """Return the first step at which half of the final excess over chance is reached."""
    excess = interval_of(curve[-1]).value - chance
    if not excess > 0:
        return None  # Nothing is learned whose half could be reached.
    reached = [row for row in curve if interval_of(row).value >= chance + excess / 2]
    return int(reached[0].axes["step"])


def sms_variance(pool: Pool) -> Decision:
    """Decide snell.sms-variance: two seeds' attentions agree least on SMS."""
    pool = pool.full_size(FULL_SIZE)
    rows = {
        row.dataset: row
        for row in Cell(pool, _TEXT).select("excess(alpha_i,alpha_j)")
        if int(row.found["pairs"]) >= pool.needed(10)
    }
    others = [interval_of(row).value for name, row in rows.items() if name != OUTLIER]
    if OUTLIER not in rows or len(others) < pool.needed(_CLASSIFICATION):
        return undecided("needs SMS and four other corpora with ten pairs of seeds", rows)
    own = interval_of(rows[OUTLIER])
    lowest = own.value < min(others)
    under = below(own, median(others))
    decided = verdict(lowest and under is Verdict.HOLDS, not lowest or under is Verdict.FAILS)
    return Decision(decided, rows, text_deviations(pool, list(rows)))


_PAIRS = ("alpha,beta_uf", "beta_uf,beta_px", "alpha,beta", "delta,beta_uf")
_BLEU = _TEXT | {"agreement": "top5pct", "performance": "bleu"}
_TAUS = [f"kendall({pair})" for pair in ("alpha,beta_uf", "beta_uf,beta_px", "delta,beta_uf")]

CLAIMS = {
    "snell.uniform-probe": _every_corpus(*_above_chance("alpha,beta_uf")),
    "snell.proxy": _every_corpus(*_above_chance("beta_uf,beta_px")),
    "snell.probe": _every_corpus(*_above_chance("alpha,beta")),
    "snell.saliency": _every_corpus(
        *_above_chance("delta,beta_uf"), Part("A(alpha,delta)", "A(alpha,delta)")
    ),
    "snell.two-stages": Claim(_CORPORA, [two_stages], _EVERY, _MOST, text_deviations),
    "snell.contextual": Claim(_CORPORA, [contextual], _EVERY, _MOST, text_deviations),
    "snell.kendall": _every_corpus(*(Part(name, name, above) for name in _TAUS)),
    "snell.bleu": Claim(
        Cells("xi_star", given=_BLEU),
        [smaller_with_bleu],
        Needs(sizes=FULL_SIZE, datasets=_TRANSLATION),
        deviation=text_deviations,
    ),
    "snell.train-split": _every_corpus(
        *(check for pair in _PAIRS for check in _above_chance(pair)), split="train"
    ),
    "snell.rise-and-fall": _every_corpus(rise_and_fall),
    "snell.sms-variance": sms_variance,
}
