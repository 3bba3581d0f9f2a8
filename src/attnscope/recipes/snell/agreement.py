"""Agreement of the scores of one corpus, for Tables 2–8, 10 and 11 and Figure 2.

Scores are read from the units' folders. Where the text and the authors' code differ, both
procedures are measured, and every number says by which (the axis ``way``). 𝒜 and ξ are in percent,
as printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np

from attnscope.analysis.comparison import per_word
from attnscope.analysis.intervals import rate_interval, sentence_ratio_interval
from attnscope.analysis.stored_agreement import StoredAgreement, StoredScore, Values, highest
from attnscope.claims.pool import Pool
from attnscope.claims.table import Cells, Check, Claim, Needs, corpus_deviations
from attnscope.data.corpus import Corpus
from attnscope.figures.charts import Axis
from attnscope.recipes.kit.baselines import baseline_rows
from attnscope.recipes.kit.corpora import is_classification, parts, printed_name
from attnscope.recipes.kit.plots import datasets, dots
from attnscope.recipes.kit.sheet import Sheet, point, rng
from attnscope.recipes.snell.units import SnellUnits
from attnscope.runs.result import Measurement, Result
from attnscope.scores.lexicon import proxy_odds
from attnscope.scores.score import Score
from attnscope.theory.ibm1 import IbmModel1
from attnscope.theory.initial_derivative import PaddedPairs
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import log_column

OUTLIER = "sms"  # A.9 calls this corpus one; it is shown and decides nothing
MODEL = ("accuracy", "majority", "bag_of_words")
"""Names of the numbers that every table of agreement begins with."""
NEVER = "never exceeded"  # of an agreement that another seed's attention does not reach
PAIRS = ("alpha,beta_uf", "beta_uf,beta_px", "delta,beta_uf", "alpha,beta")


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
    checkpoint: Literal["last", "best"]
    own_probe: bool
    proxy_first: bool

    def step(self, unit: TrainedUnit) -> int:
        """Return the step at which a run counts as trained."""
        return unit.best_step if self.checkpoint == "best" else unit.evaluated_steps[-1]


TEXT = Procedure("text", "last", own_probe=True, proxy_first=False)
CODE = Procedure("code", "best", own_probe=False, proxy_first=True)


class AgreementTable(StoredAgreement):
    """The agreements of one corpus and split."""

    def __init__(self, runs: SnellUnits, split: str) -> None:
        super().__init__(runs.reference.examples_of(split), split)
        self.runs = runs

    @cached_property
    def proxy(self) -> Score:
        """β^px on the examples, as log-odds: after sixty epochs many probabilities round to 1."""
        return proxy_odds(cast(Any, self.runs.proxy.best_model)).score(self.batch)

    def _read(self, score: StoredScore) -> Score:
        return self.proxy if score.unit is self.runs.proxy else super()._read(score)

    def alpha(self, way: Procedure) -> StoredScore:
        """Return the reference's attention."""
        return StoredScore(self.runs.reference, "attention", way.step(self.runs.reference))

    def pair(self, pair: str, way: Procedure, metric: str = "top5pct") -> dict[int, Values]:
        """Return a pair's agreement at each checkpoint that it could be taken at."""
        runs, alpha = self.runs, self.alpha(way)
        delta = StoredScore(runs.reference, "saliency", way.checkpoint)
        proxy = StoredScore(runs.proxy, "proxy", "best")
        if pair == "alpha,delta":
            return {way.step(runs.reference): self.agreement(alpha, delta, metric)}
        probed, steps = runs.uniform, runs.uniform.evaluated_steps
        if pair == "alpha,beta":
            probed = runs.reference if way.own_probe else runs.comparisons[0]
            steps = [way.step(probed)] if way.own_probe else probed.evaluated_steps
        curve = {}
        for step in steps:
            beta = StoredScore(probed, "lexical_probe", step)
            u, v = {
                "alpha,beta": (alpha, beta),
                "alpha,beta_uf": (alpha, beta),
                "delta,beta_uf": (delta, beta),
                "beta_uf,beta_px": (proxy, beta) if way.proxy_first else (beta, proxy),
            }[pair]
            curve[step] = self.agreement(u, v, metric)
        return curve

    def sheet(self, way: Procedure | None = None, table: str = "") -> Sheet:
        """Return the sheet of a table of the paper, of the reference run."""
        return sheet_of(self.runs.source, self.runs.reference.unit.seed, self.split, way, table)

    def at_highest(
        self, sheet: Sheet, curves: Mapping[str, Mapping[int, Values]]
    ) -> list[Measurement]:
        """Return two agreements, each where it is highest, and by how much the first is higher."""
        found = {name: highest(curve) for name, curve in curves.items()}
        rows = [
            sheet.row(name, self.interval(values), share=True, found={"at": step})
            for name, (step, values) in found.items()
        ]
        (_, first), (_, second) = found.values()
        return [*rows, sheet.row("difference", self.interval(first - second), share=True)]


def sheet_of(
    source: Corpus, seed: int, split: str, way: Procedure | None = None, table: str = ""
) -> Sheet:
    """Return the sheet of a table of the paper, in percent."""
    printed = printed_name(source, "snell")
    axes = {} if way is None else {"way": way.name}
    return Sheet(source.dataset, split, (seed,), "snell", table, printed, percent=True, axes=axes)


def chance(sheet: Sheet, table: StoredAgreement) -> Measurement:
    """Return the expected agreement with a shuffled score."""
    every = np.broadcast_to(table.random, table.mask.shape)
    return sheet.row("A_random", table.interval(every), share=True)


def above_chance(
    sheet: Sheet, pair: str, values: Values, table: StoredAgreement
) -> list[Measurement]:
    """Return how far an agreement is above chance: the excess, and the ratio."""
    ratio = sentence_ratio_interval(values, table.random, table.mask, rng=rng())
    return [
        sheet.row(f"excess({pair})", table.interval(values - table.random), share=True),
        sheet.row(f"ratio({pair})", ratio),
    ]


def model_rows(table: AgreementTable) -> list[Measurement]:
    """Return the reference's accuracy, that of uniform attention, and of what knows no attention.

    A model that does not beat the most frequent label and a bag of words has an attention that
    says nothing, however it agrees with other scores.
    """
    runs, sheet = table.runs, replace(table.sheet(), table="")
    trained = {"accuracy": runs.reference, "accuracy_uniform": runs.uniform}
    rows = []
    for name, unit in trained.items():
        share, n = unit.log[-1][log_column(table.split, "accuracy")], int(table.mask.sum())
        # Words of one translation are not independent: their share has no interval here.
        labelled = is_classification(runs.source)
        rate = rate_interval(round(share * n), n) if labelled else point(share, n)
        rows.append(sheet.row(name, rate, share=True, seeds=(unit.unit.seed,)))
    if not is_classification(runs.source):
        return [*rows, model1_row(table, sheet)]
    examples = {example.id: example for example in parts(runs.source)[table.split]}
    measured = [examples[key] for key in table.batch.ids.tolist()]
    return [*rows, *baseline_rows(sheet, runs.source, measured)]


# Pairs that IBM Model 1 is fitted to, and those that it aligns: its tables are dense.
_FITTED, _ALIGNED = 4000, 500


def model1_row(table: AgreementTable, sheet: Sheet) -> Measurement:
    """Return how often attention's top word is among IBM Model 1's, on the first examples."""
    source, score = table.runs.source, table.read(table.alpha(TEXT))
    batch = table.batch.rows(slice(_ALIGNED)).trimmed()
    model = IbmModel1.fit(
        PaddedPairs.of(source.training_batch(0, 0, _FITTED)),
        len(source.input_words),
        len(source.output_words),
    )
    out, inp = batch.targets.shape[1], batch.inputs.shape[1]
    own = Score(
        "attention", score.values[:_ALIGNED, :out, :inp], score.input_mask[:_ALIGNED, :inp], batch
    )
    other = Score("ibm_model1", model.alignment(PaddedPairs.of(batch)), batch.input_mask, batch)
    first = StoredAgreement(batch, table.split)
    return sheet.row("A(alpha,ibm1)", first.interval(per_word(own, other)), share=True)


def text_deviations(pool: Pool, datasets: Sequence[str]) -> str:
    """Return how corpora and embeddings differ from the paper's."""
    config = pool.config()
    vectors = config.get("vectors") or "random, as in the released code"
    counts = "" if config.get("vectors") or config.get("listed") else "vocabulary by counts alone"
    return corpus_deviations(datasets, f"embeddings: {vectors}", counts)


def difference_claim(*checks: Check) -> Claim:
    """Return a claim about the text's procedure on four labelled corpora."""
    cells = Cells("difference", given={"way": TEXT.name}, aside=(OUTLIER,))
    return Claim(cells, checks, Needs(datasets=4), deviation=text_deviations)


def agreement_dots(result: Result, shown: Mapping[str, tuple[str, str]], title: str) -> Any:
    """Draw agreements (label and colour by name) of each corpus by the text's procedure."""
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
