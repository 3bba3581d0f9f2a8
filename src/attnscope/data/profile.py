"""A corpus in numbers that decide how it can be used: lengths, words, duplicates, classes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

from attnscope.data.known import definition
from attnscope.data.selection import select
from attnscope.data.tokens import TOKENISERS
from attnscope.errors import UsageError

MIN_COUNT = 3
"""Words that are rarer in the training part are unknown to classifiers."""
_UNKNOWN, _MAJORITY, _SHORT = 0.2, 0.8, 3


@dataclass(frozen=True)
class Lengths:
    """Words of a text: the median, a bound of 95 % of the texts, the longest."""

    median: float
    most: int
    longest: int


@dataclass(frozen=True)
class Profile:
    """A corpus in numbers, as it is selected.

    Attributes
    ----------
    lengths
        By split, and by language of parallel text.
    types, known
        Word types of the training part, and those in at least three of its texts' places.
    unknown
        Share of validation words that are not known.
    duplicates
        Texts that two splits share, and repeated ones of a split.
    majority
        Share of the largest class in the training part; None without classes.
    warnings
        Sentences about what may go wrong.
    """

    lengths: Mapping[str, Lengths]
    types: int
    known: int
    unknown: float
    duplicates: Mapping[str, int]
    majority: float | None
    warnings: tuple[str, ...]


def profile(name: str | Path) -> Profile:
    """Return the profile of a known corpus or of the user's own folder."""
    corpus = definition(name)
    if corpus.task == "alignment":
        raise UsageError(f"{corpus.name} has alignments only: there is nothing to train on.")
    cut = TOKENISERS[corpus.tokens]
    selected = select(corpus, cut)
    parts: dict[str, Sequence[Any]] = {"train": selected.train, "val": selected.val}
    parts |= {"test": selected.test} if selected.test else {}
    labelled = corpus.task == "classification"
    sides = ("text",) if labelled else ("source", "target")
    words: dict[str, list[Sequence[str]]] = {}
    for split, rows in parts.items():
        for side in sides:
            key = split if labelled else f"{split}.{getattr(corpus, side)}"
            words[key] = [cut(getattr(row, side)) for row in rows]
    train = [text for key, texts in words.items() if key.startswith("train") for text in texts]
    val = [text for key, texts in words.items() if key.startswith("val") for text in texts]
    counts = Counter(word for text in train for word in text)
    known = {word for word, count in counts.items() if count >= MIN_COUNT}
    read = [word for text in val for word in text]
    unknown = sum(word not in known for word in read) / max(1, len(read))
    lengths = {key: _lengths(texts) for key, texts in words.items()}
    texts = {split: [getattr(row, sides[0]) for row in rows] for split, rows in parts.items()}
    majority = _majority(selected.train) if labelled else None
    found = (lengths, len(counts), len(known), unknown, _duplicates(texts), majority)
    return Profile(*found, warnings=tuple(_warnings(*found)))


def _lengths(texts: Sequence[Sequence[str]]) -> Lengths:
    counts = sorted(len(text) for text in texts)
    return Lengths(median(counts), counts[math.ceil(0.95 * len(counts)) - 1], counts[-1])


def _duplicates(texts: Mapping[str, Sequence[str]]) -> dict[str, int]:
    found = {
        f"in {one} and {other}": len(set(texts[one]) & set(texts[other]))
        for one, other in combinations(texts, 2)
    }
    found |= {f"repeated in {name}": len(rows) - len(set(rows)) for name, rows in texts.items()}
    return {where: count for where, count in found.items() if count}


def _majority(rows: Sequence[Any]) -> float:
    return max(Counter(row.label for row in rows).values()) / len(rows)


def _warnings(
    lengths: Mapping[str, Lengths],
    types: int,
    known: int,
    unknown: float,
    duplicates: Mapping[str, int],
    majority: float | None,
) -> Iterable[str]:
    if unknown > _UNKNOWN:
        yield (
            f"{100 * unknown:.0f} % of the validation words are unknown; text without blanks, or "
            "of few examples, is better cut into pieces (tokens=pieces)."
        )
    if any(each.median < _SHORT for each in lengths.values()):
        yield f"Half of the texts have fewer than {_SHORT} words: attention has nothing to choose."
    for where, count in duplicates.items():
        if where.startswith("in "):
            yield f"{count:,} texts are {where}: held-out numbers are too good."
    if majority is not None and majority > _MAJORITY:
        yield (
            f"{100 * majority:.0f} % of the training texts have the same label: accuracy says "
            "little, F1 more."
        )
