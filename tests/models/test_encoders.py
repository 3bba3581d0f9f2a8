"""Encoders against plain PyTorch, with and without padding."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnscope.data.randomness import seeded
from attnscope.errors import UsageError
from attnscope.models.encoders import (
    Affine,
    Concat,
    EncoderSpec,
    Recurrent,
    Residual,
    WordStates,
)
from cases import for_each

LENGTHS = torch.tensor([3, 5, 1])
WORDS = torch.randn(3, 5, 6, generator=torch.Generator().manual_seed(0)).double()
REAL = torch.arange(5) < LENGTHS[:, None]
LSTM = Recurrent(hidden=3)


def built(spec: EncoderSpec, seed: int = 0):
    with seeded("encoder", seed):
        return spec.build(6).double()


def read(encoder, generator=None):
    return encoder.read(WORDS, LENGTHS, generator).detach()


def test_without_an_encoder_states_are_the_words():
    encoder = built(WordStates())
    assert encoder.width == 6
    assert encoder.read(WORDS, LENGTHS) is WORDS
    assert not list(encoder.parameters())


@pytest.mark.parametrize("bias", ["on", "off"])
def test_the_affine_encoder_is_one_map_of_each_word(bias):
    encoder = built(Affine(hidden=4, bias=bias))
    parameters = dict(encoder.named_parameters())
    offset = parameters.get("map.bias", torch.zeros(4).double())
    assert set(parameters) == {"map.weight"} | ({"map.bias"} if bias == "on" else set())
    expected = torch.einsum("oi,bli->blo", parameters["map.weight"], WORDS) + offset
    torch.testing.assert_close(read(encoder), expected.detach())


def test_a_direction_pulled_back_gives_the_same_product_with_words_as_with_their_states():
    encoder = built(Affine(hidden=4, bias="off"))
    direction = torch.randn(2, 4, generator=torch.Generator().manual_seed(1)).double()
    by_states = read(encoder) @ direction.T
    by_words = WORDS @ encoder.pulled_back(direction).T
    torch.testing.assert_close(by_states, by_words.detach())


@for_each("spec", [WordStates(), Recurrent(hidden=3), Concat(encoder=LSTM)])
def test_an_encoder_that_is_no_map_leaves_directions_as_they_are(spec):
    direction = torch.ones(2)
    assert built(spec).pulled_back(direction) is direction


@for_each("layers", [1, 2, 3])
@for_each("cell", ["lstm", "gru"])
def test_recurrent_layers_are_pytorchs_stacked_ones(cell, layers):
    encoder = built(Recurrent(hidden=3, cell=cell, layers=layers))
    kind = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
    reference = kind(6, 3, layers, batch_first=True, bidirectional=True).double()
    with torch.no_grad():
        for own, theirs in zip(encoder.parameters(), reference.parameters(), strict=True):
            theirs.copy_(own)
        packed = pack_padded_sequence(WORDS, LENGTHS, batch_first=True, enforce_sorted=False)
        expected = pad_packed_sequence(reference(packed)[0], batch_first=True)[0]
    assert encoder.width == 6
    torch.testing.assert_close(read(encoder), expected)


def test_an_orthogonal_start_is_that_of_the_matrices_alone():
    plain, turned = (
        dict(built(Recurrent(hidden=3, initial=i)).named_parameters())
        for i in ("default", "orthogonal")
    )
    for name, parameter in turned.items():
        if parameter.ndim == 1:
            continue
        gram = parameter.T @ parameter
        torch.testing.assert_close(gram, torch.eye(len(gram)).double(), rtol=0, atol=1e-6)
        assert not parameter.equal(plain[name])
    biases = [name for name, parameter in turned.items() if parameter.ndim == 1]
    assert len(biases) == 4
    assert all(turned[name].equal(plain[name]) for name in biases)


def test_concat_has_the_states_first_and_then_the_words():
    encoder, inside = built(Concat(encoder=LSTM)), built(LSTM)
    assert encoder.width == 12
    assert read(encoder).equal(torch.cat([read(inside), WORDS], -1))


def test_residual_is_the_sum_of_words_and_states():
    encoder, inside = built(Residual(encoder=LSTM)), built(LSTM)
    assert encoder.width == 6
    assert read(encoder).equal(WORDS + read(inside))


def test_a_residual_encoder_of_another_width_is_one_sentence():
    with pytest.raises(UsageError, match=r"words of width 6 to states of width 8: make embedding"):
        built(Residual(encoder=Recurrent(hidden=4)))


def test_dropout_between_layers_comes_from_the_generator():
    encoder = built(Recurrent(hidden=3, layers=2, dropout=0.5))
    one, again, other = (read(encoder, torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert one.equal(again)
    assert not one[REAL].isclose(other[REAL]).all()
    with pytest.raises(ValidationError, match="dropout acts between layers"):
        Recurrent(dropout=0.5)


@for_each(
    "spec",
    [
        WordStates(),
        Affine(hidden=4, bias="off"),
        Recurrent(hidden=4, layers=2, initial="orthogonal"),
        Concat(encoder=Affine(hidden=2)),
        Residual(encoder=Concat(encoder=WordStates())),
    ],
)
def test_an_encoder_is_read_back_with_all_that_it_wraps(spec):
    assert EncoderSpec.model_validate(spec.model_dump(mode="json")) == spec
