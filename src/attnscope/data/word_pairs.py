"""Sentence pairs given in words, as a translation corpus reads them: its pieces, by word.

Words are cut one by one, which gives the same pieces as the whole sentence, since no piece crosses
a blank, and leaves no doubt which word a piece is of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from attnscope.data.batch import Batch, Example, collate
from attnscope.data.corpus import Corpus
from attnscope.data.text import ParallelText
from attnscope.data.tokens import UNKNOWN
from attnscope.data.vocabulary import Vocabulary

Words = Sequence[str]


class WordPairs(NamedTuple):
    """A teacher-forced batch, and the word of each of its pieces: −1 for boundaries and padding."""

    batch: Batch
    input_words: Int[Tensor, "batch inp"]
    output_words: Int[Tensor, "batch out"]


def read_word_pairs(source: Corpus, pairs: Iterable[tuple[Words, Words]]) -> WordPairs:
    """Return pairs of source and target words as a translator of a corpus reads them."""
    assert source.boundaries is not None
    bos, eos = source.boundaries
    *front, end = source.encode("")
    examples, inputs, outputs = [], [], []
    for n, (words, target) in enumerate(pairs):
        x, y = _cut(source, words, source.input_words), _cut(source, target, source.output_words)
        flat_x, flat_y = list(chain.from_iterable(x)), list(chain.from_iterable(y))
        examples.append(Example(n, [*front, *flat_x, end], [bos, *flat_y], [*flat_y, eos]))
        inputs.append([-1] * len(front) + _owners(x) + [-1])
        outputs.append([*_owners(y), -1])
    return WordPairs(collate(examples), padded(inputs, -1), padded(outputs, -1))


def padded(rows: Iterable[Sequence[int]], fill: int) -> Int[Tensor, "batch time"]:
    """Return rows of numbers as one tensor, filled up at their ends."""
    tensors = [torch.tensor(row, dtype=torch.long) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=fill)


def _cut(source: Corpus, words: Words, vocabulary: Vocabulary) -> list[list[int]]:
    if isinstance(source, ParallelText):
        unknown = source.input_words.id(UNKNOWN)
        # A word of characters that SentencePiece drops still has a place among the words.
        return [pieces or [unknown] for pieces in source.tokeniser.encode(words)]
    return [[vocabulary.id(word)] for word in words]


def _owners(words: Sequence[Sequence[int]]) -> list[int]:
    return [n for n, pieces in enumerate(words) for _ in pieces]
