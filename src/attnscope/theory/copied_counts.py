"""The count table of a copying task: of a sample, of every sentence, in expectation (snell §4.3).

Tables are per sentence. With EOS, as in training, it is the last type; without, as in the paper's
drawings (Fig. 4, 8), a table has the words alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.data.tasks import CopyTask, MixtureCopy, PermutationCopy, SampledCopy
from attnscope.theory.counts import (
    append_eos,
    count_table,
    expected_mixture_table,
    expected_permutation_table,
    expected_sampled_table,
    standard_error,
)

Table = Float[Tensor, "input_type output_type"]


class Expected(NamedTuple):
    """The expected table of a task, and the standard error of a sample's."""

    table: Table
    error: Table


@dataclass(frozen=True)
class CopiedCounts:
    """The tables of a copying task whose sentences are arrangements of distinct words."""

    task: CopyTask

    @property
    def sets(self) -> int:
        """The number of disjoint sets of words; a sentence has words of one of them."""
        return 2 if isinstance(self.task, MixtureCopy) else 1

    def expected(self, sentences: int, *, eos: bool) -> Expected:
        """Return the expected table of a sample of some sentences."""
        length = self.task.length
        if isinstance(self.task, PermutationCopy):
            table = expected_permutation_table(length)
        elif isinstance(self.task, MixtureCopy):
            table = expected_mixture_table(length)
        elif isinstance(self.task, SampledCopy):
            table = expected_sampled_table(length, self.task.types)
        else:
            raise TypeError(f"The expected table of {self.task.dataset} is not known.")
        table = append_eos(table, length) if eos else table
        return Expected(table, standard_error(table, length + eos, sentences))

    def sampled(self, sentences: int, *, eos: bool) -> Table:
        """Return the table of the first training batch of seed 0."""
        words = self.task.training_batch(0, 0, sentences).inputs
        return _copied(words if eos else words[:, :-1], self.task.types + eos)

    def listed(self) -> Table:
        """Return the table of every sentence, without EOS; feasible for small tasks only."""
        return _copied(self.every_sentence(), self.task.types)

    def every_sentence(self) -> Int[Tensor, "sentence word"]:
        """Return all sentences: the arrangements of each set's words."""
        size = self.task.types // self.sets
        found: list[tuple[int, ...]] = []
        for start in range(0, self.task.types, size):
            found += permutations(range(start, start + size), self.task.length)
        return torch.tensor(found)


def _copied(words: Int[Tensor, "batch word"], types: int) -> Table:
    """Return C per sentence when every word is copied."""
    mask = torch.ones_like(words, dtype=torch.bool)
    return count_table(words, mask, words, mask, types, types) / len(words)
