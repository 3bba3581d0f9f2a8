"""How a corpus was read: its parts, what was left out, and whether its tokens are words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnscope.data.batch import Example
from attnscope.data.corpus import Corpus
from attnscope.data.source import Source
from attnscope.data.text import LabelledText, ParallelText, Text, piece_count

# Above this share of unknown tokens, or below this median length, words are hardly what was read.
_MOST_UNKNOWN, _LEAST_LENGTH = 0.2, 3


def parts(source: Corpus) -> dict[str, Sequence[Example]]:
    """Return the examples of each split that the corpus has."""
    found = {"train": source.training_examples, "val": source.validation_examples}
    if isinstance(source, Text) and source.test_examples:
        found["test"] = source.test_examples
    return found


def left_out(source: Corpus) -> dict[str, int]:
    """Return how many examples a corpus leaves out, by ``split: reason``."""
    return dict(source.loaded.left_out) if isinstance(source, Text) else {}


@dataclass(frozen=True)
class CorpusReading:
    """How a part of a corpus was read: the share of unknown tokens, and the median length."""

    unknown: float
    length: float

    @classmethod
    def of(cls, source: Corpus, examples: Sequence[Example]) -> CorpusReading:
        """Read some examples; boundaries do not count."""
        marks, words = len(source.encode("")), source.input_words
        tokens = np.concatenate([np.asarray(example.inputs) for example in examples])
        unknown = 0 if words.unknown is None else int((tokens == words.id(words.unknown)).sum())
        lengths = [len(example.inputs) - marks for example in examples]
        return cls(unknown / max(1, sum(lengths)), float(np.median(lengths)))

    @property
    def doubtful(self) -> bool:
        """Whether the tokens are hardly words."""
        return self.unknown > _MOST_UNKNOWN or self.length < _LEAST_LENGTH

    def sentence(self, name: str, pieces: bool) -> str:
        """Return what is wrong with the reading of a corpus, and what to do."""
        found = f"{name}: {100 * self.unknown:.0f} % of the tokens are unknown, and the median text"
        found += f" has {self.length:g} of them"
        if pieces:
            return f"{found}; the corpus may be too small."
        return f"{found}. Where words have no blanks between them, tokens=pieces cuts them."


def reading_note(source: Source) -> str:
    """Return a sentence on a corpus whose tokens are hardly words; empty for others."""
    if not isinstance(source, Text):
        return ""
    for split, examples in parts(source).items():
        reading = CorpusReading.of(source, examples)
        if reading.doubtful:
            return reading.sentence(f"{source.dataset}, {split}", in_pieces(source))
    return ""


def in_pieces(source: Source) -> bool:
    """Return whether a source has pieces for words."""
    if isinstance(source, LabelledText):
        return piece_count(source.tokens) is not None
    return isinstance(source, ParallelText)
