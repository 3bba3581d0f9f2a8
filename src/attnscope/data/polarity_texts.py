"""Texts of neutral and polar words, whose groups are known (sun & lu, supplement C).

Every text has two words of its label's group among ten neutral ones, all different, in random
order: data set I. In data set II each of the two is, with a small probability, a word of the other
group instead; or, as in the authors' notebook, both of a text are. The paper does not say how
often; a tenth leaves every polar word with γ near .8, as the polar words of SST have it, and most
texts with two words of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import torch
from jaxtyping import Int
from pydantic import Field, model_serializer, model_validator
from torch import Tensor

from attnscope.data.batch import Example
from attnscope.data.corpus import Corpus
from attnscope.data.randomness import generator
from attnscope.data.vocabulary import Vocabulary

# Share of polar words in the wrong class that makes data set II.
STRAY = 0.1


class PolarityTexts(Corpus):
    """Balanced texts with a label that two of their words give away; the sizes are the paper's.

    Parameters
    ----------
    stray
        The probability that a polar word is of the other label's group; ``STRAY`` in data set II.
    strays
        Whether each word strays by itself, or both words of a text together.
    positives, negatives
        Training texts of each label; their ratio is varied in the supplement's Fig. 7.
    draw
        Which draw of the texts; a training seed changes their order alone.
    """

    kind: Literal["polarity"] = "polarity"
    stray: float = Field(0.0, ge=0, le=1)
    strays: Literal["words", "texts"] = Field(
        "words", description="stored where it is not the default"
    )
    positives: int = Field(6000, ge=1)
    negatives: int = Field(6000, ge=1)
    held_out: int = Field(1000, ge=2, description="validation texts, as many of each label")
    neutral_types: int = Field(1000, ge=1)
    polar_types: int = Field(50, ge=1, description="of each label")
    neutral_words: int = Field(10, ge=0, description="in a text")
    polar_words: int = Field(2, ge=1, description="in a text")
    draw: int = 0

    @model_validator(mode="after")
    def _enough_types(self) -> PolarityTexts:
        pairs = {
            "neutral_words": (self.neutral_words, self.neutral_types),
            "polar_words": (self.polar_words, self.polar_types),
        }
        for name, (words, types) in pairs.items():
            if words > types:
                raise ValueError(f"{name}={words} different words need at least as many types")
        return self

    @model_serializer(mode="wrap")
    def _without_the_default(self, handler: Any) -> dict[str, Any]:
        """Leave the default out, so that units made before there was a choice keep their hash."""
        values: dict[str, Any] = handler(self)
        return {k: v for k, v in values.items() if (k, v) != ("strays", "words")}

    @property
    def dataset(self) -> str:
        """``polarity-I``, or ``polarity-II`` where words stray."""
        return "polarity-II" if self.stray else "polarity-I"

    @property
    def input_words(self) -> Vocabulary:
        """Neutral words first, then negative, then positive ones."""
        sizes = (self.neutral_types, self.polar_types, self.polar_types)
        names = ("neutral", *self.output_words.words)
        return Vocabulary(
            tuple(f"{n}-{k}" for n, size in zip(names, sizes, strict=True) for k in range(size))
        )

    @property
    def output_words(self) -> Vocabulary:
        """The two labels."""
        return Vocabulary(("negative", "positive"))

    @property
    def boundaries(self) -> tuple[int, int] | None:
        """None: the output is a label."""
        return None

    @property
    def groups(self) -> dict[str, Int[Tensor, " _"]]:
        """The word ids of each group, in the order of `attnscope.data.token_groups`."""
        every = torch.arange(self.neutral_types + 2 * self.polar_types)
        neutral, negative, positive = every.split(
            [self.neutral_types, self.polar_types, self.polar_types]
        )
        return {"negative": negative, "positive": positive, "neutral": neutral}

    @property
    def training_examples(self) -> Sequence[Example]:
        """All training texts."""
        return _texts(self, "train", self.negatives, self.positives)

    @property
    def validation_examples(self) -> Sequence[Example]:
        """Texts drawn apart from those, labels taking turns."""
        half = self.held_out // 2
        return _texts(self, "val", self.held_out - half, half)

    def encode(self, text: str) -> list[int]:
        """Split at blanks."""
        return self.input_words.encode(text.split())


@lru_cache(maxsize=8)
def _texts(source: PolarityTexts, split: str, negatives: int, positives: int) -> list[Example]:
    """Draw the texts of a split, labels in random order."""
    stream = generator("polarity", split, source.draw)
    labels = torch.tensor([0] * negatives + [1] * positives)
    labels = labels[torch.randperm(len(labels), generator=stream)]
    inputs = _words(source, labels, stream).numpy()
    return [Example(n, inputs[n], [0], [label]) for n, label in enumerate(labels.tolist())]


def _words(
    source: PolarityTexts, labels: Int[Tensor, " text"], stream: torch.Generator
) -> Int[Tensor, "text word"]:
    size = len(labels)
    neutral = _distinct(stream, size, source.neutral_words, source.neutral_types)
    polar = _distinct(stream, size, source.polar_words, source.polar_types)
    drawn = polar if source.strays == "words" else polar[:, :1]
    strays = torch.rand(drawn.shape, generator=stream) < source.stray
    # Different words of one group are different words of either.
    group = torch.where(strays, 1 - labels[:, None], labels[:, None])
    polar = polar + source.neutral_types + group * source.polar_types
    words = torch.cat([neutral, polar], 1)
    order = torch.rand(words.shape, generator=stream).argsort(1)
    return words.gather(1, order)


def _distinct(
    stream: torch.Generator, size: int, words: int, types: int
) -> Int[Tensor, "text word"]:
    return torch.rand(size, types, generator=stream).argsort(1)[:, :words]
