"""Corpora as recipes use them: opened, described, and split by what chooses and is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from attnscope.claims.published import published
from attnscope.data.batch import Batch, Example, collate
from attnscope.data.corpus import Corpus
from attnscope.data.source import Source
from attnscope.data.text import LabelledText, ParallelText, Text, open_text, piece_count
from attnscope.errors import UsageError
from attnscope.recipes.kit.sheet import Sheet
from attnscope.runs.result import Measurement


def open_labelled(corpus: str, recipes: str, **settings: Any) -> Corpus:
    """Open a corpus of labelled texts, or raise if it has translations.

    Parameters
    ----------
    corpus
        A known name or a folder.
    recipes
        The name of who asks, for the error.
    **settings
        Fields of `attnscope.data.text.LabelledText`.
    """
    source = open_text(corpus, classification=settings)
    if not is_classification(source):
        raise UsageError(f"{recipes} is about classification; {corpus} has no labels.")
    return source


def is_classification(source: Corpus) -> bool:
    """Return whether the output is a label."""
    return source.boundaries is None


@dataclass(frozen=True)
class HeldOut:
    """Examples that are measured, and the split that they come from."""

    split: str
    examples: Sequence[Example]

    @cached_property
    def batch(self) -> Batch:
        """All of them as one batch."""
        return collate(self.examples)


@lru_cache(maxsize=4)
def held_out(source: Corpus, choosing: int = 0) -> HeldOut:
    """Return the examples to measure: the test part, or validation examples without one.

    Parameters
    ----------
    choosing
        How many validation examples chose something, by `Corpus.evaluation_batch`; where there is
        no test part these are not measured.
    """
    test = parts(source).get("test")
    if test:
        return HeldOut("test", test)
    seen = set(source.evaluation_batch(choosing).ids.tolist()) if choosing else set()
    rest = [example for example in source.validation_examples if example.id not in seen]
    if not rest:
        raise UsageError(f"{source.dataset} has one validation example; at least two are needed.")
    return HeldOut("val", rest)


def parts(source: Corpus) -> dict[str, Sequence[Example]]:
    """Return the examples of each split that the corpus has."""
    found = {"train": source.training_examples, "val": source.validation_examples}
    if isinstance(source, Text) and source.test_examples:
        found["test"] = source.test_examples
    return found


# Above this share of unknown tokens, or below this median length, words are hardly what was read.
_MOST_UNKNOWN, _LEAST_LENGTH = 0.2, 3


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


def printed_name(source: Corpus, paper: str) -> str | None:
    """Return the name under which a paper prints numbers of a corpus, None if it has none."""
    name = source.definition.published if isinstance(source, Text) else None
    return name if name in {row.dataset for row in published(paper)} else None


def left_out(source: Corpus) -> dict[str, int]:
    """Return how many examples a corpus leaves out, by ``split: reason``."""
    return dict(source.loaded.left_out) if isinstance(source, Text) else {}


NOTHING_LEFT_OUT = {"train: anything": 0}


def left_out_rows(sheet: Sheet, reasons: Mapping[str, int], n: int) -> list[Measurement]:
    """Return how many of ``n`` examples were left out, reason by reason."""
    rows = []
    for reason, count in reasons.items():
        split, _, why = reason.partition(": ")
        rows.append(sheet.point("left_out", count, {"reason": why}, n, split=split))
    return rows
