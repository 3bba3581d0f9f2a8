"""Generated tasks: copying under four distributions of words, a fixed reordering, and a keyword.

Copying (snell §3.3, A.3, §6.2): the input's words are followed by EOS; the target is the same
words and EOS; the decoder reads SOS and the target shifted right. The keyword task (§6.1) has
neither.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

import torch
from jaxtyping import Int
from pydantic import Field, model_validator
from torch import Tensor

from attnscope.data.batch import Batch
from attnscope.data.randomness import generator
from attnscope.data.source import Source
from attnscope.data.vocabulary import Vocabulary
from attnscope.errors import UsageError


class GeneratedTask(Source):
    """A source that draws fresh examples for every step."""

    @abstractmethod
    def draw(self, stream: torch.Generator, ids: Int[Tensor, " batch"]) -> Batch:
        """Draw one example per id."""

    def training_batch(self, seed: int, step: int, size: int) -> Batch:
        """Return fresh examples; ids are unique within a seed."""
        ids = torch.arange(step * size, (step + 1) * size)
        return self.draw(generator("train", self.dataset, seed, step), ids)

    def evaluation_batch(self, count: int, split: str = "val") -> Batch:
        """Return held-out examples; a larger count extends a smaller one."""
        if split != "val":
            raise UsageError(f"{self.dataset} is generated on the fly and has no split {split!r}.")
        blocks = [
            self.draw(generator("evaluation", self.dataset, start), torch.arange(start, start + 50))
            for start in range(0, count, 50)
        ]
        columns = {
            name: torch.cat([getattr(block, name) for block in blocks])
            for name in Batch.__dataclass_fields__
        }
        return Batch(**columns).rows(slice(count))


class CopyTask(GeneratedTask):
    """Copy the words; variants differ in how words are drawn and in which order they come out."""

    length: int = Field(40, ge=1)

    @property
    @abstractmethod
    def types(self) -> int:
        """Number of word types, EOS and SOS aside."""

    @abstractmethod
    def draw_words(self, stream: torch.Generator, size: int) -> Int[Tensor, "batch word"]:
        """Draw the words of ``size`` sequences."""

    @property
    def order(self) -> Int[Tensor, " word"]:
        """The input position that each output position copies."""
        return torch.arange(self.length)

    @property
    def input_words(self) -> Vocabulary:
        """Word types 1, 2, …, then EOS and SOS; input and output share them."""
        return Vocabulary((*(str(word + 1) for word in range(self.types)), "<eos>", "<sos>"))

    @property
    def output_words(self) -> Vocabulary:
        """The same as the input's."""
        return self.input_words

    @property
    def boundaries(self) -> tuple[int, int] | None:
        """SOS and EOS."""
        return self.types + 1, self.types

    def draw(self, stream: torch.Generator, ids: Int[Tensor, " batch"]) -> Batch:
        """Draw words, append EOS, and prefix the decoder's input with SOS."""
        size = len(ids)
        words = self.draw_words(stream, size)
        eos = torch.full((size, 1), self.types)
        copied = words[:, self.order]
        lengths = torch.full((size,), self.length + 1)
        return Batch(
            ids=ids,
            inputs=torch.cat([words, eos], 1),
            input_lengths=lengths,
            decoder_inputs=torch.cat([eos + 1, copied], 1),
            targets=torch.cat([copied, eos], 1),
            target_lengths=lengths,
            gold=torch.cat([self.order, torch.tensor([self.length])]).expand(size, -1),
        )


class PermutationCopy(CopyTask):
    """Every input is a permutation of the same types: 40 of 40 (§3.3)."""

    kind: Literal["permutation-copy"] = "permutation-copy"

    @property
    def dataset(self) -> str:
        """As in ``permutations-40``."""
        return f"permutations-{self.length}"

    @property
    def types(self) -> int:
        """As many as positions."""
        return self.length

    def draw_words(self, stream: torch.Generator, size: int) -> Int[Tensor, "batch word"]:
        """Draw permutations."""
        return _distinct(stream, size, self.length, self.types)


class SampledCopy(CopyTask):
    """Distinct words sampled from more types than positions: 40 of 60, the control of §3.3."""

    kind: Literal["sampled-copy"] = "sampled-copy"
    vocabulary: int = Field(60, ge=1)

    @model_validator(mode="after")
    def _enough_types(self) -> SampledCopy:
        if self.vocabulary < self.length:
            raise ValueError(f"{self.length} distinct words need at least as many types")
        return self

    @property
    def dataset(self) -> str:
        """As in ``sampled-40-of-60``."""
        return f"sampled-{self.length}-of-{self.vocabulary}"

    @property
    def types(self) -> int:
        """All that may be sampled."""
        return self.vocabulary

    def draw_words(self, stream: torch.Generator, size: int) -> Int[Tensor, "batch word"]:
        """Draw distinct words."""
        return _distinct(stream, size, self.length, self.types)


class MixtureCopy(CopyTask):
    """Permutations of one of two disjoint sets of types, either with probability ½ (A.3)."""

    kind: Literal["mixture-copy"] = "mixture-copy"

    @property
    def dataset(self) -> str:
        """As in ``mixture-2x40``."""
        return f"mixture-2x{self.length}"

    @property
    def types(self) -> int:
        """Both sets."""
        return 2 * self.length

    def draw_words(self, stream: torch.Generator, size: int) -> Int[Tensor, "batch word"]:
        """Draw a set, then a permutation of it."""
        second = torch.randint(2, (size, 1), generator=stream)
        return _distinct(stream, size, self.length, self.length) + second * self.length


class ReorderedCopy(SampledCopy):
    """A fixed random permutation π of positions: output t is the word at π(t) (§6.2, Eq. 25)."""

    kind: Literal["reordered-copy"] = "reordered-copy"  # type: ignore[assignment]
    permutation: int = Field(0, description="seed that draws π")

    @property
    def dataset(self) -> str:
        """As in ``reordered-40-of-60``."""
        return f"reordered-{self.length}-of-{self.vocabulary}"

    @property
    def order(self) -> Int[Tensor, " word"]:
        """π."""
        return torch.randperm(self.length, generator=generator("positions", self.permutation))


class KeywordTask(GeneratedTask):
    """Is word 1 in the sequence? Exactly once in positive ones; classes are balanced (§6.1)."""

    kind: Literal["keyword"] = "keyword"
    length: int = Field(40, ge=2)
    types: int = Field(40, ge=2)

    @property
    def dataset(self) -> str:
        """As in ``keyword-40``."""
        return f"keyword-{self.length}"

    @property
    def input_words(self) -> Vocabulary:
        """The words 1, 2, …; the keyword has id 0."""
        return Vocabulary(tuple(str(word + 1) for word in range(self.types)))

    @property
    def output_words(self) -> Vocabulary:
        """The two labels."""
        return Vocabulary(("absent", "present"))

    @property
    def boundaries(self) -> tuple[int, int] | None:
        """None: the output is a label."""
        return None

    def draw(self, stream: torch.Generator, ids: Int[Tensor, " batch"]) -> Batch:
        """Draw other words everywhere, then a label, then the keyword's place in positive ones."""
        size = len(ids)
        words = torch.randint(1, self.types, (size, self.length), generator=stream)
        label = torch.randint(2, (size, 1), generator=stream)
        place = torch.randint(self.length, (size, 1), generator=stream)
        keyword = torch.where(label == 1, 0, words.gather(1, place))
        return Batch(
            ids=ids,
            inputs=words.scatter(1, place, keyword),
            input_lengths=torch.full((size,), self.length),
            decoder_inputs=torch.zeros(size, 1, dtype=torch.long),
            targets=label,
            target_lengths=torch.ones(size, dtype=torch.long),
            gold=torch.where(label == 1, place, -1),
        )


def _distinct(stream: torch.Generator, size: int, length: int, types: int) -> Tensor:
    return torch.rand(size, types, generator=stream).argsort(1)[:, :length]
