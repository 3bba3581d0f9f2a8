"""One measured number, with its interval, its seeds and the figure that the paper prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Protocol, TypeVar, runtime_checkable

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_serializer

Label = str | int | float
L = TypeVar("L", bound="Labelled")


def _finite_or_none(value: float | None) -> float | None:
    # JSON has no NaN, and an undefined number must not look like a measured one.
    return None if value is not None and not math.isfinite(value) else value


Number = Annotated[float | None, AfterValidator(_finite_or_none)]
"""A number, or None where it is undefined or was not measured."""


class Labelled(BaseModel):
    """A record of a result: the name of what was measured, where, and under which settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    dataset: str
    split: str = "val"
    axes: dict[str, Label] = Field(default_factory=dict)

    def fits(self, name: str, dataset: str | None, axes: Mapping[str, Any]) -> bool:
        """Return whether name, data set and axes are as given; other axes may have any value."""
        return (
            self.name == name
            and dataset in (None, self.dataset)
            and all(self.axes.get(key) == value for key, value in axes.items())
        )


class Measurement(Labelled):
    """One measured number; ``None`` for a bound that cannot be computed (one seed, say)."""

    found: dict[str, Label] = Field(
        default_factory=dict,
        description="what was found together with the number, such as its step; measurements "
        "that differ only in this measure the same thing",
    )
    value: Number
    low: Number = None
    high: Number = None
    n: int
    seeds: tuple[int, ...] = ()
    values: tuple[Number, ...] = Field(
        default=(),
        description="the number of each of the seeds, from which other intervals can be computed",
    )
    published: Number = None

    @property
    def number(self) -> float:
        """The value; NaN where it is missing, which is never read as 0."""
        return math.nan if self.value is None else self.value

    @model_serializer(mode="wrap")
    def _without_empty_fields(self, handler: Any) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        for name in ("found", "values"):
            if not written.get(name):
                written.pop(name, None)
        return written


@runtime_checkable
class Ranged(Protocol):
    """A value with the ends of its interval and the number of observations."""

    @property
    def value(self) -> float:
        """The number itself."""

    @property
    def low(self) -> float:
        """The lower end; NaN if there is none."""

    @property
    def high(self) -> float:
        """The upper end; NaN if there is none."""

    @property
    def n(self) -> int:
        """How many observations it comes from."""


def measured(
    name: str,
    dataset: str,
    interval: Ranged,
    axes: Mapping[str, Label] | None = None,
    seeds: Iterable[int] = (),
    published: float | None = None,
    found: Mapping[str, Label] | None = None,
) -> Measurement:
    """Return an interval as a measurement."""
    every = tuple(seeds)
    # Six digits are more than an interval needs, and keep results small.
    each = tuple(float(f"{value:.6g}") for value in getattr(interval, "values", ()))
    return Measurement(
        name=name,
        dataset=dataset,
        axes=dict(axes or {}),
        found=dict(found or {}),
        value=interval.value,
        low=interval.low,
        high=interval.high,
        n=interval.n,
        seeds=every,
        values=each if len(each) == len(every) > 1 else (),
        published=published,
    )


def select(records: Iterable[L], name: str, dataset: str | None = None, **axes: Any) -> list[L]:
    """Return the records of a name whose data set and axes are as given."""
    return [record for record in records if record.fits(name, dataset, axes)]


def headline(
    measurements: Iterable[Measurement],
    names: Sequence[str],
    shown: Mapping[str, Any] | None = None,
) -> list[Measurement]:
    """Return the measurements of some names, in the order of the names; of a curve, its last step.

    Parameters
    ----------
    shown
        Axes (and ``split``) that a measurement must not contradict: the default among several
        ways to compute a table.
    """
    last: dict[tuple[Any, ...], Measurement] = {}
    for row in measurements:
        known = {"split": row.split, **row.axes}
        fits = all(known.get(key, value) == value for key, value in (shown or {}).items())
        if row.name in names and fits:
            fixed = tuple((key, value) for key, value in row.axes.items() if key != "step")
            last[row.name, row.dataset, row.split, fixed] = row
    return sorted(last.values(), key=lambda row: names.index(row.name))
