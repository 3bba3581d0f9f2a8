"""Examples of a source that a report shows: the user's, those that a recipe asks for, or the first.

A recipe's module may ask for the examples whose attention moved most (``EXAMPLES = "moved"``), or
give a function of its own (a `Choice`). What is shown depends only on the files and the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import numpy as np
from jaxtyping import Float

from attnscope.data.batch import Batch
from attnscope.data.source import Source
from attnscope.data.tokens import SPECIALS
from attnscope.errors import AttnscopeError, UsageError
from attnscope.report.scenes import Shown
from attnscope.report.stored_scores import StoredAttention, stored_attention
from attnscope.report.surface import surface_words
from attnscope.scores.score import Score
from attnscope.scores.subwords import WORD_START, word_groups
from attnscope.training.trained_unit import TrainedUnit

READABLE = range(4, 31)
"""Input lengths at which a map is read at a glance."""

# Examples of a source, where a user names no number.
_MOST = 6


@dataclass(frozen=True)
class Named:
    """An example by its id, and why it is shown."""

    id: int
    why: str


Choice = Callable[[StoredAttention, int], list[Named]]


@dataclass(frozen=True)
class ExampleRequest:
    """Which examples to show: those of some ids, the first few, or those that a recipe chooses.

    ``choices`` are recipes that choose examples, by the folders of the units that they list.
    """

    count: int | None = None
    ids: tuple[int, ...] = ()
    sentences: tuple[str, ...] = ()
    choices: Mapping[Path, tuple[str, Choice]] = field(default_factory=dict)


@dataclass(frozen=True)
class Chosen:
    """Rows among the stored examples, why each is shown, and the recipe that chose them."""

    rows: list[int]
    whys: list[str]
    recipe: str = ""


def chosen_examples(unit: TrainedUnit, paths: Iterable[Path], request: ExampleRequest) -> Chosen:
    """Return the examples of a unit to show; ``paths`` are the units that share them."""
    named = _chosen_by_recipe(unit, paths, request)
    if named is not None:
        return named
    rows = _requested_rows(unit.examples, request)
    return Chosen(rows, [""] * len(rows))


def _chosen_by_recipe(
    unit: TrainedUnit, paths: Iterable[Path], request: ExampleRequest
) -> Chosen | None:
    """Return a recipe's choice, unless the user asks for other examples."""
    listed = [path.resolve() for path in paths if path.resolve() in request.choices]
    if request.ids or request.count is not None or not listed:
        return None
    stored = stored_attention(unit)
    if stored is None:
        return None
    recipe, choice = request.choices[listed[0]]
    whys = {each.id: each.why for each in choice(stored, _MOST)[:_MOST]}
    return Chosen(_places(unit.examples, whys), list(whys.values()), recipe) if whys else None


def _requested_rows(batch: Batch, request: ExampleRequest) -> list[int]:
    """Return the requested rows; by default the first of a readable length, then the shortest."""
    if request.ids:
        rows = _places(batch, request.ids)
        if not rows:
            ids = batch.ids.tolist()
            known = ", ".join(map(str, ids[:8]))
            raise UsageError(
                f"none of the examples {', '.join(map(str, request.ids))} is stored; stored are "
                f"{known}{' …' if len(ids) > 8 else ''}"
            )
        return rows
    lengths = batch.input_lengths.tolist()
    readable = [length in READABLE for length in lengths]
    order = sorted(
        range(len(batch)), key=lambda row: (not readable[row], 0 if readable[row] else lengths[row])
    )
    return sorted(order[: request.count or _MOST])


def _places(batch: Batch, ids: Iterable[int]) -> list[int]:
    """Return the rows of examples, in the order of the ids, leaving out what is not stored."""
    places = {int(key): row for row, key in enumerate(batch.ids.tolist())}
    return [places[key] for key in ids if key in places]


def moved_most(stored: StoredAttention, count: int) -> list[Named]:
    """Return examples whose attention moved most, right and wrong answers alternating.

    Parameters
    ----------
    stored
        Examples of a readable length are preferred while there are enough.
    count
        How many at most.
    """
    batch, moved = stored.after.batch, movement(stored.before, stored.after)
    order = np.argsort(-moved, kind="stable").tolist()
    lengths = batch.input_lengths.tolist()
    readable = [row for row in order if lengths[row] in READABLE]
    rows = readable if len(readable) >= count else order
    if stored.right is not None:
        # Few translations have every word right: the better half counts as right.
        better = ((stored.right > 0) & (stored.right >= np.median(stored.right))).tolist()
        right, wrong = ([row for row in rows if better[row] is turn] for turn in (True, False))
        rows = [row for pair in zip_longest(right, wrong) for row in pair if row is not None]
    outputs = batch.target_lengths.tolist()
    return [
        Named(
            int(batch.ids[row]),
            f"Attention moved by {100 * moved[row]:.0f} % in training"
            + ("." if stored.right is None else f"; {_answer(stored.right[row], outputs[row])}."),
        )
        for row in rows[:count]
    ]


CHOICES: dict[str, Choice] = {"moved": moved_most}
"""Choices that a recipe may ask for by name."""


def movement(before: Score, after: Score) -> Float[np.ndarray, " batch"]:
    """Return the share of attention that has moved to other input words, per output word."""
    moved = (after.values.double() - before.values.double()).abs().sum(-1) / 2
    words = after.target_mask
    return ((moved * words).sum(-1) / words.sum(-1)).cpu().numpy()


def _answer(right: float, words: int) -> str:
    if words == 1:
        return "the answer is right" if right == 1 else "the answer is wrong"
    wrong = round((1 - right) * words)
    return f"{wrong} of {words} output words are wrong" if wrong else "every output word is right"


# Pieces of a word, on average: with more, a text has hardly any blanks.
_MOST_PIECES = 4


def _words_of(pieces: list[str]) -> list[int]:
    """Return the word of each piece; in text without blanks every piece is a word."""
    groups = word_groups(pieces, SPECIALS)
    real = [group for group in groups if group >= 0]
    if len(real) <= _MOST_PIECES * len(set(real)):
        return groups
    places = iter(range(len(real)))
    return [next(places) if group >= 0 else -1 for group in groups]


def shown_example(
    source: Source,
    batch: Batch,
    row: int,
    key: str,
    why: str = "",
    *,
    text: str | None = None,
    answer: str = "",
) -> Shown:
    """Return an example with its words; ids if the vocabulary cannot be read any more.

    Parameters
    ----------
    text
        The input as it was written: words are shown as they stand in it.
    answer
        The model's own output, in words.
    """
    inputs = batch.inputs[row, : int(batch.input_lengths[row])].tolist()
    targets = batch.targets[row, : int(batch.target_lengths[row])].tolist()
    try:
        words, outputs = source.input_words.decode(inputs), source.output_words.decode(targets)
    except (AttnscopeError, IndexError):
        words, outputs = ([f"#{index}" for index in side] for side in (inputs, targets))
    if text:
        words = surface_words(source, text, words)
    groups: tuple[list[int] | None, list[int] | None] = (None, None)
    if any(word.startswith(WORD_START) for word in words):
        groups = _words_of(words), _words_of(outputs)
    gold = batch.gold[row, : len(targets)].tolist()
    return Shown(key, words, outputs, *groups, gold, why, answer)
