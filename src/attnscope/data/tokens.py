"""From text to words: the tokenisers of snell A.8, by name.

Texts are lower-cased and cut into runs of letters and digits (with an inner apostrophe): the
median lengths that the paper prints are those without punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Tokeniser = Callable[[str], list[str]]

PAD, BOS, EOS, UNKNOWN = "<pad>", "<bos>", "<eos>", "<unk>"
SPECIALS = (PAD, BOS, EOS, UNKNOWN)

_WORD = re.compile(r"\w+(?:['’]\w+)?")
_WORD_OR_MARK = re.compile(r"\w+(?:['’]\w+)?|[^\w\s]")
_WORD_WITHOUT_UNDERSCORE = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


def words(text: str) -> list[str]:
    """Return the words, lower-cased, without punctuation."""
    return _WORD.findall(text.lower())


def words_and_marks(text: str) -> list[str]:
    """Return words and punctuation marks, lower-cased."""
    return _WORD_OR_MARK.findall(text.lower())


def without_numbers(text: str) -> list[str]:
    """Return words with every whole number of more than one digit unknown (AG News, A.8)."""
    return [_no_number(word) for word in words(text)]


def without_numbers_split(text: str) -> list[str]:
    """Return words cut at ``_`` too, and numbers unknown (20 Newsgroups, A.8)."""
    return [_no_number(word) for word in _WORD_WITHOUT_UNDERSCORE.findall(text.lower())]


def _no_number(word: str) -> str:
    return UNKNOWN if len(word) > 1 and word.isdecimal() else word


TOKENISERS: dict[str, Tokeniser] = {
    "words": words,
    "words-and-marks": words_and_marks,
    "words-no-numbers": without_numbers,
    "words-no-numbers-split": without_numbers_split,
    "blanks": str.split,
}
