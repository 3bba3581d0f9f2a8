"""Agreement of the scores of one corpus, as in Tables 2–8, 10 and 11 and Figure 2.

Scores are read from the units' folders. Where the text and the authors' code differ, both
procedures are measured, and every number says by which (the axis ``way``). 𝒜 and ξ are in percent,
as printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import torch

from attnscope.analysis.agreement import (
    attention_entropy,
    expected_random_agreement,
    top_share_agreement,
)
from attnscope.analysis.comparison import Metric, per_word
from attnscope.analysis.contextual import contextualised
from attnscope.analysis.intervals import (
    Interval,
    mean_interval,
    pairs_interval,
    sentence_interval,
    sentence_ratio_interval,
)
from attnscope.analysis.kendall import kendall_tau_b
from attnscope.data.corpus import Corpus
from attnscope.recipes.kit.corpora import is_classification, printed_name
from attnscope.recipes.kit.sheet import Sheet, percent, point, rng
from attnscope.recipes.snell.units import Runs
from attnscope.runs.result import Curve, Measurement, Record, Result
from attnscope.scores.lexicon import proxy_odds
from attnscope.scores.score import Score
from attnscope.training.bleu import Bleu
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import log_column

METRICS: dict[str, Metric] = {"top5pct": top_share_agreement, "kendall_tau": kendall_tau_b}
# The name of a pair's agreement under each metric, here and in the published tables.
_NAMES = {"top5pct": "A({})", "kendall_tau": "kendall({})"}
# Where the paper prints what: agreement, split and performance decide the table.
_TABLES = {
    ("top5pct", "val", "accuracy"): "table5",
    ("kendall_tau", "val", "accuracy"): "table3",
    ("top5pct", "train", "accuracy"): "table7",
    ("top5pct", "val", "bleu"): "table6",
    ("kendall_tau", "val", "bleu"): "table4",
    ("top5pct", "train", "bleu"): "table8",
}
PAIRS = ("alpha,beta_uf", "beta_uf,beta_px", "delta,beta_uf", "alpha,beta")

Values = np.ndarray


@dataclass(frozen=True)
class Procedure:
    """How the tables are computed where text and code differ.

    The text's reference is the model at the end of training, its β that of the same model, and
    𝒜(β^uf, β^px) takes the top position of β^uf. The code's reference is the checkpoint of highest
    validation accuracy, its β that of another run at the checkpoint that agrees most, and it takes
    the top position of β^px. Both take β^uf at the checkpoint that agrees most (A.7). Where
    performance is BLEU the code's checkpoint would be that of the best BLEU; here it is the same
    one, as saliency is kept of one best checkpoint.
    """

    name: str
    checkpoint: str
    own_probe: bool
    proxy_first: bool

    def step(self, unit: TrainedUnit) -> int:
        """Return the step at which a run counts as trained."""
        return unit.best_step if self.checkpoint == "best" else int(unit.log[-1]["step"])


TEXT = Procedure("text", "last", own_probe=True, proxy_first=False)
CODE = Procedure("code", "best", own_probe=False, proxy_first=True)


class ScoreKey(NamedTuple):
    """A score of a unit at a step."""

    unit: TrainedUnit
    name: str
    step: int | str  # ``last`` or ``best`` for a score that was read after training


class AgreementTable:
    """One corpus and split: stored scores, compared once and used many times."""

    def __init__(self, runs: Runs, split: str) -> None:
        self.runs, self.split = runs, split
        self.batch = runs.reference.examples_of(split)
        self.mask = self.batch.target_mask.numpy()
        self.random = expected_random_agreement(self.batch.input_mask).numpy()[:, None]
        # Several rows ask for the same scores and agreements.
        self.read = lru_cache(maxsize=32)(self._read)
        self.agreement = cache(self._agreement)

    @cached_property
    def proxy(self) -> Score:
        """β^px on the examples, as log-odds: after sixty epochs many probabilities round to 1."""
        model: Any = self.runs.proxy.best_model
        return proxy_odds(model).score(self.batch)

    def _read(self, key: ScoreKey) -> Score:
        if key.unit is self.runs.proxy:
            return self.proxy
        return key.unit.stored(key.name, key.step, self.split)

    def _agreement(self, u: ScoreKey, v: ScoreKey, metric: str = "top5pct") -> Values:
        return per_word(self.read(u), self.read(v), METRICS[metric])

    def alpha(self, way: Procedure) -> ScoreKey:
        """Return the reference's attention."""
        reference = self.runs.reference
        return ScoreKey(reference, "attention", way.step(reference))

    def pair(self, pair: str, way: Procedure, metric: str = "top5pct") -> dict[int, Values]:
        """Return a pair's agreement at each checkpoint that it could be taken at."""
        runs, alpha = self.runs, self.alpha(way)
        if pair == "alpha,beta":
            other = runs.reference if way.own_probe else runs.comparisons[0]
            steps = [way.step(other)] if way.own_probe else steps_of(other)
            probe = {step: ScoreKey(other, "lexical_probe", step) for step in steps}
            return {step: self.agreement(alpha, beta, metric) for step, beta in probe.items()}
        delta = ScoreKey(runs.reference, "saliency", way.checkpoint)
        if pair == "alpha,delta":
            return {way.step(runs.reference): self.agreement(alpha, delta, metric)}
        proxy = ScoreKey(runs.proxy, "proxy", "best")
        curve = {}
        for step in steps_of(runs.uniform):
            beta_uf = ScoreKey(runs.uniform, "lexical_probe", step)
            u, v = {
                "alpha,beta_uf": (alpha, beta_uf),
                "delta,beta_uf": (delta, beta_uf),
                "beta_uf,beta_px": (proxy, beta_uf) if way.proxy_first else (beta_uf, proxy),
            }[pair]
            curve[step] = self.agreement(u, v, metric)
        return curve

    def interval(self, values: Values) -> Interval:
        """Return the mean over all output words, with its interval over sentences."""
        return sentence_interval(values, self.mask, rng=rng())

    def sheet(self, way: Procedure | None = None, table: str = "") -> Sheet:
        """Return the sheet of a table of the paper, of the reference run."""
        return sheet_of(self.runs.reference, self.runs.source, self.split, way, table)

    def chance(self, way: Procedure) -> Measurement:
        """Return the expected agreement with a shuffled score."""
        sheet = self.sheet(way, _TABLES["top5pct", self.split, "accuracy"])
        return chance(sheet, self.random, self.mask)


def sheet_of(
    unit: TrainedUnit, source: Corpus, split: str, way: Procedure | None = None, table: str = ""
) -> Sheet:
    """Return the sheet of a table of the paper, in percent."""
    return Sheet(
        source.dataset,
        split,
        (unit.unit.seed,),
        "snell",
        table,
        printed_name(source, "snell"),
        percent=True,
        axes={} if way is None else {"way": way.name},
    )


def chance(sheet: Sheet, random: Values, mask: Values) -> Measurement:
    """Return the expected agreement with a shuffled score."""
    every = np.broadcast_to(random, mask.shape)
    return sheet.row("A_random", sentence_interval(every, mask, rng=rng()), share=True)


def above_chance(
    sheet: Sheet, pair: str, values: Values, random: Values, mask: Values
) -> list[Measurement]:
    """Return how far an agreement is above chance: the excess, and the ratio."""
    excess = sentence_interval(values - random, mask, rng=rng())
    ratio = sentence_ratio_interval(values, random, mask, rng=rng())
    return [
        sheet.row(f"excess({pair})", excess, share=True),
        sheet.row(f"ratio({pair})", ratio),
    ]


def agreements(table: AgreementTable, way: Procedure, metric: str) -> list[Measurement]:
    """Return the agreement of every pair, and by the top 5 % how far it is above chance."""
    sheet = table.sheet(way, _TABLES.get((metric, table.split, "accuracy"), ""))
    rows = []
    for pair in (*PAIRS, "alpha,delta"):
        step, values = highest(table.pair(pair, way, metric))
        found = {"at": step}
        name = _NAMES[metric].format(pair)
        rows.append(sheet.row(name, table.interval(values), share=True, found=found))
        if metric == "top5pct":
            rows += above_chance(sheet, pair, values, table.random, table.mask)
    return [*rows, table.chance(way)] if metric == "top5pct" else rows


def contextual(
    table: AgreementTable, way: Procedure, metric: str, performance: str
) -> list[Record]:
    """Return ξ of every pair, ξ*, and the curves of Figure 2 that they are read off."""
    reference, others = table.runs.reference, table.runs.comparisons
    column = log_column(table.split, performance)
    if column not in reference.log[-1]:
        return []
    scale = 100 if performance == "accuracy" else 1
    steps = steps_of(others[0])
    hat, reached = {}, {}
    for step in steps:
        attentions = [ScoreKey(other, "attention", step) for other in others]
        hat[step] = [_mean(table.agreement(table.alpha(way), a, metric)) for a in attentions]
        reached[step] = [scale * other.log_row(step)[column] for other in others]
    star = scale * reference.log_row(way.step(reference))[column]

    axes = {"agreement": metric, "performance": performance}
    sheet = table.sheet(way, _TABLES.get((metric, table.split, performance), ""))
    seeds = [other.unit.seed for other in others]
    plain = "accuracy" if is_classification(table.runs.source) else "token_accuracy"
    printed = {"performance": plain if performance == "accuracy" else performance}
    rows: list[Record] = []
    for pair in PAIRS:
        level = _mean(highest(table.pair(pair, way, metric))[1])
        at = contextualised(level, hat, reached, star)
        xi = point(star) if at.step is None else mean_interval(at.performance, rng=rng())
        tau = {"tau0": "never exceeded" if at.step is None else at.step}
        variant = printed | {"agreement": metric}
        rows.append(sheet.row(f"xi({pair})", xi, axes, seeds=seeds, found=tau, variant=variant))
    # Other people's BLEU compares only with the same signature.
    signed = {"signature": Bleu().signature()} if performance == "bleu" else {}
    rows.append(sheet.point("xi_star", star, axes, found=signed, variant=printed))
    majority = 100 * _majority(table) if performance == "accuracy" else 0.0
    floor = max(float(np.mean(reached[steps[0]])), majority)
    rows.append(sheet.point("floor", floor, axes))
    if table.split == "val":
        agreement = {step: percent(mean_interval(hat[step], rng=rng())) for step in steps}
        performed = {step: mean_interval(reached[step], rng=rng()) for step in steps}
        rows.append(_curve(sheet, "hat_agreement", agreement, axes, seeds))
        rows.append(_curve(sheet, "hat_performance", performed, axes, seeds))
    return rows


def curves(table: AgreementTable, way: Procedure) -> list[Record]:
    """Return agreement and entropy through training, and by how much A.7's maximum inflates."""
    sheet, reference = table.sheet(way), table.runs.reference
    uniform = table.pair("alpha,beta_uf", way)
    taken = {step: percent(table.interval(values)) for step, values in uniform.items()}
    inflation = sheet.row("inflation", point(_inflation(uniform)), share=True)
    rows: list[Record] = [_curve(sheet, "curve(alpha,beta_uf)", taken), inflation]

    steps = steps_of(reference)
    for name, score in (("beta", "lexical_probe"), ("alpha", "attention")):
        values = {}
        for step in steps:
            agreed = table.agreement(table.alpha(way), ScoreKey(reference, score, step))
            values[step] = percent(point(_mean(agreed)))
        rows.append(_curve(sheet, f"curve(alpha,{name})", values))
    entropy = {step: point(_entropy(table, step)) for step in steps}
    return [*rows, _curve(sheet, "entropy(alpha)", entropy)]


def seed_pairs(table: AgreementTable, way: Procedure) -> Measurement:
    """Return how well the attentions of two seeds agree (A.9), above chance."""
    runs = [table.runs.reference, *table.runs.comparisons]
    scores = [ScoreKey(run, "attention", way.step(run)) for run in runs]
    pairs = [table.agreement(u, v) for u, v in combinations(scores, 2)]
    excess = pairs_interval(np.stack(pairs) - table.random, len(runs), rng=rng())
    seeds, found = [run.unit.seed for run in runs], {"pairs": len(pairs)}
    sheet = table.sheet(way)
    return sheet.row("excess(alpha_i,alpha_j)", excess, share=True, seeds=seeds, found=found)


def _curve(
    sheet: Sheet,
    name: str,
    points: Mapping[int, Interval],
    axes: Mapping[str, Any] | None = None,
    seeds: list[int] | None = None,
) -> Curve:
    every = {**sheet.axes, **(axes or {})}
    return Curve.of(name, sheet.dataset, "step", points, every, seeds or sheet.seeds, sheet.split)


def _entropy(table: AgreementTable, step: int) -> float:
    score = table.runs.reference.stored("attention", step, table.split)
    weights = score.values.double()
    return _mean(attention_entropy(weights, score.input_mask).numpy()[table.mask])


def _majority(table: AgreementTable) -> float:
    words = table.batch.targets[table.batch.target_mask]
    return int(torch.bincount(words).max()) / len(words)


def agreement_dots(result: Result, shown: Mapping[str, tuple[str, str]], title: str) -> Any:
    """Draw some agreements of each corpus by the text's procedure, with the published ones.

    Parameters
    ----------
    shown
        Label and colour by name.
    """
    from attnscope.figures.charts import Axis
    from attnscope.recipes.kit.plots import datasets, dots

    rows: list[Measurement] = []
    for dataset in datasets(result.measurements):
        for name in shown:
            rows += result.select(name, dataset, way=TEXT.name)
    return dots(
        rows,
        Axis("agreement (%)", domain=(0, 100)),
        label=lambda row: f"{row.dataset}: {shown[row.name][0]}",
        colour=lambda row: shown[row.name][1],
        title=title,
    )


def steps_of(unit: TrainedUnit) -> list[int]:
    """Return the steps at which a unit was evaluated."""
    return [int(row["step"]) for row in unit.log]


def _mean(values: Values) -> float:
    return float(np.nanmean(values))


def highest(curve: Mapping[int, Values]) -> tuple[int, Values]:
    """Return the checkpoint with the highest mean, the first of several."""
    return max(curve.items(), key=lambda item: _mean(item[1]))


def _inflation(curve: Mapping[int, Values]) -> float:
    """Return by how much the maximum exceeds checkpoints chosen on the other half of examples."""
    halves = [{step: values[start::2] for step, values in curve.items()} for start in (0, 1)]
    chosen = [highest(half)[0] for half in halves]
    honest = np.mean([_mean(halves[1 - i][step]) for i, step in enumerate(chosen)])
    return _mean(highest(curve)[1]) - float(honest)
