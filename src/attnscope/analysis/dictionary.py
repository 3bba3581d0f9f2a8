"""Readouts as a dictionary: which input component raises each output word most.

As in aitken Fig. 2b, 4c, 5d. The effect of an input word on an output word is, for a readout that
is linear in the context, the product of the readout's row and the word's component. Any other
readout has effects too: by how much its output rises when the component is added to the context.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.analysis.alignment_terms import CROSS
from attnscope.analysis.headed_network import HeadedNetwork
from attnscope.analysis.network import Network
from attnscope.data.batch import Ids
from attnscope.data.corpus import Corpus
from attnscope.data.escan import VERBS, ExtendedScan
from attnscope.data.sequence_tasks import SequenceTask
from attnscope.data.source import Source
from attnscope.data.tokens import SPECIALS
from attnscope.models.architectures import LearnedQKV
from attnscope.models.encoder_decoder import EncoderDecoder
from attnscope.models.trace import needed

Effects = Float[Tensor, "output word"]


def context_readout(model: EncoderDecoder) -> Float[Tensor, "output state"]:
    """Return the readout of an encoder state that is attended to, a row per output word.

    For AED this is the half of the context; with learned attention the values' map comes first.
    For VED, which attends to nothing, it is the readout of the decoder's state.
    """
    weight = model.output.weight.detach()
    if model.attention is None:
        return weight
    weight = weight[:, -model.attention.value :]
    if isinstance(model.attention, LearnedQKV):
        return weight @ model.attention.value_map.detach()
    return weight


def without_state_readout(model: EncoderDecoder) -> EncoderDecoder:
    """Return an AED whose output depends on the context alone (footnote 6)."""
    other = copy.deepcopy(model)
    value = cast(Any, other.attention).value
    with torch.no_grad():
        other.output.weight[:, :-value] = 0.0
    return other


def linear_effects(network: Network, words: Int[Tensor, " word"]) -> Effects:
    """Return the products of readouts and input components; NaN for words that were never read."""
    components = network.states.encoder.words(words)
    return context_readout(network.model).to(components) @ components.mT


def pairs_of(source: Source) -> dict[int, int]:
    """Return the output words that have one translation, with it, by their ids; none for text."""
    if isinstance(source, ExtendedScan):
        pairs = {action: verb for verb, action in VERBS.items()}
    elif isinstance(source, SequenceTask):
        pairs = {output: word for word, output in source.pairs}
    else:
        pairs = {}
    return {source.output_words.id(out): source.input_words.id(inp) for out, inp in pairs.items()}


def asked_pairs(
    source: Source, asked: Sequence[tuple[str, str]], among: Sequence[int]
) -> dict[int, int]:
    """Return pairs of an output word and the input word that it translates, by their ids.

    Those that the corpus does not have, or not among the given input words, are left out.
    """
    inputs = {source.input_words.words[index]: index for index in among}
    outputs = {word: index for index, word in enumerate(source.output_words.words)}
    known = [(out, inp) for out, inp in asked if out in outputs and inp in inputs]
    return {outputs[out]: inputs[inp] for out, inp in known}


def common_words(source: Corpus, side: str, count: int) -> list[int]:
    """Return the most common words of ``inputs`` or ``targets``, the most common first.

    Boundaries and unknown words are left out.
    """
    vocabulary = source.input_words if side == "inputs" else source.output_words
    counts = np.bincount(np.concatenate([np.asarray(row) for row in training_rows(source, side)]))
    counts[[vocabulary.id(word) for word in SPECIALS if word in vocabulary.words]] = 0
    ranked = np.argsort(-counts, kind="stable")[:count]
    return [int(index) for index in ranked if counts[index]]


def training_rows(source: Corpus, side: str) -> list[Ids]:
    """Return the ids of all training examples on a side."""
    return [getattr(example, side) for example in source.training_examples]


def raised_most(effects: Effects, words: Int[Tensor, " word"]) -> Int[Tensor, " output"]:
    """Return for every output word the input word that raises it most."""
    return words[effects.argmax(-1)]


def right(best: Int[Tensor, " output"], pairs: Mapping[int, int]) -> list[float]:
    """Return 1 for each pair whose output word is raised most by its translation, else 0."""
    return [float(best[output] == word) for output, word in pairs.items()]


def share_right(best: Int[Tensor, " output"], pairs: Mapping[int, int]) -> float:
    """Return the share of pairs whose output word is raised most by its translation."""
    return sum(right(best, pairs)) / len(pairs)


@torch.no_grad()
def word_effects(
    network: HeadedNetwork,
    words: Int[Tensor, " word"],
    head: int | None = None,
    sequences: int = 20,
) -> Float[Tensor, "word output"]:
    """Return by how much a word's input component, added to the context, raises each output.

    The mean over all output positions of a few sequences. For a readout that is linear in the
    context this is the product of readouts and input components, which the paper uses; any other
    readout has a dictionary too.

    Parameters
    ----------
    words
        Input words.
    head
        The head to whose context it is added; None is all of them, each with its own values.
    sequences
        How many.
    """
    trace = next(network.traces())
    real = trace.batch.target_mask[:sequences]
    context = trace.sites[CROSS.site].context[:sequences][real]  # cell, head, value
    query = needed(trace.query, "query")[:sequences][real]
    added = network.values.words(words).unflatten(-1, context.shape[1:])  # word, head, value
    if head is not None:
        alone = torch.arange(context.shape[1]) == head
        added = added * alone.to(added)[:, None]
    moved = context + added.to(context)[:, None]
    outputs = network.model.readout(moved, query.expand(len(words), -1, -1))
    return (outputs - network.model.readout(context, query)).double().mean(1)
