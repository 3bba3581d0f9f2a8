"""Contractions written out, as in the Hansards' gold text: "du" is "de le", "don't" is "do not"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from attnscope.data.tokens import words_and_marks

Rules = Sequence[tuple[str, str]]

# The article is "le" before any word.
_FRENCH: Rules = (
    (r"\baujourd['’]hui\b", "aujourd_ hui"),
    (r"\b(l|d|n|j|m|t|s|c|qu|lorsqu|puisqu|jusqu|quoiqu)['’]", r"\1e "),
    (r"\bdu\b", "de le"),
    (r"\bdes\b", "de les"),
    (r"\bau\b", "à le"),
    (r"\baux\b", "à les"),
)
_ENGLISH: Rules = (
    (r"\bwon['’]t\b", "will not"),
    (r"\bcan['’]t\b", "cannot"),
    (r"n['’]t\b", " not"),
    (r"['’]re\b", " are"),
    (r"['’]ll\b", " will"),
    (r"['’]ve\b", " have"),
    (r"['’]d\b", " would"),
    (r"['’]m\b", " am"),
    (r"['’]s\b", " _s"),
)
SPELLINGS: Mapping[str, Mapping[str, Rules]] = {
    "expanded": {"fr": _FRENCH, "en": _ENGLISH},
    "plain": {},
}
"""By spelling and language; a language without rules keeps its contractions."""


def cut(text: str, rules: Rules = ()) -> list[str]:
    """Cut a sentence into lower-cased words and marks after rewriting it.

    In a rule's result ``_`` stands for an apostrophe that belongs to its word.
    """
    text = text.lower().replace("_", " ")
    for pattern, written in rules:
        text = re.sub(pattern, written, text)
    return [word.replace("_", "'") for word in words_and_marks(text)]
