"""Text with its count table C (snell §4.2): pairs of word sequences, numbered and counted.

A label is a target of one word. Words are counted without the boundaries of a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.data.batch import Example, Ids, collate
from attnscope.data.corpus import Corpus
from attnscope.data.tokens import BOS, EOS
from attnscope.data.vocabulary import Vocabulary
from attnscope.theory.counts import bag_of_words, count_table
from attnscope.theory.ibm1 import (
    alignment,
    expected_counts,
    translation_table,
    uniform_translation,
)
from attnscope.theory.initial_derivative import PaddedPairs

Words = Sequence[str]


class CountedText(NamedTuple):
    """Pairs of texts as ids, their vocabularies, and their count table.

    >>> text = CountedText.of([(("ein", "Haus"), ("a", "house")), (("Haus",), ("house",))])
    >>> text.counts[text.inputs.id("Haus"), text.outputs.id("house")]
    tensor(1.5000, dtype=torch.float64)
    """

    inputs: Vocabulary
    outputs: Vocabulary
    pairs: PaddedPairs
    counts: Float[Tensor, "input_type output_type"]

    @classmethod
    def of(cls, examples: Iterable[tuple[Words, Words]]) -> CountedText:
        """Number the words of inputs and targets, and count them."""
        examples = list(examples)
        inputs, outputs = (Vocabulary.build(side, ()) for side in zip(*examples, strict=True))
        numbered = [(inputs.encode(words), outputs.encode(target)) for words, target in examples]
        # No decoder reads these; the targets stand in for what it would read.
        batch = collate(
            [Example(n, words, target, target) for n, (words, target) in enumerate(numbered)]
        )
        pairs = PaddedPairs.of(batch)
        return cls(inputs, outputs, pairs, count_table(*pairs, len(inputs), len(outputs)))

    @classmethod
    def of_corpus(cls, source: Corpus) -> CountedText:
        """Read the training part of a corpus, by words or by pieces, without its boundaries."""

        def words(ids: Ids, side: Vocabulary) -> list[str]:
            return [word for word in side.decode(ids) if word not in (BOS, EOS)]

        return cls.of(
            (words(example.inputs, source.input_words), words(example.targets, source.output_words))
            for example in source.training_examples
        )

    def model1_difference(self) -> float:
        """Return the largest relative difference of C (Eq. 16) from IBM Model 1's first counts."""
        uniform = uniform_translation(len(self.inputs), len(self.outputs))
        first = expected_counts(uniform, *self.pairs)
        size = torch.maximum(first, self.counts)
        return float(((first - self.counts).abs() / size.where(size > 0, 1)).max())

    def shares(self) -> Tensor:
        """Return the share of each word in each example, sparse: of examples by input types."""
        length = self.pairs.input_mask.sum(1)
        words = len(self.inputs)
        return bag_of_words(self.pairs.inputs, self.pairs.input_mask, words, 1 / length)

    def polar_words(self, label: str, count: int, least: int) -> dict[str, Int[Tensor, " word"]]:
        """Return the words that speak most for a label, the most frequent ones, and those against.

        By ``positive``, ``frequent`` and ``negative``; a polar word has a large or small
        Trans(label | word) (Eq. 17) and is not among the frequent ones.

        Parameters
        ----------
        count
            Words of each group.
        least
            Examples that a polar word must be in.
        """
        examples = torch.bincount(self.shares().indices()[1], minlength=len(self.inputs))
        column = translation_table(self.counts)[:, self.outputs.id(label)]
        frequent = examples.argsort(descending=True, stable=True)[:count]
        rare = torch.ones_like(examples, dtype=torch.bool).scatter(0, frequent, False)
        polar = column.argsort(descending=True, stable=True)
        polar = polar[((examples >= least) & rare)[polar]]
        negative = polar[count:][-count:]
        return {"positive": polar[:count], "frequent": frequent, "negative": negative}

    def example(self, number: int) -> tuple[list[str], list[str], dict[str, Tensor]]:
        """Return an example's input words, its output words, and its tables of input by output.

        The tables are the count table C (Eq. 16), Trans(output | input) (Eq. 17), and the alignment
        of each output word (Eq. 19), by ``count``, ``translation`` and ``alignment``.
        """
        one = PaddedPairs(*(part[number : number + 1] for part in self.pairs))
        places, slots = one.input_mask[0], one.target_mask[0]
        inputs, outputs = one.inputs[0, places], one.targets[0, slots]
        translation = translation_table(self.counts)
        tables = {
            "count": self.counts[inputs][:, outputs],
            "translation": translation[inputs][:, outputs],
            "alignment": alignment(translation, *one)[0, slots][:, places].T,
        }
        rows, columns = self.inputs.decode(inputs.tolist()), self.outputs.decode(outputs.tolist())
        return rows, columns, tables
