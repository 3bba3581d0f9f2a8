"""Attention only with positions in a room of their own."""

from __future__ import annotations

import pytest
import torch

from attnscope.data.batch import Example, collate
from attnscope.data.corpus import GrammarTranslation
from attnscope.models.architectures import AOWithRoom
from attnscope.models.contract import check_model
from attnscope.models.encoder_decoder import EncoderDecoder, EncoderDecoderSpec
from attnscope.models.positions import PaddedPositions, RotatedPositions

SOURCE = GrammarTranslation()
WORDS = max(len(SOURCE.input_words), len(SOURCE.output_words))


def built(words: str) -> EncoderDecoder:
    spec = EncoderDecoderSpec.model_validate(
        {
            "architecture": {"kind": "ao-with-room", "room": 12},
            "hidden": 6,
            "input_dimension": WORDS + 12,
            "words": words,
        }
    )
    return spec.build(SOURCE, 0).double().eval()


def test_positions_are_those_of_a_small_task_past_the_words() -> None:
    places = PaddedPositions(1000, 100, 100.0, 0)(2, 5)
    assert places.shape == (5, 1000)
    assert not places[:, :900].any()
    assert places[:, 900:].equal(RotatedPositions(100, 100.0, 0)(2, 5))


def test_a_position_is_as_long_beside_many_words_as_beside_few() -> None:
    """Of d sinusoids the squares sum to d / 2."""
    for width in (200, 5000):
        length = AOWithRoom().positions(width)(0, 16).norm(dim=-1)
        assert torch.allclose(length, torch.full((16,), 50.0).sqrt(), atol=1e-4)


@pytest.mark.parametrize("words", ["products", "rows"])
def test_the_model_keeps_the_contract(words: str) -> None:
    report = check_model(built(words), collate(SOURCE.validation_examples[:4]))
    assert report.ok, f"\n{report}"


def test_the_same_word_has_another_state_in_another_place() -> None:
    batch = SOURCE.evaluation_batch(8)
    states = built("rows").trace(batch).encoder_states
    same = batch.inputs[:, 0] == batch.inputs[0, 0]
    assert torch.allclose(states[same, 0], states[0, 0].expand(int(same.sum()), -1))
    twice = SOURCE.encode("das Kind sieht das Kind .")
    trace = built("rows").trace(collate([Example(0, twice, [1], [2])]))
    assert not torch.allclose(trace.encoder_states[0, 0], trace.encoder_states[0, 3])
