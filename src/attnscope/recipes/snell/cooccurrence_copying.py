"""The count table of a copying task, sampled and in expectation (§4.3, A.3).

A sentence of the sample ends in EOS, as in training; the small alphabets of figures 4 and 8 have
none, as in the paper's drawings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, permutations
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from scipy import stats
from torch import Tensor

from attnscope.claims.decide import SIGNIFICANT
from attnscope.data.tasks import CopyTask, MixtureCopy, PermutationCopy, SampledCopy
from attnscope.recipes.kit.sheet import Sheet
from attnscope.runs.result import Matrix, Measurement, Record
from attnscope.theory.counts import (
    append_eos,
    count_table,
    expected_mixture_table,
    expected_permutation_table,
    expected_sampled_table,
    standard_error,
)

ROLES = ("permutations", "mixture", "control")
ROUNDING = 1e-9  # far above that of sums in float64, far below any standard error


class Distribution(NamedTuple):
    """A copying task, its expected table per sentence, its number of word sets, its sentences."""

    task: CopyTask
    expected: Float[Tensor, "input_type output_type"]
    sets: int
    support: Callable[[], Iterable[tuple[int, ...]]]


def distributions(length: int, control_types: int) -> dict[str, Distribution]:
    """Return the three distributions, by the part that they play."""

    def orders(start: int) -> Iterable[tuple[int, ...]]:
        return permutations(range(start, start + length))

    every = (
        Distribution(
            PermutationCopy(length=length),
            expected_permutation_table(length),
            sets=1,
            support=lambda: orders(0),
        ),
        Distribution(
            MixtureCopy(length=length),
            expected_mixture_table(length),
            sets=2,
            support=lambda: chain(orders(0), orders(length)),
        ),
        Distribution(
            SampledCopy(length=length, vocabulary=control_types),
            expected_sampled_table(length, control_types),
            sets=1,
            support=lambda: permutations(range(control_types), length),
        ),
    )
    return dict(zip(ROLES, every, strict=True))


def _copied(words: Int[Tensor, "batch word"], types: int) -> Float[Tensor, "type type"]:
    """Return C per sentence when every word is copied."""
    mask = torch.ones_like(words, dtype=torch.bool)
    return count_table(words, mask, words, mask, types, types) / len(words)


def sampled_table(distribution: Distribution, role: str, sentences: int) -> list[Measurement]:
    """Compare a sample's table with its expectation, and measure its structure."""
    task, sets = distribution.task, distribution.sets
    table = _copied(task.training_batch(0, 0, sentences).inputs, task.types + 1)  # EOS is last
    expected = append_eos(distribution.expected, task.length)
    error = standard_error(expected, task.length + 1, sentences)
    gap, random = (table - expected).abs(), error > ROUNDING
    words = table[:-1, :-1]
    blocks = words.reshape(sets, task.types // sets, sets, task.types // sets)
    spread = (blocks.amax((1, 3)) - blocks.amin((1, 3))) / words.mean()
    between = blocks.amax((1, 3))[~torch.eye(sets, dtype=torch.bool)]
    others = words.clone().fill_diagonal_(0).amax(1)
    own = words.diagonal() > others + ROUNDING

    sheet = Sheet(task.dataset, axes={"role": role})
    rows = [
        sheet.point("fixed_entries_off", float(gap[~random].max()), n=sentences),
        sheet.point("spread_within_sets", float(spread.max()), n=sentences),
        sheet.rate("own_word_largest", int(own.sum()), task.types),
    ]
    if between.numel():
        rows.append(sheet.point("between_sets", float(between.max()), n=sentences))
    entries = int(random.sum())
    if entries:
        # Bonferroni's bound holds however the entries depend on each other, and they do.
        bound = float(stats.norm.isf(SIGNIFICANT / 2 / entries))
        largest = float((gap[random] / error[random]).max())
        rows.append(sheet.point("largest_z", largest, {"bound": bound}, entries))
    return rows


def small_table(distribution: Distribution, role: str, sentences: int) -> list[Record]:
    """List all sentences of a small alphabet, then sample some for the figures; without EOS."""
    task = distribution.task
    listed = torch.tensor(list(distribution.support()))
    off = (_copied(listed, task.types) - distribution.expected).abs().max()
    table = _copied(task.training_batch(0, 0, sentences).inputs[:, :-1], task.types)
    error = 1.96 * standard_error(distribution.expected, task.length, sentences)
    drawn = Matrix.of(
        "count_per_sentence",
        task.dataset,
        table.tolist(),
        range(task.types),
        range(task.types),
        axes={"role": role},
        low=(table - error).tolist(),
        high=(table + error).tolist(),
        row_axis="input",
        column_axis="output",
        n=sentences,
    )
    sheet = Sheet(task.dataset, axes={"role": role})
    return [sheet.point("listed_sentences_off", float(off), n=len(listed)), drawn]
