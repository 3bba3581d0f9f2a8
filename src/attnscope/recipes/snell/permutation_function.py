"""Copying against a fixed reordering of positions (§6.2, Eq. 25): the same words.

Both tasks sample 40 words of 60. The reordering π is drawn anew for every seed. Word knowledge is
compared in two ways: the count tables, and the probe of models trained under uniform attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from pydantic import Field

from attnscope.analysis.intervals import (
    Interval,
    independent_difference_interval,
)
from attnscope.analysis.learning import LEARNED_AT
from attnscope.claims.decide import about_equal, all_of, verdict
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.claims.readings import Readings
from attnscope.claims.table import Cell
from attnscope.data.tasks import CopyTask, ReorderedCopy, SampledCopy
from attnscope.figures.palette import ROLES
from attnscope.models.intervention import Uniform
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.plots import accuracy_curves
from attnscope.recipes.kit.settings import RecipeSettings
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.recipe import Charts
from attnscope.runs.result import Measurement, Result
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.theory.counts import count_table
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Training, Unit, every, merged


class Config(RecipeSettings):
    """Settings of the comparison."""

    seeds: int = Field(20, ge=1)
    """Models of each task, as in figure 3."""
    copy_steps: int = Field(300, ge=1)
    """Training steps of the copying task, within which the paper's copying is perfect."""
    steps: int = Field(2000, ge=1)
    """Training steps of the reordering task; far more than copying needs."""
    batch_size: int = Field(128, ge=1)
    """Sequences in a training batch, as in figure 3."""
    length: int = Field(40, ge=2)
    """Words of a sequence, as in figure 3."""
    types: int = Field(60, ge=2)
    """Word types, more than length as in figure 3's control."""
    hidden: int = Field(256, ge=1)
    """Size of embeddings and LSTM states, as in figure 3."""
    examples: int = Field(100, ge=1)
    """Sequences of each evaluation, as in figure 3."""


QUICK = {
    "seeds": 2,
    "copy_steps": 200,
    "steps": 400,
    "batch_size": 64,
    "length": 12,
    "types": 18,
    "hidden": 64,
}
HEADLINE = ("seeds_learned", "beta_uf(gold)", "count_table_difference")


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train both tasks with learned attention, then both with uniform attention."""
    seeds = range(config.seeds)
    copy = SampledCopy(length=config.length, vocabulary=config.types)
    reordered = [
        ReorderedCopy(length=config.length, vocabulary=config.types, permutation=seed)
        for seed in seeds
    ]
    checks = merged(every(10, config.copy_steps), (config.copy_steps,), every(100, config.steps))
    copies = [_unit(config, copy, seed, config.copy_steps, checks) for seed in seeds]
    others = [_unit(config, reordered[seed], seed, config.steps, checks) for seed in seeds]
    copied, permuted = lab.train((copies, others), "copying and reordering")
    sheet, other = Sheet(copy.dataset), Sheet(reordered[0].dataset)
    rows = sheet.outcomes(copied, config.copy_steps, {"task": "copy"})
    for step in (config.copy_steps, config.steps):
        rows += other.outcomes(permuted, step, {"task": "reordered"})

    uniform: dict[str, Any] = {
        "attention": {"cross": Uniform()},
        "scores": (LexicalProbe(reading="probability"),),
        "stored": config.examples,
    }
    words = [
        [_unit(config, task, seed, config.copy_steps, (), **uniform) for seed, task in pairs]
        for pairs in (enumerate([copy] * config.seeds), enumerate(reordered))
    ]
    trained = lab.train(words, "uniform attention")
    known = [[_probe_at_gold(unit) for unit in units] for units in trained]
    return [
        *rows,
        *_word_knowledge(known[0], known[1], copy.dataset),
        _count_tables(copy, reordered[0], config),
    ]


def _unit(
    config: Config, task: CopyTask, seed: int, steps: int, checks: tuple[int, ...], **training: Any
) -> Unit:
    return Unit(
        source=task,
        model=Seq2SeqSpec(embedding=config.hidden, hidden=config.hidden),
        training=Training(
            steps=steps,
            batch_size=config.batch_size,
            evaluate_at=tuple(step for step in checks if step <= steps),
            examples=config.examples,
            **training,
        ),
        seed=seed,
    )


def _probe_at_gold(unit: TrainedUnit) -> float:
    """Return the mean probability of the right word when its own position alone is attended."""
    score = unit.stored("lexical_probe")
    at_gold = score.values.gather(-1, score.batch.gold[..., None])[..., 0]
    return float(at_gold[score.target_mask].double().mean())


def _word_knowledge(
    copy: Sequence[float], reordered: Sequence[float], dataset: str
) -> list[Measurement]:
    sheet = Sheet(dataset, seeds=range(len(copy)))
    rows = []
    for task, values in (("copy", copy), ("reordered", reordered)):
        rows.append(sheet.mean("beta_uf(gold)", values, {"task": task}))
    # In units of copying's own value, so that the margin of 10 % is .1.
    level = float(np.mean(copy))
    difference = independent_difference_interval(
        np.divide(reordered, level), np.divide(copy, level)
    )
    return [*rows, sheet.row("beta_uf(gold) relative difference", difference)]


def _count_tables(copy: SampledCopy, reordered: ReorderedCopy, config: Config) -> Measurement:
    """Return the largest difference of the count tables of the same words, copied and reordered."""
    batch = copy.training_batch(0, 0, 10 * config.batch_size)
    order = [*reordered.order.tolist(), config.length]
    types = len(copy.input_words)
    tables = [
        count_table(words.inputs, words.input_mask, words.targets, words.target_mask, types, types)
        for words in (batch, replace(batch, targets=batch.targets[:, order]))
    ]
    off = float((tables[0] - tables[1]).abs().max())
    return Sheet(copy.dataset).row("count_table_difference", Interval(off, off, off, len(batch)))


def permutation_function(pool: Pool, longer: bool = True) -> Decision:
    """Decide snell.permutation-function; the stricter reading asks for a longer budget too."""
    config, cell = Config.model_validate(pool.config()), Cell(pool)
    copied, early, late = (
        [row.number for row in pool.select("accuracy", task=task, step=step)]
        for task, step in (
            ("copy", config.copy_steps),
            ("reordered", config.copy_steps),
            ("reordered", config.steps),
        )
    )
    tables = cell.value("count_table_difference")
    gap = cell.one("beta_uf(gold) relative difference")
    evidence = {
        "copying, lowest accuracy": min(copied),
        f"reordered at {config.copy_steps}, highest accuracy": max(early),
        f"reordered at {config.steps}, highest accuracy": max(late),
        "count tables differ by": tables,
        "beta_uf at the gold position, relative difference": gap,
    }
    if len(copied) < pool.needed(20):
        return undecided("needs 20 seeds", evidence)
    exact = (min(copied) >= 0.99, max(early + (late if longer else [])) < LEARNED_AT, tables == 0)
    return Decision(
        all_of([verdict(all(exact), True), about_equal(interval_of(gap), 0.1)]), evidence
    )


CLAIMS = {
    "snell.permutation-function": Readings(
        partial(permutation_function, longer=False), permutation_function
    )
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw accuracy against steps: copying at once, the reordering hardly at all."""
    config = Config.model_validate(result.config)
    names = {"copy": "copying", "reordered": "fixed reordering"}
    labels = {}
    for task, step in (("reordered", config.steps), ("copy", config.copy_steps)):
        row = result.select("seeds_learned", task=task, step=step)[0]
        labels[task] = f"{names[task]}:\n{row.value:.0f} of {row.n} seeds learn"
    groups: dict[str, list[Logged]] = {label: [] for label in labels.values()}
    for unit in units:
        if not unit.config["training"]["attention"]:
            task = "reordered" if unit.dataset.startswith("reordered") else "copy"
            groups[labels[task]].append(unit)
    colours = {labels["reordered"]: ROLES["hard"], labels["copy"]: ROLES["control"]}
    return {"permutation-function": accuracy_curves(groups, colours, config.steps, width=420)}
