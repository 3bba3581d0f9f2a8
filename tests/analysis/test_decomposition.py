"""Components against their definition (aitken Eq. 1), with loops over stored states, and laws."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from attnscope.analysis.decomposition import (
    Accumulator,
    Components,
    Side,
    decompose,
    decompose_views,
    states_of,
)
from attnscope.data.batch import Batch, prefix_mask
from attnscope.data.tasks import KeywordTask, SampledCopy
from attnscope.errors import UsageError
from attnscope.models.attentions import Additive
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.models.trace import Trace
from cases import for_each

COPYING = SampledCopy(length=6, vocabulary=8)
EXACT = {"rtol": 0, "atol": 1e-12}


def made_up_side(count: int = 40, time: int = 7, types: int = 5, width: int = 3) -> Side:
    """Return states of unequal lengths; word frequencies depend on the time step."""
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(count, time, width, generator=generator, dtype=torch.float64)
    lengths = torch.randint(1, time + 1, (count,), generator=generator)
    lengths[0] = time
    ids = torch.randint(types, (count, time), generator=generator)
    ids = torch.minimum(ids, torch.arange(time).expand_as(ids))
    return Side(states + ids[..., None], ids, prefix_mask(lengths, time))


def rows(side: Side, index: slice) -> Side:
    """Return some examples, without the padding that they share."""
    time = int(side.mask[index].sum(1).max())
    return Side(side.states[index, :time], side.ids[index, :time], side.mask[index, :time])


def components_of(*sides: Side) -> Components:
    accumulator = Accumulator()
    for side in sides:
        accumulator.update(side)
    return accumulator.components()


def assert_same(a: Components, b: Components) -> None:
    for name in ("temporal", "word", "time_counts", "word_counts"):
        torch.testing.assert_close(getattr(a, name), getattr(b, name), equal_nan=True, **EXACT)


def copying_batch(count: int = 30) -> Batch:
    """Return examples cut to unequal lengths, the input's others than the output's."""
    batch = COPYING.evaluation_batch(count)
    inp, out = torch.randint(2, 8, (2, count), generator=torch.Generator().manual_seed(1))
    return replace(batch, input_lengths=inp, target_lengths=out)


@torch.no_grad()
def traces_of(model: torch.nn.Module, batch: Batch, size: int) -> list[Trace]:
    return [
        model.trace(batch.rows(slice(start, start + size)).trimmed())  # type: ignore[operator]
        for start in range(0, len(batch), size)
    ]


def test_components_are_those_of_equation_1() -> None:
    side = made_up_side()
    found = components_of(side)
    states, ids, mask = (x.numpy() for x in (side.states, side.ids, side.mask))
    by_time, by_word = defaultdict(list), defaultdict(list)
    for example, step in np.argwhere(mask):
        by_time[step].append(states[example, step])
    mu = {step: np.mean(values, 0) for step, values in by_time.items()}
    for example, step in np.argwhere(mask):
        by_word[ids[example, step]].append(states[example, step] - mu[step])
    for step, mean in mu.items():
        np.testing.assert_allclose(found.temporal[step], mean, **EXACT)
        assert found.time_counts[step] == len(by_time[step])
    for word, values in by_word.items():
        np.testing.assert_allclose(found.word[word], np.mean(values, 0), **EXACT)
        assert found.word_counts[word] == len(values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_three_components_sum_to_the_state(dtype: torch.dtype) -> None:
    side = made_up_side()
    side = replace(side, states=side.states.to(dtype))
    parts = components_of(side).split(side)
    assert parts.mask.equal(side.mask)
    total = parts.temporal + parts.word + parts.delta
    torch.testing.assert_close(total[side.mask], side.states.double()[side.mask], **EXACT)
    torch.testing.assert_close(parts.input_delta, parts.word + parts.delta)
    assert not total[~side.mask].any()


def test_states_without_mu_sum_to_zero_at_each_time_step() -> None:
    side = made_up_side()
    parts = components_of(side).split(side)
    torch.testing.assert_close(parts.input_delta.sum(0), torch.zeros(7, 3).double(), **EXACT)


def test_deltas_sum_to_zero_over_each_words_occurrences() -> None:
    side = made_up_side()
    delta = components_of(side).split(side).delta
    for word in range(5):
        assert float(delta[(side.ids == word) & side.mask].sum(0).abs().max()) < 1e-12


def test_deltas_of_a_time_step_sum_to_minus_its_input_components_and_not_to_zero() -> None:
    side = made_up_side()
    found = components_of(side)
    parts = found.split(side)
    torch.testing.assert_close(parts.delta.sum(0), -parts.word.sum(0), **EXACT)
    assert parts.delta.sum(0).abs().max() > 0.1


def test_input_components_weighted_by_their_counts_sum_to_zero() -> None:
    found = components_of(made_up_side())
    weighted = (found.word_counts[:, None] * found.word).sum(0)
    torch.testing.assert_close(weighted, torch.zeros(3).double(), **EXACT)


@given(st.lists(st.integers(1, 39), max_size=5), st.booleans())
def test_streamed_equals_stored(cuts: list[int], backwards: bool) -> None:
    side = made_up_side()
    bounds = sorted({0, 40, *cuts})
    batches = [rows(side, slice(*ends)) for ends in pairwise(bounds)]
    assert_same(components_of(*batches[:: -1 if backwards else 1]), components_of(side))


@for_each("junk", [torch.nan, torch.inf, 1e9])
def test_padding_never_changes_a_component(junk: float) -> None:
    side = made_up_side()
    states = side.states.masked_fill(~side.mask[..., None], junk)
    padded = Side(states, side.ids.masked_fill(~side.mask, -100), side.mask)
    assert_same(components_of(padded), components_of(side))
    parts, expected = (components_of(side).split(x) for x in (padded, side))
    torch.testing.assert_close(parts.delta, expected.delta, **EXACT)


def test_balanced_sums_of_a_path_and_words_are_recovered_up_to_the_mean_word() -> None:
    # Every word stands equally often at every step, so that the mean word goes to the path.
    time, types = 6, 4
    drawn = torch.randn(time + types, 3, generator=torch.Generator().manual_seed(2))
    path, words = drawn.double().split([time, types])
    ids = (torch.arange(types)[:, None] + torch.arange(time)) % types
    side = Side(path + words[ids], ids, torch.ones_like(ids, dtype=torch.bool))
    found = components_of(side)
    torch.testing.assert_close(found.temporal, path + words.mean(0), **EXACT)
    torch.testing.assert_close(found.word, words - words.mean(0), **EXACT)
    assert found.split(side).delta.abs().max() < 1e-12


def test_noise_beside_path_and_words_averages_out() -> None:
    generator = torch.Generator().manual_seed(3)
    words = torch.tensor([[1.0, 0], [-1, 0], [0, 1], [0, -1]]).double()
    ids = torch.randint(4, (20_000, 5), generator=generator)
    path = torch.arange(5).double()[:, None].expand(5, 2)
    noise = torch.randn(*ids.shape, 2, generator=generator).double()
    side = Side(path + words[ids] + noise, ids, torch.ones_like(ids, dtype=torch.bool))
    found = components_of(side)
    # 20 000 states a step and 25 000 a word: standard errors near .01.
    torch.testing.assert_close(found.temporal, path, rtol=0, atol=0.05)
    torch.testing.assert_close(found.word, words, rtol=0, atol=0.05)
    assert float(found.split(side).delta.square().mean()) == pytest.approx(1, abs=0.02)


def test_small_differences_survive_large_states() -> None:
    small = made_up_side(types=3)
    large = replace(small, states=(small.states * 2**-12).float() + 1000)
    batches = [rows(large, slice(start, start + 1)) for start in range(40)]
    exact = replace(large, states=large.states.double() - 1000)
    found, expected = components_of(*batches), components_of(exact)
    torch.testing.assert_close(found.word, expected.word, rtol=0, atol=1e-11)


def test_what_was_never_seen_has_no_component_and_lies_outside_the_mask() -> None:
    side = made_up_side()
    first = Side(side.states[:, :3], side.ids[:, :3] * 2, side.mask[:, :3])  # words 0, 2, 4
    found = components_of(first)
    assert found.seen.tolist() == [True, False, True, False, True]
    assert found.word[1].isnan().all()
    asked = found.words(torch.tensor([4, 1, 99]))
    assert asked[0].equal(found.word[4])
    assert asked[1:].isnan().all()
    parts = found.split(side)
    known = side.mask & (side.ids % 2 == 0) & (torch.arange(7) < 3)
    assert parts.mask.equal(known)
    for values in (parts.temporal, parts.word, parts.delta):
        assert values.isfinite().all()
        assert not values[~known].any()
    later = replace(side, ids=side.ids + 10)
    assert not found.split(later).mask.any()


@pytest.mark.parametrize(
    "spec",
    [
        Seq2SeqSpec(embedding=4, hidden=5),
        Seq2SeqSpec(embedding=4, hidden=5, layers=2, directions=2, heads=2, cell="gru"),
    ],
    ids=["copying", "translator"],
)
def test_states_of_a_sequence_model_in_batches_equal_stored_ones(spec: Seq2SeqSpec) -> None:
    model, batch = spec.build(COPYING, 0).double(), copying_batch()
    stored, streamed = (decompose(traces_of(model, batch, size)) for size in (len(batch), 7))
    assert stored.decoder is not None
    assert streamed.decoder is not None
    assert_same(stored.encoder, streamed.encoder)
    assert_same(stored.decoder, streamed.decoder)
    assert stored.encoder.temporal.shape[1] == 5 * spec.directions


def test_a_classifier_has_components_of_its_encoder_alone() -> None:
    task = KeywordTask(length=6, types=5)
    spec = ClassifierSpec(embedding=4, encoder=Recurrent(hidden=3), attention=Additive(hidden=2))
    traces = traces_of(spec.build(task, 0), task.evaluation_batch(20), 20)
    found = decompose(traces)
    assert found.decoder is None
    assert found.encoder.temporal.shape == (6, 6)


def test_decoder_states_are_grouped_by_the_words_the_decoder_reads() -> None:
    model, batch = Seq2SeqSpec(embedding=4, hidden=5).build(COPYING, 0), copying_batch()
    (trace,) = traces_of(model, batch, len(batch))
    one_hot = torch.nn.functional.one_hot(trace.batch.decoder_inputs, 10).double()
    found = decompose([replace(trace, decoder_states=one_hot)]).decoder
    assert found is not None
    start = trace.batch.decoder_inputs[0, 0]
    # SOS is read at the first step alone, where its state is the mean state.
    assert found.word[start].abs().max() == 0
    assert found.word_counts[start] == len(batch)
    assert found.word_counts.sum() == batch.target_lengths.sum()
    words = found.word[:8]
    assert torch.equal(words.argmax(1), torch.arange(8))


def test_several_views_of_one_pass_are_those_of_several_passes() -> None:
    model, batch = Seq2SeqSpec(embedding=4, hidden=5).build(COPYING, 0), copying_batch()
    traces = traces_of(model, batch, 7)

    def embeddings(trace: Trace):
        sides = states_of(trace)
        return replace(sides, encoder=replace(sides.encoder, states=trace.embeddings))

    found = decompose_views(iter(traces), {"states": states_of, "embeddings": embeddings})
    assert_same(found["states"].encoder, decompose(traces).encoder)
    assert_same(found["embeddings"].encoder, decompose(traces, embeddings).encoder)


def test_a_negative_word_another_width_and_no_state_at_all_are_refused() -> None:
    side = made_up_side()
    with pytest.raises(UsageError, match="Word -1 has no component"):
        Accumulator().update(replace(side, ids=side.ids - 1))
    accumulator = Accumulator()
    accumulator.update(side)
    with pytest.raises(UsageError, match="States are 2 wide where those before were 3"):
        accumulator.update(replace(side, states=side.states[..., :2]))
    with pytest.raises(UsageError, match="There are no states to decompose"):
        decompose([])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_gives_the_same_components() -> None:
    side = made_up_side()
    on_gpu = Side(side.states.cuda(), side.ids.cuda(), side.mask.cuda())
    found, expected = components_of(on_gpu), components_of(side)
    torch.testing.assert_close(found.word.cpu(), expected.word, **EXACT)
    parts = expected.split(on_gpu)
    torch.testing.assert_close(parts.delta.cpu(), expected.split(side).delta, **EXACT)
