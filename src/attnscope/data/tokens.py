"""From text to words: the papers' cleaning and their tokenisers, by name.

snell's texts (A.8) are lower-cased and cut into runs of letters and digits (with an inner
apostrophe): the median lengths that the paper prints are those without punctuation. sunlu's are
those of Jain and Wallace, as nearly as possible without their tokeniser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

Tokeniser = Callable[[str], list[str]]

PAD, BOS, EOS, UNKNOWN = "<pad>", "<bos>", "<eos>", "<unk>"
SPECIALS = (PAD, BOS, EOS, UNKNOWN)

_WORD = re.compile(r"\w+(?:['’]\w+)?")
_WORD_OR_MARK = re.compile(r"\w+(?:['’]\w+)?|[^\w\s]")
_PLAIN_WORD = re.compile(r"\w+")
_WORD_OR_RUN = re.compile(r"\w+(?:['’]\w+)?|([^\w\s])\1*")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
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


def plain_words(text: str) -> list[str]:
    """Return runs of letters and digits, cut at apostrophes too (SST of Jain and Wallace)."""
    return _PLAIN_WORD.findall(text.lower())


def words_and_marks_without_numbers(text: str) -> list[str]:
    """Return words and marks, a repeated mark as one; anything with a digit is ``qqq``.

    So Jain and Wallace clean 20 Newsgroups, with another tokeniser.
    """
    found = (match[0] if match[1] is None else match[1] for match in _runs(text))
    return ["qqq" if any(sign.isdigit() for sign in word) else word for word in found]


def _runs(text: str) -> Iterator[re.Match[str]]:
    return _WORD_OR_RUN.finditer(text.lower())


def without_breaks(text: str) -> str:
    """Return a text without the line breaks of HTML, which IMDB's reviews have."""
    return _BREAK.sub(" ", text)


def message_body(text: str) -> str:
    """Return the body of a message: no headers, quotes or signature (20 Newsgroups).

    By scikit-learn's rules, which Jain and Wallace use.
    """
    from sklearn.datasets import _twenty_newsgroups as rules

    body = rules.strip_newsgroup_footer(rules.strip_newsgroup_header(text))
    return str(rules.strip_newsgroup_quoting(body))


CLEANING: dict[str, Callable[[str], str]] = {
    "none": str,
    "line-breaks": without_breaks,
    "message-body": message_body,
}
TOKENISERS: dict[str, Tokeniser] = {
    "words": words,
    "plain-words": plain_words,
    "words-and-marks": words_and_marks,
    "words-no-numbers": without_numbers,
    "words-no-numbers-split": without_numbers_split,
    "words-and-marks-no-numbers": words_and_marks_without_numbers,
    "blanks": str.split,
}
