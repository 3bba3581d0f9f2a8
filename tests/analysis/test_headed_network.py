"""Networks of any architecture on their own words, and what a word raises through their heads."""

from __future__ import annotations

import pytest
import torch

from attnscope.analysis.components import readout_dictionary
from attnscope.analysis.dictionary import context_readout, word_effects
from attnscope.analysis.headed_network import HeadedNetwork, own_words
from attnscope.data.sequence_tasks import OneToOne
from attnscope.models.architectures import AED
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.models.transformer import TransformerSpec

TASK = OneToOne(shortest=3, longest=6)
TRANSFORMER = TransformerSpec(width=12, heads=3, feed_forward=16)
TRANSLATOR = Seq2SeqSpec(
    embedding=6, hidden=8, layers=2, directions=2, readout="relu", embeddings="separate"
)
AED_SPEC = EncoderDecoderSpec(architecture=AED(), hidden=8)


def network(spec):
    return HeadedNetwork(spec.build(TASK, 1).double(), TASK, TASK.evaluation_batch(30))


def close(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


def test_networks_read_their_own_words_as_the_papers_do():
    model, batch = AED_SPEC.build(TASK, 1), TASK.evaluation_batch(20)
    expected = model.with_teacher_forcing("off").trace(batch)
    read = own_words(model, batch)
    assert read.decoder_inputs.equal(expected.batch.decoder_inputs)
    close(model.trace(read).logits, expected.logits)


@pytest.mark.parametrize("spec", [TRANSLATOR, TRANSFORMER], ids=["translator", "transformer"])
def test_own_words_are_the_most_probable_ones_after_those_before(spec):
    one = network(spec)
    (trace,) = one.traces()
    written = trace.logits.argmax(-1)
    assert trace.batch.decoder_inputs[:, 0].eq(TASK.boundaries[0]).all()
    inside = trace.batch.target_mask[:, 1:]
    assert trace.batch.decoder_inputs[:, 1:][inside].equal(written[:, :-1][inside])
    assert not trace.teacher_forced


def test_for_a_linear_readout_a_words_effect_is_its_product_with_the_readout():
    one = network(AED_SPEC)
    words = one.values.seen.nonzero()[:, 0]
    readout = context_readout(one.model)
    close(word_effects(one, words), one.states.encoder.words(words) @ readout.mT)
    best = words[word_effects(one, words).argmax(0)]
    assert best.equal(readout_dictionary(readout, one.states.encoder))


def test_a_words_effect_through_one_head_leaves_the_others_as_they_are():
    one = network(TRANSFORMER)
    words = torch.arange(3)
    apart = [word_effects(one, words, head) for head in range(3)]
    assert not torch.allclose(apart[0], apart[1])
    with torch.no_grad():
        one.model.decoder[-1].cross.merge.weight[:, 4:8] = 0.0  # the second head's four columns
    silent = HeadedNetwork(one.model, TASK, one.sequences)
    assert word_effects(silent, words, 1).abs().max() < 1e-12
    assert word_effects(silent, words, 0).abs().max() > 1e-6
