"""Extended SCAN: phrases of SCAN in a row, with the input position of every output (aitken §4).

SCAN's commands (Lake and Baroni 2018) over run, walk, jump, left, and, twice are 156; without those
that say "left twice" 90 are left, 9 of one clause and 81 of two with "and" between. They are made
here by SCAN's own grammar, so that nothing is read from a file. Phrases are appended until the
output is long enough. The text's lengths are 15 to 20. The authors' recorded run has 10 to 15 and a
mark after each phrase: with these their recorded mean offsets come out. Limits count EOS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from attnscope.data.batch import Batch
from attnscope.data.tasks import GeneratedTask
from attnscope.data.vocabulary import Vocabulary
from attnscope.errors import UsageError

VERBS = {"run": "RUN", "walk": "WALK", "jump": "JUMP"}
SEPARATOR = "<.>"
_ROUNDS = 1000


@dataclass(frozen=True)
class Phrase:
    """A command, its output, and for each output word the input position it comes from.

    ``shape`` is the command with every verb written ``v``.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    gold: tuple[int, ...]

    @property
    def shape(self) -> str:
        """As in ``v left and v``."""
        return " ".join("v" if word in VERBS else word for word in self.inputs)

    def turned(self) -> Phrase:
        """Return the phrase with ``left``: LTURN comes first, and from ``left``."""
        last = len(self.inputs)
        return Phrase((*self.inputs, "left"), ("LTURN", *self.outputs), (last, *self.gold))

    def doubled(self) -> Phrase:
        """Return the phrase with ``twice``, which all of the second time comes from."""
        again = (len(self.inputs),) * len(self.outputs)
        return Phrase((*self.inputs, "twice"), self.outputs * 2, self.gold + again)

    def then(self, other: Phrase, *between: str) -> Phrase:
        """Return both phrases; the word between them in the input gives no output."""
        shift = len(self.inputs) + len(between)
        gold = (*self.gold, *(place + shift for place in other.gold))
        inputs = (*self.inputs, *between, *other.inputs)
        return Phrase(inputs, self.outputs + other.outputs, gold)

    def separated(self) -> Phrase:
        """Return the phrase with a separator at its end, on both sides."""
        return self.then(Phrase((SEPARATOR,), (SEPARATOR,), (0,)))


@cache
def scan_commands() -> tuple[Phrase, ...]:
    """Return SCAN's 156 commands over run, walk, jump, left, and, twice."""
    plain = [Phrase((verb,), (action,), (0,)) for verb, action in VERBS.items()]
    directed = plain + [phrase.turned() for phrase in plain]
    clauses = directed + [phrase.doubled() for phrase in directed]
    return (*clauses, *(one.then(other, "and") for one, other in product(clauses, clauses)))


@cache
def escan_phrases() -> tuple[Phrase, ...]:
    """Return the 90 of them that do not say "left twice"."""
    return tuple(p for p in scan_commands() if "left twice" not in " ".join(p.inputs))


class ExtendedScan(GeneratedTask):
    """Phrases in a row, each drawn again if with it the output would be too long.

    Parameters
    ----------
    shortest_output
        Phrases are added while the output has fewer words.
    longest_output, longest_input
        Most words with EOS; a sequence whose input is longer is drawn anew.
    drawing
        ``phrase`` draws uniformly among the 90, ``shape`` among the 12 shapes first.
    separator
        Whether a word marks the end of every phrase, in input and output.
    """

    kind: Literal["escan"] = "escan"
    shortest_output: int = Field(15, ge=1)
    longest_output: int = Field(20, ge=2)
    longest_input: int = Field(27, ge=2)
    drawing: Literal["phrase", "shape"] = "phrase"
    separator: Literal["none", "marked"] = "none"

    @model_validator(mode="after")
    def _some_phrase_always_fits(self) -> ExtendedScan:
        shortest = min(len(phrase.outputs) for phrase in self.phrases)
        needed = self.shortest_output + shortest
        if self.longest_output < needed:
            raise ValueError(
                f"longest_output={self.longest_output} may leave no phrase that fits; "
                f"it must be {needed} or more"
            )
        return self

    @property
    def phrases(self) -> tuple[Phrase, ...]:
        """The phrases that examples are drawn from."""
        return _MARKED[self.separator](escan_phrases())

    @property
    def dataset(self) -> str:
        """``escan``, whatever its lengths, drawing and marks."""
        return "escan"

    @property
    def input_words(self) -> Vocabulary:
        """Words of commands, then EOS."""
        return Vocabulary((*VERBS, "left", "and", "twice", *self._separators, "<eos>"))

    @property
    def output_words(self) -> Vocabulary:
        """Actions, then EOS and SOS."""
        return Vocabulary((*VERBS.values(), "LTURN", *self._separators, "<eos>", "<sos>"))

    @property
    def _separators(self) -> tuple[str, ...]:
        return {"none": (), "marked": (SEPARATOR,)}[self.separator]

    @property
    def boundaries(self) -> tuple[int, int] | None:
        """SOS and EOS."""
        return self.output_words.id("<sos>"), self.output_words.id("<eos>")

    def draw(self, stream: torch.Generator, ids: Int[Tensor, " batch"]) -> Batch:
        """Draw phrases for every sequence, and put them in a row."""
        table = _table(self)
        chosen = self._choose(table, stream, len(ids))
        start, end = self.output_words.id("<sos>"), self.output_words.id("<eos>")
        words = table.inputs[chosen]
        widths = (words >= 0).sum(-1)
        before = (widths.cumsum(1) - widths)[..., None]
        gold = table.gold[chosen]
        gold = _in_a_row((gold + before).where(gold >= 0, -1), self.longest_output, -1)
        targets = _in_a_row(table.outputs[chosen], self.longest_output, end)
        lengths, target_lengths = widths.sum(1), (gold >= 0).sum(1)
        return Batch(
            ids=ids,
            inputs=_in_a_row(words, self.longest_input, self.input_words.id("<eos>")),
            input_lengths=lengths + 1,
            decoder_inputs=pad(targets[:, :-1], (1, 0), value=start),
            targets=targets,
            target_lengths=target_lengths + 1,
            gold=gold.scatter(1, target_lengths[:, None], lengths[:, None]),
        )

    def _choose(
        self, table: _Table, stream: torch.Generator, size: int
    ) -> Int[Tensor, "batch phrase"]:
        """Return the phrases of every sequence, -1 for none."""
        inputs, outputs = (table.inputs >= 0).sum(1), (table.outputs >= 0).sum(1)
        # Every phrase has at least one output word, so that there are never more than these.
        chosen = torch.full((size, self.shortest_output), -1)
        places = torch.arange(self.shortest_output)
        for _ in range(_ROUNDS):
            # The last row of the table is not a phrase and has no words.
            read, written = inputs[chosen].sum(1), outputs[chosen].sum(1)
            growing = written < self.shortest_output
            too_long = ~growing & (read + 1 > self.longest_input)
            if not bool((growing | too_long).any()):
                return chosen
            phrase = torch.multinomial(table.chances, size, replacement=True, generator=stream)
            fits = growing & (written + outputs[phrase] + 1 <= self.longest_output)
            next_place = places == (chosen >= 0).sum(1, keepdim=True)
            chosen = chosen.where(~(fits[:, None] & next_place), phrase[:, None])
            chosen = chosen.where(~too_long[:, None], -1)
        raise UsageError(
            f"{self.dataset}: too few sequences have inputs of at most "
            f"longest_input={self.longest_input} words; raise it."
        )

    def subphrase_ends(self, batch: Batch) -> Int[Tensor, "batch out"]:
        """Return for each output the last input position of its verb's subphrase, -1 at padding.

        A subphrase is a verb with the ``left`` or ``twice`` that may follow it.
        """
        modifiers = torch.tensor(
            [self.input_words.id("left"), self.input_words.id("twice")], device=batch.inputs.device
        )
        following = torch.cat([batch.inputs[:, 1:], batch.inputs[:, -1:]], 1)
        place = batch.gold.clamp(min=0)
        modified = torch.isin(following.gather(1, place), modifiers)
        return (place + modified).where(batch.gold >= 0, -1)


_MARKED: dict[str, Callable[[tuple[Phrase, ...]], tuple[Phrase, ...]]] = {
    "none": lambda phrases: phrases,
    "marked": lambda phrases: tuple(phrase.separated() for phrase in phrases),
}


@dataclass(frozen=True)
class _Table:
    """The phrases as ids, -1 after their ends and in an extra last row; and their chances."""

    inputs: Int[Tensor, "row word"]
    outputs: Int[Tensor, "row word2"]
    gold: Int[Tensor, "row word2"]
    chances: Float[Tensor, " phrase"]


@cache
def _table(task: ExtendedScan) -> _Table:
    phrases = task.phrases
    rows = {
        "inputs": [task.input_words.encode(phrase.inputs) for phrase in phrases],
        "outputs": [task.output_words.encode(phrase.outputs) for phrase in phrases],
        "gold": [list(phrase.gold) for phrase in phrases],
    }
    ids = {
        name: pad_sequence([torch.tensor(row) for row in table], True, -1)
        for name, table in rows.items()
    }
    return _Table(
        **{name: pad(table, (0, 0, 0, 1), value=-1) for name, table in ids.items()},
        chances=torch.tensor(_CHANCES[task.drawing](phrases), dtype=torch.float64),
    )


def _even(phrases: Sequence[Phrase]) -> list[float]:
    return [1 / len(phrases)] * len(phrases)


def _even_by_shape(phrases: Sequence[Phrase]) -> list[float]:
    shapes = Counter(phrase.shape for phrase in phrases)
    return [1 / len(shapes) / shapes[phrase.shape] for phrase in phrases]


_CHANCES: dict[str, Callable[[Sequence[Phrase]], list[float]]] = {
    "phrase": _even,
    "shape": _even_by_shape,
}


def _in_a_row(
    pieces: Int[Tensor, "batch piece word"], width: int, fill: int
) -> Int[Tensor, "batch width"]:
    """Return the non-negative entries of every row, moved to the left, then ``fill``."""
    flat = pieces.flatten(1)
    real = flat >= 0
    # Negative entries go to one more column, which is cut off.
    place = (real.cumsum(1) - 1).where(real, width)
    row = torch.full((len(flat), width + 1), fill)
    return row.scatter(1, place, flat)[:, :width]
