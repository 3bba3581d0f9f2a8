"""Corpora as recipes use them: opened, described, and split by what chooses and is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from attnscope.claims.published import published
from attnscope.data.batch import Batch, Example, collate
from attnscope.data.corpus import Corpus
from attnscope.data.reading import parts
from attnscope.data.text import Text, open_text
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


def printed_name(source: Corpus, paper: str) -> str | None:
    """Return the name under which a paper prints numbers of a corpus, None if it has none."""
    name = source.definition.published if isinstance(source, Text) else None
    return name if name in {row.dataset for row in published(paper)} else None


NOTHING_LEFT_OUT = {"train: anything": 0}


def left_out_rows(sheet: Sheet, reasons: Mapping[str, int], n: int) -> list[Measurement]:
    """Return how many of ``n`` examples were left out, reason by reason."""
    rows = []
    for reason, count in reasons.items():
        split, _, why = reason.partition(": ")
        rows.append(sheet.point("left_out", count, {"reason": why}, n, split=split))
    return rows
