"""Which stored examples of a source are shown: the user's, those that a recipe names, or the first.

The choice is bounded, and a function of the files and of what is asked alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from attnscope.data.batch import Batch
from attnscope.errors import UsageError
from attnscope.recipes.showing import READABLE, Choice
from attnscope.report.stored import what_was_stored
from attnscope.training.trained_unit import TrainedUnit

# Of a source, where a user names no number.
_MOST = 6


@dataclass(frozen=True)
class Asked:
    """What is to be seen: examples by their ids; or how many of the first; or a recipe's choice.

    ``choices`` are the recipes that name examples, by the folders of the units that they list.
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


def chosen_examples(unit: TrainedUnit, paths: Iterable[Path], asked: Asked) -> Chosen:
    """Return the examples of a unit to show; ``paths`` are the units that share them."""
    named = _named(unit, paths, asked)
    if named is not None:
        return named
    rows = _asked_rows(unit.examples, asked)
    return Chosen(rows, [""] * len(rows))


def _named(unit: TrainedUnit, paths: Iterable[Path], asked: Asked) -> Chosen | None:
    """Return the examples that a recipe names; the user's wishes come first."""
    listed = [path.resolve() for path in paths if path.resolve() in asked.choices]
    if asked.ids or asked.count is not None or not listed:
        return None
    stored = what_was_stored(unit)
    if stored is None:
        return None
    recipe, choice = asked.choices[listed[0]]
    whys = {each.id: each.why for each in choice(stored, _MOST)[:_MOST]}
    return Chosen(_places(unit.examples, whys), list(whys.values()), recipe) if whys else None


def _asked_rows(batch: Batch, asked: Asked) -> list[int]:
    """Return the examples asked for; or the first ones of a readable length, then the shortest."""
    if asked.ids:
        rows = _places(batch, asked.ids)
        if not rows:
            ids = batch.ids.tolist()
            known = ", ".join(map(str, ids[:8]))
            raise UsageError(
                f"none of the examples {', '.join(map(str, asked.ids))} is stored; stored are "
                f"{known}{' …' if len(ids) > 8 else ''}"
            )
        return rows
    lengths = batch.input_lengths.tolist()
    readable = [length in READABLE for length in lengths]
    order = sorted(
        range(len(batch)), key=lambda row: (not readable[row], 0 if readable[row] else lengths[row])
    )
    return sorted(order[: asked.count or _MOST])


def _places(batch: Batch, ids: Iterable[int]) -> list[int]:
    """Return the rows of examples, in the order of the ids, leaving out what is not stored."""
    places = {int(key): row for row, key in enumerate(batch.ids.tolist())}
    return [places[key] for key in ids if key in places]
