"""Batches: what is padded comes back, and masks follow the lengths."""

from __future__ import annotations

from dataclasses import replace

import torch
from hypothesis import given, strategies as st
from torch.nn.functional import pad

from attnscope.data.batch import Example, collate, prefix_mask

ids = st.integers(0, 50)


@st.composite
def settings_of_an_example(draw):
    inputs = draw(st.lists(ids, min_size=1, max_size=7))
    targets = draw(st.lists(ids, min_size=1, max_size=5))
    gold = draw(st.lists(st.integers(-1, 6), min_size=len(targets), max_size=len(targets)))
    return draw(ids), inputs, [0, *targets[:-1]], targets, draw(st.sampled_from([gold, ()]))


batches = st.lists(settings_of_an_example(), min_size=1, max_size=5)


def examples(drawn):
    return [Example(*settings) for settings in drawn]


def unpadded(tensor, lengths, row):
    return tensor[row, : lengths[row]].tolist()


@given(batches, ids)
def test_padding_loses_nothing(drawn, padding):
    listed = examples(drawn)
    batch = collate(listed, padding)
    assert len(batch) == len(listed)
    assert batch.ids.tolist() == [example.id for example in listed]
    for row, example in enumerate(listed):
        assert unpadded(batch.inputs, batch.input_lengths, row) == example.inputs
        assert unpadded(batch.decoder_inputs, batch.target_lengths, row) == example.decoder_inputs
        assert unpadded(batch.targets, batch.target_lengths, row) == example.targets
        gold = list(example.gold) or [-1] * len(example.targets)
        assert unpadded(batch.gold, batch.target_lengths, row) == gold


@given(batches, ids)
def test_what_is_added_is_the_padding_word_and_no_gold_position(drawn, padding):
    listed = examples(drawn)
    batch = collate(listed, padding)
    assert (batch.inputs[~batch.input_mask] == padding).all()
    assert (batch.decoder_inputs[~batch.target_mask] == padding).all()
    assert (batch.targets[~batch.target_mask] == padding).all()
    assert (batch.gold[~batch.target_mask] == -1).all()


@given(batches)
def test_masks_are_true_at_as_many_first_positions_as_there_are_words(drawn):
    listed = examples(drawn)
    batch = collate(listed)
    for row, example in enumerate(listed):
        width = batch.inputs.shape[1]
        assert batch.input_mask[row].tolist() == [k < len(example.inputs) for k in range(width)]
        width = batch.targets.shape[1]
        assert batch.target_mask[row].tolist() == [k < len(example.targets) for k in range(width)]


def test_a_length_of_zero_masks_everything():
    assert prefix_mask(torch.tensor([0, 2]), 3).tolist() == [[False] * 3, [True, True, False]]


@given(batches, st.data())
def test_rows_of_a_batch_are_the_same_examples_with_their_padding(drawn, data):
    listed = examples(drawn)
    batch = collate(listed)
    chosen = data.draw(st.lists(st.integers(0, len(listed) - 1), min_size=1, max_size=4))
    part = batch.rows(torch.tensor(chosen))
    assert part.inputs.shape == (len(chosen), batch.inputs.shape[1])
    for row, place in enumerate(chosen):
        for name in type(batch).__dataclass_fields__:
            assert getattr(part, name)[row].equal(getattr(batch, name)[place])
    first = batch.rows(slice(1))
    assert first.targets.equal(batch.targets[:1])
    assert len(first) == 1


def test_lengths_stay_on_the_cpu_where_packing_needs_them():
    batch = collate([Example(0, [1, 2], [0], [1])]).to("meta")
    assert batch.input_lengths.device.type == batch.target_lengths.device.type == "cpu"
    others = {"ids", "inputs", "decoder_inputs", "targets", "gold"}
    assert {getattr(batch, name).device.type for name in others} == {"meta"}
    assert batch.input_mask.device.type == batch.target_mask.device.type == "meta"


@given(batches, st.integers(0, 3), st.integers(0, 3))
def test_trimming_takes_off_shared_padding_and_nothing_else(drawn, more_inputs, more_outputs):
    batch = collate(examples(drawn))
    wide = replace(
        batch,
        inputs=pad(batch.inputs, (0, more_inputs)),
        decoder_inputs=pad(batch.decoder_inputs, (0, more_outputs)),
        targets=pad(batch.targets, (0, more_outputs)),
        gold=pad(batch.gold, (0, more_outputs), value=-1),
    )
    for name in type(batch).__dataclass_fields__:
        assert getattr(wide.trimmed(), name).equal(getattr(batch, name))


@given(batches, st.integers(0, 12))
def test_batches_of_like_length_hold_every_example_once_and_say_which(drawn, cells):
    batch = collate(examples(drawn))
    seen = []
    for rows, part in batch.by_length(lambda inp, out: cells // max(inp, out)):
        seen += rows.tolist()
        own = batch.rows(rows).trimmed()
        for name in type(batch).__dataclass_fields__:
            assert getattr(part, name).equal(getattr(own, name))
    assert sorted(seen) == list(range(len(batch)))


@given(batches, st.integers(1, 40))
def test_batches_of_like_length_are_no_larger_than_asked_for(drawn, cells):
    batch = collate(examples(drawn))
    for rows, part in batch.by_length(lambda inp, out: cells // (inp * out)):
        # A single example too large for the room still has to be run.
        assert len(rows) == 1 or part.inputs.shape[1] * part.targets.shape[1] * len(rows) <= cells


@given(batches)
def test_batches_of_like_length_go_from_long_to_short(drawn):
    batch = collate(examples(drawn))
    longest = torch.maximum(batch.input_lengths, batch.target_lengths)
    order = [int(rows) for rows, _ in batch.by_length(lambda inp, out: 1)]
    assert longest[order].tolist() == sorted(longest.tolist(), reverse=True)


def test_an_empty_batch_has_no_batches_of_like_length():
    batch = collate([Example(0, [1, 2], [0], [1])]).rows(slice(0))
    assert list(batch.by_length(lambda inp, out: 4)) == []


def test_a_part_of_a_batch_is_spread_over_it_and_trimmed():
    lengths = [9, 1, 2, 3, 9, 1, 1, 9, 4]
    batch = collate([Example(n, [1] * length, [0], [1]) for n, length in enumerate(lengths)])
    assert batch.spread(3).ids.tolist() == [0, 4, 8]
    assert batch.rows(slice(1, 4)).spread(2).inputs.shape == (2, 3)
    assert batch.spread(9) is batch
