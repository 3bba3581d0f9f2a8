"""Fragility, adversaries and token probabilities of models that write several words.

A readout is the fast way; the same numbers come from running the model again, which is all that a
watched model of somebody else offers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnscope.analysis.adversary import Search, find_adversaries
from attnscope.analysis.fragility import compute_fragility, fragility_intervals
from attnscope.analysis.token_probabilities import compute_token_probabilities
from attnscope.data.tasks import SampledCopy
from attnscope.errors import UsageError
from attnscope.models.seq2seq import Seq2SeqSpec

COPYING = SampledCopy(length=4, vocabulary=6)


class WithoutReadout:
    """A model whose output can only be had by running it."""

    def __init__(self, model):
        self.model = model

    def trace(self, batch, attention=None, generator=None):
        return replace(self.model.trace(batch, attention, generator), query=None)

    def readout(self, context, query):
        raise AssertionError("there is no readout")


@pytest.fixture(scope="module")
def own():
    model = Seq2SeqSpec(embedding=5, hidden=4, heads=2).build(COPYING, 0).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)  # As initialised, attention is all but uniform.
    return model.requires_grad_(False), COPYING.evaluation_batch(7)


def close(one, other):
    torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_fragility_of_output_words_is_the_same_with_and_without_a_readout(own):
    model, batch = own
    fast, slow = (compute_fragility(m, batch, 3) for m in (model, WithoutReadout(model)))
    assert len(fast.ids) == int(batch.target_mask.sum())
    for condition in ("trained", "uniform", "permuted"):
        assert fast.answers[condition].equal(slow.answers[condition])
        close(fast.probabilities[condition], slow.probabilities[condition])
    assert 0 < fast.changed("permuted").mean() < 1


def test_token_probabilities_of_output_words_are_the_same_with_and_without_a_readout(own):
    model, batch = own
    fast, slow = (compute_token_probabilities(m, batch) for m in (model, WithoutReadout(model)))
    assert fast.predicted.equal(slow.predicted)
    for name in ("confidence", "token_mean", "token_share"):
        close(getattr(fast, name), getattr(slow, name))
    mean = fast.interval("token_mean", rng=np.random.default_rng(0))
    assert mean.value == pytest.approx(float(fast.token_mean[fast.correct].mean()))
    assert mean.n == len(fast.ids[fast.correct].unique())  # examples, not words


def test_adversaries_of_output_words_are_the_same_with_and_without_a_readout(own):
    model, batch = own
    search = Search(epsilon=0.05, restarts=2, steps=10, lr=0.05, spread=0.3, own_start=True)
    fast, slow = (find_adversaries(m, batch, search) for m in (model, WithoutReadout(model)))
    assert float(fast.divergence.max()) > 0.01
    for name in ("divergence", "distance"):
        close(getattr(fast, name), getattr(slow, name))
    close(fast.score.values, slow.score.values)


def test_words_stay_in_the_order_of_examples_and_positions(own):
    model, batch = own
    turned = batch.rows(torch.arange(len(batch)).flip(0))
    there, back = (compute_fragility(model, each, 2) for each in (batch, turned))
    for example in batch.ids.tolist():
        one, other = (f.probabilities["permuted"][:, f.ids == example] for f in (there, back))
        close(one, other)
    expected = batch.targets[batch.target_mask]
    assert there.labels.equal(expected)


def test_f1_of_output_words_is_refused(own):
    model, batch = own
    with pytest.raises(UsageError, match=r"take Fragility\.changed"):
        fragility_intervals([compute_fragility(model, batch, 1)], rng=np.random.default_rng(0))
