"""What single tokens would have a classifier say, against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attnscope.analysis.token_probabilities import (
    compute_token_probabilities,
    sentence_probabilities,
)
from attnscope.data.batch import Example, collate
from attnscope.data.vocabulary import Vocabulary

LOG3 = math.log(3)
# Alone, the three words give the positive class ¾, ½ and ¼.
WORDS, SCORES, WEIGHT = [[LOG3], [0.0], [-LOG3]], [0.0, 0.0, 0.0], [[0.0], [1.0]]


def test_a_tokens_probability_is_that_of_the_predicted_label(given):
    batch = collate([Example(0, [0, 0, 1], [0], [1]), Example(1, [2, 2, 1], [0], [0])])
    found = compute_token_probabilities(given(WORDS, SCORES, WEIGHT), batch)
    assert found.predicted.tolist() == [1, 0]
    # ⅔ of a logit of ln 3.
    sure = 1 / (1 + math.exp(-2 * LOG3 / 3))
    assert found.confidence.tolist() == pytest.approx([sure, sure])
    assert found.token_mean.tolist() == pytest.approx([2 / 3, 2 / 3])
    # .75 is within .1 of .675 and .5 is not.
    assert found.token_share.tolist() == pytest.approx([2 / 3, 2 / 3])


def test_only_correctly_classified_examples_count(given):
    batch = collate([Example(0, [0, 0], [0], [1]), Example(1, [0, 1], [0], [0])])
    found = compute_token_probabilities(given(WORDS, SCORES, WEIGHT), batch)
    assert found.correct.tolist() == [True, False]
    mean = found.interval("token_mean", rng=np.random.default_rng(0))
    assert (mean.value, mean.n) == (pytest.approx(0.75), 1)
    assert np.isnan(found.of_correct("token_share")).tolist() == [False, True]


def test_padding_and_neighbours_change_nothing(classifier, reviews):
    model = classifier()
    found = compute_token_probabilities(model, reviews)
    assert found.ids.equal(reviews.ids)
    for row in (0, 5, 11):
        alone = compute_token_probabilities(model, reviews.rows(slice(row, row + 1)).trimmed())
        for name in ("confidence", "token_mean", "token_share"):
            torch.testing.assert_close(getattr(found, name)[row], getattr(alone, name)[0])


def test_a_model_whose_states_are_all_alike_has_every_token_carry_the_decision(given, reviews):
    model = given([[0.4]] * 9, list(range(9)), WEIGHT)
    found = compute_token_probabilities(model, reviews)
    assert (found.token_share == 1).all()
    torch.testing.assert_close(found.token_mean, found.confidence)


def test_padding_carries_no_decision_though_many_labels_leave_each_little(given):
    # Every label has ¹⁄₂₀, which is near the 0 that stands at padding.
    model = given([[0.0]] * 3, SCORES, [[0.0]] * 20)
    batch = collate([Example(0, [0, 1, 2, 0], [0], [0]), Example(1, [1], [0], [0])])
    assert compute_token_probabilities(model, batch).token_share.tolist() == [1, 1]


def test_the_logit_of_a_sentence_is_the_mean_of_its_words_logits_under_attention(
    classifier, reviews
):
    # Eq. 9.
    words = Vocabulary(tuple("abcdefghi"))
    labels = Vocabulary(("no", "yes"))
    for sentence in sentence_probabilities(classifier(), reviews, words, labels):
        each = np.log(np.array(sentence.probabilities) / (1 - np.array(sentence.probabilities)))
        whole = math.log(sentence.confidence / (1 - sentence.confidence))
        assert float(each @ np.array(sentence.attention)) == pytest.approx(whole, abs=1e-9)


def test_sentences_come_in_their_order_with_words_and_label(given):
    batch = collate([Example(4, [2, 2, 1], [0], [1]), Example(9, [0], [0], [1])])
    words, labels = Vocabulary(("good", "so", "bad")), Vocabulary(("n", "p"))
    found = sentence_probabilities(given(WORDS, SCORES, WEIGHT), batch, words, labels)
    assert [s.words for s in found] == [("bad", "bad", "so"), ("good",)]
    assert [s.label for s in found] == ["n", "p"]
    assert found[0].probabilities == pytest.approx((0.75, 0.75, 0.5))
    assert found[0].attention == pytest.approx((1 / 3,) * 3)
    assert found[1].confidence == pytest.approx(0.75)
