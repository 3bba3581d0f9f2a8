"""The words of an example as its text has them: case, punctuation, and unknown words themselves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from attnscope.data.carried import PIECES, CarriedText
from attnscope.data.source import Source
from attnscope.data.text import Text, piece_count, tokeniser_named
from attnscope.errors import AttnscopeError


def original_text(source: Source, split: str, example: int) -> str | None:
    """Return the input text of an example, None where the corpus is not here or has none."""
    if not isinstance(source, Text):
        return None
    try:
        loaded = source.loaded
        records = {"val": loaded.val_records, "train": loaded.train_records}[split]
        record = records[example]
    except (AttnscopeError, LookupError, OSError):
        return None
    return str(getattr(record, "text", "") or getattr(record, "source", ""))


def surface_words(source: Source, text: str, words: Sequence[str]) -> list[str]:
    """Return the part of a text that each input word was cut from; the words where they differ.

    What stands between two words belongs to the one before it, so that nothing is lost.
    """
    tokens = getattr(source, "tokens", PIECES)
    if not isinstance(source, Text | CarriedText) or tokens == PIECES or piece_count(tokens):
        return list(words)
    cut = tokeniser_named(tokens)(text)
    lead, trail = _edges(words, len(cut))
    if lead is None or trail is None:
        return list(words)
    places = _places(text.lower() if len(text.lower()) == len(text) else text, cut)
    starts = [0, *places[1:], len(text)] if places else [0]
    parts = [text[start:end].strip() for start, end in pairwise(starts)]
    shown = [part or word for part, word in zip(parts, cut, strict=True)]
    return [*words[:lead], *shown, *words[len(words) - trail :]]


def _edges(words: Sequence[str], count: int) -> tuple[int | None, int | None]:
    """Return how many boundaries stand before and after the text's own words."""
    more = len(words) - count
    return {0: (0, 0), 1: (0, 1), 2: (1, 1)}.get(more, (None, None))


def _places(text: str, cut: Sequence[str]) -> list[int]:
    """Return where each word starts; one that was rewritten starts where the last one ends."""
    places, at = [], 0
    for word in cut:
        found = text.find(word, at)
        start = at if found < 0 else found
        places.append(start)
        at = start if found < 0 else found + len(word)
    return places
