"""Jain and Wallace's reading of the corpora that tutek took over from them."""

from __future__ import annotations

from typing import Any

from attnscope.errors import UsageError

# Tokens, as near as ours come to theirs, and in how many texts a word must be.
_READINGS = {
    "tutek-sst": ("plain-words", 1),
    "tutek-imdb": ("words", 10),
    "tutek-ag-news": ("words-and-marks-no-numbers", 5),
    "tutek-20news": ("words-and-marks-no-numbers", 2),
}


def jain_wallace(corpus: str) -> dict[str, Any]:
    """Return how Jain and Wallace cut a corpus and which words they keep.

    As fields of `attnscope.data.text.LabelledText`.
    """
    name = str(corpus).removesuffix("-uncut")
    if name not in _READINGS:
        raise UsageError(
            f"vocabulary=jain-wallace is for {', '.join(_READINGS)}; {corpus} is not among them."
        )
    tokens, texts = _READINGS[name]
    return {"tokens": tokens, "min_count": texts, "counted": "texts"}
