"""Finite corpora as sources, and the package's own grammar-made ones, which need no download.

A training batch takes the next examples of an order that is drawn anew for every epoch from the
seed alone. Sentences of the grammars end in ``<eos>``; the decoder starts from ``<bos>``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from array import array
from collections.abc import Sequence
from functools import cache, cached_property, lru_cache
from typing import Literal

import numpy as np
import torch

from attnscope.data import grammar
from attnscope.data.batch import Batch, Example, collate
from attnscope.data.randomness import generator
from attnscope.data.source import Source
from attnscope.data.tokens import BOS, EOS, PAD
from attnscope.data.vocabulary import Vocabulary
from attnscope.errors import UsageError

_SPECIALS = (PAD, BOS, EOS)
# Input positions of a batch, padding included.
_POSITIONS = 2**15


class Corpus(Source):
    """A finite set of examples with a training and a validation part."""

    @property
    @abstractmethod
    def training_examples(self) -> Sequence[Example]:
        """Examples to train on."""

    @property
    @abstractmethod
    def validation_examples(self) -> Sequence[Example]:
        """Examples to evaluate on."""

    def epoch(self, batch_size: int) -> int:
        """Return the number of training batches that have every example once."""
        return math.ceil(len(self.training_examples) / batch_size)

    @property
    def bucket(self) -> int:
        """How many batches' worth of examples are sorted by length before they are cut apart."""
        return 1

    def training_batch(self, seed: int, step: int, size: int) -> Batch:
        """Return the next examples of the seed's endless shuffled stream.

        With a bucket of k, k batches are taken from the stream at once, sorted by length, cut into
        batches again, and given out in a random order: less padding, the same examples.
        """
        count, pool = len(self.training_examples), step // self.bucket
        drawn = _drawn(seed, pool * self.bucket * size, (pool + 1) * self.bucket * size, count)
        if self.bucket > 1:
            lengths = np.asarray(self._training_lengths)[drawn]
            drawn = drawn[lengths.argsort(kind="stable")]
        turn = _turns(seed, pool, self.bucket)[step % self.bucket]
        chosen = drawn[turn * size : (turn + 1) * size].tolist()
        return collate([self.training_examples[index] for index in chosen])

    @property
    def widest_input(self) -> int:
        """The most input positions of a training example."""
        return max(self._training_lengths)

    @cached_property
    def _training_lengths(self) -> array[int]:
        # Not a NumPy array: sources are compared, and its comparison is not a truth value.
        return array("q", [len(example.inputs) for example in self.training_examples])

    def evaluation_batch(self, count: int, split: str = "val") -> Batch:
        """Return the first validation examples, or as many random training examples."""
        examples, count = self.validation_examples, min(count, len(self.validation_examples))
        if split == "val":
            return collate(examples[:count])
        if split != "train":
            raise UsageError(f"{self.dataset} is not evaluated on {split!r}; valid: val, train.")
        drawn = torch.randperm(len(self.training_examples), generator=generator("part of train"))
        return collate([self.training_examples[index] for index in drawn[:count].sort()[0]])

    def encode(self, text: str) -> list[int]:
        """Split at blanks and add ``<eos>``."""
        return self.input_words.encode([*text.split(), EOS])


def _drawn(seed: int, first: int, end: int, count: int) -> np.ndarray:
    """Return the examples at some places of a seed's stream, epoch after epoch of it."""
    epochs = range(first // count, (end - 1) // count + 1)
    orders = {epoch * count: _order(seed, epoch, count) for epoch in epochs}
    return np.concatenate([order[max(first - at, 0) : end - at] for at, order in orders.items()])


# Seeds of one vmapped group take turns here, and each may be in two epochs at once.
@lru_cache(maxsize=32)
def _order(seed: int, epoch: int, count: int) -> np.ndarray:
    return torch.randperm(count, generator=generator("order", seed, epoch)).numpy()


@lru_cache(maxsize=32)
def _turns(seed: int, pool: int, bucket: int) -> list[int]:
    return torch.randperm(bucket, generator=generator("turns", seed, pool)).tolist()


@lru_cache(maxsize=2)
def training_batches(source: Corpus, positions: int = _POSITIONS) -> tuple[Batch, ...]:
    """Return all training examples in batches, the longest first; cached for later evaluations.

    Parameters
    ----------
    source
        The corpus.
    positions
        How many input positions a batch may have, padding included; it has at least one example.
    """
    examples = sorted(source.training_examples, key=lambda e: len(e.inputs), reverse=True)
    batches, start = [], 0
    while start < len(examples):
        size = max(1, positions // max(len(examples[start].inputs), 1))
        batches.append(collate(examples[start : start + size]))
        start += size
    return tuple(batches)


class GrammarTranslation(Corpus):
    """German to English sentences made by a grammar, with their gold alignment."""

    kind: Literal["grammar-translation"] = "grammar-translation"

    @property
    def dataset(self) -> str:
        """``grammar-translation``."""
        return "grammar-translation"

    @cached_property
    def input_words(self) -> Vocabulary:
        """German types."""
        pairs = grammar.translation_corpus()["train"]
        return Vocabulary.build((pair.source for pair in pairs), _SPECIALS)

    @cached_property
    def output_words(self) -> Vocabulary:
        """English types."""
        pairs = grammar.translation_corpus()["train"]
        return Vocabulary.build((pair.target for pair in pairs), _SPECIALS)

    @property
    def boundaries(self) -> tuple[int, int] | None:
        """``<bos>`` and ``<eos>``."""
        return self.output_words.id(BOS), self.output_words.id(EOS)

    @cached_property
    def training_examples(self) -> Sequence[Example]:
        """2000 sentence pairs."""
        return _encoded(self, "train")

    @cached_property
    def validation_examples(self) -> Sequence[Example]:
        """200 sentence pairs, none of them in the training part."""
        return _encoded(self, "val")

    def _part(self, split: str) -> list[Example]:
        """Return a part of the corpus with words as numbers."""
        return [self._example(pair) for pair in grammar.translation_corpus()[split]]

    def _example(self, pair: grammar.SentencePair) -> Example:
        # An output word with several links has the first of them as its gold position.
        links = dict(sorted(pair.alignment, reverse=True))
        return Example(
            pair.id,
            self.input_words.encode([*pair.source, EOS]),
            self.output_words.encode([BOS, *pair.target]),
            self.output_words.encode([*pair.target, EOS]),
            [*(links[t] for t in range(len(pair.target))), len(pair.source)],
        )


class GrammarSentiment(Corpus):
    """English review-like sentences made by a grammar, labelled negative or positive."""

    kind: Literal["grammar-sentiment"] = "grammar-sentiment"

    @property
    def dataset(self) -> str:
        """``grammar-sentiment``."""
        return "grammar-sentiment"

    @cached_property
    def input_words(self) -> Vocabulary:
        """Word types."""
        texts = grammar.sentiment_corpus()["train"]
        return Vocabulary.build((text.tokens for text in texts), _SPECIALS)

    @property
    def output_words(self) -> Vocabulary:
        """The two labels."""
        return Vocabulary(("negative", "positive"))

    @property
    def boundaries(self) -> tuple[int, int] | None:
        """None: the output is a label."""
        return None

    @cached_property
    def training_examples(self) -> Sequence[Example]:
        """2000 sentences."""
        return _encoded(self, "train")

    @cached_property
    def validation_examples(self) -> Sequence[Example]:
        """400 sentences, none of them in the training part."""
        return _encoded(self, "val")

    def _part(self, split: str) -> list[Example]:
        """Return a part of the corpus with words as numbers."""
        return [self._example(text) for text in grammar.sentiment_corpus()[split]]

    def _example(self, text: grammar.LabelledSentence) -> Example:
        return Example(text.id, self.input_words.encode([*text.tokens, EOS]), [0], [text.label])


@cache
def _encoded(source: GrammarTranslation | GrammarSentiment, split: str) -> list[Example]:
    """Encode a part of a grammar's corpus once for all sources that are equal."""
    return source._part(split)
