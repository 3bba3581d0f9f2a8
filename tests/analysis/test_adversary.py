"""The search for another attention with the same output, against optima known in closed form."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from attnscope.analysis import adversary
from attnscope.analysis.adversary import Search, find_adversaries
from attnscope.data.batch import Example, collate
from attnscope.errors import UsageError

# Larger steps than the published ones: what is tested is the optimum, not the pace.
QUICK = Search(steps=200, lr=0.1)


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    return float(jensenshannon(p, q) ** 2)


def farthest(logits: np.ndarray, own: np.ndarray, epsilon: float) -> float:
    """Return the largest JSD from weights with |Δp| ≤ ε, for two classes and tokens' logits.

    Among weights with the output in an interval, a convex function is largest at a corner: all on
    one token, or on two that together meet an end of the interval.
    """
    probability = 1 / (1 + math.exp(-float(own @ logits)))
    ends = [min(max(probability + side * epsilon, 1e-12), 1 - 1e-12) for side in (-1, 1)]
    low, high = (math.log(end / (1 - end)) for end in ends)
    corners = [np.eye(len(own))[i] for i in range(len(own)) if low <= logits[i] <= high]
    for end in (low, high):
        for i, j in permutations(range(len(own)), 2):
            if logits[i] < end < logits[j]:
                share = (end - logits[i]) / (logits[j] - logits[i])
                corners.append((1 - share) * np.eye(len(own))[i] + share * np.eye(len(own))[j])
    return max(divergence(corner, own) for corner in corners)


def test_two_tokens_that_read_alike_may_have_any_attention(given):
    # Own weights ¾ and ¼: the farthest are (0, 1), at H(3/8, 5/8) − ½ H(3/4, 1/4).
    model = given([[1.0], [1.0]], [math.log(3), 0.0], [[0.0], [0.7]])
    found = find_adversaries(model, collate([Example(0, [0, 1], [0], [1])]), QUICK)
    expected = divergence(np.array([0.0, 1.0]), np.array([0.75, 0.25]))
    assert float(found.divergence[0]) == pytest.approx(expected, abs=0.01)
    assert float(found.divergence[0]) <= expected + 1e-9
    assert float(found.distance[0]) == pytest.approx(0, abs=1e-12)
    assert found.score.values[0, 0, 1] > 0.95


def test_an_output_that_follows_attention_leaves_nothing_to_find(given):
    # One token says yes and one no, both for certain: only the model's own weights keep the output.
    model = given([[-40.0], [40.0]], [0.0, 0.0], [[0.0], [1.0]])
    batch = collate([Example(0, [0, 1], [0], [1])])
    found = find_adversaries(model, batch, QUICK)
    # |Δp| ≤ .01 allows a logit of ±.04, weights of ½ ± .0005, a JSD of about .0005² / 2.
    assert float(found.divergence[0]) < 1e-6
    assert float(found.distance[0]) <= QUICK.epsilon


def test_the_search_comes_near_the_exact_optimum_and_never_beyond_it(given):
    stream = np.random.default_rng(4)
    types, count = 24, 6
    states, scores = stream.normal(size=types), stream.normal(size=types)
    model = given(states[:, None].tolist(), scores.tolist(), [[0.0], [1.0]])
    words = [stream.choice(types, size=length, replace=False) for length in range(3, 3 + count)]
    examples = [Example(n, part, [0], [1]) for n, part in enumerate(words)]
    search = Search(steps=500, lr=0.05, restarts=8)
    found = find_adversaries(model, collate(examples), search)
    for n, part in enumerate(words):
        own = np.exp(scores[part]) / np.exp(scores[part]).sum()
        best = farthest(states[part], own, search.epsilon)
        assert float(found.divergence[n]) <= best + 1e-6
        assert float(found.divergence[n]) >= 0.8 * best


def test_what_is_told_of_an_adversary_is_true_of_its_weights(classifier, reviews):
    model = classifier()
    found = find_adversaries(model, reviews, Search(steps=20))
    own = model.trace(reviews)
    weights = found.score.values[:, None]
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(reviews), 1, 1).double())
    context = weights @ own.sites["cross"].values
    output = model.readout(context.transpose(1, 2), own.query).softmax(-1)
    moved = (output - own.logits.softmax(-1)).abs().sum(-1)[:, 0] / 2
    torch.testing.assert_close(moved, found.distance)
    assert (found.distance <= 0.01).all()
    for row, length in enumerate(reviews.input_lengths.tolist()):
        assert not found.score.values[row, 0, length:].any()
        before = own.sites["cross"].weights[row, 0, 0, :length].numpy()
        told = float(found.divergence[row])
        assert told == pytest.approx(
            divergence(found.score.values[row, 0, :length].numpy(), before), abs=1e-9
        )


def test_an_instance_comes_out_as_if_it_were_searched_alone(classifier, reviews):
    model, search = classifier(), Search(steps=15)
    together = find_adversaries(model, reviews, search)
    in_parts = find_adversaries(model, reviews, search, positions=20)
    torch.testing.assert_close(together.divergence, in_parts.divergence)
    torch.testing.assert_close(together.score.values, in_parts.score.values)
    row = slice(4, 5)
    alone = find_adversaries(model, reviews.rows(row).trimmed(), search)
    torch.testing.assert_close(together.divergence[row], alone.divergence)


def test_a_single_word_leaves_no_choice(given):
    model = given([[1.0], [2.0]], [0.0, 0.0], [[0.0], [1.0]])
    found = find_adversaries(model, collate([Example(0, [1], [0], [1])]), QUICK)
    assert (float(found.divergence[0]), float(found.distance[0])) == (0, 0)


def test_more_steps_and_restarts_never_find_less(given, reviews):
    stream = np.random.default_rng(0)
    model = given(stream.normal(size=(9, 1)).tolist(), [0.0] * 9, [[0.0], [2.0]])
    few, more = (find_adversaries(model, reviews, Search(steps=steps)) for steps in (5, 40))
    assert (more.divergence >= few.divergence).all()


def test_the_models_parameters_get_no_gradient(classifier, reviews):
    model = classifier().requires_grad_(True)
    find_adversaries(model, reviews, Search(steps=2))
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_search_without_a_step_is_one_sentence(given, reviews):
    model = given([[1.0]] * 9, [0.0] * 9, [[0.0], [1.0]])
    with pytest.raises(UsageError, match="at least one restart and one step"):
        find_adversaries(model, reviews, Search(steps=0))


def test_restarts_are_kept_apart_by_the_mean_over_all_ordered_pairs():
    # Published code: the mean of the K × K matrix of JSD between restarts, its diagonal included.
    stream = torch.Generator().manual_seed(0)
    weights = torch.rand(5, 2, 1, 1, 4, dtype=torch.float64, generator=stream).softmax(-1)
    rows = weights[:, :, 0, 0].numpy()
    expected = [
        np.mean([[divergence(p, q) for q in rows[:, text]] for p in rows[:, text]])
        for text in range(2)
    ]
    pairs = adversary._pairs(5, torch.device("cpu"))
    mask, rows = torch.ones(2, 4, dtype=torch.bool), torch.ones(2, 1, dtype=torch.float64)
    found = adversary._apart(weights, pairs, mask, rows)
    assert found.tolist() == pytest.approx(expected)
