"""The numbers of figure 6, each taken of one network: how 'twice', 'and' and 'left' are handled.

With recurrence, what is read at 'twice' holds the verb before it. Without, attention has to fall on
that verb, and words that are not to be attended to lean away from the decoder's temporal component.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.agreement import argmax_at
from attnscope.analysis.alignment_terms import CROSS, AlignmentTerms, alignment_terms
from attnscope.analysis.components import principal_axes
from attnscope.analysis.decomposition import states_of
from attnscope.analysis.state_measures import (
    OFFSETS,
    Occurrences,
    OffsetProducts,
    occurrences,
    preceding_word_share,
    preceding_word_silhouette,
)
from attnscope.analysis.streaming import CellMeans, Ratio, collect, mean_of
from attnscope.data.batch import Batch, Example, collate
from attnscope.data.escan import VERBS, ExtendedScan, Phrase
from attnscope.data.randomness import generator
from attnscope.models.trace import Trace
from attnscope.recipes.aitken.fig5_measure import common_logits
from attnscope.recipes.aitken.groups import Numbers, key
from attnscope.recipes.aitken.networks import Network

# A silhouette's time grows with the square of the number of occurrences.
_OCCURRENCES = 1000
_SHOWN = 20
AROUND = range(-4, 5)
PARTS = ("alignment", "temporal", "input-delta", "rest")


def same_length_batch(task: ExtendedScan, count: int) -> Batch:
    """Return sequences of phrases without 'and', where input and output have one length.

    So few of eSCAN's sequences are of this kind that they are drawn on their own, with its lengths.
    """
    clauses = [phrase for phrase in task.phrases if "and" not in phrase.inputs]
    # Twice as many as are needed, since a phrase that would be too long is passed over.
    shape = count, 2 * task.shortest_output
    drawn = torch.randint(
        len(clauses), shape, generator=generator("evaluation", f"{task.dataset}, T = S")
    )
    rows = [_in_a_row(task, [clauses[index] for index in row]) for row in drawn.tolist()]
    return collate([_example(task, number, row) for number, row in enumerate(rows)])


def _in_a_row(task: ExtendedScan, clauses: Sequence[Phrase]) -> Phrase:
    whole = Phrase((), (), ())
    for clause in clauses:
        size = len(whole.outputs)
        if size < task.shortest_output and size + len(clause.outputs) < task.longest_output:
            whole = whole.then(clause)
    return whole


def _example(task: ExtendedScan, number: int, row: Phrase) -> Example:
    outputs = task.output_words.encode((*row.outputs, "<eos>"))
    return Example(
        id=number,
        inputs=task.input_words.encode((*row.inputs, "<eos>")),
        decoder_inputs=[task.output_words.id("<sos>"), *outputs[:-1]],
        targets=outputs,
        gold=(*row.gold, len(row.inputs)),
    )


def context_numbers(network: Network) -> Numbers:
    """Return whether χ + Δh at 'twice' lies near the verb before it, and clusters by it."""
    words = network.source.input_words
    found = _at_twice(network)
    verbs = torch.tensor([words.id(verb) for verb in VERBS])
    return {
        key("preceding_verb"): preceding_word_share(found, network.states.encoder, verbs),
        key("silhouette"): preceding_word_silhouette(found),
    }


def _at_twice(network: Network) -> Occurrences:
    """Return the first occurrences of 'twice' over all sequences."""
    twice = network.source.input_words.id("twice")
    parts: list[Occurrences] = []
    for trace in network.traces():
        side = states_of(trace).encoder
        parts.append(occurrences(side, network.states.encoder.split(side), twice))
    return Occurrences(
        torch.cat([part.vectors for part in parts])[:_OCCURRENCES],
        torch.cat([part.preceding for part in parts])[:_OCCURRENCES],
    )


def product_numbers(network: Network) -> Numbers:
    """Return (χ + Δh)·μ^D by word and offset, and how that of 'left' grows with the offset."""
    assert network.cross.decoder is not None
    products = OffsetProducts(network.cross.encoder, network.cross.decoder)
    for trace in network.traces():
        products.update(CROSS(trace).encoder, trace.batch.target_mask)
    table = dict(zip(network.words, products.mean.tolist(), strict=False))
    found = {
        key("offset_product", word=word, offset=offset): value
        for word, line in table.items()
        for offset, value in zip(OFFSETS, line, strict=True)
    }
    slope = np.polyfit(np.array(OFFSETS, float), np.array(table["left"]), 1)[0]
    return found | {key("left_slope"): float(slope)}


def twice_numbers(network: Network) -> Numbers:
    """Return how often the output of 'twice' attends to the word before it, and by which terms.

    On all sequences the output is the one that comes from 'twice'; where T = S it is that of the
    same position. Components are always those of all sequences.
    """
    same = list(same_length_traces(network))
    subsets = {
        "all": collect(network.traces(), {"": _previous}),
        "T=S": collect(same, {"": _previous}),
    }
    found = {
        key("twice_previous", sequences=name): ratio[""].value for name, ratio in subsets.items()
    }
    second = common_logits(network).topk(2).indices
    steps = torch.arange(len(second))
    found |= {
        key("temporal_rank", rank=rank + 1, offset=offset): float(
            (second[:, rank] - steps == offset).double().mean()
        )
        for rank, offset in ((0, 0), (1, -1))
    }
    means = CellMeans()
    for trace in same:
        for terms, rows in _by_rows(trace, network):
            means.update(_around(terms, rows))
    return found | {
        key("twice_alignment", part=part, offset=offset): value
        for part, line in zip(PARTS, means.mean.tolist(), strict=True)
        for offset, value in zip(AROUND, line, strict=True)
    }


def same_length_traces(network: Network, batch_size: int = 100) -> Iterator[Trace]:
    """Yield forward passes over sequences with T = S, of the lengths that were trained on."""
    task = network.source
    assert isinstance(task, ExtendedScan)
    batch = same_length_batch(task, network.samples)
    for start in range(0, len(batch), batch_size):
        with torch.no_grad():
            trace = network.model.trace(batch.rows(slice(start, start + batch_size)))
        yield trace


def twice_steps(batch: Batch) -> Bool[Tensor, "batch out"]:
    """Return the output positions that come from 'twice'."""
    twice = ExtendedScan().input_words.id("twice")
    return (batch.inputs.gather(1, batch.gold.clamp(min=0)) == twice) & (batch.gold >= 0)


def _previous(trace: Trace) -> Ratio:
    batch, site = trace.batch, trace.sites["cross"]
    before = (batch.gold - 1).masked_fill(~twice_steps(batch), -1)
    return mean_of(argmax_at(site.weights[:, 0], before, site.mask))


def _by_rows(
    trace: Trace, network: Network
) -> Iterator[tuple[AlignmentTerms, Bool[Tensor, "batch out"]]]:
    """Yield terms together with the outputs of 'twice' of the same sequences."""
    steps, start = twice_steps(trace.batch), 0
    for terms in alignment_terms(trace, network.cross):
        yield terms, steps[start : start + len(terms.mask)]
        start += len(terms.mask)


def _around(
    terms: AlignmentTerms, rows: Bool[Tensor, "batch out"]
) -> Float[Tensor, "occurrence part offset"]:
    """Return the alignment and its parts round s = t, NaN outside the sequence."""
    values = terms.values[:, 0]  # batch, term, out, inp
    temporal, both = values[:, 0], values[:, 1] + values[:, 2]
    total = values.sum(1)
    parts = torch.stack([total, temporal, both, total - temporal - both], 1)
    parts = parts.masked_fill(~terms.mask[:, None], torch.nan)
    out, inp = terms.mask.shape[1:]
    places = torch.arange(out)[:, None] + torch.tensor(list(AROUND))
    index = places.clamp(0, inp - 1).expand(*parts.shape[:2], -1, -1).to(parts.device)
    near = parts.gather(-1, index)
    outside = (places != places.clamp(0, inp - 1)).to(parts.device)
    return near.masked_fill(outside, torch.nan).transpose(1, 2)[rows]


def context_plane(network: Network) -> Numbers:
    """Return input-delta components of words, and of 'twice' by its verb, in a plane (Fig. 6a)."""
    components = network.states.encoder
    axes = principal_axes(components.words(torch.arange(len(network.words))))
    twice = _at_twice(network)
    clouds = {
        f"{word} twice": twice.vectors[twice.preceding == network.words.index(word)]
        for word in VERBS
    }
    side = states_of(next(network.traces())).encoder
    parts = components.split(side)
    for index, word in enumerate(network.words):
        if word not in ("twice", "<eos>"):
            clouds[word] = parts.input_delta[(side.ids == index) & parts.mask]
    return {
        key("context_plane", point="state", word=word, number=number, pc=pc + 1): round(value, 5)
        for word, states in clouds.items()
        for number, place in enumerate(axes.project(states[:_SHOWN]).tolist())
        for pc, value in enumerate(place)
    }
