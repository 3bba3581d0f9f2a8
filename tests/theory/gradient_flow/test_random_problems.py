"""Random problems: the terms of every form are exact, and the supplement's misprints are caught."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from attnscope.theory.gradient_flow.random_problems import (
    ADDITIVE,
    FORMS,
    MISPRINTS,
    draw_problem,
    exact,
    first_order_attention,
    loss,
    predicted,
    relative_error,
    with_small_weights,
)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_the_terms_add_up_to_the_exact_rates(form: Any):
    for seed in range(3):
        problem = draw_problem(form, seed)
        for right, found in zip(exact(problem), predicted(problem), strict=True):
            assert relative_error(found, right) < 1e-9


def test_the_exact_rates_are_those_of_a_small_step_of_descent():
    problem = draw_problem(FORMS[1], 0)
    tensors = {name: part.clone().requires_grad_() for name, part in problem.tensors.items()}
    loss(problem, tensors).backward()
    step = 1e-6
    ends = [
        problem.parameters({k: (p - sign * step * p.grad).detach() for k, p in tensors.items()})  # type: ignore[operator]
        for sign in (1, -1)
    ]
    slope = (ends[0].polarity - ends[1].polarity) / (2 * step)
    torch.testing.assert_close(slope, exact(problem).polarity, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("misprint", MISPRINTS, ids=lambda misprint: misprint.equation)
def test_a_misprint_is_caught_and_its_correction_exact(misprint: Any):
    for seed in range(5):
        problem = draw_problem(misprint.form, seed)
        right = getattr(exact(problem), misprint.of)
        assert relative_error(misprint.rate(problem, printed=False), right) < 1e-9
        assert relative_error(misprint.rate(problem, printed=True), right) > 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_equation_71_is_right_in_the_limit_of_small_weights(seed: int):
    """A first-order expansion: its error falls with the square of what tanh is applied to."""
    problem, errors = draw_problem(ADDITIVE, seed), []
    for size in (1e-2, 1e-3):
        small = with_small_weights(problem, size)
        inner = small.tensors["E"] @ small.tensors["M_a"].T
        assert inner.square().mean().sqrt() == pytest.approx(size)
        errors.append(relative_error(first_order_attention(small), exact(small).attention))
    assert errors[1] < 1e-4
    assert math.log10(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)
