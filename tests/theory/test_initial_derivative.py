"""The derivative at initialisation against autograd, an Euler step, and its limit."""

from math import log

import pytest
import torch
from torch import Tensor

from attnscope.theory.counts import count_table
from attnscope.theory.initial_derivative import (
    InitialVelocities,
    PaddedPairs,
    draw_proxy,
    logit_velocity,
    predicted_logit_velocity,
    predicted_probability_velocity,
    probability_velocity,
    random_corpus,
)
from cases import for_each

INPUT_TYPES, OUTPUT_TYPES = 6, 5


@pytest.fixture(scope="module")
def pairs() -> PaddedPairs:
    return random_corpus(torch.Generator().manual_seed(0), INPUT_TYPES, OUTPUT_TYPES, pairs=8)


@pytest.fixture(scope="module")
def counts(pairs: PaddedPairs) -> Tensor:
    return count_table(*pairs, INPUT_TYPES, OUTPUT_TYPES)


def proxy(seed: int, d: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return draw_proxy(generator, OUTPUT_TYPES, d), draw_proxy(generator, INPUT_TYPES, d)


def loss(weights: Tensor, embeddings: Tensor, pairs: PaddedPairs) -> Tensor:
    """Eq. 14 word by word."""
    total = torch.zeros((), dtype=torch.float64)
    for inputs, input_mask, targets, target_mask in zip(*pairs, strict=True):
        logits = embeddings[inputs[input_mask]].mean(0) @ weights.T
        total = total - logits.log_softmax(-1)[targets[target_mask]].sum()
    return total


def descended(
    seed: int, d: int, pairs: PaddedPairs
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """W and e, each with the direction in which gradient flow moves it."""
    weights, embeddings = proxy(seed, d)
    moving = weights.requires_grad_(), embeddings.requires_grad_()
    of_weights, of_embeddings = torch.autograd.grad(loss(weights, embeddings, pairs), moving)
    return (weights.detach(), -of_weights), (embeddings.detach(), -of_embeddings)


def slope(velocity: Tensor, direction: Tensor) -> float:
    return ((velocity * direction).sum() / direction.square().sum()).item()


@for_each("seed", range(3))
def test_logit_velocity_equals_autograd(pairs: PaddedPairs, seed: int) -> None:
    (weights, weights_flow), (embeddings, embeddings_flow) = descended(seed, 50, pairs)
    expected = embeddings_flow @ weights.T + embeddings @ weights_flow.T
    velocity = logit_velocity(weights, embeddings, pairs)
    torch.testing.assert_close(velocity, expected, rtol=1e-10, atol=1e-10)


@for_each("seed", range(3))
def test_probability_velocity_equals_autograd(pairs: PaddedPairs, seed: int) -> None:
    (weights, weights_flow), (embeddings, embeddings_flow) = descended(seed, 50, pairs)
    _, expected = torch.autograd.functional.jvp(
        lambda w, e: (e @ w.T).softmax(-1),
        (weights, embeddings),
        (weights_flow, embeddings_flow),
    )
    velocity = probability_velocity(weights, embeddings, pairs)
    torch.testing.assert_close(velocity, expected, rtol=1e-10, atol=1e-10)


def test_euler_step_moves_logits_and_probabilities_as_predicted(pairs: PaddedPairs) -> None:
    (weights, weights_flow), (embeddings, embeddings_flow) = descended(0, 50, pairs)
    step = 1e-6
    before = embeddings @ weights.T
    after = (embeddings + step * embeddings_flow) @ (weights + step * weights_flow).T
    moved = (after - before) / step
    torch.testing.assert_close(
        logit_velocity(weights, embeddings, pairs), moved, rtol=1e-3, atol=1e-4
    )
    shifted = (after.softmax(-1) - before.softmax(-1)) / step
    torch.testing.assert_close(
        probability_velocity(weights, embeddings, pairs), shifted, rtol=1e-3, atol=1e-4
    )


def test_slopes_at_large_d_are_two_and_two_over_output_types(
    pairs: PaddedPairs, counts: Tensor
) -> None:
    direction = counts - counts.mean(1, keepdim=True)
    proxies = [proxy(seed, 50_000) for seed in range(5)]
    logits = sum(slope(logit_velocity(*p, pairs), direction) for p in proxies) / 5
    probabilities = sum(slope(probability_velocity(*p, pairs), direction) for p in proxies) / 5
    assert logits == pytest.approx(2, rel=0.01)
    assert probabilities == pytest.approx(2 / OUTPUT_TYPES, rel=0.01)


def test_printed_equation_15_is_not_the_limit(pairs: PaddedPairs, counts: Tensor) -> None:
    printed = 2 * (counts - counts.mean(1, keepdim=True))
    velocity = probability_velocity(*proxy(0, 50_000), pairs)
    error = (velocity - printed).abs().max()
    assert error > 0.7 * printed.abs().max()  # 1 − 1/|O| of it is missing
    assert (velocity - predicted_probability_velocity(counts)).abs().max() < error / 50


def test_error_shrinks_with_the_square_root_of_d(pairs: PaddedPairs, counts: Tensor) -> None:
    predictions = {
        logit_velocity: predicted_logit_velocity(counts),
        probability_velocity: predicted_probability_velocity(counts),
    }
    for velocity, prediction in predictions.items():
        errors = []
        for d in (100, 25_600):
            squares = [
                (velocity(*proxy(seed, d), pairs) - prediction).square().mean()
                for seed in range(20)
            ]
            errors.append(torch.stack(squares).mean().sqrt().item())
        assert log(errors[1] / errors[0]) / log(256) == pytest.approx(-0.5, abs=0.1)


def test_huge_d_needs_no_matrix_of_its_square(pairs: PaddedPairs, counts: Tensor) -> None:
    velocity = logit_velocity(*proxy(0, 500_000), pairs)
    assert (velocity - predicted_logit_velocity(counts)).abs().max() < 0.05


def test_one_sentence_starts_towards_its_own_words() -> None:
    real = torch.ones(1, 2, dtype=torch.bool)
    one = PaddedPairs(torch.tensor([[0, 1]]), real, torch.tensor([[2, 2]]), real)
    # Two output words "2", each shared by two input words: C is 1 in column 2, so C − C̄ is ⅔.
    table = predicted_logit_velocity(count_table(*one, 2, 3))
    expected = torch.tensor([[-2 / 3, -2 / 3, 4 / 3]] * 2, dtype=torch.float64)
    torch.testing.assert_close(table, expected)
    torch.testing.assert_close(
        predicted_probability_velocity(count_table(*one, 2, 3)), expected / 3
    )


def test_random_corpus_has_unequal_lengths_and_repeats_for_a_seed(pairs: PaddedPairs) -> None:
    again = random_corpus(torch.Generator().manual_seed(0), INPUT_TYPES, OUTPUT_TYPES, pairs=8)
    assert all(torch.equal(a, b) for a, b in zip(pairs, again, strict=True))
    for mask in (pairs.input_mask, pairs.target_mask):
        assert mask.sum(1).unique().numel() > 1
        assert mask.any(1).all()
    assert pairs.inputs.max() < INPUT_TYPES
    assert pairs.targets.max() < OUTPUT_TYPES


def test_drawn_vectors_have_unit_expected_length() -> None:
    rows = draw_proxy(torch.Generator().manual_seed(1), 4, 40_000)
    torch.testing.assert_close(rows @ rows.T, torch.eye(4, dtype=torch.float64), atol=0.03, rtol=0)


def test_velocities_that_follow_their_law_have_no_error_and_its_slope(counts: Tensor) -> None:
    exact = InitialVelocities(
        counts, predicted_logit_velocity(counts), predicted_probability_velocity(counts)
    )
    errors = exact.errors()
    assert errors["logit"] == errors["theta"] == 0
    # The printed equation lacks the factor 1/|O|.
    off = (exact.logit - exact.theta).abs().max()
    assert errors["theta as printed"] == pytest.approx(float(off))
    assert exact.slope("logit") == pytest.approx(2)
    assert exact.slope("theta") == pytest.approx(2 / OUTPUT_TYPES)


def test_velocities_of_an_initialisation_are_those_of_its_weights(pairs: PaddedPairs) -> None:
    weights, embeddings = proxy(0, 50)
    found = InitialVelocities.of(weights, embeddings, pairs)
    torch.testing.assert_close(found.logit, logit_velocity(weights, embeddings, pairs))
    torch.testing.assert_close(found.theta, probability_velocity(weights, embeddings, pairs))
    assert found.centred.sum(-1).abs().max() < 1e-12
