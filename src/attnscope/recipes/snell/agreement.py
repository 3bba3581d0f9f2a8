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
from attnscope.analysis.ibm_alignment import model1_score
from attnscope.analysis.intervals import grid_interval, rate_interval
from attnscope.analysis.stored_agreement import (
    Grid,
    StoredAgreement,
    StoredScore,
    each_highest,
)
from attnscope.claims.pool import Pool
from attnscope.claims.symbols import in_figures
from attnscope.claims.table import Cells, Check, Claim, Needs, corpus_deviations
from attnscope.data.corpus import Corpus
from attnscope.data.known import definitions
from attnscope.data.reading import parts
from attnscope.figures.charts import Axis
from attnscope.recipes.kit.baselines import baseline_rows, previous_token_row
from attnscope.recipes.kit.corpora import is_classification, printed_name
from attnscope.recipes.kit.plots import datasets, dots
from attnscope.recipes.kit.sheet import Sheet, point, rng
from attnscope.recipes.registry import paper_measures
from attnscope.recipes.snell.units import SnellUnits
from attnscope.runs.result import Measurement, Result
from attnscope.scores.lexicon import proxy_odds
from attnscope.scores.score import Score
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
    𝒜(β^uf, β^px) takes the top position of β^uf. The code's reference is the checkpoint of the
    highest performance, on the table's own split and by the table's own measure; its β is that of
    another run at the checkpoint that agrees most, and it takes the top position of β^px. Both take
    β^uf at the checkpoint that agrees most (A.7).
    """

    name: str
    checkpoint: Literal["last", "best"]
    own_probe: bool
    proxy_first: bool
    performance: str = "accuracy"

    def by(self, performance: str) -> Procedure:
        """Return the procedure of a table of another performance."""
        return replace(self, performance=performance)

    def step(self, unit: TrainedUnit, split: str = "val") -> int:
        """Return the step at which a run counts as trained."""
        if self.checkpoint == "last":
            return unit.evaluated_steps[-1]
        column = log_column(split, self.performance)
        return int(max(unit.log, key=lambda row: row[column])["step"])

    def weights(self, unit: TrainedUnit, split: str = "val") -> Literal["last", "best"]:
        """Return the kept weights, of the best or of the last step, that are the checkpoint's.

        Where the code's checkpoint is neither of them, those that perform better.
        """
        if self.checkpoint == "last":
            return "last"
        column, best, last = log_column(split, self.performance), unit.best_step, unit.log[-1]
        return "best" if unit.log_row(best)[column] >= last[column] else "last"


TEXT = Procedure("text", "last", own_probe=True, proxy_first=False)
CODE = Procedure("code", "best", own_probe=False, proxy_first=True)
CODE_BLEU = replace(CODE, name="code-bleu", performance="bleu")
"""The code's way where the table is of BLEU."""


class AgreementTable(StoredAgreement):
    """The agreements of one corpus and split, of all runs with each other.

    Every run that attends is the reference in turn, and is compared with every run under uniform
    attention; where there are fewer than three of a kind, the first alone is measured, as two say
    next to nothing about their spread.
    """

    def __init__(self, runs: SnellUnits, split: str, device: str = "cpu") -> None:
        super().__init__(runs.reference.examples_of(split), split, device)
        self.runs = runs
        self.references, self.uniforms = map(_if_several, (runs.references, runs.uniforms))

    @cached_property
    def proxy(self) -> Score:
        """β^px on the examples, as log-odds: after sixty epochs many probabilities round to 1."""
        return proxy_odds(cast(Any, self.runs.proxy.best_model)).score(self.batch)

    def _read(self, score: StoredScore) -> Score:
        proxy = score.unit is self.runs.proxy
        return self.placed(self.proxy) if proxy else super()._read(score)

    def alpha(self, way: Procedure, run: TrainedUnit | None = None) -> StoredScore:
        """Return the attention of a run, by default of the reference."""
        run = self.runs.reference if run is None else run
        return StoredScore(run, "attention", way.step(run, self.split))

    def _delta(self, way: Procedure, run: TrainedUnit) -> StoredScore:
        return StoredScore(run, "saliency", way.weights(run, self.split))

    def grid(self, pair: str, way: Procedure, metric: str = "top5pct") -> dict[int, Grid]:
        """Return a pair's agreement of all runs at each checkpoint that it could be taken at."""
        alphas = [self.alpha(way, run) for run in self.references]
        deltas = [self._delta(way, run) for run in self.references]
        trained = way.step(self.runs.reference, self.split)
        if pair == "alpha,delta":
            return {trained: self.paired(zip(alphas, deltas, strict=True), metric)}
        if pair == "alpha,beta" and way.own_probe:
            own = [(alpha, alpha._replace(name="lexical_probe")) for alpha in alphas]
            return {trained: self.paired(own, metric)}
        if pair == "alpha,beta":
            others = {step: self._other_probes(way, step) for step in self.steps}
            return {step: self.paired(both, metric) for step, both in others.items()}
        proxy = StoredScore(self.runs.proxy, "proxy", "best")
        of_runs = {"alpha,beta_uf": alphas, "delta,beta_uf": deltas}
        firsts = of_runs.get(pair, [proxy])
        swapped = pair == "beta_uf,beta_px" and not way.proxy_first
        found = {}
        for step in self.steps:
            columns = []
            for uniform in self.uniforms:
                beta = StoredScore(uniform, "lexical_probe", step)
                both = [(beta, first) if swapped else (first, beta) for first in firsts]
                columns.append(self.paired(both, metric))
            found[step] = np.concatenate(columns, 1)
        return found

    @property
    def steps(self) -> list[int]:
        """The evaluated steps, the same of all runs."""
        return self.runs.reference.evaluated_steps

    def _other_probes(self, way: Procedure, step: int) -> list[tuple[StoredScore, StoredScore]]:
        """Return the attention of every run with the probe of another; two runs keep theirs."""
        first, second = self.runs.comparisons[0], self.runs.reference
        pairs = []
        for run in self.references:
            other = second if run is first else first
            pairs.append((self.alpha(way, run), StoredScore(other, "lexical_probe", step)))
        return pairs

    def sheet(self, way: Procedure | None = None, table: str = "") -> Sheet:
        """Return the sheet of a table of the paper, of the reference run."""
        return sheet_of(self.runs.source, self.runs.reference.unit.seed, self.split, way, table)

    def row(self, sheet: Sheet, name: str, values: Grid, **row: Any) -> Measurement:
        """Return the mean of some agreements in percent; its seeds are those of the runs."""
        seeds = self.seeds(values)
        return sheet.row(name, self.grid_interval(values), share=True, seeds=seeds, **row)

    def seeds(self, values: Grid) -> list[int]:
        """Return the seeds of the kind of runs that has more: each is in one pair of its own."""
        attend = values.shape[0] >= values.shape[1]
        runs = self.references if attend else self.uniforms
        return [run.unit.seed for run in runs][: max(values.shape[:2])]

    def at_highest(
        self, sheet: Sheet, curves: Mapping[str, Mapping[int, Grid]]
    ) -> list[Measurement]:
        """Return two agreements, each where it is highest, and by how much the first is higher."""
        found = {name: each_highest(curve) for name, curve in curves.items()}
        rows = [
            self.row(sheet, name, values, found={"at": step})
            for name, (step, values) in found.items()
        ]
        (_, first), (_, second) = found.values()
        return [*rows, self.row(sheet, "difference", first - second)]


def _if_several(runs: Sequence[TrainedUnit]) -> Sequence[TrainedUnit]:
    return runs if len(runs) > 2 else runs[:1]


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
    sheet: Sheet, pair: str, values: Grid, table: StoredAgreement, seeds: Sequence[int]
) -> list[Measurement]:
    """Return how far an agreement is above chance: the excess, and the ratio."""
    excess = grid_interval(values - table.random, rng=rng())
    ratio = grid_interval(values, table.random, rng=rng())
    return [
        sheet.row(f"excess({pair})", excess, share=True, seeds=seeds),
        sheet.row(f"ratio({pair})", ratio, seeds=seeds),
    ]


def model_rows(table: AgreementTable) -> list[Measurement]:
    """Return the reference's accuracy, that of uniform attention, and of what knows no attention.

    A model that does not beat the most frequent label and a bag of words, or a translator that
    does not beat the previous token, has an attention that says nothing, however it agrees with
    other scores.
    """
    runs, sheet = table.runs, replace(table.sheet(), table="")
    trained = {"accuracy": runs.reference, "accuracy_uniform": runs.uniforms[0]}
    rows = []
    for name, unit in trained.items():
        share, n = unit.log[-1][log_column(table.split, "accuracy")], int(table.mask.sum())
        # Words of one translation are not independent: their share has no interval here.
        labelled = is_classification(runs.source)
        rate = rate_interval(round(share * n), n) if labelled else point(share, n)
        rows.append(sheet.row(name, rate, share=True, seeds=(unit.unit.seed,)))
    if not is_classification(runs.source):
        return [
            *rows,
            previous_token_row(sheet, runs.source, table.batch),
            model1_row(table, sheet),
        ]
    examples = {example.id: example for example in parts(runs.source)[table.split]}
    measured = [examples[key] for key in table.batch.ids.tolist()]
    return [*rows, *baseline_rows(sheet, runs.source, measured)]


# Pairs that IBM Model 1 is fitted to, and those that it aligns: its tables are dense.
_FITTED, _ALIGNED = 4000, 500


def model1_row(table: AgreementTable, sheet: Sheet) -> Measurement:
    """Return how often attention's top word is among IBM Model 1's, on the first examples."""
    attention = table.runs.reference.stored("attention", split=table.split).rows(slice(_ALIGNED))
    other = model1_score(table.runs.source, attention.batch, _FITTED)
    first = StoredAgreement(attention.batch, table.split)
    return sheet.row("A(alpha,ibm1)", first.interval(per_word(attention, other)), share=True)


def text_deviations(pool: Pool, datasets: Sequence[str]) -> str:
    """Return how corpora, embeddings and vocabularies differ from the paper's."""
    vectors = pool.config().get("vectors") or "random, as in the released code"
    # By data set: results of several settings are decided together.
    counted = {
        row.dataset: not (result.config.get("vectors") or result.config.get("listed"))
        for result in pool.results
        for row in result.measurements
    }
    # Translations have pieces for words.
    pieces = {name for name, corpus in definitions().items() if corpus.task == "translation"}
    names = [name for name in datasets if counted.get(name) and name not in pieces]
    counts = f"vocabulary by counts alone: {', '.join(names)}" if names else ""
    return corpus_deviations(datasets, f"embeddings: {vectors}", counts)


def difference_claim(*checks: Check) -> Claim:
    """Return a claim about the text's procedure on four labelled corpora."""
    cells = Cells("difference", given={"way": TEXT.name}, aside=(OUTLIER,))
    return Claim(cells, checks, Needs(datasets=4), deviation=text_deviations)


def agreement_label(name: str) -> str:
    """Return an agreement's name as figures have it."""
    return in_figures(name, paper_measures("snell") or {})


def agreement_dots(result: Result, colours: Mapping[str, str], title: str) -> Any:
    """Draw agreements (colour by name) of each corpus by the text's procedure."""
    rows: list[Measurement] = []
    for dataset in datasets(result.measurements):
        for name in colours:
            rows += result.select(name, dataset, way=TEXT.name)
    return dots(
        rows,
        Axis("agreement (%)", domain=(0, 100)),
        label=lambda row: f"{row.dataset}: {agreement_label(row.name)}",
        colour=lambda row: colours[row.name],
        title=title,
    )
