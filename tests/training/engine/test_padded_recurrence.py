"""The LSTM over padded texts against PyTorch's own over packed ones, alone and stacked."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnscope.data.randomness import seeded
from attnscope.errors import UsageError
from attnscope.models.encoders import Concat, Recurrent
from attnscope.training.engine.padded_recurrence import (
    ELEMENTWISE,
    FUSED,
    padded_states,
    vmappable,
)

LENGTHS = torch.tensor([[3, 6, 1, 5], [7, 7, 7, 7], [1, 1, 2, 1]])
WIDTH = 7  # no text of the first and the third model is that long
EXACT = {"rtol": 0, "atol": 1e-10}
on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


class Stackable(nn.Module):
    """A layer as it runs under vmap."""

    def __init__(self, layer, cell=ELEMENTWISE):
        super().__init__()
        self.layer, self.cell = layer, cell

    def forward(self, inputs, lengths):
        return padded_states(self.layer, inputs, lengths, self.cell)


def layers(directions):
    torch.manual_seed(directions)
    return [
        nn.LSTM(3, 4, batch_first=True, bidirectional=directions == 2).double() for _ in LENGTHS
    ]


def drawn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


INPUTS = drawn(3, 4, WIDTH, 3)


def packed(layer, inputs, lengths):
    texts = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(layer(texts)[0], batch_first=True, total_length=WIDTH)[0]


def with_gradients(function, inputs, parameters):
    """Return states and the gradients of a sum of them, each with a weight of its own."""
    inputs = inputs.clone().requires_grad_()
    states = function(inputs)
    weights = drawn(*states.shape[-3:]).to(states.device)
    gradients = torch.autograd.grad((states * weights).sum(), [inputs, *parameters])
    return [states.detach(), *gradients]


def expected_of(layer, inputs, lengths):
    return with_gradients(lambda texts: packed(layer, texts, lengths), inputs, layer.parameters())


def stacked(models, inputs, lengths, cell=ELEMENTWISE):
    """Return states and gradients of all models in one program."""
    model = Stackable(models[0], cell)
    parameters, _ = stack_module_state([Stackable(layer) for layer in models])
    program = vmap(lambda own, texts, ends: functional_call(model, own, (texts, ends)))
    return with_gradients(
        lambda texts: program(parameters, texts, lengths), inputs, parameters.values()
    )


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("number", range(3))
def test_states_and_gradients_are_those_of_pytorchs_packed_texts(directions, number):
    layer, lengths, inputs = layers(directions)[0], LENGTHS[number], INPUTS[number]
    found = with_gradients(
        lambda texts: padded_states(layer, texts, lengths, ELEMENTWISE), inputs, layer.parameters()
    )
    for one, other in zip(found, expected_of(layer, inputs, lengths), strict=True):
        torch.testing.assert_close(one, other, **EXACT)


@pytest.mark.parametrize("directions", [1, 2])
def test_padding_has_no_state_and_no_gradient_and_reaches_nothing(directions):
    layer, lengths = layers(directions)[0], LENGTHS[0]
    padding = torch.arange(WIDTH) >= lengths[:, None]
    loud = INPUTS[0].masked_fill(padding[..., None], 1e3)
    quiet, found = (
        with_gradients(
            lambda texts: padded_states(layer, texts, lengths, ELEMENTWISE),
            texts,
            layer.parameters(),
        )
        for texts in (INPUTS[0], loud)
    )
    assert not found[0][padding].any()
    assert not found[1][padding].any()
    for one, other in zip(found, quiet, strict=True):
        torch.testing.assert_close(one, other, **EXACT)


@pytest.mark.parametrize("directions", [1, 2])
def test_stacked_layers_have_each_its_own_states_and_gradients(directions):
    models = layers(directions)
    found = stacked(models, INPUTS, LENGTHS)
    for number, layer in enumerate(models):
        expected = expected_of(layer, INPUTS[number], LENGTHS[number])
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one[number], other, **EXACT)


def test_stacked_layers_may_read_the_same_texts():
    models, lengths = layers(2), LENGTHS[0]
    model = Stackable(models[0])
    parameters, _ = stack_module_state([Stackable(layer) for layer in models])
    found = vmap(lambda own: functional_call(model, own, (INPUTS[0], lengths)))(parameters)
    for layer, states in zip(models, found, strict=True):
        torch.testing.assert_close(states, packed(layer, INPUTS[0], lengths), **EXACT)


def test_gradients_of_gradients_are_refused():
    layer, inputs = layers(1)[0], INPUTS[0].clone().requires_grad_()
    states = padded_states(layer, inputs, LENGTHS[0], ELEMENTWISE)
    (gradient,) = torch.autograd.grad(states.square().sum(), inputs, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@pytest.mark.gpu
@on_a_gpu
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("cell", [FUSED, ELEMENTWISE], ids=["fused", "elementwise"])
def test_both_cells_of_a_gpu_have_the_numbers_of_the_cpu(directions, cell):
    here = stacked(layers(directions), INPUTS, LENGTHS)
    there = [layer.cuda() for layer in layers(directions)]
    found = stacked(there, INPUTS.cuda(), LENGTHS.cuda(), cell)
    for one, other in zip(found, here, strict=True):
        torch.testing.assert_close(one.cpu(), other, **EXACT)


LSTM = Recurrent(hidden=3)
REAL = torch.arange(WIDTH) < LENGTHS[0][:, None]


def built(spec):
    with seeded("encoder", 0):
        return spec.build(3).double()


def read(encoder):
    return encoder.read(INPUTS[0], LENGTHS[0]).detach()


@pytest.mark.parametrize(
    "spec", [LSTM, Recurrent(hidden=3, directions=1, layers=2), Concat(encoder=LSTM)]
)
def test_an_encoder_made_vmappable_gives_the_same_states_with_the_same_parameters(spec):
    encoder = built(spec)
    other = vmappable(encoder, ELEMENTWISE)
    assert [name for name, _ in other.named_parameters()] == [*dict(encoder.named_parameters())]
    for one, same in zip(encoder.parameters(), other.parameters(), strict=True):
        assert one is same
    torch.testing.assert_close(read(other)[REAL], read(encoder)[REAL], rtol=0, atol=1e-12)


def test_an_encoder_is_left_as_it_is_by_making_a_vmappable_one():
    encoder = built(LSTM)
    before = read(encoder)
    other = vmappable(encoder, ELEMENTWISE)
    assert read(encoder).equal(before)
    assert encoder.forward != other.forward


def test_a_gru_made_vmappable_says_that_it_cannot():
    with pytest.raises(UsageError, match="an encoder has a GRU: train its units one by one"):
        read(vmappable(built(Recurrent(hidden=3, cell="gru")), ELEMENTWISE))
