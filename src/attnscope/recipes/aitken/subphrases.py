"""Words of eSCAN in context: the ends of subphrases, and 'twice' after its verb (Fig. 3a, 6a, b).

With recurrence a state holds a subphrase, and what is read at 'twice' holds the verb before it.
Without, attention has to fall on that verb.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Int
from torch import Tensor

from attnscope.analysis.agreement import argmax_at
from attnscope.analysis.alignment_terms import (
    CROSS,
    alignment_parts,
    compute_alignment_terms,
)
from attnscope.analysis.components import by_offset
from attnscope.analysis.decomposition import states_of
from attnscope.analysis.measures.numbers import Line, Lines, Numbers, number
from attnscope.analysis.network import Network
from attnscope.analysis.state_measures import (
    Occurrences,
    occurrences,
    preceding_word_share,
    preceding_word_silhouette,
)
from attnscope.analysis.streaming import CellMeans, Ratio, mean_of
from attnscope.data.batch import Batch
from attnscope.data.equal_lengths import equal_length_batch, twice_steps
from attnscope.data.escan import VERBS, ExtendedScan
from attnscope.models.trace import Trace

# A silhouette's time grows with the square of the number of occurrences.
_OCCURRENCES = 1000
AROUND = range(-4, 5)
PARTS = ("alignment", "temporal", "input-delta", "rest")


def ends(network: Network) -> Numbers:
    """Return how often the most attended position ends the output's subphrase (Fig. 3a).

    Chance is the attention of another sequence, which is about as diagonal; ``uniform`` is that of
    a position drawn at random. Of two-word subphrases the end is the modifier and not the verb.
    """
    task = _task(network)
    share = network.collected(
        {
            number("subphrase", attended=_END): lambda trace: _at(trace, _ends(task, trace.batch)),
            number("subphrase", attended=_CHANCE): lambda trace: _at(trace, _others(task, trace)),
            number("subphrase", attended="end, two words"): lambda trace: _at(
                trace, _long_ends(task, trace.batch)
            ),
            number("subphrase", attended="end, uniform"): lambda trace: _uniform(task, trace),
            number("subphrase", attended="the same as the output before"): lambda trace: _same(
                task, trace
            ),
        }
    )
    end, chance = (share[number("subphrase", attended=what)] for what in (_END, _CHANCE))
    return share | {
        number("subphrase_difference"): end - chance,
        number("subphrase_ratio"): end / chance if chance else float("nan"),
    }


_END, _CHANCE = "end", "end, another sequence's"


def _task(network: Network) -> ExtendedScan:
    assert isinstance(network.source, ExtendedScan)
    return network.source


def _at(trace: Trace, place: Int[Tensor, "batch out"]) -> Ratio:
    site = trace.sites[CROSS.site]
    return mean_of(argmax_at(site.weights[:, 0], place, site.mask))


def _ends(task: ExtendedScan, batch: Batch) -> Int[Tensor, "batch out"]:
    """Return the ends of subphrases; the end word has none."""
    end = task.output_words.id("<eos>")
    return task.subphrase_ends(batch).masked_fill(batch.targets == end, -1)


def _others(task: ExtendedScan, trace: Trace) -> Int[Tensor, "batch out"]:
    own = _ends(task, trace.batch)
    return own.roll(1, 0).masked_fill(own < 0, -1)


def _long_ends(task: ExtendedScan, batch: Batch) -> Int[Tensor, "batch out"]:
    found = _ends(task, batch)
    last = batch.inputs.gather(1, found.clamp(min=0))
    return found.masked_fill(torch.isin(last, verbs_of(task).to(last.device)), -1)


def _uniform(task: ExtendedScan, trace: Trace) -> Ratio:
    found = _ends(task, trace.batch)
    chance = 1 / trace.batch.input_lengths.to(found.device).double()[:, None]
    return mean_of(chance.expand_as(found).masked_fill(found < 0, torch.nan))


def _same(task: ExtendedScan, trace: Trace) -> Ratio:
    """Return how often two consecutive outputs of one subphrase attend to one position."""
    found, site = _ends(task, trace.batch), trace.sites[CROSS.site]
    highest = site.weights[:, 0].argmax(-1)
    pair = (found[:, 1:] == found[:, :-1]) & (found[:, 1:] >= 0)
    same = (highest[:, 1:] == highest[:, :-1]).double()
    return mean_of(same.masked_fill(~pair, torch.nan))


def verbs_of(task: ExtendedScan) -> Int[Tensor, " verb"]:
    """Return the ids of the verbs."""
    return torch.tensor([task.input_words.id(verb) for verb in VERBS])


def at_twice(network: Network) -> Occurrences:
    """Return χ + Δh at the first occurrences of 'twice' over all sequences."""
    twice = network.source.input_words.id("twice")
    parts: list[Occurrences] = []
    for trace in network.traces():
        side = states_of(trace).encoder
        parts.append(occurrences(side, network.states.encoder.split(side), twice))
    return Occurrences(
        torch.cat([part.vectors for part in parts])[:_OCCURRENCES],
        torch.cat([part.preceding for part in parts])[:_OCCURRENCES],
    )


def context(network: Network) -> Numbers:
    """Return whether χ + Δh at 'twice' is near the verb before it, and clusters by it (Fig. 6a)."""
    found, verbs = at_twice(network), verbs_of(_task(network))
    return {
        number("preceding_verb"): preceding_word_share(found, network.states.encoder, verbs),
        number("silhouette"): preceding_word_silhouette(found),
    }


def with_equal_lengths(network: Network) -> Network:
    """Return the network on sequences without 'and', where T = S."""
    return replace(network, sequences=equal_length_batch(_task(network), network.samples))


def before_twice(network: Network) -> Numbers:
    """Return how often the output of 'twice' attends to the word before it.

    On all sequences the output is the one that comes from 'twice'; where T = S it is that of the
    same position.
    """
    found: Numbers = {}
    for name, on in (("all", network), ("T=S", with_equal_lengths(network))):
        found |= on.collected({number("twice_previous", sequences=name): _previous})
    return found


def _previous(trace: Trace) -> Ratio:
    batch = trace.batch
    return _at(trace, (batch.gold - 1).masked_fill(~twice_steps(batch), -1))


def alignment_at_twice(network: Network) -> Lines:
    """Return the alignment at 'twice' and its parts by offset where T = S (Fig. 6b).

    Components are those of all sequences.
    """
    means = CellMeans()
    for trace in with_equal_lengths(network).traces():
        steps, start = twice_steps(trace.batch), 0
        for terms in compute_alignment_terms(trace, network.cross):
            size = len(terms.mask)
            near = by_offset(alignment_parts(terms), AROUND).transpose(1, 2)
            means.update(near[steps[start : start + size]])
            start += size
    lines = zip(PARTS, means.mean, strict=True)
    return {number("twice_alignment", part=part): Line("offset", AROUND, y) for part, y in lines}
