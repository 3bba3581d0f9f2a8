"""Masks of several models are drawn as each of them would draw its own."""

from __future__ import annotations

import pytest
import torch

from attnscope.data.corpus import GrammarSentiment
from attnscope.data.randomness import generator
from attnscope.data.sequence_tasks import OneToOne
from attnscope.models.dropout import masks_from
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.training.engine.backend import CudaBackend
from attnscope.training.engine.dropout_masks import DropoutMasks
from attnscope.training.engine.vmapped import MASKS, stack, stack_batches, stacked_losses
from attnscope.training.masked_lm import MaskedWords
from attnscope.training.objective import Likelihood, total

SOURCE = GrammarSentiment()
MASKED = (Likelihood(), MaskedWords())
SEEDS = (4, 0, 9)
WIDTH = 5  # of the embeddings


def batches(step=0, source=SOURCE, size=4):
    return [source.training_batch(seed, step, size) for seed in SEEDS]


def streams(step=0):
    return [generator("training", seed, step) for seed in SEEDS]


@pytest.fixture
def models(dropping):
    return [dropping.build(SOURCE, seed).double() for seed in SEEDS]


def test_every_model_has_the_masks_of_its_own_width_and_generator(models, dropping):
    given, rate = batches(), dropping.dropout
    widths = [batch.inputs.shape[1] for batch in given]
    assert len(set(widths)) == 3
    masks = DropoutMasks(stack(models))(given, streams(), stack_batches(given))[MASKS]
    assert masks.dtype is torch.bool
    state = models[0].encoder.width
    words, context = masks.split([4 * max(widths) * WIDTH, 4 * state], dim=1)
    words = words.view(3, 4, max(widths), WIDTH)
    for number, (stream, width) in enumerate(zip(streams(), widths, strict=True)):
        drawn = masks_from(stream)
        assert words[number, :, :width].equal(drawn(torch.Size((4, width, WIDTH)), rate))
        assert not words[number, :, width:].any()
        assert context[number].equal(drawn(torch.Size((4 * state,)), rate))


@pytest.mark.parametrize("step", [0, 1, 2])
def test_losses_with_masks_are_those_of_each_model_with_its_generator(models, step):
    stacked, given, terms = stack(models), batches(step), (Likelihood(),)
    columns = stack_batches(given)
    masks = DropoutMasks(stacked)(given, streams(step), columns)
    found = stacked_losses(stacked, columns | masks, terms)
    expected = torch.stack(
        [
            total(terms, model, model.trace(batch, None, stream), stream)
            for model, batch, stream in zip(models, given, streams(step), strict=True)
        ]
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    without = stacked_losses(stacked, columns, terms)
    assert ((found - without).abs() > 1e-6).all()
    wider = stack_batches(given, lambda widest: widest + 7)
    assert wider["inputs"].shape[-1] == columns["inputs"].shape[-1] + 7
    masks = DropoutMasks(stacked)(given, streams(step), wider)
    found = stacked_losses(stacked, wider | masks, terms)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_masks_drawn_by_several_threads_are_those_drawn_in_turn(models):
    stacked, given = stack(models), batches()
    columns = stack_batches(given)
    in_turn = DropoutMasks(stacked)(given, streams(), columns)
    threaded = DropoutMasks(stacked, for_each=CudaBackend().for_each)(given, streams(), columns)
    assert threaded[MASKS].equal(in_turn[MASKS])


def widths_asked(stacked, masks, trace, steps=4):
    """Draw masks for some steps, and return the widths at which the model was run, and all."""
    asked = []

    def counted(batch, *others):
        asked.append(batch.inputs.shape[1])
        return trace(batch, *others)

    stacked.model.trace = counted
    for step in [*range(steps), *range(steps)]:
        masks(batches(step), streams(step), stack_batches(batches(step)))
    return asked, {batch.inputs.shape[1] for step in range(steps) for batch in batches(step)}


@pytest.mark.parametrize("dropout", [0.5, 0.0])
def test_a_model_is_run_at_two_widths_and_what_it_asks_for_at_others_follows(dropping, dropout):
    spec = dropping.model_copy(update={"embedding": 4, "dropout": dropout})
    stacked = stack([spec.build(SOURCE, seed) for seed in SEEDS])
    masks, trace = DropoutMasks(stacked, MASKED), stacked.model.trace
    asked, widths = widths_asked(stacked, masks, trace)
    assert len(asked) == len(set(asked)) == 2 < len(widths)
    stacked.model.trace = trace
    for step in range(4):
        for batch in batches(step):
            assert masks._asked_for(batch) == masks._dry_run(batch)


def test_a_model_whose_masks_do_not_follow_is_run_at_every_width(models):
    stacked = stack(models)
    trace = stacked.model.trace

    def odd(batch, attention, randomness):
        randomness(torch.Size((2, batch.inputs.shape[1] + 1)), 0.5)
        return trace(batch, attention)

    asked, widths = widths_asked(stacked, DropoutMasks(stacked), odd)
    assert set(asked) == widths


def test_a_model_without_masks_is_run_at_two_widths_too(dropping):
    stacked = stack([dropping.model_copy(update={"dropout": 0.0}).build(SOURCE, 0)] * 3)
    asked, _ = widths_asked(stacked, DropoutMasks(stacked), stacked.model.trace)
    assert len(asked) == 2


def test_a_model_without_dropout_has_no_masks():
    source = OneToOne(shortest=3, longest=5)
    models = [EncoderDecoderSpec(hidden=5).build(source, seed) for seed in SEEDS]
    given = batches(source=source)
    assert DropoutMasks(stack(models))(given, streams(), stack_batches(given)) == {}
