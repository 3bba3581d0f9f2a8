"""``result.json``: what a recipe measured, with intervals, seeds and the paper's own figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_serializer,
)

from attnscope.errors import WorkspaceError
from attnscope.runs.atomic import read_json, write_json


class Measurement(BaseModel):
    """One measured number; ``None`` for a bound that cannot be had (one seed, say)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    dataset: str
    split: str = "val"
    axes: dict[str, str | int | float] = Field(default_factory=dict)
    found: dict[str, str | int | float] = Field(
        default_factory=dict,
        description="what came out with the number, such as the step it was found at; two "
        "measurements that differ in nothing else are of the same thing",
    )
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int
    seeds: tuple[int, ...] = ()
    published: float | None = None

    @model_serializer(mode="wrap")
    def _without_nothing_found(self, handler: Any) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        if not written.get("found"):
            written.pop("found", None)
        return written

    @field_validator("value", "low", "high", "published", mode="after")
    @classmethod
    def _finite_or_none(cls, value: float | None) -> float | None:
        # JSON has no NaN, and an undefined number must not look like a measured one.
        return None if value is not None and not math.isfinite(value) else value


class Result(BaseModel):
    """A finished run of a recipe."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_: Literal[1] = Field(default=1, alias="schema")
    recipe: str
    part: str = Field("", description="which of several runs of the recipe, say on which corpus")
    scale: Literal["full", "quick"]
    config: dict[str, Any]
    environment: dict[str, Any]
    seconds: float
    measurements: tuple[Measurement, ...]
    units: tuple[str, ...] = ()

    def select(self, name: str, dataset: str | None = None, **axes: Any) -> list[Measurement]:
        """Return the measurements of a name whose data set and axes are as given."""
        return select(self.measurements, name, dataset, **axes)

    @property
    def place(self) -> str:
        """The folder of the result inside a workspace."""
        return f"{self.recipe}/{self.part}" if self.part else self.recipe

    def write(self, folder: Path) -> None:
        """Write ``result.json`` into a folder."""
        write_json(folder / "result.json", self.model_dump(mode="json", by_alias=True))


@runtime_checkable
class _Ranged(Protocol):
    """A value with the ends of its interval, and what it rests on."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def n(self) -> int: ...


def measured(
    name: str,
    dataset: str,
    interval: _Ranged,
    axes: Mapping[str, str | int | float] | None = None,
    seeds: Iterable[int] = (),
    published: float | None = None,
    found: Mapping[str, str | int | float] | None = None,
) -> Measurement:
    """Return an interval as a measurement."""
    return Measurement(
        name=name,
        dataset=dataset,
        axes=dict(axes or {}),
        found=dict(found or {}),
        value=interval.value,
        low=interval.low,
        high=interval.high,
        n=interval.n,
        seeds=tuple(seeds),
        published=published,
    )


def read_result(path: Path) -> Result:
    """Read a ``result.json``, or say why it is none."""
    try:
        return Result.model_validate(read_json(path))
    except ValueError as error:
        raise WorkspaceError(f"{path} is not a result of attnscope: {error}") from error


def select(
    measurements: Iterable[Measurement], name: str, dataset: str | None = None, **axes: Any
) -> list[Measurement]:
    """Return the measurements of a name whose data set and axes are as given."""
    return [
        row
        for row in measurements
        if row.name == name
        and dataset in (None, row.dataset)
        and all(row.axes.get(key) == value for key, value in axes.items())
    ]


def headline(
    measurements: Iterable[Measurement],
    names: Sequence[str],
    shown: Mapping[str, Any] | None = None,
) -> list[Measurement]:
    """Return the measurements of some names, in their order; of a curve, its last step.

    Parameters
    ----------
    shown
        Axes (and ``split``) that a row must not contradict: of several ways to compute a table,
        the one that is put first.
    """
    last: dict[tuple[Any, ...], Measurement] = {}
    for row in measurements:
        known = {"split": row.split, **row.axes}
        fits = all(known.get(key, value) == value for key, value in (shown or {}).items())
        if row.name in names and fits:
            fixed = tuple((key, value) for key, value in row.axes.items() if key != "step")
            last[row.name, row.dataset, row.split, fixed] = row
    return sorted(last.values(), key=lambda row: names.index(row.name))
