"""Optimal attention (A.1): is the position that one should attend to the one that knows the word?

A worked example (Eq. 28–30) shows that it need not be: α^opt avoids the position of highest β. On
text the question is asked of a translator whose output is linear in the context (Eq. 31), for which
α^opt is the solution of a convex problem and comes with a certificate; that translator's BLEU
stands beside the main model's, to show that the variant is no straw man.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
import torch
from pydantic import Field

from attnscope.analysis.agreement import expected_random_agreement
from attnscope.analysis.comparison import per_word
from attnscope.analysis.intervals import Interval, sentence_interval, sentence_ratio_interval
from attnscope.claims.published import published_value
from attnscope.data.batch import Batch, Example, collate
from attnscope.data.corpus import Corpus
from attnscope.data.text import ParallelText, Text
from attnscope.errors import UsageError
from attnscope.recipes.options import Names
from attnscope.recipes.recipe import Lab
from attnscope.recipes.showing import right_and_wrong
from attnscope.recipes.snell.agreement_rows import WAYS, Way, point, rng
from attnscope.recipes.snell.optimal_attention_claims import CLAIMS, EXAMPLE, MAIN
from attnscope.recipes.snell.optimal_attention_figures import draw
from attnscope.recipes.snell.table5 import QUICK as TABLE5_QUICK
from attnscope.recipes.snell.text_units import (
    REFERENCE,
    TextConfig,
    is_classification,
    model_of,
    open_corpus,
    training_of,
    units_of,
)
from attnscope.runs.result import Measurement, measured
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.optimal_attention import Solved, solve
from attnscope.scores.score import read_scores
from attnscope.scores.subwords import WORD_START
from attnscope.theory.optimal_attention import optimal_attention
from attnscope.training.bleu import Bleu
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Unit, log_column

__all__ = ["CLAIMS", "EXAMPLES", "HEADLINE", "QUICK", "Config", "draw", "linear_unit", "measure"]

# Eq. 28–30: three positions, three words, the first of which is right.
GAMMA = ((0.0, 0.0, 0.0), (0.0, -10.0, 5.0), (0.0, 5.0, -10.0))

_LONGEST = 12  # positions of a sentence that is drawn
# A sentence of one's own for the picture, so that results need not quote a corpus.
_SENTENCES = {
    ("de", "en"): (
        "Ein alter Mann liest im Park eine Zeitung.",
        "An old man is reading a newspaper in the park.",
    ),
    ("en", "de"): (
        "An old man is reading a newspaper in the park.",
        "Ein alter Mann liest im Park eine Zeitung.",
    ),
}


class Config(TextConfig):
    """Settings of the study of optimal attention."""

    corpus: Names = Field((MAIN,), min_length=1)
    # The largest gap, in nats, of a solved cell. Where the right word is nearly certain whatever
    # is attended to, a looser one is met by uniform weights, whose top position says nothing.
    tolerance: float = Field(1e-8, gt=0)


QUICK = TABLE5_QUICK | {"corpus": "grammar-translation"}
EXAMPLES = right_and_wrong
HEADLINE = (
    "alpha_opt",
    "beta",
    "A(alpha_opt,beta)",
    "A_random",
    "A(alpha_opt,alpha)",
    "A(alpha,beta)",
    "bleu",
    "certified",
    "largest_gap",
)


def linear_unit(config: TextConfig, source: Corpus) -> Unit:
    """Return the translator of Eq. 31, trained as the reference is."""
    training = training_of(config, source, scores=(Attention(), LexicalProbe()), metrics=(Bleu(),))
    return Unit(
        source=source, model=model_of(config, source, "linear"), training=training, seed=REFERENCE
    )


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Solve the worked example, then every output word of each corpus."""
    sources = [_translation(open_corpus(config, name)) for name in config.corpus]
    planned = [
        (linear_unit(config, source), units_of(config, source)["reference"][0])
        for source in sources
    ]
    rows = worked_example(config.tolerance)
    for linear, main in lab.train(planned, "linear and main"):
        rows += _corpus_rows(linear, config.tolerance, lab.device)
        rows += _bleu_rows(linear, main)
        rows += _picture_rows(linear, config.tolerance)
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
    rows = [
        measured(
            name,
            EXAMPLE,
            point(float(value)),
            {"position": position},
            published=published_value("snell", "text-A.1", EXAMPLE, name, position=position),
        )
        for name, numbers in values.items()
        for position, value in enumerate(numbers, 1)
    ]
    return [*rows, measured("largest_gap", EXAMPLE, point(float(found.gap.max())))]


# Rows.


def _corpus_rows(linear: TrainedUnit, tolerance: float, device: str) -> list[Measurement]:
    rows: list[Measurement] = []
    solved: dict[int, Solved] = {}
    for way in WAYS:
        step = _step(linear, way)
        if step not in solved:
            model = linear.best_model if way.checkpoint == "best" else linear.model
            types = len(linear.unit.source.output_words)
            solved[step] = solve(model, linear.examples_of("val"), types, tolerance, device)
        rows += _agreement_rows(linear, solved[step], step, {"way": way.name})
        rows += _certificate_rows(linear, solved[step], tolerance, {"way": way.name})
    return rows


def _agreement_rows(
    linear: TrainedUnit, solved: Solved, step: int, axes: Mapping[str, Any]
) -> list[Measurement]:
    alpha, beta = (linear.stored(name, step, "val") for name in ("attention", "lexical_probe"))
    best = solved.score
    mask = best.target_mask.numpy()
    random = expected_random_agreement(best.input_mask).numpy()[:, None]
    source = linear.unit.source
    printed = source.definition.published if isinstance(source, Text) else None
    rows = []
    # α^opt comes first also beside α: it is 0 at most positions, and among so many ties the second
    # score's top 5 % of a long sentence would hold every position.
    pairs = {
        "alpha_opt,beta": (best, beta),
        "alpha_opt,alpha": (best, alpha),
        "alpha,beta": (alpha, beta),
    }
    for pair, (u, v) in pairs.items():
        values = per_word(u, v)
        name = f"A({pair})"
        paper = published_value("snell", "text-A.1", printed, name) if printed else None
        share = sentence_interval(values, mask, rng=rng())
        rows.append(_row(linear, name, share, axes, None if paper is None else 100 * paper))
        excess = sentence_interval(values - random, mask, rng=rng())
        rows.append(_row(linear, f"excess({pair})", excess, axes))
        ratio = sentence_ratio_interval(values, random, mask, rng=rng())
        rows.append(_row(linear, f"ratio({pair})", ratio, axes, scale=1))
    chance = sentence_interval(np.broadcast_to(random, mask.shape), mask, rng=rng())
    return [*rows, _row(linear, "A_random", chance, axes)]


def _certificate_rows(
    linear: TrainedUnit, solved: Solved, tolerance: float, axes: Mapping[str, Any]
) -> list[Measurement]:
    """Return how well the optimum is known, and what it brings."""
    mask = solved.score.target_mask
    done = (solved.gap <= tolerance) & mask
    words = int(mask.sum())
    counts = {
        "certified": 100 * int(done.sum()) / words,
        "unconverged": words - int(done.sum()),
        "largest_gap": float(solved.gap[mask].max()),
    }
    rows = [
        _row(linear, name, Interval(value, math.nan, math.nan, words), axes, scale=1)
        for name, value in counts.items()
    ]
    means = {
        "uniform_optimum": (100 * solved.uniform, 1),
        "loss(alpha_opt)": (solved.loss, 1),
        "loss(alpha)": (solved.own_loss, 1),
    }
    for name, (values, scale) in means.items():
        interval = sentence_interval(values.numpy(), mask.numpy(), rng=rng())
        rows.append(_row(linear, name, interval, axes, scale=scale))
    return rows


def _bleu_rows(linear: TrainedUnit, main: TrainedUnit) -> list[Measurement]:
    """Return BLEU of the linear variant and of the main model, and their difference."""
    metric = Bleu()
    source = linear.unit.source
    printed = source.definition.published if isinstance(source, Text) else None
    column, rows = log_column("val", metric.name), []
    for way in WAYS:
        values = {}
        for name, unit in (("linear_output", linear), ("main_paper", main)):
            step = _step(unit, way)
            values[name] = float(unit.log_row(step)[column])
            axes = {"way": way.name, "model": name}
            found = {"at": step, "signature": metric.signature()}
            paper = (
                published_value("snell", "text-A.1", printed, "bleu", model=name)
                if printed
                else None
            )
            row = _row(unit, "bleu", point(values[name]), axes, paper, scale=1)
            rows.append(row.model_copy(update={"found": found}))
        difference = point(values["linear_output"] - values["main_paper"])
        rows.append(_row(linear, "bleu_difference", difference, {"way": way.name}, scale=1))
    return rows


def _picture_rows(linear: TrainedUnit, tolerance: float) -> list[Measurement]:
    """Return α, β and α^opt of one short sentence, cell by cell."""
    source = cast(Corpus, linear.unit.source)
    batch = _drawn(source)
    types = len(source.output_words)
    rules = (Attention(), LexicalProbe(reading="probability"))
    model = cast(Any, linear.model)
    scores = [*read_scores(rules, model, batch), solve(model, batch, types, tolerance).score]
    inputs = _shown(source.input_words.decode(batch.inputs[0].tolist()))
    outputs = _shown(source.output_words.decode(batch.targets[0].tolist()))
    return [
        _row(
            linear,
            "weight",
            point(float(score.values[0, t, place])),
            {"score": score.name, "t": t, "l": place, "output": output, "input": word},
            scale=1,
        )
        for score in scores
        for t, output in enumerate(outputs)
        for place, word in enumerate(inputs)
    ]


def _shown(pieces: Iterable[str]) -> list[str]:
    """Return pieces without the mark of a word's start, which few fonts have."""
    return [piece.removeprefix(WORD_START) or piece for piece in pieces]


def _drawn(source: Corpus) -> Batch:
    """Return a sentence of one's own where there is one in the languages, else a short one."""
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


def _row(
    unit: TrainedUnit,
    name: str,
    interval: Interval,
    axes: Mapping[str, Any],
    published: float | None = None,
    scale: float = 100,
) -> Measurement:
    value, low, high = (scale * end for end in (interval.value, interval.low, interval.high))
    dataset = unit.unit.source.dataset
    scaled = Interval(value, low, high, interval.n)
    return measured(name, dataset, scaled, axes, (unit.unit.seed,), published)


def _step(unit: TrainedUnit, way: Way) -> int:
    return unit.best_step if way.checkpoint == "best" else int(unit.log[-1]["step"])
