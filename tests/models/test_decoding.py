"""Greedy output of models built by hand, whose next word is known."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import one_hot

from attnscope.data.tasks import SampledCopy
from attnscope.models.decoding import respond
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.models.trace import Trace

START, END, TYPES = 8, 9, 10


class Scripted:
    """Says, after each word that it reads, the word that a function of it and the input gives."""

    def __init__(self, next_word):
        self.next_word = next_word

    def trace(self, batch, attention=None, generator=None):
        words = [
            [self.next_word(word, inputs) for word in read]
            for inputs, read in zip(
                batch.inputs.tolist(), batch.decoder_inputs.tolist(), strict=True
            )
        ]
        logits = one_hot(torch.tensor(words), TYPES).float()
        states = torch.zeros(*batch.inputs.shape, 1)
        return Trace(batch, states, states, None, torch.zeros(*logits.shape[:2], 0), logits)

    def readout(self, context, query):
        raise NotImplementedError


def successor(word, inputs):
    """Copy the input, word by word: what follows a word there, END after the last one."""
    following = dict(zip([START, *inputs], [*inputs, END], strict=True))
    return following[word]


def test_a_copying_model_copies_and_stops_at_the_end_word():
    batch = respond(Scripted(successor), [4, 2, 7], (START, END))
    assert batch.inputs.tolist() == [[4, 2, 7]]
    assert batch.targets.tolist() == [[4, 2, 7, END]]
    assert batch.decoder_inputs.tolist() == [[START, 4, 2, 7]]


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_model_that_never_ends_is_stopped_at_the_limit(limit):
    batch = respond(Scripted(lambda word, inputs: 3), [4, 2], (START, END), limit)
    assert batch.targets.tolist() == [[3] * limit]
    assert batch.decoder_inputs.tolist() == [[START, *[3] * (limit - 1)]]


def test_a_model_that_ends_at_once_says_the_end_word():
    assert respond(Scripted(lambda *_: END), [4], (START, END)).targets.tolist() == [[END]]


def test_a_classifier_answers_with_its_most_probable_label():
    batch = respond(Scripted(lambda _, inputs: inputs[0]), [6, 1], None)
    assert batch.targets.tolist() == [[6]]
    assert batch.inputs.tolist() == [[6, 1]]


@pytest.mark.parametrize("seed", range(5))
def test_a_response_is_what_the_model_finds_most_probable_word_by_word(seed):
    source = SampledCopy(length=4, vocabulary=6)
    model = Seq2SeqSpec(embedding=5, hidden=4).build(source, seed)
    batch = respond(model, [1, 2, 3, 6], source.boundaries, limit=12)
    assert model.trace(batch).logits.argmax(-1).equal(batch.targets)
    assert 6 not in batch.targets[0, :-1]
    assert not model.trace(batch).logits.isnan().any()
