"""The numbers of figure 4, each taken of one translator: terms by step, offsets, words, readouts.

Terms are those of sentences with at least ten tokens on both sides, whose components are the means
over all sentences. A word that is read once has no delta component, whatever the network does: how
many states that is, is measured too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.components import (
    mass_around,
    offset_moments,
    peak_offset,
    readout_dictionary,
)
from attnscope.analysis.decomposition import states_of
from attnscope.analysis.intervals import Interval, sentence_ratio_interval
from attnscope.analysis.state_measures import WordVariance
from attnscope.analysis.term_shares import term_shares
from attnscope.claims.published import published_value
from attnscope.data.batch import Ids
from attnscope.data.corpus import Corpus
from attnscope.data.tokens import SPECIALS
from attnscope.data.vocabulary import Vocabulary
from attnscope.recipes.aitken.escan_measure import matrix
from attnscope.recipes.aitken.fig4_units import TranslationConfig, Translator
from attnscope.recipes.aitken.fig5_measure import TERM_NAMES, common_logits, similarity
from attnscope.recipes.aitken.groups import Group, Key, Numbers, key
from attnscope.recipes.aitken.shared_claims import THREE, TRANSLATION
from attnscope.recipes.aitken.units import context_readout

# Decoder steps s, from 1 on, that the claims call early and late.
EARLY, LATE = 3, 8
# A time step that fewer sentences reach has no mean state to speak of.
_COMMON = 0.1
# Fewer occurrences of a word say little about their variance.
_OFTEN = 10
# Of the median variance: without recurrence a word that always stands in one place has none.
_STILL = 1e-6
# Of the corpus' lengths: a hundred thousand sentences need few.
_RESAMPLES = 200

Step = Float[Tensor, " step"]


def closer_numbers(network: Translator, config: TranslationConfig) -> Numbers:
    """Return what §4.1 says of terms, offsets, variances and the mean attention."""
    return (
        term_numbers(network, config.shortest)
        | offset_numbers(network)
        | variance_numbers(network)
        | similarity(network)
    )


def published_drop(group: Group) -> dict[Key, float]:
    """Return the paper's drop of a word's variance beside its key."""
    metric, model = "variance_drop(hE,hE-muE)", str(group.wanted.model).upper()
    printed = published_value("aitken", "text-s4.1", "English-French", metric, model=model)
    if printed is None or not group.dataset.endswith(TRANSLATION):
        return {}
    return {key("variance_drop"): printed / 100}


def term_numbers(network: Translator, shortest: int) -> Numbers:
    """Return the nine terms' shares, their mean and (raw) at each step, and what the claim asks.

    ``early_gap`` is the share of μ^D·μ^E less that of the largest other term at one early step,
    ``late_difference`` its mean share from the late step on less that of the early steps.
    """
    found: Numbers = {}
    steps: dict[str, Float[Tensor, "9 step"]] = {}
    shares = term_shares(network.of_sentences(shortest).traces(), network.cross)
    for form, share in shares.items():
        values = share.mean[0].tolist()
        for name, value in zip(TERM_NAMES, values, strict=True):
            found[key("term_share", form=form, term=name)] = value
        found[key("term_share", form=form, term=THREE)] = sum(values[:3])
        found[key("largest_share", form=form)] = max(values)
        # Steps that only the longest sentences reach are left to the mean.
        per_step = share.per_step[0][:, share.counts >= _COMMON * share.counts.max()]
        steps[form] = per_step
        gaps = per_step[0, :EARLY] - per_step[1:, :EARLY].amax(0)
        found |= {
            key("early_gap", form=form, step=step): gap for step, gap in enumerate(gaps.tolist(), 1)
        }
        late = per_step[0, LATE - 1 :].mean() - per_step[0, :EARLY].mean()
        found[key("late_difference", form=form)] = float(late)
    return found | {
        key("term_share_at", term=name, step=step): value
        for name, line in zip(TERM_NAMES, steps["raw"].tolist(), strict=True)
        for step, value in enumerate(line, 1)
    }


def temporal_attention(network: Translator) -> Float[Tensor, "out inp"]:
    """Return the attention of temporal components alone, where enough sentences reach both."""
    return common_logits(network).softmax(-1)


def offset_numbers(network: Translator) -> Numbers:
    """Return maximum, mean and width of the temporal attention's offset t − s at each step.

    ``offset_change`` and ``width_change`` are the mean over the last third of the steps less that
    over the first; ``diagonal_change`` is the mass at t = s of the first third less the last's.
    Steps beyond the last input position are left out: their offset cannot be but negative.
    """
    attention = temporal_attention(network)
    attention = attention[: attention.shape[1]]
    mean, width = offset_moments(attention)
    diagonal = mass_around(attention, torch.arange(len(attention)))
    lines: dict[str, Step] = {
        "peak_offset": peak_offset(attention).double(),
        "mean_offset": mean,
        "offset_width": width,
        "diagonal_mass": diagonal,
    }
    return {
        key(name, step=step): value
        for name, line in lines.items()
        for step, value in enumerate(line.tolist(), 1)
    } | {
        key("offset_change", of="maximum"): _change(lines["peak_offset"]),
        key("offset_change", of="mean"): _change(mean),
        key("width_change"): _change(width),
        key("diagonal_change"): -_change(diagonal),
    }


def _change(line: Step) -> float:
    third = max(1, len(line) // 3)
    return float(line[-third:].mean() - line[:third].mean())


def variance_numbers(network: Translator) -> Numbers:
    """Return how much of a word's variance μ takes away, over the words read often enough."""
    components = network.states.encoder
    variance = WordVariance(components)
    for trace in network.traces():
        variance.update(states_of(trace).encoder)
    counts, before = components.word_counts, variance.traces[0]
    often = counts >= _OFTEN
    still = before <= _STILL * before[often].nanmedian()
    left_out = (~often | still).nonzero()[:, 0].tolist()
    words = network.source.input_words
    outside = [words.id(word) for word in SPECIALS if word in words.words]
    used = set(range(len(counts))) - {*left_out, *outside}
    return {
        key("variance_drop"): variance.drop(excluded=[*left_out, *outside]),
        key("variance_words"): float(len(used)),
        key("read_once"): float((counts == 1).sum() / counts.sum()),
    }


def dictionary_numbers(network: Translator, config: TranslationConfig) -> Numbers:
    """Return which of the most common input words each asked readout aligns most with (Fig. 4c).

    The share of the asked words for which it is their translation is given only if all of them can
    be asked. Products are those with the readouts of the most common output words and these.
    """
    source = network.source
    assert isinstance(source, Corpus)
    inputs = common_words(source.input_words, _rows(source, "inputs"), config.common)
    outputs = common_words(source.output_words, _rows(source, "targets"), config.common)
    components = network.states.encoder
    read = torch.tensor([i for i in inputs if components.words(torch.tensor([i])).isfinite().all()])
    readout = context_readout(network.model)
    asked = asked_words(source, config, read.tolist())
    best = readout_dictionary(readout[list(asked)], components, among=read).tolist()
    right = [float(found == word) for found, word in zip(best, asked.values(), strict=True)]
    outputs += [output for output in asked if output not in outputs]
    products = readout[outputs].double() @ components.words(read).mT
    found: Numbers = {
        key("readout_aligns", output=source.output_words.words[output]): value
        for output, value in zip(asked, right, strict=True)
    }
    if len(asked) == len(config.dictionary):
        found[key("dictionary")] = sum(right) / len(right)
    for output, line in zip(outputs, products.tolist(), strict=True):
        for word, value in zip(read.tolist(), line, strict=True):
            found[_product(source, output, word)] = value
    return found


def _product(source: Corpus, output: int, word: int) -> Key:
    names = source.output_words.words[output], source.input_words.words[word]
    return key("readout_product", output=names[0], input=names[1])


def asked_words(source: Corpus, config: TranslationConfig, among: Sequence[int]) -> dict[int, int]:
    """Return the asked output words and the input words that they translate, by their ids.

    Those that the corpus does not have, or not among the given input words, cannot be asked.
    """
    inputs = {source.input_words.words[index]: index for index in among}
    outputs = {word: index for index, word in enumerate(source.output_words.words)}
    return {
        outputs[output]: inputs[word]
        for output, word in config.dictionary
        if output in outputs and word in inputs
    }


def common_words(vocabulary: Vocabulary, rows: Sequence[Ids], count: int) -> list[int]:
    """Return the most common words, boundaries and unknown ones aside, the most common first."""
    counts = np.bincount(np.concatenate([np.asarray(row) for row in rows]))
    counts[[vocabulary.id(word) for word in SPECIALS if word in vocabulary.words]] = 0
    ranked = np.argsort(-counts, kind="stable")[:count]
    return [int(index) for index in ranked if counts[index]]


def _rows(source: Corpus, side: str) -> list[Ids]:
    return [getattr(example, side) for example in source.training_examples]


def example_numbers(network: Translator, text: str) -> Numbers:
    """Return the attention on a sentence and the words that the network writes (Fig. 4a)."""
    trace, source = network.example(text), network.source
    assert source.boundaries is not None
    written = trace.logits[0].argmax(-1).tolist()
    end = source.boundaries[1]
    out = written.index(end) + 1 if end in written else len(written)
    said = {
        "input": source.input_words.decode(trace.batch.inputs[0].tolist()),
        "output": source.output_words.decode(written[:out]),
    }
    return {
        key("example", side=side, place=place, word=word): float(place)
        for side, words in said.items()
        for place, word in enumerate(words)
    } | matrix("attention", trace.sites["cross"].weights[0, 0, :out])


def temporal_cells(network: Translator) -> Numbers:
    """Return the cells of the temporal attention that can be seen (the inset of Fig. 4b)."""
    return matrix("temporal_attention", temporal_attention(network))


def length_excess(source: Corpus) -> Interval:
    """Return how much longer outputs are than inputs, with its interval over sentences."""
    above, below = (
        np.array([len(row) - 1.0 for row in _rows(source, side)]) for side in ("targets", "inputs")
    )
    found = sentence_ratio_interval(
        above[:, None],
        below[:, None],
        np.ones((len(above), 1), bool),
        rng=np.random.default_rng(0),
        resamples=_RESAMPLES,
    )
    return Interval(found.value - 1, found.low - 1, found.high - 1, found.n)
