"""Count tables of copying: listed sentences give the expectation, samples scatter around it."""

from __future__ import annotations

import math

import pytest
import torch

from attnscope.data.tasks import CopyTask, MixtureCopy, PermutationCopy, SampledCopy
from attnscope.theory.copied_counts import CopiedCounts

TASKS = (
    PermutationCopy(length=4),
    MixtureCopy(length=3),
    SampledCopy(length=3, vocabulary=5),
)


@pytest.mark.parametrize(
    ("task", "count"), list(zip(TASKS, (24, 12, math.perm(5, 3)), strict=True))
)
def test_every_sentence_is_listed_once(task: CopyTask, count: int) -> None:
    sentences = [tuple(words) for words in CopiedCounts(task).every_sentence().tolist()]
    assert len(sentences) == len(set(sentences)) == count
    assert all(len(set(words)) == task.length for words in sentences)


def test_sentences_of_a_mixture_have_words_of_one_set() -> None:
    halves = CopiedCounts(MixtureCopy(length=3)).every_sentence() // 3
    assert halves.amin(1).equal(halves.amax(1))
    assert int(halves[:, 0].sum()) == 6  # as many of either set


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_all_sentences_together_have_the_expected_table(
    task: CopyTask,
) -> None:
    counts = CopiedCounts(task)
    torch.testing.assert_close(counts.listed(), counts.expected(1, eos=False).table)


@pytest.mark.parametrize("eos", [True, False])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_a_sample_is_within_five_standard_errors_of_the_expectation(
    task: CopyTask, eos: bool
) -> None:
    counts = CopiedCounts(task)
    table, expected = counts.sampled(2000, eos=eos), counts.expected(2000, eos=eos)
    assert table.shape == expected.table.shape == (task.types + eos, task.types + eos)
    assert bool(((table - expected.table).abs() <= 5 * expected.error + 1e-12).all())
