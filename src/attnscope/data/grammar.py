"""A text corpus of the project's own, so that every recipe runs without a download.

Two small grammars write it: film reviews with a sentiment label, and German-English sentence
pairs with gold word alignment. No paper has these corpora; they keep what the papers' corpora
share: polar words among neutral ones, verbs at the German clause's end, one word for several.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import TypeVar

from attnscope.data.grammar_reviews import draw_review
from attnscope.data.grammar_translation import draw_pair

_Example = TypeVar("_Example")


@dataclass(frozen=True)
class LabelledSentence:
    """One review: its tokens and its label (1 positive, 0 negative)."""

    id: int
    tokens: tuple[str, ...]
    label: int


@dataclass(frozen=True)
class SentencePair:
    """A German sentence and its English translation.

    ``alignment`` lists the gold links as (target index, source index), sorted. Every target token
    has a link; a source token may have none (the comma before a subordinate clause).
    """

    id: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[tuple[int, int], ...]


def sentiment_examples(count: int, seed: int) -> list[LabelledSentence]:
    """Draw ``count`` reviews, no text twice; the same ones on every machine.

    Labels are fair coins. All polar words of a clause share its polarity, a ``not`` turns them
    round, and in a sentence of two opposed clauses the main clause decides.
    """
    reviews = _distinct(count, draw_review, seed)
    return [LabelledSentence(n, *review) for n, review in enumerate(reviews)]


def translation_examples(count: int, seed: int) -> list[SentencePair]:
    """Draw ``count`` German-English pairs, no sentence twice; the same ones on every machine.

    A sentence has one translation, in either direction, so this holds for both languages.
    """
    pairs = _distinct(count, draw_pair, seed)
    return [SentencePair(n, *pair) for n, pair in enumerate(pairs)]


def sentiment_corpus() -> dict[str, list[LabelledSentence]]:
    """The sentiment corpus: ``train`` (2000) and ``val`` (400).

    Both are cut from one stream without repetition, so no text is in two splits.
    """
    examples = _sentiment_stream()
    return {"train": list(examples[:2000]), "val": list(examples[2000:])}


def translation_corpus() -> dict[str, list[SentencePair]]:
    """The German-English corpus: ``train`` (2000) and ``val`` (200).

    Both are cut from one stream without repetition in either language, so no sentence of either
    language is in two splits.
    """
    examples = _translation_stream()
    return {"train": list(examples[:2000]), "val": list(examples[2000:])}


@cache
def _sentiment_stream() -> tuple[LabelledSentence, ...]:
    return tuple(sentiment_examples(2400, seed=0))


@cache
def _translation_stream() -> tuple[SentencePair, ...]:
    return tuple(translation_examples(2200, seed=0))


def _distinct(count: int, draw: Callable[[Random], _Example], seed: int) -> list[_Example]:
    rng = Random(seed)
    examples: dict[_Example, None] = {}  # keeps the order in which they were drawn
    while len(examples) < count:
        examples[draw(rng)] = None
    return list(examples)
