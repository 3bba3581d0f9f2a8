"""Optimal attention (A.1): is the position that one should attend to the one that knows the word?

A worked example (Eq. 28–30) shows that it need not be: α^opt avoids the position of highest β. On
text the question is asked of a translator whose output is linear in the context (Eq. 31), for which
α^opt is the solution of a convex problem and comes with a certificate; that translator's BLEU is
compared with the main model's, to show that the variant is not a straw man.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from pydantic import Field

from attnscope.analysis.comparison import per_word
from attnscope.analysis.intervals import sentence_interval
from attnscope.analysis.stored_agreement import StoredAgreement
from attnscope.claims.decide import Verdict, about_equal, by_value, much_greater, verdict
from attnscope.claims.pool import interval_of
from attnscope.claims.readings import Readings
from attnscope.claims.symbols import score_in_figures
from attnscope.claims.table import (
    Cell,
    Cells,
    Check,
    Claim,
    Finding,
    Needs,
    Part,
    corpus_deviations,
)
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
from attnscope.recipes.snell.agreement import (
    CODE,
    TEXT,
    Procedure,
    above_chance,
    chance,
    sheet_of,
)
from attnscope.recipes.snell.units import (
    COMPARISONS,
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
PRINTED, NEAR = 53.0, 10.0  # A(α^opt, β) of A.1 in percent, and how near to it counts as the same
BLEU_SEEDS = 5  # that the paper's words need
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
    bleu_seeds: int = Field(5, ge=1, le=1 + len(COMPARISONS))
    """Runs of both translators that BLEU is the mean of; the paper prints one."""


QUICK = TEXT_QUICK | {"corpus": "grammar-translation", "bleu_seeds": 2}
EXAMPLES = "moved"
_AGREEMENTS = (
    "A(alpha_opt,beta)",
    "A(alpha_opt,beta_word)",
    "A_random",
    "A(alpha_opt,alpha)",
    "A(alpha,beta)",
)
HEADLINE = ("alpha_opt", "beta", *_AGREEMENTS, "bleu", "certified", "largest_gap")


def linear_unit(config: TextConfig, source: Corpus, seed: int = REFERENCE) -> Unit:
    """Return the translator of Eq. 31, trained as the reference is; other seeds are for BLEU."""
    scores = (Attention(), LexicalProbe()) if seed == REFERENCE else ()
    training = training_of(config, source, scores=scores, metrics=(Bleu(),))
    return Unit(
        source=source, model=model_of(config, source, "linear"), training=training, seed=seed
    )


def _pairs(config: Config, source: Corpus) -> list[tuple[Unit, Unit]]:
    """Return the linear and the main translator of each seed."""
    others = config.bleu_seeds - 1
    mains = units_of(config.model_copy(update={"translation_seeds": max(1, others)}), source)
    every = [mains["reference"], *mains["comparisons"][:others]]
    return [(linear_unit(config, source, main.seed), main) for main in every]


def measure(config: Config, lab: Lab) -> list[Record]:
    """Solve the worked example, then every output word of each corpus."""
    sources = [_translation(open_corpus(config, name)) for name in config.corpus]
    planned = [_pairs(config, source) for source in sources]
    rows: list[Record] = [*worked_example(config.tolerance)]
    for pairs in lab.train(planned, "linear and main"):
        linear = pairs[0][0]
        rows += solved_corpus(linear, config.tolerance, lab.device)
        rows += bleu_of_both(pairs)
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
        "alpha_opt,beta_word": (best, solved.word_probe),
        "alpha_opt,alpha": (best, alpha),
        "alpha,beta": (alpha, beta),
    }
    for pair, scores in pairs.items():
        values = per_word(*scores)
        # The authors' probe is what the printed number is about.
        own = pair == "alpha_opt,beta_word" and sheet.dataset == MAIN
        printed = PRINTED if own else None
        rows.append(sheet.row(f"A({pair})", table.interval(values), share=True, published=printed))
        rows += above_chance(sheet, pair, values[None, None], table, sheet.seeds)
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


def bleu_of_both(pairs: Sequence[tuple[TrainedUnit, TrainedUnit]]) -> list[Measurement]:
    """Return BLEU of the linear variant and of the main model over seeds, and their difference."""
    metric = Bleu()
    column, rows = log_column("val", metric.name), []
    seeds = [linear.unit.seed for linear, _ in pairs]
    for way in (TEXT, CODE):
        sheet = replace(_sheet(pairs[0][0], way), seeds=seeds)
        values = {}
        linear, main = zip(*pairs, strict=True)
        for name, units in (("linear_output", linear), ("main_paper", main)):
            values[name] = [float(unit.log_row(way.step(unit))[column]) for unit in units]
            found = {"at": way.step(units[0]), "signature": metric.signature()}
            rows.append(sheet.mean("bleu", values[name], {"model": name}, found=found))
        difference = np.subtract(values["linear_output"], values["main_paper"])
        rows.append(sheet.mean("bleu_difference", difference))
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


def near_print(cell: Cell) -> Finding:
    """Check that the agreement with the authors' probe is the printed one."""
    row = cell.one("A(alpha_opt,beta_word)")
    return Finding(about_equal(interval_of(row).shifted(-PRINTED), NEAR), {row.name: row})


def enough_seeds(cell: Cell) -> Finding:
    """Check BLEU over seeds; one run each decides nothing."""
    row = cell.one("bleu_difference")
    few = not cell.pool.quick and len(row.seeds) < BLEU_SEEDS
    same = about_equal(interval_of(row), 1.5)
    shown = {"BLEU less the main model's": row}
    return Finding(Verdict.UNDECIDED if few else same, shown | {"seeds": len(row.seeds)})


def _claim(probe: str, *checks: Check, note: str = "") -> Claim:
    return Claim(
        Cells("excess(alpha_opt,beta)", given={"way": "text"}, decide=(MAIN,)),
        (
            as_in_the_example,
            every_word_certified,
            Part(
                "",
                (f"excess(alpha_opt,{probe})", f"ratio(alpha_opt,{probe})"),
                much_greater,
                shown=False,
            ),
            *checks,
            Part("A(alpha_opt,beta)", "A(alpha_opt,beta)"),
            Part("A_random", "A_random"),
            Part("BLEU of", "bleu", each="model"),
        ),
        Needs(each={"dataset": (MAIN,)}),
        deviation=lambda pool, datasets: corpus_deviations(datasets),
        note=note,
    )


CLAIMS = {
    "snell.optimal-attention": Readings(
        _claim("beta_word", near_print, enough_seeds),
        _claim(
            "beta",
            Part("BLEU less the main model's", "bleu_difference", by_value(about_equal), 1.5),
            note="BLEU's difference is decided as a number without interval",
        ),
    )
}

_TITLES = {
    "attention": f"Learned {score_in_figures('alpha')}",
    "lexical_probe": score_in_figures("beta").capitalize(),
    "optimal_attention": score_in_figures("alpha_opt").capitalize(),
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the worked example, and the three scores of one sentence of each corpus."""
    names = {
        "beta": (score_in_figures("beta"), SCORES["lexical_probe"]),
        "alpha_opt": (score_in_figures("alpha_opt"), SCORES["optimal_attention"]),
    }
    ticks = (0, 0.25, 0.5, 0.75, 1)
    charts: dict[str, Any] = {
        "worked-example": dots(
            [row for name in names for row in result.select(name, EXAMPLE)],
            Axis("probability of the right word, or weight", domain=(-0.04, 1), ticks=ticks),
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
