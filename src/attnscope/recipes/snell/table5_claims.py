"""The claims that the agreement tables decide, each a function of pooled measurements.

The text's way of computing them decides; what the authors' code's way gives stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from attnscope.claims.decide import (
    Verdict,
    above,
    all_of,
    below,
    much_greater,
    share_of,
    verdict,
)
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.data.known import definitions
from attnscope.data.text import OWN
from attnscope.recipes.snell.text_units import TextConfig
from attnscope.runs.result import Measurement

# A.9 calls this corpus an outlier; it is shown beside and decides nothing.
OUTLIER = "sms"
_CLASSIFICATION, _TRANSLATION = 4, 2  # corpora that a claim about every corpus needs

Rule = Callable[[Pool, str], tuple[Verdict, Any]]


def _one(
    pool: Pool, name: str, dataset: str, split: str = "val", **axes: Any
) -> Measurement | None:
    axes = {"way": "text"} | axes
    rows = [row for row in pool.select(name, dataset, **axes) if row.split == split]
    return rows[-1] if rows else None


def _value(pool: Pool, name: str, dataset: str, split: str = "val", **axes: Any) -> float:
    row = _one(pool, name, dataset, split, **axes)
    return math.nan if row is None or row.value is None else row.value


def _curve(pool: Pool, name: str, dataset: str, **axes: Any) -> list[Measurement]:
    rows = pool.select(name, dataset, **({"way": "text"} | axes))
    return sorted(rows, key=lambda row: row.axes["step"])


def deviations(pool: Pool, datasets: Sequence[str]) -> str:
    """Return how corpora and embeddings differ from the paper's."""
    known = definitions()
    told = {name: known[name].deviation for name in datasets if name in known}
    parts = [f"{name}: {text.removesuffix('.')}" for name, text in told.items() if text]
    vectors = pool.config().get("vectors") or "random, as in the released code"
    return "; ".join([*parts, f"embeddings: {vectors}"])


def _translations(pool: Pool) -> set[str]:
    return {row.dataset for row in pool.select("median_length", side="src")}


def full_size(pool: Pool) -> Pool:
    """Return the results with at least the paper's sizes; quick runs show what they can."""
    defaults = TextConfig()

    def large(config: Mapping[str, Any]) -> bool:
        return all(config.get(key, own) >= own for key in _SIZES if (own := getattr(defaults, key)))

    found = tuple(r for r in pool.results if r.scale == "quick" or large(r.config))
    return Pool(found) if found else Pool((pool.results[-1].model_copy(update=_NOTHING),))


_SIZES = ("steps", "hidden", "embedding", "translation_steps", "translation_hidden", "examples")
_NOTHING = {"measurements": ()}


def _each(
    pool: Pool,
    rule: Rule,
    together: Callable[[Sequence[Verdict]], Verdict] = all_of,
    needed: tuple[int, int] = (_CLASSIFICATION, _TRANSLATION),
    only: Callable[[str], bool] = lambda dataset: True,
) -> Decision:
    """Decide a claim about every corpus, the outlier aside."""
    pool = full_size(pool)
    # Options can leave either agreement out.
    measured = [*pool.datasets("A(alpha,beta_uf)"), *pool.datasets("kendall(alpha,beta_uf)")]
    datasets = [name for name in dict.fromkeys(measured) if only(name)]
    found = {name: rule(pool, name) for name in datasets}
    evidence = {name: shown for name, (_, shown) in found.items()}
    own = () if pool.results[-1].scale == "quick" else OWN
    deciding = [name for name in datasets if name != OUTLIER and name not in own]
    translations = _translations(pool)
    counts = (
        sum(name not in translations for name in deciding),
        sum(name in translations for name in deciding),
    )
    if any(have < pool.needed(need) for have, need in zip(counts, needed, strict=True) if need):
        note = (
            f"needs {needed[0]} classification and {needed[1]} translation corpora at the paper's "
            f"sizes; there are {counts[0]} and {counts[1]}"
        )
        return undecided(note, evidence)
    parts = {name: found[name][0] for name in deciding}
    verdicts = list(parts.values())
    against = [name for name, part in parts.items() if part is not Verdict.HOLDS]
    note = f"not held on {', '.join(against)}" if against else ""
    return Decision(together(verdicts), evidence, deviations(pool, datasets), note)


def _shown(row: Measurement | None) -> str:
    if row is None or row.value is None:
        return "not measured"
    ends = "" if row.low is None else f" ({row.low:.1f} to {row.high:.1f})"
    paper = "" if row.published is None else f", paper {row.published:g}"
    return f"{row.value:.1f}{ends}{paper}"


def _above_chance(pair: str, split: str = "val") -> Rule:
    def rule(pool: Pool, dataset: str) -> tuple[Verdict, Any]:
        excess, ratio = (
            _one(pool, f"{name}({pair})", dataset, split) for name in ("excess", "ratio")
        )
        if excess is None or ratio is None:
            return Verdict.UNDECIDED, "not measured"
        chance = _value(pool, "A_random", dataset, split)
        code = _value(pool, f"A({pair})", dataset, split, way="code")
        shown = _shown(_one(pool, f"A({pair})", dataset, split))
        return (
            much_greater(interval_of(excess), interval_of(ratio)),
            f"{shown}; chance {chance:.1f}; by the authors' code's way {code:.1f}",
        )

    return rule


def uniform_probe(pool: Pool) -> Decision:
    """Decide snell.uniform-probe."""
    return _each(pool, _above_chance("alpha,beta_uf"))


def proxy(pool: Pool) -> Decision:
    """Decide snell.proxy."""
    return _each(pool, _above_chance("beta_uf,beta_px"))


def probe(pool: Pool) -> Decision:
    """Decide snell.probe."""
    return _each(pool, _above_chance("alpha,beta"))


def saliency(pool: Pool) -> Decision:
    """Decide snell.saliency; 𝒜(α, Δ) stands beside."""
    rule = _above_chance("delta,beta_uf")

    def with_attention(pool: Pool, dataset: str) -> tuple[Verdict, Any]:
        found, shown = rule(pool, dataset)
        return found, f"{shown}; A(alpha,delta) {_shown(_one(pool, 'A(alpha,delta)', dataset))}"

    return _each(pool, with_attention)


def train_split(pool: Pool) -> Decision:
    """Decide snell.train-split: the four agreements on the training split."""
    rules = {
        pair: _above_chance(pair, "train")
        for pair in ("alpha,beta_uf", "beta_uf,beta_px", "alpha,beta", "delta,beta_uf")
    }

    def rule(pool: Pool, dataset: str) -> tuple[Verdict, Any]:
        found = {pair: each(pool, dataset) for pair, each in rules.items()}
        return all_of([part for part, _ in found.values()]), {
            f"A({pair})": shown for pair, (_, shown) in found.items()
        }

    return _each(pool, rule)


def kendall(pool: Pool) -> Decision:
    """Decide snell.kendall: three rank correlations above 0."""

    def rule(pool: Pool, dataset: str) -> tuple[Verdict, Any]:
        pairs = ("alpha,beta_uf", "beta_uf,beta_px", "delta,beta_uf")
        rows = {pair: _one(pool, f"kendall({pair})", dataset) for pair in pairs}
        parts = [above(interval_of(row)) if row else Verdict.UNDECIDED for row in rows.values()]
        return all_of(parts), {f"kendall({pair})": _shown(row) for pair, row in rows.items()}

    return _each(pool, rule)


def contextual(pool: Pool) -> Decision:
    """Decide snell.contextual: ξ(α, β^uf) a quarter of the way from the floor to ξ*."""

    def rule(pool: Pool, dataset: str) -> tuple[Verdict, Any]:
        axes = {"agreement": "top5pct", "performance": "accuracy"}
        xi, star, floor = (
            _one(pool, name, dataset, **axes) for name in ("xi(alpha,beta_uf)", "xi_star", "floor")
        )
        if not (xi and star and floor) or None in (xi.value, star.value, floor.value):
            return Verdict.UNDECIDED, "not measured"
        least = floor.value + (star.value - floor.value) / 4  # type: ignore[operator]
        shown = f"xi {_shown(xi)} at step {xi.found['tau0']}; floor {floor.value:.1f}, "
        return verdict(xi.value >= least, True), shown + f"xi* {_shown(star)}"  # type: ignore[operator]

    return _each(pool, rule, lambda parts: share_of(parts, 2 / 3))


def bleu(pool: Pool) -> Decision:
    """Decide snell.bleu: ξ is a smaller part of ξ* with BLEU than with token accuracy."""

    def rule(pool: Pool, dataset: str) -> tuple[Verdict, Any]:
        parts = {}
        for performance in ("bleu", "accuracy"):
            axes = {"agreement": "top5pct", "performance": performance}
            star = _value(pool, "xi_star", dataset, **axes)
            xi = _value(pool, "xi(alpha,beta_uf)", dataset, **axes)
            parts[performance] = xi / star if star else math.nan
        if any(math.isnan(part) for part in parts.values()):
            return Verdict.UNDECIDED, "not measured"
        return verdict(parts["bleu"] < parts["accuracy"], True), {
            f"xi/xi* by {name}": part for name, part in parts.items()
        }

    translations = _translations(pool)
    return _each(pool, rule, needed=(0, _TRANSLATION), only=lambda name: name in translations)


def rise_and_fall(pool: Pool) -> Decision:
    """Decide snell.rise-and-fall: an inner maximum, both ends lower, little inflation."""

    def rule(pool: Pool, dataset: str) -> tuple[Verdict, Any]:
        curve = _curve(pool, "curve(alpha,beta_uf)", dataset)
        if len(curve) < 3:
            return Verdict.UNDECIDED, "not measured"
        top = max(curve, key=lambda row: row.value or 0)
        ends = (curve[0], curve[-1])
        inner = top not in ends
        lower = [inner and interval_of(end).high < interval_of(top).low for end in ends]
        overlap = [inner and (end.value or 0) < (top.value or 0) for end in ends]
        inflation = _value(pool, "inflation", dataset)
        shown = (
            f"{_shown(curve[0])} at the start, {_shown(top)} at step {top.axes['step']}, "
            f"{_shown(curve[-1])} at the end; inflation {inflation:.2f}"
        )
        holds = all(lower) and inflation < 1
        return verdict(holds, not all(overlap) or inflation >= 1), shown

    return _each(pool, rule)


def two_stages(pool: Pool) -> Decision:
    """Decide snell.two-stages: word knowledge first, while attention is near uniform."""

    def rule(pool: Pool, dataset: str) -> tuple[Verdict, Any]:
        chance = _value(pool, "A_random", dataset)
        known = _half_reached(_curve(pool, "curve(alpha,beta)", dataset), chance)
        attended = _half_reached(_curve(pool, "curve(alpha,alpha)", dataset), chance)
        entropy = {row.axes["step"]: row.value for row in _curve(pool, "entropy(alpha)", dataset)}
        if known is None or attended is None:
            return Verdict.UNDECIDED, "not measured"
        spread = entropy[known] or 0.0
        shown = f"probe at step {known} (entropy {spread:.2f}), attention at step {attended}"
        return verdict(spread >= 0.9 and attended > known, True), shown

    return _each(pool, rule, lambda parts: share_of(parts, 2 / 3))


def _half_reached(curve: Sequence[Measurement], chance: float) -> Any:
    """Return the first step at which half of the final excess over chance is reached."""
    if not curve or curve[-1].value is None:
        return None
    excess = curve[-1].value - chance
    if not excess > 0:
        return None  # Nothing is learned whose half could be reached.
    half = chance + excess / 2
    return next((row.axes["step"] for row in curve if (row.value or 0.0) >= half), None)


def sms_variance(pool: Pool) -> Decision:
    """Decide snell.sms-variance: two seeds' attentions agree least on SMS."""
    pool = full_size(pool)
    rows = {
        row.dataset: row
        for row in pool.select("excess(alpha_i,alpha_j)", way="text")
        if row.split == "val" and int(row.found["pairs"]) >= pool.needed(10)
    }
    evidence = {name: _shown(row) for name, row in rows.items()}
    others = [row.value or 0.0 for name, row in rows.items() if name != OUTLIER]
    if OUTLIER not in rows or len(others) < pool.needed(_CLASSIFICATION):
        return undecided("needs SMS and four other corpora with ten pairs of seeds", evidence)
    own = interval_of(rows[OUTLIER])
    lowest = own.value < min(others)
    under = below(own, median(others))
    return Decision(
        verdict(lowest and under is Verdict.HOLDS, not lowest or under is Verdict.FAILS),
        evidence,
        deviations(pool, list(rows)),
    )


CLAIMS = {
    "snell.uniform-probe": uniform_probe,
    "snell.proxy": proxy,
    "snell.probe": probe,
    "snell.saliency": saliency,
    "snell.two-stages": two_stages,
    "snell.contextual": contextual,
    "snell.kendall": kendall,
    "snell.bleu": bleu,
    "snell.train-split": train_split,
    "snell.rise-and-fall": rise_and_fall,
    "snell.sms-variance": sms_variance,
}
