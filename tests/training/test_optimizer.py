"""Optimisers are torch's with clipping and decay, and go on from their state alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attnscope.data.sequence_tasks import OneToOne
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.training.engine.vmapped import stack
from attnscope.training.optimizer import (
    Adagrad,
    Adam,
    AitkenAdam,
    ClippedAdam,
    OptimizerSpec,
    Sgd,
    optimizer_arrays,
    restore_optimizer,
)
from cases import for_each

SPEC = AitkenAdam(decay=0.9, clip=0.5)


def parameters(count=2):
    return [nn.Parameter(torch.arange(1.0, 4.0).double() + number) for number in range(count)]


def gradients(step, count=2):
    stream = torch.Generator().manual_seed(step)
    return [torch.randn(3, generator=stream).double() for _ in range(count)]


def update(optimizer, params, steps):
    for step in steps:
        for parameter, gradient in zip(params, gradients(step, len(params)), strict=True):
            parameter.grad = gradient
        optimizer.step()


def test_the_settings_are_the_papers():
    assert AitkenAdam().model_dump() == {
        "kind": "aitken-adam",
        "lr": 0.1,
        "betas": (0.9, 0.99),
        "eps": 0.1,
        "decay": 0.9997,
        "clip": 10.0,
    }
    assert OptimizerSpec.model_validate(AitkenAdam().model_dump(mode="json")) == AitkenAdam()


def test_it_is_adam_with_torchs_clipping_and_exponential_decay():
    found, expected = parameters(), parameters()
    update(SPEC.build(found), found, range(6))
    adam = torch.optim.Adam(expected, lr=0.1, betas=(0.9, 0.99), eps=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(adam, 0.9)
    for step in range(6):
        for parameter, gradient in zip(expected, gradients(step), strict=True):
            parameter.grad = gradient
        torch.nn.utils.clip_grad_norm_(expected, 0.5)
        adam.step()
        schedule.step()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-15)


def test_the_first_update_of_a_great_gradient_is_that_of_one_clipped_to_ten():
    # Adam's first update is lr · g / (|g| + eps), here of g = 10 and at the undecayed rate.
    parameter = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = AitkenAdam().build([parameter])
    parameter.grad = torch.full((1,), 1e6, dtype=torch.float64)
    optimizer.step()
    assert parameter.item() == pytest.approx(-0.1 * 10 / (10 + 0.1), rel=1e-6)


def updated_by_hand(optimizer, params, steps, clip=None):
    for step in range(steps):
        for parameter, gradient in zip(params, gradients(step), strict=True):
            parameter.grad = gradient
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(params, clip)
        optimizer.step()


def test_tuteks_adam_is_torchs_with_weight_decay_and_clipping():
    spec = ClippedAdam(clip=0.5, weight_decay=0.1)
    found, expected = parameters(), parameters()
    update(spec.build(found), found, range(6))
    adam = torch.optim.Adam(expected, lr=1e-3, weight_decay=0.1)
    updated_by_hand(adam, expected, 6, clip=0.5)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-15)
    assert ClippedAdam() == ClippedAdam(lr=1e-3, weight_decay=1e-5, clip=5.0)


def test_adagrad_divides_by_the_root_of_the_summed_squares_at_a_falling_rate():
    spec = Adagrad(lr=0.02, lr_decay=0.1, weight_decay=0.01)
    found = parameters()
    update(spec.build(found), found, range(5))
    for number, parameter in enumerate(found):
        value = parameters()[number].detach()
        squares = torch.zeros_like(value)
        for step in range(5):
            gradient = gradients(step)[number] + 0.01 * value
            squares += gradient**2
            value = value - 0.02 / (1 + 0.1 * step) * gradient / (squares.sqrt() + 1e-10)
        torch.testing.assert_close(parameter.detach(), value, rtol=0, atol=1e-14)
    assert Adagrad() == Adagrad(lr=0.02, lr_decay=0.001, weight_decay=0.0)


def test_plain_descent_takes_the_gradient_times_the_rate():
    found = parameters()
    update(Sgd(lr=0.5).build(found), found, [3])
    for before, gradient, after in zip(parameters(), gradients(3), found, strict=True):
        torch.testing.assert_close(after.detach(), before.detach() - 0.5 * gradient)


ALL = [SPEC, Adam(), ClippedAdam(clip=0.5), Adagrad(lr_decay=0.1), Sgd()]


@for_each("spec", ALL, ids=lambda spec: spec.kind)
@for_each("stop", [0, 1, 4])
def test_a_restored_optimiser_goes_on_to_the_same_bytes(spec, stop):
    undisturbed, stopped = parameters(), parameters()
    update(spec.build(undisturbed), undisturbed, range(7))
    first = spec.build(stopped)
    update(first, stopped, range(stop))
    second = spec.build(stopped)
    restore_optimizer(second, optimizer_arrays(first))
    update(second, stopped, range(stop, 7))
    for one, other in zip(undisturbed, stopped, strict=True):
        assert one.equal(other)


def test_parameters_without_a_gradient_do_not_hold_the_rate_back():
    unused, used = parameters()
    optimizer = SPEC.build([unused, used])
    update(optimizer, [used], range(3))
    assert optimizer.param_groups[0]["lr"] == 0.1 * 0.9**2


@for_each("spec", ALL, ids=lambda spec: spec.kind)
def test_stacked_models_are_updated_and_clipped_each_by_itself(spec):
    source = OneToOne(shortest=2, longest=3)
    models = [EncoderDecoderSpec(hidden=3).build(source, seed).double() for seed in range(2)]
    stacked = stack(models)
    together = spec.build_stacked(stacked)
    alone = [spec.build(model.parameters()) for model in models]
    stream = torch.Generator().manual_seed(0)
    for _ in range(3):
        for name, parameter in stacked.parameters.items():
            # One model's gradient is far above the limit, the other's far below.
            parameter.grad = torch.randn(parameter.shape, generator=stream).double()
            parameter.grad[1] *= 1e-3
            for number, model in enumerate(models):
                model.get_parameter(name).grad = parameter.grad[number].clone()
        for optimizer in (together, *alone):
            optimizer.step()
    for number, model in enumerate(models):
        for name, parameter in model.named_parameters():
            found = stacked.parameters[name][number]
            torch.testing.assert_close(found, parameter, rtol=0, atol=1e-14)


@for_each("spec", ALL, ids=lambda spec: spec.kind)
def test_a_stack_trains_what_its_models_train(spec):
    source = OneToOne(shortest=2, longest=3)
    models = [EncoderDecoderSpec(hidden=3).build(source, seed) for seed in range(2)]
    for model in models:
        model.output.requires_grad_(False)
    stacked = stack(models)
    given = spec.build_stacked(stacked).param_groups[0]["params"]
    expected = [p for name, p in stacked.parameters.items() if not name.startswith("output.")]
    assert [id(parameter) for parameter in given] == [id(parameter) for parameter in expected]
