"""Links and their error rate: by hand, against nltk, and there and back in Pharaoh's format."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from nltk.translate import Alignment, alignment_error_rate
from torch import Tensor

from attnscope.analysis.alignment import (
    alignment_error,
    alignment_precision,
    alignment_recall,
    diagonal_links,
    link_sets,
    link_tensor,
    links_of,
    read_pharaoh,
    to_pharaoh,
)
from attnscope.errors import UsageError
from attnscope.theory.ibm1 import IbmModel1, reverse
from attnscope.theory.initial_derivative import PaddedPairs
from cases import for_each

OUT, INP = 4, 5
link_lists = st.lists(
    st.frozensets(st.tuples(st.integers(0, INP - 1), st.integers(0, OUT - 1))),
    min_size=1,
    max_size=5,
)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def tensors(*alignments: list[frozenset[tuple[int, int]]]) -> list[Tensor]:
    return [link_tensor(links, OUT, INP) for links in alignments]


def test_rates_of_an_example_by_hand() -> None:
    # A = {0-0 1-1 2-2}, S = {0-0 3-1}, P = S + {1-1}: one sure hit, two possible ones.
    links, sure, possible = tensors(
        [frozenset({(0, 0), (1, 1), (2, 2)})], [frozenset({(0, 0), (3, 1)})], [frozenset({(1, 1)})]
    )
    assert alignment_error(links, sure, possible, rng=rng()).value == pytest.approx(1 - 3 / 5)
    assert alignment_precision(links, sure, possible, rng=rng()).value == pytest.approx(2 / 3)
    assert alignment_recall(links, sure, rng=rng()).value == pytest.approx(1 / 2)


def test_counts_are_summed_over_sentences_before_they_are_divided() -> None:
    links, sure = tensors(
        [frozenset({(0, 0)}), frozenset({(0, 0), (1, 1), (2, 2)})],
        [frozenset({(0, 0)}), frozenset({(4, 3)})],
    )
    found = alignment_error(links, sure, sure, rng=rng())
    assert found.value == pytest.approx(1 - 2 / 6)  # the mean of the sentences would be 1/2
    assert found.n == 2


@given(link_lists, st.randoms(use_true_random=False))
def test_error_rate_is_that_of_nltk(sure: list, random) -> None:
    cells = [(s, t) for s in range(INP) for t in range(OUT)]
    more = [links | set(random.sample(cells, 5)) for links in sure]
    guess = [frozenset(random.sample(cells, random.randrange(1, 9))) for _ in sure]
    links, certain, possible = tensors(guess, sure, more)
    for n in range(len(sure)):
        row = slice(n, n + 1)
        ours = alignment_error(links[row], certain[row], possible[row], rng=rng()).value
        theirs = alignment_error_rate(*map(Alignment, (sure[n], guess[n], more[n])))
        assert ours == pytest.approx(theirs)


def test_perfect_links_have_no_error_and_a_closed_interval() -> None:
    (gold,) = tensors([frozenset({(0, 0), (1, 2)}), frozenset({(3, 1)})])
    found = alignment_error(gold, gold, gold, rng=rng())
    assert found.value == 0
    assert (found.low, found.high) == (0, 0)


def test_interval_over_sentences_covers_the_value_and_needs_two() -> None:
    generator = torch.Generator().manual_seed(0)
    links, sure = torch.rand(2, 60, OUT, INP, generator=generator) < 0.3
    found = alignment_error(links, sure, sure, rng=rng())
    assert 0 < found.low < found.value < found.high < 1
    assert np.isnan(alignment_error(links[:1], sure[:1], sure[:1], rng=rng()).low)


def test_without_any_link_the_rate_is_undefined() -> None:
    none = torch.zeros(2, OUT, INP, dtype=torch.bool)
    assert np.isnan(alignment_error(none, none, none, rng=rng()).value)


def test_each_real_output_word_is_linked_to_its_first_highest_real_word() -> None:
    values = torch.tensor([[[0.1, 0.7, 0.7, 9.0], [0.5, 0.2, 0.3, 9.0], [1.0, 1.0, 1.0, 9.0]]])
    links = links_of(
        values, torch.tensor([[True, True, True, False]]), torch.tensor([[True, True, False]])
    )
    assert link_sets(links) == [frozenset({(1, 0), (0, 1)})]


def test_a_word_that_does_not_exceed_null_stays_unlinked() -> None:
    values = torch.tensor([[[0.4, 0.1], [0.2, 0.3], [0.0, 0.0]]])
    real = torch.ones(1, 3, dtype=torch.bool)
    assert link_sets(links_of(values, real[:, :2], real, 1 - values.sum(-1))) == [frozenset()]
    null = torch.tensor([[0.39, 0.3, 0.0]])
    assert link_sets(links_of(values, real[:, :2], real, null)) == [frozenset({(0, 0)})]
    assert link_sets(links_of(values, real[:, :2], real, 0.25)) == [frozenset({(0, 0), (1, 1)})]


def test_links_of_a_sentence_without_input_are_none() -> None:
    links = links_of(torch.ones(1, 2, 3), torch.zeros(1, 3, dtype=torch.bool), torch.ones(1, 2) > 0)
    assert not links.any()


def test_model_1_aligns_the_toy_corpus_and_intersection_is_an_and() -> None:
    # das Haus / the house, das Buch / the book, ein Buch / a book
    sources = torch.tensor([[0, 1], [0, 2], [3, 2]])
    targets = torch.tensor([[0, 1], [0, 2], [3, 2]])
    real = torch.ones(3, 2, dtype=torch.bool)
    forth = PaddedPairs(sources, real, targets, real)

    def aligned(pairs: PaddedPairs) -> Tensor:
        shares = IbmModel1.fit(pairs, 4, 4, iterations=30, null=False).alignment(pairs)
        return links_of(shares, real, real, 1 - shares.sum(-1))

    both = aligned(forth) & aligned(reverse(forth)).mT
    assert to_pharaoh(both) == "0-0 1-1\n" * 3


@given(link_lists)
def test_pharaoh_there_and_back(links: list) -> None:
    text = to_pharaoh(link_tensor(links, OUT, INP))
    assert text.count("\n") == len(links)
    assert read_pharaoh(text) == links


def test_pharaoh_names_the_source_first_and_counts_from_zero() -> None:
    links = torch.zeros(2, 3, 4, dtype=torch.bool)
    links[0, 2, 1] = links[0, 0, 3] = True
    assert to_pharaoh(links) == "1-2 3-0\n\n"
    assert to_pharaoh(links.mT) == "0-3 2-1\n\n"


@for_each("word", ["1", "1-", "-1-2", "1-2-3", "a-b", "1p2", "1–2", "²-1"])
def test_malformed_links_are_refused_with_their_line(word: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_pharaoh(f"0-0\n0-1 {word}\n", "gold.txt")
    assert str(caught.value).startswith(f"gold.txt, line 2: {word!r} is not a link")


@for_each("link", [(5, 0), (0, 4), (-1, 0), (0, -1)])
def test_links_outside_the_sentence_are_refused(link: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match=f"Link {link[0]}-{link[1]} of sentence 1 is outside"):
        link_tensor([[(0, 0)], [link]], OUT, INP)


def test_diagonal_is_the_identity_where_lengths_are_equal() -> None:
    # Of two words and four the first half goes to the first word.
    # Of three words and two the second half has its middle in the third word.
    links = diagonal_links(torch.tensor([3, 2, 1, 3]), torch.tensor([3, 4, 1, 2]))
    assert links.shape == (4, 4, 3)
    assert link_sets(links) == [
        {(0, 0), (1, 1), (2, 2)},
        {(0, 0), (0, 1), (1, 2), (1, 3)},
        {(0, 0)},
        {(0, 0), (2, 1)},
    ]
