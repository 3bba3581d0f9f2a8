"""The words that a trained unit carries, so that it reads text after its corpus has moved or gone.

A unit's folder has them as ``words.json``, and as ``pieces.model`` where text is cut by
SentencePiece. They are no part of the unit's hash: the corpus decides them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NoReturn

from pydantic import Field

from attnscope.data.batch import Batch
from attnscope.data.parallel_words import ParallelWords
from attnscope.data.pieces import Pieces
from attnscope.data.source import Source
from attnscope.data.text import LabelledText, ParallelText, Text, pieces_of, tokeniser_named
from attnscope.data.tokens import BOS, EOS, UNKNOWN
from attnscope.data.vocabulary import Vocabulary
from attnscope.errors import UsageError

PIECES = "pieces"


class CarriedText(Source):
    """A text corpus without its texts: vocabularies, and how a text becomes ids."""

    kind: Literal["carried-text"] = "carried-text"
    name: str
    inputs: tuple[str, ...] = Field(min_length=1)
    outputs: tuple[str, ...] = Field(min_length=1, description="words, or labels")
    labels: bool = Field(description="whether the output is a label")
    tokens: str = Field(description="a tokeniser, or pieces")
    edges: Literal["marked", "bare", "end"]
    model: bytes = Field(b"", exclude=True, repr=False)

    @property
    def dataset(self) -> str:
        """The name of the corpus."""
        return self.name

    @cached_property
    def input_words(self) -> Vocabulary:
        """Word or piece types."""
        return Vocabulary(self.inputs, UNKNOWN)

    @cached_property
    def output_words(self) -> Vocabulary:
        """Word types, or labels."""
        return Vocabulary(self.outputs, None if self.labels else UNKNOWN)

    @property
    def boundaries(self) -> tuple[int, int] | None:
        """``<bos>`` and ``<eos>``; None where the output is a label."""
        return None if self.labels else (self.output_words.id(BOS), self.output_words.id(EOS))

    @cached_property
    def pieces(self) -> Pieces | None:
        """The SentencePiece model, where there is one."""
        if self.tokens != PIECES:
            return None
        try:
            return Pieces(self.model)
        except RuntimeError as error:
            raise UsageError(f"{self.name}: pieces.model is not a SentencePiece model.") from error

    def encode(self, text: str) -> list[int]:
        """Cut a text as the unit's corpus was."""
        if self.pieces is None:
            words = self.input_words.encode(tokeniser_named(self.tokens)(text))
        else:
            words = self.pieces.encode([text])[0]
        if self.edges == "bare":
            return words
        start = [self.input_words.id(BOS)] if self.edges == "marked" else []
        return [*start, *words, self.input_words.id(EOS)]

    def sentence(self, ids: Sequence[int]) -> str:
        """Return output ids as text."""
        return super().sentence(ids) if self.pieces is None else self.pieces.decode(ids)

    def training_batch(self, seed: int, step: int, size: int) -> Batch:
        """Raise: the texts are not here."""
        self._raise()

    def evaluation_batch(self, count: int, split: str = "val") -> Batch:
        """Raise: the texts are not here."""
        self._raise()

    def _raise(self) -> NoReturn:
        raise UsageError(f"The texts of {self.name} are not here; the unit carries its words only.")


def carried(source: Source) -> CarriedText | None:
    """Return the words of a source that reads files, None for one that needs none."""
    if not isinstance(source, Text):
        return None
    model, settings = b"", dict[str, Any]()
    if isinstance(source, ParallelText):
        settings = {"tokens": PIECES, "edges": "marked"}
        model = source.tokeniser.model
    elif isinstance(source, ParallelWords):
        settings = {"tokens": source.tokens, "edges": "end"}
    elif isinstance(source, LabelledText):
        pieces = pieces_of(source)
        model = b"" if pieces is None else pieces.model
        settings = {"tokens": PIECES if pieces else source.tokens, "edges": source.edges}
    else:
        return None
    return CarriedText(
        name=source.dataset,
        inputs=source.input_words.words,
        outputs=source.output_words.words,
        labels=source.boundaries is None,
        model=model,
        **settings,
    )
