"""Streamed measures of states against loops, closed forms and known figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from attnscope.analysis.decomposition import Accumulator, Components, Parts, Side
from attnscope.analysis.state_measures import (
    Occurrences,
    OffsetProducts,
    WordVariance,
    attention_cells,
    attention_overlap,
    cross_orthogonality,
    delta_share,
    gold_offset,
    input_delta_size,
    marker_offset,
    occurrences,
    orthogonality,
    preceding_word_share,
    preceding_word_silhouette,
)
from attnscope.analysis.streaming import cell_means
from attnscope.data.batch import Example, collate, prefix_mask
from attnscope.data.escan import ExtendedScan
from attnscope.models.trace import Site
from cases import for_each

EXACT = {"rtol": 0, "atol": 1e-12}


def made_up_side(count: int = 40, time: int = 7, types: int = 5, width: int = 3) -> Side:
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(count, time, width, generator=generator, dtype=torch.float64)
    lengths = torch.randint(1, time + 1, (count,), generator=generator)
    lengths[0] = time
    ids = torch.randint(types, (count, time), generator=generator)
    path = torch.arange(time).double()[:, None]
    return Side(states + ids[..., None] + path, ids, prefix_mask(lengths, time))


def batches(side: Side, size: int) -> Iterator[Side]:
    for start in range(0, len(side.ids), size):
        index = slice(start, start + size)
        time = int(side.mask[index].sum(1).max())
        yield Side(side.states[index, :time], side.ids[index, :time], side.mask[index, :time])


def components_of(side: Side) -> Components:
    accumulator = Accumulator()
    accumulator.update(side)
    return accumulator.components()


def parts_of(temporal: list, word: list, delta: list) -> Parts:
    """Return the parts of one example."""
    tensors = (torch.tensor([values]).double() for values in (temporal, word, delta))
    return Parts(*tensors, torch.ones(1, len(temporal), dtype=torch.bool))


def test_sizes_of_parts_by_hand() -> None:
    # ‖Δ‖² = 1, 4 and ‖χ + Δ‖² = 2, 8; ‖χ + Δ‖ = √2, √8 and ‖μ‖ = 5, 10.
    parts = parts_of([[3.0, 4], [6, 8]], [[1.0, 0], [0, 2]], [[0.0, 1], [2, 0]])
    assert delta_share(parts).value == pytest.approx(0.5)
    assert input_delta_size(parts).value == pytest.approx((2**0.5 + 8**0.5) / 15)


def test_orthogonal_and_parallel_parts() -> None:
    parts = parts_of([[0.0, 2], [0, -3]], [[1.0, 0], [0, 1]], [[1.0, 0], [0, 0]])
    assert orthogonality(parts).value == pytest.approx(0.5)  # cosines 0 and −1
    other = torch.tensor([[5.0, 0], [5, 5]])
    # With the first: 1 and 0; with the second: √½ both times.
    assert cross_orthogonality(parts, other).value == pytest.approx((1 + 2**0.5) / 4)


def test_a_direction_below_rounding_is_no_direction() -> None:
    parts = parts_of([[1.0, 0], [1.0, 0], [1.0, 0]], [[1e-9, 0], [0, 1], [0, 0]], [[0.0, 0]] * 3)
    assert orthogonality(parts).value == 0
    assert orthogonality(parts).below.item() == 1


@for_each("measure", [delta_share, input_delta_size, orthogonality])
def test_batching_and_padding_change_no_measure(measure) -> None:
    side = made_up_side()
    found = components_of(side)
    whole = measure(found.split(side))
    parts = [measure(found.split(batch)) for batch in batches(side, 7)]
    torch.testing.assert_close(torch.cat([p.above for p in parts]), whole.above, **EXACT)
    torch.testing.assert_close(torch.cat([p.below for p in parts]), whole.below, **EXACT)


def test_word_variances_are_those_of_numpy() -> None:
    side = made_up_side()
    found = components_of(side)
    streamed = WordVariance(found)
    for batch in batches(side, 7):
        streamed.update(batch)
    expected = []
    for word in range(5):
        here = (side.ids == word) & side.mask
        states = side.states[here].numpy()
        rest = (side.states - found.temporal)[here].numpy()
        traces = [np.trace(np.cov(values.T, ddof=0)) for values in (states, rest)]
        np.testing.assert_allclose(streamed.traces[:, word], traces, **EXACT)
        expected.append(traces[1] / traces[0])
    assert streamed.drop() == pytest.approx(1 - np.mean(expected))
    assert streamed.drop(excluded=[0, 99]) == pytest.approx(1 - np.mean(expected[1:]))


def test_subtracting_the_path_removes_all_variance_of_path_and_words_alone() -> None:
    ids = (torch.arange(4)[:, None] + torch.arange(6)) % 4
    states = torch.arange(6).double()[:, None] + 10 * ids[..., None].double()
    side = Side(states, ids, torch.ones_like(ids, dtype=torch.bool))
    variance = WordVariance(components_of(side))
    variance.update(side)
    assert variance.drop() == pytest.approx(1)


def test_a_word_read_once_has_no_variance() -> None:
    side = made_up_side()
    ids = side.ids.clone()
    ids[0, 0] = 9
    side = replace(side, ids=ids)
    variance = WordVariance(components_of(side))
    variance.update(side)
    assert variance.ratio.isnan().tolist() == [False] * 5 + [True] * 5


def test_products_by_word_and_offset_are_means_over_samples_then_positions() -> None:
    side, decoder_side = made_up_side(), made_up_side(types=4)
    encoder, decoder = components_of(side), components_of(decoder_side)
    out_mask = decoder_side.mask
    streamed = OffsetProducts(encoder, decoder)
    start = 0
    for batch in batches(side, 7):
        out = out_mask[start : start + 7]
        streamed.update(batch, out[:, : int(out.sum(1).max())])
        start += 7
    assert streamed.offsets == (-2, -1, 0, 1, 2, 3, 4)
    for word, offset in product(range(5), range(-2, 5)):
        positions = []
        for t in range(7):
            s = t - offset
            if not 0 <= s < 7:
                continue
            here = (side.ids[:, t] == word) & side.mask[:, t] & out_mask[:, s]
            if here.any():
                rest = side.states[here, t] - encoder.temporal[t]
                positions.append(float((rest @ decoder.temporal[s]).mean()))
        assert float(streamed.mean[word, offset + 2]) == pytest.approx(np.mean(positions))


def site_of(weights: Tensor, mask: Tensor) -> Site:
    values = weights.new_zeros(*weights.shape[:2], weights.shape[-1], 1)
    return Site(mask, weights.log(), weights, values)


def test_samples_that_attend_alike_overlap_with_the_mean_wholly() -> None:
    weights = torch.rand(1, 2, 3, 4, generator=torch.Generator().manual_seed(0)).double()
    weights = (weights / weights.sum(-1, keepdim=True)).expand(5, -1, -1, -1)
    site, real = site_of(weights, torch.ones(5, 4) > 0), torch.ones(5, 3) > 0
    mean = cell_means([attention_cells(site, real)]).mean
    torch.testing.assert_close(mean, weights[0])
    assert attention_overlap(site, mean, real).value == pytest.approx(1)


def test_overlap_of_two_samples_with_nothing_in_common_is_one_half() -> None:
    weights = torch.eye(2).double()[
        :, None, None
    ]  # one attends to the first word, one to the other
    site, real = site_of(weights, torch.ones(2, 2) > 0), torch.ones(2, 1) > 0
    mean = cell_means([attention_cells(site, real)]).mean
    assert attention_overlap(site, mean, real).value == pytest.approx(0.5)


def test_the_mean_attention_of_a_short_sample_is_taken_over_its_real_positions() -> None:
    mean = torch.tensor([[[0.2, 0.2, 0.6]]]).double()
    site = site_of(
        torch.tensor([[[[0.5, 0.5, 0.0]]]]).double(), torch.tensor([[True, True, False]])
    )
    assert attention_overlap(site, mean, torch.ones(1, 1) > 0).value == pytest.approx(1)


def test_the_gold_offset_is_how_far_ahead_of_its_output_a_word_is_read() -> None:
    examples = [Example(0, [1, 2, 3], [0, 1], [1, 2], [2, -1]), Example(1, [1], [0], [1], [0])]
    expected = torch.tensor([[2.0, torch.nan], [0, torch.nan]]).double()
    torch.testing.assert_close(gold_offset(collate(examples)), expected, equal_nan=True)


def test_the_expected_offsets_of_escan_start_as_recorded() -> None:
    # The 90 phrases over verb 0, left 1, twice 2, and 3, each with the separator 4, in all pairs.
    single = [[0], [0, 1], [0, 2]]
    pairs = [[*a, 3, *b] for a, b in product(single, single)]
    phrases = [[*phrase, 4] for phrase in 3 * single + 9 * pairs]
    assert len(phrases) == 90
    inputs = torch.tensor([(first + second)[:4] for first, second in product(phrases, phrases)])
    mean = marker_offset(inputs, torch.ones_like(inputs) > 0, silent=3, late=1).mean(0)[:3]
    # A third starts with "v left"; 27 are "v and …"; "v left and", "v twice and" are 54, "v and v
    # left" 9, and after the 3 of "v" alone a third starts with "v left".
    exact = [1 / 3, 27 / 90, 81 / 90 + 9 / 90 + 3 / 90 / 3]
    assert mean.tolist() == pytest.approx(exact)
    recorded = torch.tensor([0.34, 0.31, 1.0]).double()  # from drawn commands
    torch.testing.assert_close(mean, recorded, rtol=0, atol=0.03)


def test_the_authors_recorded_line_of_offsets_is_found_again() -> None:
    recorded = [0.34, 0.31, 1.00, 1.14, 0.99, 1.16, 1.37, 1.64, 1.96, 2.00, 2.08, 2.30, 2.61]
    recorded = torch.tensor([*recorded, 2.97, 3.06]).double()
    task = ExtendedScan(shortest_output=10, longest_output=15, separator="marked")
    batch, word = task.evaluation_batch(2000), list(task.input_words.words).index
    words = prefix_mask(batch.input_lengths - 1, batch.inputs.shape[1])
    offset = marker_offset(batch.inputs, words, word("and"), word("left"))
    mean = cell_means([offset]).mean[: len(recorded)]
    torch.testing.assert_close(mean, recorded, rtol=0, atol=0.08)


def test_context_of_a_word_is_read_off_the_vectors_nearest_to_it() -> None:
    # 'twice' (word 2) looks like the verb before it (0 or 1).
    ids = torch.tensor([[0, 2, 1, 2], [1, 2, 0, 2], [2, 0, 2, 1]])
    verb = torch.where(ids == 2, ids.roll(1, 1), ids)
    look = torch.nn.functional.one_hot(verb, 3).double()
    mask = torch.ones_like(ids) > 0
    noise = 0.01 * torch.randn(*look.shape, generator=torch.Generator().manual_seed(0))
    parts = Parts(torch.zeros_like(look), look, noise.double(), mask)
    found = occurrences(Side(look, ids, mask), parts, word=2)
    assert found.preceding.tolist() == [0, 1, 1, 0, 0]  # that at the start has no word before it
    counts = torch.ones(3, dtype=torch.long)
    components = Components(look[0, :0], torch.eye(3).double(), counts[:0], counts)
    verbs = torch.tensor([1, 0])
    assert preceding_word_share(found, components, verbs) == 1
    assert preceding_word_silhouette(found) > 0.9
    swapped = Occurrences(found.vectors, 1 - found.preceding)
    assert preceding_word_share(swapped, components, verbs) == 0


def test_one_preceding_word_alone_has_no_silhouette() -> None:
    found = Occurrences(torch.eye(3).double(), torch.zeros(3, dtype=torch.long))
    assert np.isnan(preceding_word_silhouette(found))
