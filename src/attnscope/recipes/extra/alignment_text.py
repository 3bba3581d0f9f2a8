"""Gold alignments, wherever they come from, and text spelled as their words are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Bool
from torch import Tensor

from attnscope.analysis.alignment import link_tensor
from attnscope.data import grammar
from attnscope.data.folder import Aligned
from attnscope.data.known import definition, locate
from attnscope.data.tokens import words_and_marks
from attnscope.errors import UsageError

Links = Bool[Tensor, "batch out inp"]
Words = Sequence[str]
GRAMMAR = "grammar-translation"


@dataclass(frozen=True)
class Gold:
    """Sentence pairs with their gold links, in one direction, wherever they come from."""

    dataset: str
    split: str
    languages: tuple[str, str]
    sentences: Sequence[Aligned]

    @property
    def sides(self) -> tuple[list[Words], list[Words]]:
        """Source and target sentences."""
        return [pair.source for pair in self.sentences], [pair.target for pair in self.sentences]

    @property
    def shape(self) -> tuple[int, int]:
        """The longest output and the longest input."""
        sources, targets = self.sides
        return max(map(len, targets)), max(map(len, sources))

    @property
    def sure(self) -> Links:
        """The sure links."""
        return link_tensor([pair.sure for pair in self.sentences], *self.shape)

    @property
    def possible(self) -> Links:
        """The possible links, sure ones included."""
        return link_tensor([pair.possible for pair in self.sentences], *self.shape)


def open_gold(name: str, languages: tuple[str, str] | None = None) -> Gold:
    """Read gold alignments.

    Parameters
    ----------
    name
        A known corpus with alignments, a folder of one's own, or ``grammar-translation``, whose
        grammar knows what it translated.
    languages
        Source and target, where the gold corpus has these; else its own order.
    """
    if name == GRAMMAR:
        pairs = grammar.translation_corpus()["val"]
        return Gold(name, "val", ("de", "en"), [_aligned(pair) for pair in pairs])
    known = definition(name)
    if known.task != "alignment":
        raise UsageError(
            f"{known.name} is made for {known.task}; gold= needs gold alignments, such as "
            f"gold-en-fr or {GRAMMAR}."
        )
    own = (known.source, known.target)
    direction = languages if languages and set(languages) == set(own) else own
    sentences = locate(known).aligned(known.val, *direction)
    return Gold(Path(name).name, known.val, direction, sentences)


def _aligned(pair: grammar.SentencePair) -> Aligned:
    links = frozenset((source, target) for target, source in pair.alignment)
    return Aligned(str(pair.id), pair.source, pair.target, links, links)


Rules = Sequence[tuple[str, str]]
# What the Hansards' gold text does with contractions; the article is "le" before any word.
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


def cut(text: str, rules: Rules = ()) -> list[str]:
    """Cut a sentence into lower-cased words and marks after rewriting it.

    In a rule's result ``_`` stands for an apostrophe that belongs to its word.
    """
    text = text.lower().replace("_", " ")
    for pattern, written in rules:
        text = re.sub(pattern, written, text)
    return [word.replace("_", "'") for word in words_and_marks(text)]
