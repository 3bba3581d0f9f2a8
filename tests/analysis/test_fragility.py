"""Trained, uniform and permuted attention from one encoding, against single passes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from attnscope.analysis.fragility import (
    Fragility,
    compute_fragility,
    difference_intervals,
    extra_drops,
    fragility_intervals,
)
from attnscope.analysis.replaced_attention import labelled_traces, outputs_under
from attnscope.data.batch import Example, collate
from attnscope.errors import MissingCapability, UsageError
from attnscope.models.intervention import Permuted, Uniform
from attnscope.models.trace import Trace


def same_decisions(found: Fragility, condition: str, draw: int, single: Trace) -> None:
    """Compare with a single pass, to rounding."""
    probabilities = single.logits[single.batch.target_mask].softmax(-1)
    right = probabilities.gather(-1, found.labels[:, None])[:, 0]
    torch.testing.assert_close(found.probabilities[condition][draw], right, rtol=0, atol=1e-12)
    assert found.answers[condition][draw].equal(probabilities.argmax(-1))


def test_a_permutation_is_that_of_a_single_pass_under_its_rule(classifier, reviews):
    model = classifier()
    found = compute_fragility(model, reviews, 4, seed=5)
    for draw in range(4):
        single = model.trace(reviews, {"cross": Permuted(seed=5 + draw)})
        same_decisions(found, "permuted", draw, single)


def test_trained_and_uniform_attention_are_those_of_single_passes(classifier, reviews):
    model = classifier()
    found = compute_fragility(model, reviews, 1)
    same_decisions(found, "trained", 0, model.trace(reviews))
    same_decisions(found, "uniform", 0, model.trace(reviews, {"cross": Uniform()}))


def test_the_inputs_are_encoded_once(classifier, reviews):
    model, calls = classifier(), Counter()
    model.encoder.register_forward_hook(lambda *_: calls.update(["encoded"]))
    compute_fragility(model, reviews, 20)
    assert calls["encoded"] == 1


def test_examples_stay_in_their_order_with_their_labels(classifier, reviews):
    found = compute_fragility(classifier(), reviews, 2)
    assert found.ids.equal(reviews.ids)
    assert found.labels.equal(reviews.targets[:, 0])
    alone = compute_fragility(classifier(), reviews.rows(slice(3, 4)), 2)
    torch.testing.assert_close(
        found.probabilities["permuted"][:, 3:4], alone.probabilities["permuted"]
    )


def test_a_model_that_does_not_look_at_its_attention_is_not_fragile(given, reviews):
    model = given([[1.0, -1.0]] * 9, list(range(9)), [[1.0, 0.0], [0.0, 1.0]])
    found = fragility_intervals(
        [compute_fragility(model, reviews, 3)], rng=np.random.default_rng(0)
    )
    for name in ("uniform_change", "permuted_change"):
        assert {(i.value, i.low, i.high) for i in found[name].values()} == {(0.0, 0.0, 0.0)}


def test_a_model_that_rests_on_one_word_falls_under_uniform_attention(given):
    # Word 1 decides and has all attention; the two others speak for the other label.
    states = [[1.0, 0.0], [0.0, 3.0], [1.5, 0.0]]
    model = given(states, [0.0, 9.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    positive = [Example(n, [1] + [0, 2] * 3, [0], [1]) for n in range(5)]
    negative = [Example(n + 5, [0, 2], [0], [0]) for n in range(5)]
    found = fragility_intervals(
        [compute_fragility(model, collate(positive + negative), 20)], rng=np.random.default_rng(0)
    )
    assert found["trained"]["f1"].value == 1
    assert found["uniform"]["f1"].value == 0
    assert found["uniform_change"]["f1"].value == -1
    assert found["uniform"]["accuracy"].value == 0.5
    assert 0 < found["permuted"]["f1"].value < 1


def test_seeds_are_averaged_and_must_share_their_examples(classifier, reviews):
    seeds = [compute_fragility(classifier(seed), reviews, 3) for seed in range(3)]
    pooled = fragility_intervals(seeds, rng=np.random.default_rng(0), resamples=50)
    alone = [fragility_intervals([s], rng=np.random.default_rng(0), resamples=2) for s in seeds]
    for condition in ("trained", "permuted", "permuted_change"):
        mean = np.mean([a[condition]["f1"].value for a in alone])
        assert pooled[condition]["f1"].value == pytest.approx(mean)
    other = compute_fragility(classifier(), reviews.rows(slice(5)), 3)
    with pytest.raises(UsageError, match="not measured on the same examples"):
        fragility_intervals([seeds[0], other], rng=np.random.default_rng(0))


def test_of_two_labels_the_positive_one_needs_more_than_half(given):
    model = given([[0.0], [0.04], [-0.4]], [0.0] * 3, [[0.0], [1.0]])  # .5, .51 and .4
    found = compute_fragility(model, collate([Example(n, [n], [0], [0]) for n in range(3)]), 1)
    assert found.answers["trained"].tolist() == [[0, 1, 0]]


def test_other_weights_are_read_as_the_model_would_read_them(classifier, reviews):
    model = classifier()
    trace = model.trace(reviews)
    under = torch.stack(
        [model.trace(reviews, {"cross": rule}).sites["cross"].weights for rule in (Uniform(),) * 2]
    )
    read = outputs_under(model, trace, under)
    assert read.shape == (2, len(reviews), 1, 2)
    torch.testing.assert_close(read[1], model.trace(reviews, {"cross": Uniform()}).logits)


def test_what_cannot_be_read_is_one_sentence(given, reviews):
    class Other(given):
        def trace(self, batch, attention=None, generator=None):
            trace = super().trace(batch, attention, generator)
            return replace(trace, logits=trace.logits + 1)

    arguments = ([[1.0], [2.0]] * 4 + [[0.0]], [0.0] * 9, [[1.0], [2.0]])
    with pytest.raises(MissingCapability, match="not the model's output"):
        compute_fragility(Other(*arguments), reviews)
    with pytest.raises(UsageError, match="permutations=0"):
        compute_fragility(given(*arguments), reviews, 0)
    sentences = collate([Example(0, [1, 2], [0, 1], [1, 1])])
    with pytest.raises(UsageError, match="A label per example"):
        list(labelled_traces(given(*arguments), sentences))


def _answers(trained: list[int], uniform: list[int]) -> Fragility:
    """Predictions on four texts of labels 0, 1, 0, 1."""
    both = {"trained": trained, "uniform": uniform}
    answers = {name: torch.tensor([said]) for name, said in both.items()}
    return Fragility(torch.arange(4), torch.tensor([0, 1, 0, 1]), answers, {})


def test_a_model_is_compared_with_another_seed_by_seed():
    right, wrong, one = [0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 0]  # F1 of 1, 0 and 2/3
    own = [_answers(right, wrong), _answers(right, one)]
    base = [_answers(right, one), _answers(one, one)]
    assert own[1].metric("uniform") == pytest.approx(2 / 3)
    assert extra_drops(own, base, "uniform") == pytest.approx([1 - 1 / 3, 1 / 3])
    found = difference_intervals(own, base, rng=np.random.default_rng(0))
    assert found["f1"].value == pytest.approx((0 + 1 / 3) / 2)
    assert found["accuracy"].value == pytest.approx((0 + 1 / 4) / 2)
    other = Fragility(torch.arange(4) + 1, own[0].labels, own[0].answers, {})
    with pytest.raises(UsageError, match="not measured on the same examples"):
        difference_intervals(own, [other, other], rng=np.random.default_rng(0))
