"""The claims that the agreement tables decide, and their figures (tables 5 and 7, Figure 2).

The text's way of computing them decides; the numbers of the authors' code's way are shown next to
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

import altair as alt

from attnscope.analysis.intervals import Interval, interval_difference
from attnscope.claims.decide import Verdict, above, below, much_greater, share_of, verdict
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.claims.readings import Readings
from attnscope.claims.symbols import score_in_figures
from attnscope.claims.table import Cell, Cells, Check, Claim, Finding, Needs, Part, several
from attnscope.figures.charts import Axis, Guide, Panel, beside
from attnscope.figures.palette import NEUTRAL, ROLES, SCORES
from attnscope.recipes.kit.lab import Logged
from attnscope.recipes.kit.plots import band, curves, dots, span
from attnscope.recipes.recipe import Charts
from attnscope.recipes.snell.agreement import (
    NEVER,
    OUTLIER,
    PAIRS,
    agreement_label,
    text_deviations,
)
from attnscope.recipes.snell.units import FULL_SIZE
from attnscope.runs.result import Measurement, Result, select

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


def where_exceeded(cell: Cell) -> Finding:
    """Check the same on a corpus where ξ is exceeded; elsewhere ξ is ξ* and says nothing."""
    if cell.one("xi(alpha,beta_uf)", performance="bleu").found["tau0"] == NEVER:
        return Finding(None, {"xi": NEVER})
    return smaller_with_bleu(cell)


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


def rise_and_fall_paired(cell: Cell) -> Finding:
    """Check for an inner maximum that is above both ends by the paired difference's interval.

    Where the paired difference was not kept, that of the two intervals is taken, which is wider.
    """
    curve = _curve(cell, "curve(alpha,beta_uf)")
    if len(curve) < 3:
        return Finding(Verdict.UNDECIDED, {"evaluation steps": len(curve)})
    top = max(curve, key=lambda row: interval_of(row).value)
    evidence: dict[str, Any] = {"highest at step": top.axes["step"]}
    gaps = []
    for end, row in (("start", curve[0]), ("end", curve[-1])):
        gaps.append(_above_end(cell, end, top, row))
        evidence[f"above the {end} by"] = gaps[-1]
    evidence["inflation"] = cell.value("inflation")
    inner = top not in (curve[0], curve[-1])
    return Finding(verdict(inner and all(gap.low > 0 for gap in gaps), not inner), evidence)


def _above_end(cell: Cell, end: str, top: Measurement, row: Measurement) -> Interval:
    paired = cell.select("above_end(alpha,beta_uf)", end=end)
    if paired:
        return interval_of(paired[-1])
    return interval_difference(interval_of(top), interval_of(row))


def words_first(holds: Callable[[int, int, float], bool], shown: bool = True) -> Check:
    """Return a check of the steps at which probe and attention reach half of their excess.

    ``holds`` is a function of the two steps, and of attention's entropy at the probe's.
    """

    def check(cell: Cell) -> Finding:
        chance = cell.value("A_random")
        known = _half_reached(_curve(cell, "curve(alpha,beta)"), chance)
        attended = _half_reached(_curve(cell, "curve(alpha,alpha)"), chance)
        if known is None or attended is None:
            return Finding(Verdict.UNDECIDED, {"half of the excess": "never reached"})
        entropy = cell.value("entropy(alpha)", step=known)
        steps = {"probe at step": known, "entropy there": entropy, "attention at step": attended}
        found = verdict(holds(known, attended, entropy), True)
        return Finding(found, steps if shown else {})

    return check


def longest_median(cell: Cell) -> Finding:
    """Show the median length of a corpus' texts, of its longer side."""
    lengths = [row.number for row in cell.select("median_length", way=None) if row.value]
    return Finding(None, {"median length": max(lengths)} if lengths else {})


not_later = words_first(lambda known, attended, entropy: known <= attended)
earlier = words_first(lambda known, attended, entropy: known < attended, shown=False)
near_uniform = words_first(lambda known, attended, entropy: entropy >= 0.9 and known < attended)


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


def sms_variance(pool: Pool, lowest_of_all: bool = True) -> Decision:
    """Decide snell.sms-variance: two seeds' attentions agree less on SMS than on the median corpus.

    The stricter reading asks for the lowest agreement of all corpora too.
    """
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
    lowest = own.value < min(others) or not lowest_of_all
    under = below(own, median(others))
    decided = verdict(lowest and under is Verdict.HOLDS, not lowest or under is Verdict.FAILS)
    return Decision(decided, rows, text_deviations(pool, list(rows)))


_BLEU = _TEXT | {"agreement": "top5pct", "performance": "bleu"}


def _with_bleu(check: Check) -> Claim:
    needs = Needs(sizes=FULL_SIZE, datasets=_TRANSLATION)
    return Claim(Cells("xi_star", given=_BLEU), [check], needs, deviation=text_deviations)


_TAUS = [f"kendall({pair})" for pair in ("alpha,beta_uf", "beta_uf,beta_px", "delta,beta_uf")]

CLAIMS = {
    "snell.uniform-probe": _every_corpus(*_above_chance("alpha,beta_uf")),
    "snell.proxy": _every_corpus(*_above_chance("beta_uf,beta_px")),
    "snell.probe": _every_corpus(*_above_chance("alpha,beta")),
    "snell.saliency": _every_corpus(
        *_above_chance("delta,beta_uf"), Part("A(alpha,delta)", "A(alpha,delta)")
    ),
    "snell.two-stages": Readings(
        several(
            {
                "not later": Claim(
                    _CORPORA, [not_later, longest_median], _EVERY, deviation=text_deviations
                ),
                "earlier": Claim(_CORPORA, [earlier], _EVERY, _MOST),
            }
        ),
        Claim(_CORPORA, [near_uniform], _EVERY, _MOST, text_deviations),
    ),
    "snell.contextual": Claim(_CORPORA, [contextual], _EVERY, _MOST, text_deviations),
    "snell.kendall": _every_corpus(*(Part(name, name, above) for name in _TAUS)),
    "snell.bleu": Readings(_with_bleu(where_exceeded), _with_bleu(smaller_with_bleu)),
    "snell.train-split": _every_corpus(
        *(check for pair in PAIRS for check in _above_chance(pair)), split="train"
    ),
    "snell.rise-and-fall": Readings(
        Claim(_CORPORA, [rise_and_fall_paired], _EVERY, _MOST, text_deviations),
        _every_corpus(rise_and_fall),
    ),
    "snell.sms-variance": Readings(partial(sms_variance, lowest_of_all=False), sms_variance),
}


_AGREEMENTS = {
    "A(alpha,beta_uf)": SCORES["uniform_probe"],
    "A(beta_uf,beta_px)": SCORES["proxy"],
    "A(delta,beta_uf)": SCORES["saliency"],
    "A(alpha,beta)": SCORES["lexical_probe"],
    "A(alpha,delta)": SCORES["attention"],
}
_CURVES = {
    "curve(alpha,beta)": (score_in_figures("beta"), SCORES["lexical_probe"]),
    "curve(alpha,beta_uf)": (score_in_figures("beta_uf"), SCORES["uniform_probe"]),
    "curve(alpha,alpha)": (score_in_figures("alpha"), SCORES["attention"]),
}
_PERFORMANCE = {"accuracy": "accuracy (%)", "bleu": "BLEU"}
_PERCENT = Axis("agreement (%)", domain=(0, 100))


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw three figures for each corpus: its table, Figure 2, and its curves through training."""
    # The figures are about the validation part and the top 5 %; options can leave both out.
    measured = [row.dataset for row in result.select("A_random") if row.split == "val"]
    charts: dict[str, Any] = {}
    for name in dict.fromkeys(measured):
        rows = [row for row in result.numbers if row.dataset == name and row.split == "val"]
        charts[f"agreement-{name}"] = _agreements(rows, name)
        panels: list[alt.LayerChart] = []
        for performance in _PERFORMANCE:
            panels += _figure2(rows, performance)
        if panels:
            charts[f"fig2-{name}"] = beside(*panels, columns=2, title=name)
        charts[f"training-{name}"] = beside(*_training(rows), title=name)
    return charts


def _of(rows: Sequence[Measurement], name: str, **axes: Any) -> list[Measurement]:
    return select(rows, name, **({"way": "text"} | axes))


def _agreements(rows: Sequence[Measurement], dataset: str) -> alt.LayerChart:
    lines: list[Measurement] = []
    for way in ("text", "code"):
        for name in _AGREEMENTS:
            lines += _of(rows, name, way=way)
    lines += _of(rows, "A_random")[:1]

    def label(row: Measurement) -> str:
        if row.name not in _AGREEMENTS:
            return "chance"
        return f"{agreement_label(row.name)}, {row.axes['way']}"

    return dots(
        lines,
        _PERCENT,
        label=label,
        colour=lambda row: _AGREEMENTS.get(row.name, NEUTRAL),
        title=dataset,
    )


def _steps(curve: Sequence[Measurement]) -> Axis:
    last = max(int(row.axes["step"]) for row in curve)
    ticks = [tick for tick in (0, 10, 100, 1000, 10_000) if tick <= last]
    # Half of what happens happens in the first hundred steps.
    return Axis("training steps", scale="symlog", domain=(0, last), ticks=ticks, format=",d")


def _figure2(rows: Sequence[Measurement], performance: str) -> list[alt.LayerChart]:
    """Draw agreement with another seed and its performance, both marked at τ₀."""
    axes = {"agreement": "top5pct", "performance": performance}
    hat, reached = (_of(rows, f"hat_{name}", **axes) for name in ("agreement", "performance"))
    if not reached:
        return []
    xi, level = _of(rows, "xi(alpha,beta_uf)", **axes)[0], _of(rows, "A(alpha,beta_uf)")[0]
    x, tau = _steps(hat), xi.found["tau0"]
    end = max(int(row.axes["step"]) for row in hat)
    across = Guide([(0, level.number), (end, level.number)])
    up: list[Guide] = []
    title = f"Never exceeded: performance ξ = ξ* = {xi.number:.1f}"
    if not isinstance(tau, str):
        up = [Guide([(tau, 0), (tau, 100)])]
        title = f"Exceeded at step {tau}: performance ξ = {xi.number:.1f}"
    left = Panel(
        x,
        _PERCENT,
        {"attention of two seeds, A(α, α̂(τ))": SCORES["attention"]},
        # In the title: curves cross this line wherever they like, and a label with it.
        title=f"Another seed's attention, and A(α, β uniform) = {level.number:.1f}",
        labels="none",
        guides=[across, *up],
    )
    top = 100.0 if performance == "accuracy" else 1.05 * max(span(reached, room=0)[1], 1.0)
    right = Panel(
        x,
        Axis(_PERFORMANCE[performance], domain=(0, top)),
        {"performance": ROLES["control"]},
        title=title,
        labels="none",
        guides=[*up, Guide([(0, xi.number), (end, xi.number)])],
    )
    return [
        band(hat, left, x="step", group=lambda row: "attention of two seeds, A(α, α̂(τ))"),
        band(reached, right, x="step", group=lambda row: "performance"),
    ]


def _training(rows: Sequence[Measurement]) -> list[alt.LayerChart]:
    """Draw which agreement comes first, and how attention leaves the uniform."""
    x = _steps(_of(rows, "curve(alpha,beta)"))
    agreement = Panel(
        x,
        Axis("agreement with the final attention, α (%)", domain=(0, 100)),
        dict(_CURVES.values()),
        title="What the final attention agrees with",
    )
    spread = Panel(
        x,
        Axis("entropy of attention, α, over log L", domain=(0, 1)),
        {"entropy": SCORES["attention"]},
        title="How uniform attention still is",
        labels="none",
    )
    lines = [row for name in _CURVES for row in _of(rows, name)]
    return [
        curves(lines, agreement, x="step", group=lambda row: _CURVES[row.name][0]),
        curves(_of(rows, "entropy(alpha)"), spread, x="step", group=lambda row: "entropy"),
    ]
