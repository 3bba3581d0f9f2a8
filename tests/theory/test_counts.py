"""Count tables against a plain loop, and the expected ones against every sentence of a task."""

from fractions import Fraction
from itertools import permutations

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor

from attnscope.theory.counts import (
    append_eos,
    count_table,
    expected_mixture_table,
    expected_permutation_table,
    expected_sampled_table,
    standard_error,
)
from cases import for_each

Sentences = list[tuple[list[int], list[int]]]
INPUT_TYPES, OUTPUT_TYPES = 5, 4


def sentences(fewest: int = 1) -> st.SearchStrategy[Sentences]:
    """Corpora of short sentence pairs, among them pairs with an empty side."""
    words = st.lists(st.integers(0, INPUT_TYPES - 1), max_size=6)
    outputs = st.lists(st.integers(0, OUTPUT_TYPES - 1), max_size=5)
    return st.lists(st.tuples(words, outputs), min_size=fewest, max_size=6)


def padded(rows: list[list[int]], extra: int = 0, fill: int = 0) -> tuple[Tensor, Tensor]:
    width = max(map(len, rows)) + extra
    ids = torch.tensor([row + [fill] * (width - len(row)) for row in rows], dtype=torch.long)
    mask = [[True] * len(row) + [False] * (width - len(row)) for row in rows]
    return ids.reshape(len(rows), width), torch.tensor(mask, dtype=torch.bool).reshape(ids.shape)


def table(corpus: Sentences, **padding: int) -> Tensor:
    inputs, targets = [list(side) for side in zip(*corpus, strict=True)]
    sides = *padded(inputs, **padding), *padded(targets, **padding)
    return count_table(*sides, INPUT_TYPES, OUTPUT_TYPES)


@given(sentences())
def test_table_is_the_triple_sum_of_equation_16(corpus: Sentences) -> None:
    expected = [[Fraction(0)] * OUTPUT_TYPES for _ in range(INPUT_TYPES)]
    for inputs, targets in corpus:
        for word in inputs:
            for output in targets:
                expected[word][output] += Fraction(1, len(inputs))
    exact = torch.tensor([[float(entry) for entry in row] for row in expected], dtype=torch.float64)
    torch.testing.assert_close(table(corpus), exact, rtol=1e-12, atol=1e-12)


@given(sentences(), st.integers(0, 5), st.sampled_from([0, 3, -1, 99]))
def test_padding_never_changes_the_count_table(corpus: Sentences, extra: int, fill: int) -> None:
    assert torch.equal(table(corpus, extra=extra, fill=fill), table(corpus))


@given(sentences(fewest=2), st.data())
def test_tables_of_batches_add_up_to_that_of_the_corpus(
    corpus: Sentences, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(1, len(corpus) - 1))
    torch.testing.assert_close(table(corpus[:cut]) + table(corpus[cut:]), table(corpus))


def test_word_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(RuntimeError):
        table([([INPUT_TYPES], [0])])


def every_sentence(sets: list[range], length: int) -> Tensor:
    return torch.tensor([words for types in sets for words in permutations(types, length)])


TASKS = {  # every sentence that copying may draw, all equally likely, and its expected table
    "permutations": (every_sentence([range(4)], 4), expected_permutation_table(4)),
    "mixture": (every_sentence([range(3), range(3, 6)], 3), expected_mixture_table(3)),
    "sampled": (every_sentence([range(5)], 3), expected_sampled_table(3, 5)),
    "one of one": (every_sentence([range(1)], 1), expected_sampled_table(1, 1)),
}


def copied(words: Tensor, types: int) -> Tensor:
    everywhere = torch.ones_like(words, dtype=torch.bool)
    return count_table(words, everywhere, words, everywhere, types, types)


@for_each("task", TASKS)
def test_expected_table_is_the_mean_over_every_possible_sentence(task: str) -> None:
    words, expected = TASKS[task]
    torch.testing.assert_close(copied(words, len(expected)) / len(words), expected)


@for_each("task", TASKS)
def test_appended_eos_is_the_last_type_of_every_sentence(task: str) -> None:
    words, expected = TASKS[task]
    types, length = len(expected), words.shape[1]
    ended = torch.cat([words, torch.full((len(words), 1), types)], 1)
    observed = copied(ended, types + 1) / len(words)
    torch.testing.assert_close(observed, append_eos(expected, length))


def test_each_single_permutation_has_the_expected_table() -> None:
    for words in TASKS["permutations"][0]:
        assert torch.equal(copied(words[None], 4), expected_permutation_table(4))


def test_control_is_informative_and_permutations_are_not() -> None:
    control = expected_sampled_table(40, 60)
    assert control.diagonal().min() > control.triu(1).max()
    assert expected_permutation_table(40).unique().numel() == 1
    torch.testing.assert_close(expected_sampled_table(40, 40), expected_permutation_table(40))


@for_each("task", TASKS)
def test_standard_error_is_the_spread_over_sentences(task: str) -> None:
    words, expected = TASKS[task]
    tables = torch.stack([copied(row[None], len(expected)) for row in words])
    spread = tables.std(0, correction=0) / 9**0.5
    torch.testing.assert_close(
        standard_error(expected, words.shape[1], sentences=9), spread, atol=1e-8, rtol=1e-9
    )


def test_sampled_table_is_within_its_standard_error() -> None:
    generator = torch.Generator().manual_seed(0)
    words = torch.rand(4000, 12, generator=generator).argsort(1)[:, :8]
    expected = expected_sampled_table(8, 12)
    deviation = (copied(words, 12) / 4000 - expected) / standard_error(expected, 8, 4000)
    # 144 entries, symmetric: the largest of 78 standard normals is beyond 4.5 once in 2000 draws.
    assert deviation.abs().max() < 4.5
    assert 0.7 < deviation.std() < 1.3
