"""Optimal attention (A.1): is the position that one should attend to the one that knows the word?

A worked example (Eq. 28–30) shows that it need not be: α^opt avoids the position of highest β. On
text the question is asked of a translator whose output is linear in the context (Eq. 31), for which
α^opt is the solution of a convex problem and comes with a certificate; that translator's BLEU is
compared with the main model's, to show that the variant is not a straw man.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
import torch
from pydantic import Field

from attnscope.analysis.comparison import per_word
from attnscope.analysis.intervals import sentence_interval
from attnscope.analysis.stored_agreement import StoredAgreement
from attnscope.claims.decide import Verdict, about_equal, by_value, much_greater, verdict
from attnscope.claims.table import Cell, Cells, Claim, Finding, Needs, Part, corpus_deviations
from attnscope.data.batch import Batch, Example, collate
from attnscope.data.corpus import Corpus
from attnscope.data.text import ParallelText
from attnscope.errors import UsageError
from attnscope.figures.charts import Axis, beside
from attnscope.figures.palette import SCORES
from attnscope.recipes.kit.corpora import is_classification
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.plots import datasets, dots, matrix
from attnscope.recipes.kit.settings import Names
from attnscope.recipes.kit.sheet import Sheet, rng
from attnscope.recipes.recipe import Charts
from attnscope.recipes.snell.about import about_optimal
from attnscope.recipes.snell.agreement import (
    CODE,
    TEXT,
    Procedure,
    above_chance,
    chance,
    sheet_of,
)
from attnscope.recipes.snell.units import (
    QUICK as TEXT_QUICK,
    REFERENCE,
    TextConfig,
    model_of,
    open_corpus,
    training_of,
    units_of,
)
from attnscope.runs.result import Matrix, Measurement, Record, Result
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.optimal_attention import Solved, solve
from attnscope.scores.score import read_scores
from attnscope.scores.subwords import WORD_START
from attnscope.theory.optimal_attention import optimal_attention
from attnscope.training.bleu import Bleu
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Unit, log_column

MAIN = "multi30k-de-en"  # the corpus of A.1, in the direction of the authors' code
EXAMPLE = "worked example"
# Eq. 28–30: three positions, three words, the first of which is right.
GAMMA = ((0.0, 0.0, 0.0), (0.0, -10.0, 5.0), (0.0, 5.0, -10.0))

_LONGEST = 12  # positions of a sentence that is drawn
_GERMAN = "Ein alter Mann liest im Park eine Zeitung."
_ENGLISH = "An old man is reading a newspaper in the park."
# Sentences made for the picture, so that results need not quote a corpus.
_SENTENCES = {("de", "en"): (_GERMAN, _ENGLISH), ("en", "de"): (_ENGLISH, _GERMAN)}


class Config(TextConfig):
    """Settings of the study of optimal attention."""

    corpus: Names = Field((MAIN,), min_length=1)
    """Corpora, known ones by name and your own by folder; the default is the paper's example."""
    tolerance: float = Field(1e-8, gt=0)
    """Largest gap, in nats, of a solved cell. Where the right word is nearly certain whatever is
    attended to, a looser one is met by uniform weights, whose top position says nothing."""


QUICK = TEXT_QUICK | {"corpus": "grammar-translation"}
EXAMPLES = "moved"
_AGREEMENTS = ("A(alpha_opt,beta)", "A_random", "A(alpha_opt,alpha)", "A(alpha,beta)")
ABOUT = about_optimal
HEADLINE = ("alpha_opt", "beta", *_AGREEMENTS, "bleu", "certified", "largest_gap")


def linear_unit(config: TextConfig, source: Corpus) -> Unit:
    """Return the translator of Eq. 31, trained as the reference is."""
    training = training_of(config, source, scores=(Attention(), LexicalProbe()), metrics=(Bleu(),))
    return Unit(
        source=source, model=model_of(config, source, "linear"), training=training, seed=REFERENCE
    )


def measure(config: Config, lab: Lab) -> list[Record]:
    """Solve the worked example, then every output word of each corpus."""
    sources = [_translation(open_corpus(config, name)) for name in config.corpus]
    planned = [
        (linear_unit(config, source), units_of(config, source)["reference"]) for source in sources
    ]
    rows: list[Record] = [*worked_example(config.tolerance)]
    for linear, main in lab.train(planned, "linear and main"):
        rows += solved_corpus(linear, config.tolerance, lab.device)
        rows += bleu_of_both(linear, main)
        rows += solved_sentence(linear, config.tolerance)
    return rows


def _translation(source: Corpus) -> Corpus:
    if is_classification(source):
        raise UsageError(
            f"snell/optimal-attention is about translation; {source.dataset} has labels: give a "
            "parallel corpus."
        )
    return source


def worked_example(tolerance: float) -> list[Measurement]:
    """Return β, α^opt and the gap of Eq. 28–30; positions count from 1, as printed."""
    words = torch.tensor([GAMMA], dtype=torch.float64)
    state, target = torch.zeros_like(words[:, :1]), torch.zeros(1, 1, dtype=torch.long)
    real = torch.ones(1, len(GAMMA), dtype=torch.bool)
    found = optimal_attention(words, state, target, real, real[:, :1], tolerance=tolerance)
    values = {"beta": words[0].softmax(-1)[:, 0], "alpha_opt": found.weights[0, 0]}
    sheet = Sheet(EXAMPLE, paper="snell", table="text-A.1", printed=EXAMPLE)
    rows = []
    for name, numbers in values.items():
        for position, value in enumerate(numbers.tolist(), 1):
            rows.append(sheet.point(name, value, {"position": position}))
    return [*rows, sheet.point("largest_gap", float(found.gap.max()))]


def _sheet(unit: TrainedUnit, way: Procedure) -> Sheet:
    return sheet_of(cast(Corpus, unit.unit.source), unit.unit.seed, "val", way, "text-A.1")


def solved_corpus(linear: TrainedUnit, tolerance: float, device: str) -> list[Measurement]:
    """Solve every output word of the validation split, by both procedures' checkpoints."""
    rows: list[Measurement] = []
    solved: dict[int, Solved] = {}
    for way in (TEXT, CODE):
        step = way.step(linear)
        if step not in solved:
            model = linear.best_model if way.checkpoint == "best" else linear.model
            types = len(linear.unit.source.output_words)
            solved[step] = solve(model, linear.examples_of("val"), types, tolerance, device)
        sheet = _sheet(linear, way)
        rows += _agreements(linear, solved[step], step, sheet)
        rows += _certificates(solved[step], tolerance, sheet)
    return rows


def _agreements(linear: TrainedUnit, solved: Solved, step: int, sheet: Sheet) -> list[Measurement]:
    alpha, beta = (linear.stored(name, step, "val") for name in ("attention", "lexical_probe"))
    best = solved.score
    table = StoredAgreement(best.batch, "val")
    rows = []
    # α^opt comes first also next to α: it is 0 at most positions, and among so many ties the second
    # score's top 5 % of a long sentence would hold every position.
    pairs = {
        "alpha_opt,beta": (best, beta),
        "alpha_opt,alpha": (best, alpha),
        "alpha,beta": (alpha, beta),
    }
    for pair, scores in pairs.items():
        values = per_word(*scores)
        rows.append(sheet.row(f"A({pair})", table.interval(values), share=True))
        rows += above_chance(sheet, pair, values, table)
    return [*rows, chance(sheet, table)]


def _certificates(solved: Solved, tolerance: float, sheet: Sheet) -> list[Measurement]:
    """Return how well the optimum is known, and what it brings."""
    mask = solved.score.target_mask
    done = int(((solved.gap <= tolerance) & mask).sum())
    words = int(mask.sum())
    counts = {
        "certified": 100 * done / words,
        "unconverged": words - done,
        "largest_gap": float(solved.gap[mask].max()),
    }
    means = {
        "uniform_optimum": 100 * solved.uniform,
        "loss(alpha_opt)": solved.loss,
        "loss(alpha)": solved.own_loss,
    }
    rows = [sheet.point(name, value, n=words) for name, value in counts.items()]
    for name, values in means.items():
        rows.append(sheet.row(name, sentence_interval(values.numpy(), mask.numpy(), rng=rng())))
    return rows


def bleu_of_both(linear: TrainedUnit, main: TrainedUnit) -> list[Measurement]:
    """Return BLEU of the linear variant and of the main model, and their difference."""
    metric = Bleu()
    column, rows = log_column("val", metric.name), []
    for way in (TEXT, CODE):
        values = {}
        for name, unit in (("linear_output", linear), ("main_paper", main)):
            step = way.step(unit)
            values[name] = float(unit.log_row(step)[column])
            found = {"at": step, "signature": metric.signature()}
            sheet = _sheet(unit, way)
            rows.append(sheet.point("bleu", values[name], {"model": name}, found=found))
        difference = values["linear_output"] - values["main_paper"]
        rows.append(_sheet(linear, way).point("bleu_difference", difference))
    return rows


def solved_sentence(linear: TrainedUnit, tolerance: float) -> list[Matrix]:
    """Return α, β and α^opt of one short sentence."""
    source = cast(Corpus, linear.unit.source)
    batch = _sentence(source)
    types = len(source.output_words)
    rules = (Attention(), LexicalProbe(reading="probability"))
    model = cast(Any, linear.model)
    scores = [*read_scores(rules, model, batch), solve(model, batch, types, tolerance).score]
    inputs = _without_marks(source.input_words.decode(batch.inputs[0].tolist()))
    outputs = _without_marks(source.output_words.decode(batch.targets[0].tolist()))
    sheet = Sheet(source.dataset, seeds=(linear.unit.seed,))
    return [
        sheet.matrix(
            "weight",
            score.values[0].tolist(),
            {"score": score.name},
            rows=outputs,
            columns=inputs,
        )
        for score in scores
    ]


def _without_marks(pieces: Iterable[str]) -> list[str]:
    """Return pieces without the mark of a word's start, which few fonts have."""
    return [piece.removeprefix(WORD_START) or piece for piece in pieces]


def _sentence(source: Corpus) -> Batch:
    """Return the sentence made for these languages if there is one, else a short one."""
    if isinstance(source, ParallelText):
        known = source.definition
        if (known.source, known.target) in _SENTENCES:
            text, translation = _SENTENCES[known.source, known.target]
            bos, *pieces, eos = source.encode(translation)
            return collate([Example(0, source.encode(text), [bos, *pieces], [*pieces, eos])])
    examples = source.validation_examples
    size = [max(len(example.inputs), len(example.targets)) for example in examples]
    fitting = [n for n in range(len(examples)) if size[n] <= _LONGEST]
    return collate([examples[fitting[0] if fitting else size.index(min(size))]])


def as_in_the_example(cell: Cell) -> Finding:
    """Check that α^opt of Eq. 28–30 is as printed, though β is largest at the first position."""
    optimum, probe = (
        cell.select(name, dataset=EXAMPLE, way=None) for name in ("alpha_opt", "beta")
    )
    found, beta = ([row.number for row in rows] for rows in (optimum, probe))
    gap = cell.value("largest_gap", dataset=EXAMPLE, way=None)
    printed = [row.published for row in optimum if row.published is not None]
    certified = gap <= cell.pool.config()["tolerance"]
    as_printed = len(found) == len(printed) and np.allclose(found, printed, atol=1e-3)
    evidence = {EXAMPLE: {"alpha_opt": found, "beta": beta, "gap": gap}}
    holds = certified and as_printed and bool(np.argmax(beta) == 0)
    return Finding(verdict(holds, certified), evidence)


def every_word_certified(cell: Cell) -> Finding:
    """Check the certificates; without one nothing is known of α^opt, which fails no claim."""
    left = cell.value("unconverged")
    evidence = {"words without certificate": left, "largest gap": cell.value("largest_gap")}
    return Finding(Verdict.HOLDS if left == 0 else Verdict.UNDECIDED, evidence)


_ABOVE_CHANCE = ("excess(alpha_opt,beta)", "ratio(alpha_opt,beta)")
CLAIMS = {
    "snell.optimal-attention": Claim(
        Cells("excess(alpha_opt,beta)", given={"way": "text"}, decide=(MAIN,)),
        (
            as_in_the_example,
            every_word_certified,
            Part("", _ABOVE_CHANCE, much_greater, shown=False),
            Part("A(alpha_opt,beta)", "A(alpha_opt,beta)"),
            Part("A_random", "A_random"),
            Part("BLEU of", "bleu", each="model"),
            Part("BLEU less the main model's", "bleu_difference", by_value(about_equal), 1.5),
        ),
        Needs(each={"dataset": (MAIN,)}),
        deviation=lambda pool, datasets: corpus_deviations(datasets),
        note="BLEU is that of one run each: its difference is decided as a number without interval",
    )
}

_TITLES = {
    "attention": "α, learned",
    "lexical_probe": "β, lexical probe",
    "optimal_attention": "α optimal",
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the worked example, and the three scores of one sentence of each corpus."""
    names = {
        "beta": ("β", SCORES["lexical_probe"]),
        "alpha_opt": ("α optimal", SCORES["optimal_attention"]),
    }
    ticks = (0, 0.25, 0.5, 0.75, 1)
    charts: dict[str, Any] = {
        "worked-example": dots(
            [row for name in names for row in result.select(name, EXAMPLE)],
            Axis("probability of the right word (β), weight (α)", domain=(-0.04, 1), ticks=ticks),
            label=lambda row: f"{names[row.name][0]}, position {row.axes['position']}",
            colour=lambda row: names[row.name][1],
        )
    }
    for dataset in datasets(result.select("certified")):
        panels = []
        for score, title in _TITLES.items():
            weights = result.picture(Matrix, "weight", dataset, score=score)
            panels.append(matrix(weights, title=title, value_title="", domain=(0, 1)))
        charts[f"sentence-{dataset}"] = beside(*panels)
    return charts
