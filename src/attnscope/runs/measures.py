"""Declared names: what a paper's recipes measure, under which axes, and how people read it.

A paper has one table, ``recipes/<paper>/measures.csv``; a user's recipe may declare its own as a
module attribute ``MEASURES = {"gap": Measure("How far …", axes=("model",))}``. With a table, a
name or an axis that it does not have is an error when a result is made; without one, every name is
allowed and is its own label.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from attnscope.errors import UsageError, suggestion
from attnscope.runs.measurement import Labelled

_CALL = re.compile(r"(.+)\(([^()]+)\)")


@dataclass(frozen=True)
class Measure:
    """A measured name.

    Attributes
    ----------
    says
        The measure in a sentence; ``{0}`` and ``{1}`` stand for the arguments of its name.
    axes
        Every axis that a record of this name may have.
    label
        The name as people read it; by default the name with spaces.
    of
        Valid arguments, for a family of names such as ``A(alpha,beta)``, declared as ``A()``.
    words
        The name in words, where ``label`` is a symbol or an abbreviation; arguments as in ``says``.
    """

    says: str
    axes: tuple[str, ...] = ()
    label: str = ""
    of: tuple[str, ...] = ()
    words: str = ""


Measures = Mapping[str, Measure]


def read_measures(path: Path) -> dict[str, Measure]:
    """Read a table with the columns name, of, axes, label, words and says.

    Lists are set with spaces.
    """
    with path.open(encoding="utf-8", newline="") as lines:
        return {row["name"]: _measure(row) for row in csv.DictReader(lines)}


def _measure(row: dict[str, str]) -> Measure:
    axes, of = tuple(row["axes"].split()), tuple(row["of"].split())
    return Measure(row["says"], axes, row["label"], of, row.get("words", ""))


def arguments_of(name: str) -> tuple[str, tuple[str, ...]]:
    """Return ``A(alpha,beta)`` as ``A()`` and its arguments; another name as it is, with none."""
    call = _CALL.fullmatch(name)
    if call is None:
        return name, ()
    return f"{call[1]}()", tuple(part.strip() for part in call[2].split(","))


def measure_of(measures: Measures, name: str) -> Measure | None:
    """Return the measure that a name is declared by, or None."""
    if name in measures:
        return measures[name]
    family, arguments = arguments_of(name)
    measure = measures.get(family)
    return measure if measure and set(arguments) <= set(measure.of) else None


def check_declared(measures: Measures, records: Iterable[Labelled], where: str) -> None:
    """Raise an error for the first record whose name or axis is not declared.

    Parameters
    ----------
    where
        The recipe, for the message.
    """
    for record in records:
        measure = measure_of(measures, record.name)
        if measure is None:
            near = suggestion(record.name, measures)
            raise UsageError(f"{where} measured {record.name!r}, which is not declared; {near}")
        for axis in record.axes:
            if axis not in measure.axes:
                near = suggestion(axis, measure.axes)
                raise UsageError(f"{where}: {record.name!r} has no axis {axis!r}; {near}")
