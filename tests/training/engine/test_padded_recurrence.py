"""LSTMs and GRUs over padded texts against PyTorch's own over packed ones, alone and stacked."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from attnscope.data.randomness import generator
from attnscope.models.dropout import masks_from, packed_places
from attnscope.models.encoders import Concat, Recurrent
from attnscope.models.recurrence import Recurrence
from attnscope.training.engine.recurrent_cells import ELEMENTWISE, FUSED
from attnscope.training.engine.vmappable import vmappable

LENGTHS = torch.tensor([[3, 6, 1, 5], [7, 7, 7, 7], [1, 1, 2, 1]])
WIDTH = 7  # no text of the first and the third model is that long
EXACT = {"rtol": 0, "atol": 1e-10}
on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
SHAPES = [
    {"cell": cell, "directions": directions, "layers": layers}
    for cell, directions, layers in product(["lstm", "gru"], [1, 2], [1, 2])
]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "-".join(map(str, s.values())))


def drawn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


INPUTS = drawn(3, 4, WIDTH, 3)


def recurrences(cell, directions, layers):
    torch.manual_seed(directions)
    built = [Recurrence(cell, 3, 4, directions, layers).double() for _ in LENGTHS]
    for recurrence in built:
        for parameter in recurrence.parameters():
            nn.init.normal_(parameter)  # biases too, each its own
    return built


def starts(cell, directions, layers):
    """Return a state of every model to start from."""
    shape = 3, layers * directions, 4, 4
    return (drawn(*shape, seed=1), drawn(*shape, seed=2))[: 2 if cell == "lstm" else 1]


def as_state(parts):
    return tuple(parts) if len(parts) == 2 else parts[0]


def weighted(states, last):
    """Return a sum of all states and last states, each number with a weight of its own."""
    parts = [states, *(last if isinstance(last, tuple) else [last])]
    return sum((part * drawn(*part.shape[-3:]).to(part.device)).sum() for part in parts)


def with_gradients(read, inputs, start, parameters):
    inputs, *start = (part.clone().requires_grad_() for part in (inputs, *start))
    states, last = read(inputs, start)
    gradients = torch.autograd.grad(
        weighted(states, last), [inputs, *start, *parameters], allow_unused=True
    )
    ends = last if isinstance(last, tuple) else (last,)
    return [states.detach(), *(end.detach() for end in ends), *gradients]


def packed(recurrence, number, start):
    def read(inputs, start):
        return recurrence(inputs, LENGTHS[number], as_state(start))

    return with_gradients(read, INPUTS[number], start, recurrence.parameters())


def stacked(models, start, cells=ELEMENTWISE, device="cpu"):
    """Return states, last states and gradients of all models under one vmap."""
    models = [model.to(device) for model in models]
    model = vmappable(models[0], cells)
    parameters, _ = stack_module_state(models)
    run = vmap(lambda own, texts, ends, begin: functional_call(model, own, (texts, ends, begin)))
    lengths = LENGTHS.to(device)

    def read(inputs, start):
        return run(parameters, inputs, lengths, as_state(start))

    start = [part.to(device) for part in start]
    return with_gradients(read, INPUTS.to(device), start, parameters.values())


@every_shape
def test_stacked_recurrences_have_pytorchs_states_and_gradients_of_packed_texts(shape):
    models, start = recurrences(**shape), starts(**shape)
    found = stacked(models, start)
    for number, model in enumerate(models):
        expected = packed(model, number, [part[number] for part in start])
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one[number], other, **EXACT)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_states_alone_have_the_gradients_that_they_have_with_the_last_ones_unused(cell):
    model = recurrences(cell, 2, 1)[0]
    other = vmappable(model, ELEMENTWISE)
    found, expected = (
        torch.autograd.grad(one(INPUTS[0], LENGTHS[0])[0].square().sum(), [*model.parameters()])
        for one in (other, model)
    )
    for one, same in zip(found, expected, strict=True):
        torch.testing.assert_close(one, same, **EXACT)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("directions", [1, 2])
def test_padding_has_no_state_and_no_gradient_and_reaches_nothing(cell, directions):
    model = vmappable(recurrences(cell, directions, 1)[0], ELEMENTWISE)
    padding = torch.arange(WIDTH) >= LENGTHS[0][:, None]
    loud = INPUTS[0].masked_fill(padding[..., None], 1e3)
    quiet, found = (
        with_gradients(lambda words, _: model(words, LENGTHS[0]), texts, [], model.parameters())
        for texts in (INPUTS[0], loud)
    )
    assert not found[0][padding].any()
    gradient = found[3 if cell == "lstm" else 2]
    assert gradient.shape == loud.shape
    assert not gradient[padding].any()
    for one, other in zip(found, quiet, strict=True):
        torch.testing.assert_close(one, other, **EXACT)


def test_stacked_recurrences_may_read_the_same_texts():
    models, lengths = recurrences("lstm", 2, 1), LENGTHS[0]
    model = vmappable(models[0], ELEMENTWISE)
    parameters, _ = stack_module_state(models)
    found = vmap(lambda own: functional_call(model, own, (INPUTS[0], lengths))[0])(parameters)
    for one, states in zip(models, found, strict=True):
        torch.testing.assert_close(states, one(INPUTS[0], lengths)[0], **EXACT)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_gradients_of_gradients_are_refused(cell):
    model = vmappable(recurrences(cell, 1, 1)[0], ELEMENTWISE)
    inputs = INPUTS[0].clone().requires_grad_()
    states, _ = model(inputs, LENGTHS[0])
    (gradient,) = torch.autograd.grad(states.square().sum(), inputs, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@pytest.mark.parametrize("lengths", [*LENGTHS.tolist(), [2, 5, 5, 2], [4, 4, 4, 4]])
def test_words_of_padded_texts_find_their_packed_places(lengths):
    ends = torch.tensor(lengths)
    texts = torch.arange(4 * WIDTH).view(4, WIDTH)[:, : max(lengths)]
    expected = torch.nn.utils.rnn.pack_padded_sequence(
        texts, ends, batch_first=True, enforce_sorted=False
    ).data
    if len(set(lengths)) == 1:
        expected = texts.flatten()  # `Recurrence` does not pack these.
    places = packed_places(ends, WIDTH)
    assert places.max() < 4 * WIDTH
    real = torch.arange(WIDTH) < ends[:, None]
    assert expected[places[real]].tolist() == torch.arange(4 * WIDTH).view(4, WIDTH)[real].tolist()


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_dropout_between_layers_drops_what_a_model_by_itself_drops(cell, number):
    model = Recurrence(cell, 3, 4, 2, 3, dropout=0.4).double()
    inputs, lengths = INPUTS[number][:, : LENGTHS[number].max()], LENGTHS[number]
    expected, _ = model(inputs, lengths, None, generator("x"))
    undropped, _ = model(inputs, lengths)
    found, _ = vmappable(model, ELEMENTWISE)(INPUTS[number], lengths, None, generator("x"))
    real = torch.arange(inputs.shape[1]) < lengths[:, None]
    torch.testing.assert_close(found[:, : inputs.shape[1]][real], expected[real], **EXACT)
    assert not torch.allclose(expected[real], undropped[real])


def test_a_packed_mask_is_drawn_for_the_real_words_alone():
    mask = masks_from(generator("x"))(torch.Size((28, 5)), 0.5, LENGTHS[0])
    assert mask[:15].equal(masks_from(generator("x"))(torch.Size((15, 5)), 0.5))
    assert not mask[15:].any()


@pytest.mark.parametrize("spec", [Recurrent(hidden=3), Concat(encoder=Recurrent(hidden=3))])
def test_a_vmappable_encoder_has_the_very_same_parameters_and_leaves_the_model_alone(spec):
    encoder = spec.build(3).double()
    before = encoder.read(INPUTS[0], LENGTHS[0])
    other = vmappable(encoder, ELEMENTWISE)
    assert [name for name, _ in other.named_parameters()] == [*dict(encoder.named_parameters())]
    for one, same in zip(encoder.parameters(), other.parameters(), strict=True):
        assert one is same
    assert encoder.read(INPUTS[0], LENGTHS[0]).equal(before)
    real = torch.arange(WIDTH) < LENGTHS[0][:, None]
    found = other.read(INPUTS[0], LENGTHS[0])
    torch.testing.assert_close(found[real], before[real], **EXACT)


@pytest.mark.gpu
@on_a_gpu
@every_shape
@pytest.mark.parametrize("cells", [FUSED, ELEMENTWISE], ids=["fused", "elementwise"])
def test_both_kinds_of_cells_of_a_gpu_have_the_numbers_of_the_cpu(shape, cells):
    here = stacked(recurrences(**shape), starts(**shape))
    found = stacked(recurrences(**shape), starts(**shape), cells, "cuda")
    for one, other in zip(found, here, strict=True):
        torch.testing.assert_close(one.cpu(), other, **EXACT)
