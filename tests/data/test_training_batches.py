"""A pass over a corpus has every training example once, with little padding."""

from __future__ import annotations

import torch

from attnscope.data.corpus import GrammarSentiment, training_batches
from cases import for_each


@for_each("positions", [5, 200, 10**9])
def test_every_training_example_is_in_a_pass_once_and_no_batch_is_too_large(positions):
    source = GrammarSentiment()
    batches = training_batches(source, positions)
    ids = torch.cat([batch.ids for batch in batches])
    assert ids.sort()[0].tolist() == [example.id for example in source.training_examples]
    assert all(batch.inputs.numel() <= positions or len(batch) == 1 for batch in batches)
    by_id = {example.id: example for example in source.training_examples}
    for batch in batches[:5]:
        for row, example in enumerate(batch.ids[:5].tolist()):
            length = int(batch.input_lengths[row])
            assert batch.inputs[row, :length].tolist() == list(by_id[example].inputs)
            assert batch.targets[row].tolist() == by_id[example].targets


def test_a_pass_is_kept_for_the_next_time():
    assert training_batches(GrammarSentiment()) is training_batches(GrammarSentiment())


def test_an_epoch_has_every_example_once_and_its_last_batch_may_be_smaller():
    source = GrammarSentiment()
    count = len(source.training_examples)
    assert [source.epoch(size) for size in (1, count - 1, count, count + 1)] == [count, 2, 1, 1]
