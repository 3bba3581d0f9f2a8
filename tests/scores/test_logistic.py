"""Logistic weights on the package's own reviews, and against scikit-learn's own predictions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from attnscope.data.batch import Example, collate
from attnscope.data.corpus import GrammarSentiment
from attnscope.errors import UsageError
from attnscope.scores.logistic import STRENGTHS, logistic_lexicon
from cases import for_each


def reviews():
    source = GrammarSentiment()
    return source.training_examples[:400], source.validation_examples[:200], source.input_words


def example(words, label, number=0):
    return Example(number, words, [0], [label])


def test_the_nineteen_strengths_are_the_papers():
    assert len(STRENGTHS) == 19
    assert STRENGTHS[:4] == (1e-5, 5e-5, 1e-4, 5e-4)
    assert STRENGTHS[-3:] == (1e3, 5e3, 1e4)
    assert list(STRENGTHS) == sorted(STRENGTHS)


def test_weights_are_scikit_learns_of_word_shares_signed_by_the_label():
    train, val, words = reviews()
    fit = logistic_lexicon(train, val, len(words), strengths=(5.0,))
    counter = CountVectorizer(analyzer=lambda e: e.inputs, vocabulary=range(len(words)))
    shares = normalize(counter.transform(train).astype(float), norm="l1")
    labels = [e.targets[0] for e in train]
    model = LogisticRegression(C=5.0, max_iter=1000).fit(shares, labels)
    expected = torch.tensor(np.stack([-model.coef_[0], model.coef_[0]], 1)).float()
    torch.testing.assert_close(fit.lexicon.table, expected, rtol=1e-4, atol=1e-4)
    assert fit.lexicon.name == "logistic"
    shares = normalize(counter.transform(val).astype(float), norm="l1")
    assert fit.accuracies == {5.0: model.score(shares, [e.targets[0] for e in val])}


def test_words_of_praise_weigh_for_the_positive_label_and_against_the_negative():
    train, val, words = reviews()
    fit = logistic_lexicon(train, val, len(words))
    assert fit.accuracies[fit.strength] == max(fit.accuracies.values()) > 0.8
    assert fit.strength == min(
        c for c, a in fit.accuracies.items() if a == max(fit.accuracies.values())
    )
    batch = collate(val)
    score = fit.lexicon.score(batch)
    # Summed with the intercept left out: most reviews still come out on their side.
    assert (score.values.sum((1, 2)) > 0).double().mean() > 0.8
    table = fit.lexicon.table
    assert table[:, 0].equal(-table[:, 1])


def test_examples_held_as_arrays_give_the_same():
    train, val, words = reviews()
    held = [
        Example(e.id, np.array(e.inputs, np.int32), [0], np.array(e.targets, np.int32))
        for e in train
    ]
    one, other = (logistic_lexicon(part, val, len(words), (1.0,)) for part in (train, held))
    assert one.lexicon.table.equal(other.lexicon.table)


def test_among_equally_good_strengths_the_smallest_is_taken():
    train = [example([0, 0], 1), example([1], 0), example([0], 1), example([1, 1, 1], 0)]
    fit = logistic_lexicon(train, train, 3, strengths=(100.0, 1.0, 10.0))
    assert set(fit.accuracies.values()) == {1.0}
    assert fit.strength == 1.0
    assert fit.unfinished == ()
    assert not fit.lexicon.table[2].any()  # A word never seen weighs nothing.


@for_each(
    ("train", "message"),
    [
        ([example([0], 1), example([1], 1)], "examples of both labels"),
        ([example([0], 1), example([1], 2, 7)], r"labels 0 and 1: example 7 has \[2\]"),
        ([example([0], 1), example([], 0)], "at least one word"),
        ([], "at least one word"),
    ],
    ids=["one-label", "third-label", "no-word", "nothing"],
)
def test_what_cannot_be_fitted_is_one_sentence(train, message):
    val = [example([0], 1), example([1], 0)]
    with pytest.raises(UsageError, match=message):
        logistic_lexicon(train, val, 2)
