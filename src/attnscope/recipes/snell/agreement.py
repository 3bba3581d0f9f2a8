"""Agreement of the scores of one corpus, for Tables 2–8, 10 and 11 and Figure 2.

Scores are read from the units' folders. Where the text and the authors' code differ, both
procedures are measured, and every number says by which (the axis ``way``). 𝒜 and ξ are in percent,
as printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from attnscope.analysis.agreement import (
    expected_random_agreement,
    top_share_agreement,
)
from attnscope.analysis.comparison import Metric, per_word
from attnscope.analysis.intervals import (
    Interval,
    sentence_interval,
    sentence_ratio_interval,
)
from attnscope.analysis.kendall import kendall_tau_b
from attnscope.data.corpus import Corpus
from attnscope.recipes.kit.corpora import printed_name
from attnscope.recipes.kit.sheet import Sheet, rng
from attnscope.recipes.snell.units import Runs
from attnscope.runs.result import Measurement, Result
from attnscope.scores.lexicon import proxy_odds
from attnscope.scores.score import Score
from attnscope.training.trained_unit import TrainedUnit

METRICS: dict[str, Metric] = {"top5pct": top_share_agreement, "kendall_tau": kendall_tau_b}
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
        return sheet_of(self.runs.source, self.runs.reference.unit.seed, self.split, way, table)

    def chance(self, way: Procedure) -> Measurement:
        """Return the expected agreement with a shuffled score."""
        # The training split is printed in Table 7.
        table = "table5" if self.split == "val" else "table7"
        return chance(self.sheet(way, table), self.random, self.mask)


def sheet_of(
    source: Corpus, seed: int, split: str, way: Procedure | None = None, table: str = ""
) -> Sheet:
    """Return the sheet of a table of the paper, in percent."""
    return Sheet(
        source.dataset,
        split,
        (seed,),
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


def mean(values: Values) -> float:
    """Return the mean over output words, those without a value left out."""
    return float(np.nanmean(values))


def highest(curve: Mapping[int, Values]) -> tuple[int, Values]:
    """Return the checkpoint with the highest mean, the first of several."""
    return max(curve.items(), key=lambda item: mean(item[1]))
