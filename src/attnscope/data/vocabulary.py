"""Words and their ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from attnscope.errors import UsageError


@dataclass(frozen=True)
class Vocabulary:
    """Word types in the order of their ids; ``unknown`` replaces all others, if given."""

    words: tuple[str, ...]
    unknown: str | None = None

    @classmethod
    def build(
        cls, texts: Iterable[Sequence[str]], specials: Sequence[str], unknown: str | None = None
    ) -> Vocabulary:
        """Return specials first, then the words of the texts in alphabetical order."""
        found = sorted({word for text in texts for word in text} - set(specials))
        return cls((*specials, *found), unknown)

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.words)}

    def id(self, word: str) -> int:
        """Return a word's id; an unknown word is an error without ``unknown``."""
        unknown = None if self.unknown is None else self._ids.get(self.unknown)
        index = self._ids.get(word, unknown)
        if index is None:
            raise UsageError(f"The word {word!r} is not among the vocabulary's {len(self)} words.")
        return index

    def encode(self, words: Iterable[str]) -> list[int]:
        """Return the ids of words."""
        return [self.id(word) for word in words]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the words of ids."""
        return [self.words[index] for index in ids]
