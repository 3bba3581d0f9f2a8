"""Heads: what decides their initialisation, and how their contexts are joined (snell §5.2)."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, strategies as st

from attnscope.data.tasks import PermutationCopy
from attnscope.models.heads import HEADS, AveragedHeads, SummedHeads
from attnscope.models.seq2seq import Seq2SeqSpec

SOURCE = PermutationCopy(length=4)
seeds = st.lists(st.integers(0, 2**62), min_size=1, max_size=5)
joins = pytest.mark.parametrize("join", ["summed", "averaged"])


def drawn(*key, shape):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(*key))


def head_parameters(model, head):
    return {
        name.replace(f".{head}.", "."): parameter
        for name, parameter in model.named_parameters()
        if f"_maps.{head}." in name
    }


def base_parameters(model):
    return {name: p for name, p in model.named_parameters() if "_maps." not in name}


def assert_equal_parameters(one, other):
    assert one.keys() == other.keys()
    assert one
    assert all(one[name].equal(other[name]) for name in one)


@joins
@given(before=seeds, own=st.integers(0, 2**62), after=seeds)
def test_a_heads_initialisation_depends_on_its_own_seed_alone(join, before, own, after):
    alone = HEADS[join](3, 4, [own])
    among = HEADS[join](3, 4, [*before, own, *after])
    assert_equal_parameters(head_parameters(alone, 0), head_parameters(among, len(before)))


@joins
def test_heads_of_different_seeds_differ_in_every_part(join):
    heads = HEADS[join](3, 4, [1, 2])
    one, other = head_parameters(heads, 0), head_parameters(heads, 1)
    assert one.keys() == other.keys()
    assert not any(one[name].equal(other[name]) for name in one)


def test_the_maps_of_one_head_are_drawn_apart():
    parameters = head_parameters(HEADS["averaged"](4, 4, [1]), 0)
    assert not parameters["query_maps.weight"].equal(parameters["value_maps.weight"])


@joins
@given(seeds)
def test_the_base_model_does_not_depend_on_the_heads(join, head_seeds):
    sizes = {"embedding": 3, "hidden": 4, "join": join}
    one = Seq2SeqSpec(**sizes, head_seeds=(1,)).build(SOURCE, 5)
    several = Seq2SeqSpec(**sizes, head_seeds=tuple(head_seeds)).build(SOURCE, 5)
    assert_equal_parameters(base_parameters(one), base_parameters(several))


@joins
def test_more_heads_of_a_unit_keep_the_first_ones(join):
    sizes = {"embedding": 3, "hidden": 4, "join": join}
    two, four = (Seq2SeqSpec(**sizes, heads=k).build(SOURCE, 5).attention for k in (2, 4))
    for head in range(2):
        assert_equal_parameters(head_parameters(two, head), head_parameters(four, head))


def test_seeds_of_base_and_heads_leave_the_units_seed_to_the_data_alone():
    spec = Seq2SeqSpec(embedding=3, hidden=4, base_seed=1, head_seeds=(2, 3))
    one, other = (spec.build(SOURCE, seed).state_dict() for seed in (5, 6))
    assert all(one[name].equal(other[name]) for name in one)
    moved = spec.model_copy(update={"base_seed": 4}).build(SOURCE, 5)
    assert not moved.output.weight.equal(one["output.weight"])


def test_queries_are_one_affine_map_per_head():
    heads = SummedHeads(3, 4, [1, 2]).double()
    states = drawn(0, shape=(2, 5, 3))
    for k, layer in enumerate(heads.query_maps):
        weight, bias = layer.state_dict().values()
        expected = torch.einsum("ji,bti->btj", weight, states) + bias
        torch.testing.assert_close(heads.queries(states)[:, k], expected)


def test_summed_heads_map_the_sum_of_their_contexts():
    heads = SummedHeads(3, 4, [1, 2, 3]).double()
    context = drawn(0, shape=(2, 5, 3, 4))
    total = context[:, :, 0] + context[:, :, 1] + context[:, :, 2]
    expected = total @ heads.project.weight.T + heads.project.bias
    torch.testing.assert_close(heads.merge(context), expected)


def test_summed_heads_attend_to_the_encoder_states_themselves():
    heads, states = SummedHeads(3, 4, [1, 2, 3]).double(), drawn(0, shape=(2, 6, 4))
    assert all(heads.values(states)[:, k].equal(states) for k in range(3))


def test_averaged_heads_take_the_mean_of_their_own_maps_of_their_contexts():
    heads, states = AveragedHeads(3, 4, [1, 2, 3]).double(), drawn(0, shape=(2, 6, 4))
    weights = drawn(1, shape=(2, 3, 5, 6)).softmax(-1)
    merged = heads.merge((weights @ heads.values(states)).transpose(1, 2))
    # The authors' code maps each head's context; a mean of mapped states is the map of their mean.
    mapped = [
        (weights[:, k] @ states) @ layer.weight.T + layer.bias
        for k, layer in enumerate(heads.value_maps)
    ]
    torch.testing.assert_close(merged, (mapped[0] + mapped[1] + mapped[2]) / 3)


def test_one_head_is_joined_in_the_same_way_summed_or_averaged():
    summed, averaged = SummedHeads(3, 4, [1]).double(), AveragedHeads(3, 4, [1]).double()
    averaged.value_maps[0].load_state_dict(summed.project.state_dict())
    states, weights = drawn(0, shape=(2, 6, 4)), drawn(1, shape=(2, 1, 5, 6)).softmax(-1)
    one, other = (
        heads.merge((weights @ heads.values(states)).transpose(1, 2))
        for heads in (summed, averaged)
    )
    torch.testing.assert_close(one, other)
