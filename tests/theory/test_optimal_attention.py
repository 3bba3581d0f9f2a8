"""Optimal attention against the paper's example, against scipy, and against its own certificate."""

from math import exp, log

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp
from torch import Tensor

from attnscope.errors import UsageError
from attnscope.theory import optimal_attention as module
from attnscope.theory.optimal_attention import OptimalAttention, optimal_attention
from cases import for_each

# Snell A.1: the word with the largest β gets nothing.
COUNTEREXAMPLE = torch.tensor([[[0, 0, 0], [0, -10, 5], [0, 5, -10]]], dtype=torch.float64)


def solve(words: Tensor, state: Tensor, targets: Tensor, **options: float) -> OptimalAttention:
    real = torch.ones(words.shape[:2], dtype=torch.bool)
    return optimal_attention(words, state, targets, real, torch.ones_like(targets) > 0, **options)


def problem(
    seed: int, batch: int, inp: int, out: int, vocab: int, scale: float, boost: float = 0.0
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw logits; ``boost`` favours each target at one or two of the input positions."""
    generator = torch.Generator().manual_seed(seed)
    words = scale * torch.randn(batch, inp, vocab, generator=generator, dtype=torch.float64)
    state = scale * torch.randn(batch, out, vocab, generator=generator, dtype=torch.float64)
    targets = torch.randint(vocab, (batch, out), generator=generator)
    place = torch.arange(out) % inp
    words[torch.arange(batch)[:, None], place, targets] += boost * scale
    return words, state, targets


def loss_of(weights: np.ndarray, words: np.ndarray, state: np.ndarray, target: int) -> float:
    logits = weights @ words + state
    return float(logsumexp(logits) - logits[target])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_papers_counterexample(dtype: torch.dtype) -> None:
    words, state = COUNTEREXAMPLE.to(dtype), torch.zeros(1, 1, 3, dtype=dtype)
    probe = words.softmax(-1)[0, :, 0]
    assert probe.tolist() == pytest.approx([1 / 3, 0.0066928, 0.0066928], abs=1e-7)
    solved = solve(words, state, torch.zeros(1, 1, dtype=torch.long))
    assert solved.weights.dtype == dtype
    assert solved.weights[0, 0].tolist() == pytest.approx([0, 0.5, 0.5], abs=1e-5)
    assert solved.weights[0, 0, 0] == 0
    assert exp(-solved.loss.item()) == pytest.approx(1 / (1 + 2 * exp(-2.5)), abs=1e-6)
    assert exp(-solved.loss.item()) == pytest.approx(0.85898, abs=5e-6)
    assert solved.unconverged == 0


def test_mass_moved_to_the_word_with_the_largest_probe_lowers_the_probability() -> None:
    words, state = COUNTEREXAMPLE[0].numpy(), np.zeros(3)
    best = solve(COUNTEREXAMPLE, torch.zeros(1, 1, 3).double(), torch.zeros(1, 1).long())
    weights = 0.99 * best.weights[0, 0].numpy() + np.array([0.01, 0, 0])
    lost = exp(-best.loss.item()) - exp(-loss_of(weights, words, state, 0))
    assert lost == pytest.approx(0.0031, abs=5e-5)


@for_each("boost", [0.0, 1.5, 4.0])
@for_each("scale", [0.5, 3.0])
def test_loss_is_the_minimum_that_scipy_finds(scale: float, boost: float) -> None:
    words, state, targets = problem(1, 3, 6, 4, 12, scale, boost)
    solved = solve(words, state, targets, tolerance=1e-8)
    assert solved.unconverged == 0
    for b in range(3):
        for t in range(4):
            arguments = (words[b].numpy(), state[b, t].numpy(), int(targets[b, t]))
            found = minimize(
                loss_of, np.full(6, 1 / 6), arguments, "SLSQP",
                bounds=[(0, 1)] * 6, constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
                options={"ftol": 1e-13, "maxiter": 1000},
            )  # fmt: skip
            assert solved.loss[b, t].item() == pytest.approx(found.fun, abs=1e-6)
            assert solved.loss[b, t].item() <= found.fun + 1e-8


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 8), st.floats(0.1, 30), st.sampled_from([0, 1.5, 4]))
def test_gap_bounds_what_any_other_weights_could_gain(
    seed: int, inp: int, scale: float, boost: float
) -> None:
    words, state, targets = problem(seed, 2, inp, 3, 9, scale, boost)
    exact = solve(words, state, targets, tolerance=1e-9)
    assert exact.unconverged == 0
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.rand(200, 2, 3, inp, generator=generator, dtype=torch.float64).pow(8) + 1e-9
    others = torch.cat([drawn / drawn.sum(-1, keepdim=True), exact.weights[None]])
    logits = others @ words + state
    losses = logits.logsumexp(-1) - logits.gather(-1, targets.expand(201, 2, 3)[..., None])[..., 0]
    for limit in (0, 1, 3, 100):  # stopped early, the bound is loose but true
        solved = solve(words, state, targets, limit=limit)
        assert (losses >= solved.loss - solved.gap - 1e-9).all()


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 8), st.floats(0.1, 30))
def test_weights_are_a_distribution_whose_loss_and_gap_are_as_stated(
    seed: int, inp: int, scale: float
) -> None:
    words, state, targets = problem(seed, 2, inp, 3, 9, scale)
    solved = solve(words, state, targets)
    assert (solved.weights >= 0).all()
    torch.testing.assert_close(solved.weights.sum(-1), torch.ones(2, 3, dtype=torch.float64))
    weights = solved.weights.clone().requires_grad_()
    logits = weights @ words + state
    losses = torch.nn.functional.cross_entropy(logits.mT, targets, reduction="none")
    torch.testing.assert_close(losses.detach(), solved.loss)
    (gradient,) = torch.autograd.grad(losses.sum(), weights)
    gap = (solved.weights * gradient).sum(-1) - gradient.amin(-1)
    torch.testing.assert_close(gap, solved.gap, rtol=1e-6, atol=1e-9)


@for_each("dtype", [torch.float32, torch.float64])
@for_each("boost", [0.0, 1.5, 4.0])
def test_forty_positions_and_large_logits_converge(dtype: torch.dtype, boost: float) -> None:
    words, state, targets = problem(2, 2, 40, 6, 1000, 10.0, boost)
    solved = solve(words.to(dtype), state.to(dtype), targets)
    assert solved.unconverged == 0
    assert solved.gap.max() <= 1e-4
    assert solved.iterations <= 30


@pytest.mark.parametrize("scale", [100.0, 300.0])
def test_in_float64_the_gap_closes_however_sharp_the_logits(scale: float) -> None:
    solved = solve(*problem(3, 10, 20, 4, 50, scale), tolerance=1e-8)
    assert solved.unconverged == 0


def test_a_word_that_only_one_position_can_produce_gets_all_weight_there() -> None:
    words = torch.zeros(1, 5, 4, dtype=torch.float64)
    words[0, 3, 2] = 4.0
    solved = solve(words, torch.zeros(1, 1, 4).double(), torch.tensor([[2]]))
    assert solved.weights[0, 0].tolist() == [0, 0, 0, 1, 0]
    assert solved.loss.item() == pytest.approx(log(1 + 3 * exp(-4)))


def test_equal_positions_share_and_idle_attention_stays_uniform() -> None:
    words = torch.zeros(1, 3, 4, dtype=torch.float64)
    words[0, :2, 1] = 4.0
    solved = solve(words, torch.zeros(1, 1, 4).double(), torch.tensor([[1]]))
    assert solved.weights[0, 0].tolist() == pytest.approx([0.5, 0.5, 0])
    same = solve(torch.ones(1, 3, 4).double(), torch.zeros(1, 1, 4).double(), torch.tensor([[1]]))
    assert same.weights[0, 0].tolist() == pytest.approx([1 / 3] * 3)
    assert same.iterations == 0


def test_padding_changes_nothing() -> None:
    words, state, targets = problem(4, 3, 5, 4, 11, 3.0)
    alone = solve(words, state, targets)
    nan = float("nan")
    wide = optimal_attention(
        torch.cat([words[:, :2], torch.full((3, 2, 11), nan), words[:, 2:]], 1),
        torch.cat([state, torch.full((3, 1, 11), nan)], 1),
        torch.cat([targets, torch.full((3, 1), -100)], 1),
        torch.tensor([True, True, False, False, True, True, True]).expand(3, -1),
        torch.tensor([True] * 4 + [False]).expand(3, -1),
    )
    kept = wide.weights[:, :4][:, :, [0, 1, 4, 5, 6]]
    torch.testing.assert_close(kept, alone.weights, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(wide.loss[:, :4], alone.loss)
    assert wide.weights[:, :, 2:4].eq(0).all()
    assert wide.weights[:, 4].eq(0).all()
    assert wide.loss[:, 4].eq(0).all()
    assert wide.gap[:, 4].eq(0).all()


def test_a_sentence_without_input_has_the_decoders_loss() -> None:
    words, state, targets = problem(5, 2, 3, 2, 7, 1.0)
    real = torch.tensor([[True] * 3, [False] * 3])
    solved = optimal_attention(words, state, targets, real, torch.ones(2, 2, dtype=torch.bool))
    expected = torch.nn.functional.cross_entropy(state[1], targets[1], reduction="none")
    torch.testing.assert_close(solved.loss[1], expected)
    assert solved.weights[1].eq(0).all()
    assert solved.gap[1].eq(0).all()
    assert solved.unconverged == 0


def test_chunks_never_change_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = problem(6, 7, 5, 4, 11, 3.0)
    whole = solve(*arguments)
    monkeypatch.setattr(module, "_NUMBERS", 100)
    chunked = solve(*arguments)
    torch.testing.assert_close(chunked.weights, whole.weights, rtol=1e-6, atol=1e-9)
    assert chunked.iterations == whole.iterations


def test_cells_that_did_not_converge_are_counted() -> None:
    arguments = problem(7, 3, 8, 4, 20, 5.0)
    solved = solve(*arguments, limit=2, tolerance=1e-8)
    assert solved.iterations == 2
    assert solved.unconverged == int((solved.gap > 1e-8).sum()) > 0


def test_tolerance_must_be_positive() -> None:
    with pytest.raises(UsageError, match="must be positive"):
        solve(*problem(0, 1, 2, 1, 3, 1.0), tolerance=0.0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_cuda_device_finds_the_same_losses(dtype: torch.dtype) -> None:
    words, state, targets = problem(8, 4, 12, 5, 200, 5.0)
    here = solve(words, state, targets)
    real = torch.ones(4, 12, dtype=torch.bool, device="cuda")
    there = optimal_attention(
        words.to("cuda", dtype), state.to("cuda", dtype), targets.cuda(), real, real[:, :5]
    )
    assert there.unconverged == 0
    torch.testing.assert_close(there.loss.cpu(), here.loss, rtol=0, atol=3e-4)
