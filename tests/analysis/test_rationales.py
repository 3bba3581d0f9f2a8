"""How well scores find marked words: against scikit-learn, and chance against all orders."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from sklearn.metrics import average_precision_score, f1_score

from attnscope.analysis.rationales import (
    average_precision,
    chance_average_precision,
    own_length_f1,
    prevalence,
    rationale_agreement,
)
from attnscope.data.rationales import Annotated
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.saliency import Saliency
from cases import for_each

# Few levels, so that ties are common; a position is value, marked, and a word or not.
POSITIONS = st.lists(
    st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), min_size=1, max_size=12
).filter(lambda row: any(marked and word for _, marked, word in row))
DOCUMENTS = st.lists(POSITIONS, min_size=1, max_size=4)


def padded(documents: list) -> list[torch.Tensor]:
    """Return values, marks and words, padded with what must not be looked at."""
    width = max(len(row) for row in documents)
    rows = [row + [(9, True, False)] * (width - len(row)) for row in documents]
    array = np.array(rows)
    return [
        torch.from_numpy(array[..., 0]).double(),
        torch.from_numpy(array[..., 1]).bool(),
        torch.from_numpy(array[..., 2]).bool(),
    ]


@given(DOCUMENTS)
def test_average_precision_is_scikit_learns_of_each_document(documents):
    values, marks, words = padded(documents)
    found = average_precision(values, marks, words)
    for row in range(len(documents)):
        real = words[row]
        expected = average_precision_score(marks[row, real].numpy(), values[row, real].numpy())
        assert float(found[row]) == pytest.approx(expected)


@given(st.permutations(range(8)), st.integers(1, 255))
def test_own_length_f1_is_that_of_the_highest_words(order, marked):
    values = torch.tensor([order], dtype=torch.float64)
    marks = torch.tensor([[bool(marked >> bit & 1) for bit in range(8)]])
    everywhere = torch.ones_like(marks)
    top = values.argsort(descending=True)[:, : int(marks.sum())]
    picked = torch.zeros_like(marks).scatter(1, top, True)
    expected = f1_score(marks[0].numpy(), picked[0].numpy(), zero_division=0)
    assert float(own_length_f1(values, marks, everywhere)[0]) == pytest.approx(expected)


def test_a_tie_at_the_last_pick_counts_by_its_expectation():
    # Two are picked: the first for certain, then one of three equals, of which one is marked.
    values = torch.tensor([[5.0, 1.0, 1.0, 1.0, 0.0]])
    marks = torch.tensor([[True, False, True, False, False]])
    found = own_length_f1(values, marks, torch.ones_like(marks))
    assert float(found[0]) == pytest.approx((1 + 1 / 3) / 2)


@given(DOCUMENTS)
def test_a_score_that_is_the_same_everywhere_is_exactly_at_chance(documents):
    values, marks, words = padded(documents)
    flat = torch.zeros_like(values)
    torch.testing.assert_close(own_length_f1(flat, marks, words), prevalence(marks, words))
    torch.testing.assert_close(average_precision(flat, marks, words), prevalence(marks, words))


@for_each(("marked", "count"), [(1, 1), (1, 5), (2, 5), (4, 5), (5, 5), (3, 6)])
def test_chance_is_the_mean_over_all_orders(marked, count):
    marks = torch.arange(count) < marked
    orders = torch.tensor(list(permutations(range(count))), dtype=torch.float64)
    every, words = marks.expand_as(orders), torch.ones_like(orders, dtype=torch.bool)
    by_chance = chance_average_precision(marks[None], words[:1])[0]
    torch.testing.assert_close(average_precision(orders, every, words).mean(), by_chance)
    share = prevalence(marks[None], words[:1])[0]
    torch.testing.assert_close(own_length_f1(orders, every, words).mean(), share)
    assert float(share) == pytest.approx(marked / count)


def test_a_document_without_a_mark_has_no_number():
    values, words = torch.tensor([[1.0, 2.0]]), torch.ones(1, 2, dtype=torch.bool)
    none = torch.zeros_like(words)
    numbers = average_precision(values, none, words), own_length_f1(values, none, words)
    assert all(number.isnan().all() for number in numbers)


def test_scores_are_compared_with_marks_document_by_document(classifier, reviews):
    stream = torch.Generator().manual_seed(0)
    marks = (torch.rand(reviews.inputs.shape, generator=stream) < 0.4) & reviews.input_mask
    texts = Annotated(reviews, reviews.input_mask, marks, {})
    rules = [Attention(), LexicalProbe(), Saliency()]
    found = rationale_agreement(classifier(), texts, rules)
    parts = rationale_agreement(classifier(), texts, rules, positions=15)
    assert set(found) == {"attention", "lexical_probe", "saliency"}
    weights = classifier().trace(reviews).sites["cross"].weights[:, 0, 0]
    torch.testing.assert_close(
        found["attention"].average_precision,
        average_precision(weights, marks, reviews.input_mask),
        equal_nan=True,
    )
    for name, agreement in found.items():
        torch.testing.assert_close(agreement.f1, parts[name].f1, equal_nan=True)
        expected = prevalence(marks, reviews.input_mask)
        torch.testing.assert_close(agreement.chance_f1, expected, equal_nan=True)
    interval = found["saliency"].interval("f1", rng=np.random.default_rng(0))
    assert interval.n == int(marks.any(1).sum())
    assert interval.value == pytest.approx(float(found["saliency"].f1.nanmean()))
