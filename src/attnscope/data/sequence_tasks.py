"""Sequence tasks whose attention is known: one-to-one, reversed and sorted (aitken §3).

An input is some words and EOS; positions after it, up to the task's fixed width, are EOS again and
count as padding, as in the authors' code. Gold positions say which input word each output word
comes from, EOS from EOS. The decoder's first input is SOS, an output word that is never written.
"""

from __future__ import annotations

from abc import abstractmethod
from string import ascii_uppercase
from typing import Literal

import torch
from jaxtyping import Int
from pydantic import Field, model_validator
from torch import Tensor

from attnscope.data.batch import Batch, prefix_mask
from attnscope.data.tasks import GeneratedTask
from attnscope.data.vocabulary import Vocabulary

Positions = Int[Tensor, "batch position"]
Lengths = Int[Tensor, " batch"]


class SequenceTask(GeneratedTask):
    """Every output word is the translation of one input word, and so is EOS.

    ``shortest`` and ``longest`` count words without EOS; each length between is as likely.
    """

    shortest: int = Field(15, ge=1)
    longest: int = Field(19, ge=1)

    @model_validator(mode="after")
    def _lengths_in_order(self) -> SequenceTask:
        if self.shortest > self.longest:
            raise ValueError(f"shortest={self.shortest} is above longest={self.longest}")
        return self

    @property
    @abstractmethod
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Input words and their translations, in the order of their ids."""

    @abstractmethod
    def draw_words(self, stream: torch.Generator, size: int) -> Positions:
        """Draw the words of ``size`` sequences of the greatest length."""

    @abstractmethod
    def order(self, inputs: Positions, lengths: Lengths) -> Positions:
        """Return the input position that each output position translates.

        ``inputs`` have EOS, the highest id, at ``lengths`` and after; these stay where they are.
        """

    @property
    def end(self) -> int:
        """The id of EOS on both sides; SOS has the next one."""
        return len(self.pairs)

    @property
    def input_words(self) -> Vocabulary:
        """The words, then EOS."""
        return Vocabulary((*(word for word, _ in self.pairs), "<eos>"))

    @property
    def output_words(self) -> Vocabulary:
        """Their translations, then EOS and SOS."""
        return Vocabulary((*(word for _, word in self.pairs), "<eos>", "<sos>"))

    @property
    def boundaries(self) -> tuple[int, int] | None:
        """SOS and EOS."""
        return self.end + 1, self.end

    def draw(self, stream: torch.Generator, ids: Int[Tensor, " batch"]) -> Batch:
        """Draw lengths and words, and put the words in their order."""
        size = len(ids)
        lengths = torch.randint(self.shortest, self.longest + 1, (size,), generator=stream)
        words = self.draw_words(stream, size).where(prefix_mask(lengths, self.longest), self.end)
        ends = torch.full((size, 1), self.end)
        inputs = torch.cat([words, ends], 1)
        gold = self.order(inputs, lengths)
        targets = inputs.gather(1, gold)
        return Batch(
            ids=ids,
            inputs=inputs,
            input_lengths=lengths + 1,
            decoder_inputs=torch.cat([ends + 1, targets[:, :-1]], 1),
            targets=targets,
            target_lengths=lengths + 1,
            gold=gold.where(prefix_mask(lengths + 1, self.longest + 1), -1),
        )


class OneToOne(SequenceTask):
    """Word k is translated as word k, at the same position.

    By default 15 to 19 words: with EOS the lengths 16 to 20, the text's "15 to 20".
    """

    kind: Literal["one-to-one"] = "one-to-one"
    words: int = Field(3, ge=2)

    @property
    def dataset(self) -> str:
        """As in ``one-to-one-3``."""
        return f"one-to-one-{self.words}"

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """I1 and O1, I2 and O2, …"""
        return tuple((f"I{k}", f"O{k}") for k in range(1, self.words + 1))

    def draw_words(self, stream: torch.Generator, size: int) -> Positions:
        """Draw every word independently."""
        return torch.randint(self.words, (size, self.longest), generator=stream)

    def order(self, inputs: Positions, lengths: Lengths) -> Positions:
        """Return every position itself."""
        return torch.arange(inputs.shape[1]).expand_as(inputs)


class Reversed(OneToOne):
    """One-to-one with the words in reverse; EOS stays at the end.

    By default of one length, 19 words and EOS. With lengths varying, where an output word comes
    from depends on the length, which a model without recurrence cannot know.
    """

    kind: Literal["reversed"] = "reversed"  # type: ignore[assignment]
    shortest: int = Field(19, ge=1)

    @property
    def dataset(self) -> str:
        """As in ``reversed-3``, and with lengths varying ``reversed-3-varying``."""
        varying = "-varying" if self.shortest < self.longest else ""
        return f"reversed-{self.words}{varying}"

    def order(self, inputs: Positions, lengths: Lengths) -> Positions:
        """Return the positions of the words from the last one to the first."""
        places = torch.arange(inputs.shape[1])
        last = lengths[:, None] - 1
        return torch.where(places <= last, last - places, places)


class Sorting(SequenceTask):
    """The letters in alphabetical order; of equal letters the earlier one comes first.

    The paper gives no sizes. Here 5 to 8 distinct ones of 10 letters: fewer than there are, since
    sorting all of them would always give the same output.
    """

    kind: Literal["sorting"] = "sorting"
    letters: int = Field(10, ge=2, le=len(ascii_uppercase))
    shortest: int = Field(5, ge=1)
    longest: int = Field(8, ge=1)
    drawn: Literal["distinct", "repeated"] = Field(
        "distinct", description="whether a letter may stand in a sequence more than once"
    )

    @model_validator(mode="after")
    def _enough_letters(self) -> Sorting:
        if self.drawn == "distinct" and self.longest > self.letters:
            raise ValueError(f"{self.longest} distinct letters cannot be drawn of {self.letters}")
        return self

    @property
    def dataset(self) -> str:
        """As in ``sorting-10``, and with letters repeated ``sorting-10-repeated``."""
        repeated = {"distinct": "", "repeated": "-repeated"}[self.drawn]
        return f"sorting-{self.letters}{repeated}"

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """A and A, B and B, …"""
        return tuple((letter, letter) for letter in ascii_uppercase[: self.letters])

    def draw_words(self, stream: torch.Generator, size: int) -> Positions:
        """Draw the letters."""
        return _DRAWS[self.drawn](stream, size, self.longest, self.letters)

    def order(self, inputs: Positions, lengths: Lengths) -> Positions:
        """Return the positions from the first letter of the alphabet on; EOS is after all."""
        return inputs.argsort(dim=1, stable=True)


def _distinct(stream: torch.Generator, size: int, length: int, types: int) -> Positions:
    return torch.rand(size, types, generator=stream).argsort(1)[:, :length]


def _repeated(stream: torch.Generator, size: int, length: int, types: int) -> Positions:
    return torch.randint(types, (size, length), generator=stream)


_DRAWS = {"distinct": _distinct, "repeated": _repeated}
