"""What snell's Tables 2–8 and Figure 2 say of one corpus, read off stored scores.

Where the text and the authors' code go different ways, both are measured, and every number says
which it is (`Way`). 𝒜 and ξ are in percent, as printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from attnscope.analysis.contextual import first_exceeding
from attnscope.analysis.intervals import (
    Interval,
    mean_interval,
    pairs_interval,
    sentence_interval,
    sentence_ratio_interval,
)
from attnscope.analysis.kendall import kendall_tau_b
from attnscope.claims.published import published_value
from attnscope.data.text import Text
from attnscope.recipes.snell.text_units import Runs, is_classification
from attnscope.runs.result import Measurement, measured
from attnscope.scores.lexicon import proxy_odds
from attnscope.scores.score import Score
from attnscope.training.bleu import Bleu
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import log_column

METRICS: dict[str, Metric] = {"top5pct": top_share_agreement, "kendall_tau": kendall_tau_b}
# How a pair's agreement is called under each metric, here and in the published tables.
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
class Way:
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


WAYS = (
    Way("text", "last", own_probe=True, proxy_first=False),
    Way("code", "best", own_probe=False, proxy_first=True),
)


def agreement_rows(
    runs: Runs, split: str, metrics: Iterable[str], performances: Iterable[str]
) -> list[Measurement]:
    """Measure one split of one corpus."""
    table = Compared(runs, split)
    rows = []
    for way in WAYS:
        for metric in metrics:
            rows += table.agreements(way, metric)
            for performance in performances:
                rows += table.contextual(way, metric, performance)
        rows += table.seed_pairs(way)
        if split == "val":
            rows += table.curves(way)
    return rows


class Which(NamedTuple):
    """A score of a unit at a step."""

    unit: TrainedUnit
    name: str
    step: int | str  # ``last`` or ``best`` for a score that was read after training


class Compared:
    """One corpus and split: stored scores, compared once and looked at many times."""

    def __init__(self, runs: Runs, split: str) -> None:
        self.runs, self.split = runs, split
        self.batch = runs.reference.examples_of(split)
        self.mask = self.batch.target_mask.numpy()
        self.random = expected_random_agreement(self.batch.input_mask).numpy()[:, None]
        # Several rows ask for the same scores and agreements.
        self.read = lru_cache(maxsize=32)(self._load)
        self.agreement = cache(self._compare)

    @cached_property
    def proxy(self) -> Score:
        """β^px on the examples, as log-odds: after sixty epochs many probabilities round to 1."""
        model: Any = self.runs.proxy.best_model
        return proxy_odds(model).score(self.batch)

    def _load(self, which: Which) -> Score:
        if which.unit is self.runs.proxy:
            return self.proxy
        return which.unit.stored(which.name, which.step, self.split)

    def _compare(self, u: Which, v: Which, metric: str) -> Values:
        return per_word(self.read(u), self.read(v), METRICS[metric])

    def step(self, unit: TrainedUnit, way: Way) -> int:
        """Return the step at which a run counts as trained."""
        return unit.best_step if way.checkpoint == "best" else int(unit.log[-1]["step"])

    def alpha(self, way: Way) -> Which:
        """Return the reference's attention."""
        reference = self.runs.reference
        return Which(reference, "attention", self.step(reference, way))

    def pair(self, pair: str, way: Way, metric: str) -> dict[int, Values]:
        """Return a pair's agreement at each checkpoint that it could be taken at."""
        runs, alpha = self.runs, self.alpha(way)
        if pair == "alpha,beta":
            other = runs.reference if way.own_probe else runs.comparisons[0]
            steps = [self.step(other, way)] if way.own_probe else steps_of(other)
            probe = {step: Which(other, "lexical_probe", step) for step in steps}
            return {step: self.agreement(alpha, beta, metric) for step, beta in probe.items()}
        delta = Which(runs.reference, "saliency", way.checkpoint)
        if pair == "alpha,delta":
            return {self.step(runs.reference, way): self.agreement(alpha, delta, metric)}
        proxy = Which(runs.proxy, "proxy", "best")
        curve = {}
        for step in steps_of(runs.uniform):
            beta_uf = Which(runs.uniform, "lexical_probe", step)
            u, v = {
                "alpha,beta_uf": (alpha, beta_uf),
                "delta,beta_uf": (delta, beta_uf),
                "beta_uf,beta_px": (proxy, beta_uf) if way.proxy_first else (beta_uf, proxy),
            }[pair]
            curve[step] = self.agreement(u, v, metric)
        return curve

    # Rows.

    def agreements(self, way: Way, metric: str) -> list[Measurement]:
        """Return the agreement of every pair, beside the random one."""
        rows = []
        for pair in (*PAIRS, "alpha,delta"):
            step, values = highest(self.pair(pair, way, metric))
            axes, found = {"way": way.name}, {"at": step}
            name = _NAMES[metric].format(pair)
            published = self._published(name, metric, "accuracy")
            rows.append(self.row(name, self.interval(values), axes, published, found=found))
            if metric == "top5pct":
                ratio = sentence_ratio_interval(values, self.random, self.mask, rng=rng())
                rows.append(self.row(f"excess({pair})", self.interval(values - self.random), axes))
                rows.append(self.row(f"ratio({pair})", ratio, axes, scale=1))
        return [*rows, self.chance(way)] if metric == "top5pct" else rows

    def chance(self, way: Way) -> Measurement:
        """Return the expected agreement with a shuffled score."""
        random = np.broadcast_to(self.random, self.mask.shape)
        published = self._published("A_random", "top5pct", "accuracy")
        return self.row("A_random", self.interval(random), {"way": way.name}, published)

    def contextual(self, way: Way, metric: str, performance: str) -> list[Measurement]:
        """Return ξ of every pair, ξ*, and the curves of Figure 2 that they are read off."""
        reference, others = self.runs.reference, self.runs.comparisons
        column = log_column(self.split, performance)
        if column not in reference.log[-1]:
            return []
        scale = 100 if performance == "accuracy" else 1
        steps = steps_of(others[0])
        hat = {
            step: [
                _mean(self.agreement(self.alpha(way), Which(o, "attention", step), metric))
                for o in others
            ]
            for step in steps
        }
        reached = {
            step: [scale * other.log_row(step)[column] for other in others] for step in steps
        }
        star = scale * reference.log_row(self.step(reference, way))[column]
        seeds = [o.unit.seed for o in others]
        axes = {"way": way.name, "agreement": metric, "performance": performance}
        rows = []
        averaged = {step: float(np.mean(values)) for step, values in hat.items()}
        for pair in PAIRS:
            level = _mean(highest(self.pair(pair, way, metric))[1])
            at = first_exceeding(averaged, level)
            xi = mean_interval(reached[at], rng=rng()) if at is not None else point(star)
            name = f"xi({pair})"
            tau = {"tau0": "never exceeded" if at is None else at}
            published = self._published(name, metric, performance)
            rows.append(self.row(name, xi, axes, published, scale=1, seeds=seeds, found=tau))
        published = self._published("xi_star", metric, performance)
        # Other people's BLEU compares only with the same signature.
        signed = {"signature": Bleu().signature()} if performance == "bleu" else {}
        rows.append(self.row("xi_star", point(star), axes, published, scale=1, found=signed))
        majority = 100 * self._majority() if performance == "accuracy" else 0.0
        floor = max(float(np.mean(reached[steps[0]])), majority)
        rows.append(self.row("floor", point(floor), axes, scale=1))
        if self.split == "val":
            for step in steps:
                here = axes | {"step": step}
                hats = mean_interval(hat[step], rng=rng())
                rows.append(self.row("hat_agreement", hats, here, seeds=seeds))
                there = mean_interval(reached[step], rng=rng())
                rows.append(self.row("hat_performance", there, here, scale=1, seeds=seeds))
        return rows

    def curves(self, way: Way) -> list[Measurement]:
        """Return how agreement and entropy go through training, and what A.7's maximum inflates."""
        axes, rows = {"way": way.name}, []
        curve = self.pair("alpha,beta_uf", way, "top5pct")
        for step, values in curve.items():
            here = axes | {"step": step}
            rows.append(self.row("curve(alpha,beta_uf)", self.interval(values), here))
        rows.append(self.row("inflation", point(_inflation(curve)), axes))
        reference, alpha = self.runs.reference, self.alpha(way)
        for step in steps_of(reference):
            here = axes | {"step": step}
            for name, score in (("beta", "lexical_probe"), ("alpha", "attention")):
                later = Which(reference, score, step)
                values = self.agreement(alpha, later, "top5pct")
                rows.append(self.row(f"curve(alpha,{name})", point(_mean(values)), here))
            rows.append(self.row("entropy(alpha)", point(self._entropy(step)), here, scale=1))
        return rows

    def seed_pairs(self, way: Way) -> list[Measurement]:
        """Return how well the attentions of two seeds agree (A.9), above chance."""
        runs = [self.runs.reference, *self.runs.comparisons]
        scores = [Which(run, "attention", self.step(run, way)) for run in runs]
        pairs = [self.agreement(u, v, "top5pct") for u, v in combinations(scores, 2)]
        excess = pairs_interval(np.stack(pairs) - self.random, len(runs), rng=rng())
        axes, found = {"way": way.name}, {"pairs": len(pairs)}
        seeds = [run.unit.seed for run in runs]
        return [self.row("excess(alpha_i,alpha_j)", excess, axes, seeds=seeds, found=found)]

    def _entropy(self, step: int) -> float:
        score = self.runs.reference.stored("attention", step, self.split)
        weights = score.values.double()
        return _mean(attention_entropy(weights, score.input_mask).numpy()[self.mask])

    def _majority(self) -> float:
        words = self.batch.targets[self.batch.target_mask]
        return int(torch.bincount(words).max()) / len(words)

    def interval(self, values: Values) -> Interval:
        """Return the mean over all output words, with its interval over sentences."""
        return sentence_interval(values, self.mask, rng=rng())

    def _published(self, name: str, metric: str, performance: str) -> float | None:
        source = self.runs.source
        printed = source.definition.published if isinstance(source, Text) else None
        table = _TABLES.get((metric, self.split, performance))
        if printed is None or table is None:
            return None
        variant = {}
        if name.startswith("xi"):
            plain = "accuracy" if is_classification(source) else "token_accuracy"
            variant["performance"] = plain if performance == "accuracy" else performance
        if name.startswith("xi("):
            variant["agreement"] = metric
        return published_value("snell", table, printed, name, split=self.split, **variant)

    def row(
        self,
        name: str,
        interval: Interval,
        axes: Mapping[str, Any],
        published: float | None = None,
        scale: float = 100,
        seeds: Sequence[int] = (),
        found: Mapping[str, Any] | None = None,
    ) -> Measurement:
        """Return a measurement of this corpus and split."""
        value, low, high = (scale * end for end in (interval.value, interval.low, interval.high))
        scaled = Interval(value, low, high, interval.n)
        seeds = seeds or (self.runs.reference.unit.seed,)
        row = measured(name, self.runs.source.dataset, scaled, axes, seeds, published, found)
        return row.model_copy(update={"split": self.split})


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


def point(value: float) -> Interval:
    """Return a number without an interval."""
    return Interval(value, np.nan, np.nan, 1)


def rng() -> np.random.Generator:
    """Return the bootstrap's randomness."""
    return np.random.default_rng(0)
