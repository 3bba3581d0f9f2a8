"""The count table of a text corpus (§4.2): IBM Model 1's first counts, and Eq. 17–19.

Words are counted without boundaries of a sentence; a label is a target of one word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.analysis.intervals import sentence_ratio_interval
from attnscope.data.batch import Example, Ids, collate
from attnscope.data.text import open_text
from attnscope.data.tokens import BOS, EOS
from attnscope.data.vocabulary import Vocabulary
from attnscope.recipes.kit.sheet import Sheet, rng
from attnscope.runs.result import Matrix, Measurement
from attnscope.theory.counts import bag_of_words, count_table
from attnscope.theory.ibm1 import alignment, expected_counts, translation_table, uniform_translation
from attnscope.theory.initial_derivative import PaddedPairs


class Text(NamedTuple):
    """A corpus as ids, its vocabularies, and its count table."""

    dataset: str
    inputs: Vocabulary
    outputs: Vocabulary
    pairs: PaddedPairs
    counts: Float[Tensor, "input_type output_type"]


def read_text(dataset: str, examples: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Text:
    """Number the words of pairs of inputs and targets, and count them."""
    inputs, outputs = (Vocabulary.build(side, ()) for side in zip(*examples, strict=True))
    numbered = [(inputs.encode(words), outputs.encode(target)) for words, target in examples]
    # No decoder reads these; the targets stand in for what it would read.
    batch = collate(
        [Example(n, words, target, target) for n, (words, target) in enumerate(numbered)]
    )
    pairs = PaddedPairs(batch.inputs, batch.input_mask, batch.targets, batch.target_mask)
    return Text(dataset, inputs, outputs, pairs, count_table(*pairs, len(inputs), len(outputs)))


def read_corpus(name: str, pieces: int) -> Text:
    """Read the training part of a corpus, by words or by pieces, without its boundaries."""
    source = open_text(name, translation={"pieces": pieces})
    sides = (source.input_words, source.output_words)

    def words(ids: Ids, side: Vocabulary) -> list[str]:
        return [word for word in side.decode(ids) if word not in (BOS, EOS)]

    examples = [
        (words(example.inputs, sides[0]), words(example.targets, sides[1]))
        for example in source.training_examples
    ]
    return read_text(source.dataset, examples)


def ibm_difference(text: Text) -> Measurement:
    """Return the largest relative difference of C (Eq. 16) from IBM Model 1's first counts."""
    first = expected_counts(uniform_translation(len(text.inputs), len(text.outputs)), *text.pairs)
    size = torch.maximum(first, text.counts)
    off = float(((first - text.counts).abs() / size.where(size > 0, 1)).max())
    return Sheet(text.dataset, "train").point("ibm_difference", off, n=len(text.pairs.inputs))


def example_tables(text: Text, number: int) -> list[Matrix]:
    """Return C, Trans (Eq. 17) and the alignment (Eq. 19) for the words of one example."""
    one = PaddedPairs(*(part[number : number + 1] for part in text.pairs))
    places, slots = one.input_mask[0], one.target_mask[0]
    inputs, outputs = one.inputs[0, places], one.targets[0, slots]
    translation = translation_table(text.counts)
    tables = {
        "count": text.counts[inputs][:, outputs],
        "translation": translation[inputs][:, outputs],
        "alignment": alignment(translation, *one)[0, slots][:, places].T,
    }
    return [
        Matrix.of(
            name,
            text.dataset,
            table.tolist(),
            text.inputs.decode(inputs.tolist()),
            text.outputs.decode(outputs.tolist()),
            row_axis="input",
            column_axis="output",
            n=len(text.pairs.inputs),
            split="train",
        )
        for name, table in tables.items()
    ]


def word_polarity(text: Text, label: str, shown: int, least: int) -> list[Measurement]:
    """Return Trans(label | word) of the most polar and of the most frequent words.

    Parameters
    ----------
    text
        A corpus whose targets are labels.
    label
        The label that counts as positive.
    shown
        How many words of each group.
    least
        How many examples a word must be in to be called polar.
    """
    length = text.pairs.input_mask.sum(1)
    shares = bag_of_words(text.pairs.inputs, text.pairs.input_mask, len(text.inputs), 1 / length)
    examples = torch.bincount(shares.indices()[1], minlength=len(text.inputs))
    positive = text.outputs.id(label)
    column = translation_table(text.counts)[:, positive]
    frequent = examples.argsort(descending=True, stable=True)[:shown]
    rare = torch.ones_like(examples, dtype=torch.bool).scatter(0, frequent, False)
    polar = column.argsort(descending=True, stable=True)
    polar = polar[((examples >= least) & rare)[polar]]
    groups = {"positive": polar[:shown], "frequent": frequent, "negative": polar[shown:][-shown:]}
    labelled = (text.pairs.targets == positive).numpy()
    rows: list[Measurement] = []
    for group, words in groups.items():
        rows += _polarities(text, shares, labelled, group, words)
    return rows


def _polarities(
    text: Text, shares: Tensor, labelled: np.ndarray, group: str, words: Int[Tensor, " word"]
) -> list[Measurement]:
    """Return Trans of some words, with intervals over the examples that they are in."""
    sheet, stream = Sheet(text.dataset, "train"), rng()
    columns = shares.index_select(1, words).to_dense().numpy()
    rows = []
    for word, share in zip(text.inputs.decode(words.tolist()), columns.T, strict=True):
        inside = share > 0
        weight = share[inside, None]
        interval = sentence_ratio_interval(
            weight * labelled[inside], weight, np.ones_like(weight, bool), rng=stream
        )
        rows.append(sheet.row("polarity", interval, {"word": word, "group": group}))
    return rows
