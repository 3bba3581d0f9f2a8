"""Pictures of a result: a matrix, points in a plane, or a curve, each one record.

A recipe's ``measure`` returns them in the same list as its measurements. Figures and the report
draw them; claims are decided on numbers, and the points of a curve are numbers too
(`Result.select` returns them)::

    Matrix.of(
        "attention",
        "escan",
        weights.tolist(),
        rows=output_words,  # positions 1, 2, … if left out
        columns=input_words,
        axes={"model": "aed"},
        n=1,
        seeds=(0,),
        digits=4,
    )
    Plane(
        name="temporal_path",
        dataset="escan",
        x="PC 1",
        y="PC 2",
        joined=True,  # points of one group form a path
        points=tuple(Point(str(step), "encoder", x, y) for step, (x, y) in enumerate(path, 1)),
        n=1000,
        seeds=(0,),
    )
    Curve.of("gamma", "copying", "step", {step: interval, …}, axes={"place": "gold"}, seeds=seeds)

    [weights] = result.select_pictures(Matrix, "attention", model="aed")
    path = result.picture(Plane, "temporal_path", "escan", model="aed")
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, FiniteFloat, model_validator

from attnscope.runs.measurement import Label, Labelled, Measurement, Number, Ranged

Cells = tuple[tuple[Number, ...], ...]
Values = Sequence[Sequence[float | None]]


class Matrix(Labelled):
    """A table of numbers with labelled rows and columns; None where nothing was measured.

    Attributes
    ----------
    row_axis, column_axis
        Names of what rows and columns are.
    low, high
        Ends of the cells' intervals, or None.
    marks
        Cells to be outlined, by row and column from 0.
    n, seeds
        The number of observations of each cell, and the seeds they come from.
    """

    kind: Literal["matrix"] = "matrix"
    row_axis: str = "output"
    column_axis: str = "input"
    rows: tuple[Label, ...]
    columns: tuple[Label, ...]
    values: Cells
    low: Cells | None = None
    high: Cells | None = None
    marks: tuple[tuple[int, int], ...] = ()
    n: int
    seeds: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _rectangular(self) -> Matrix:
        rows, columns = len(self.rows), len(self.columns)
        for cells in (self.values, self.low, self.high):
            if cells is not None and [len(line) for line in cells] != [columns] * rows:
                raise ValueError(f"{self.name} has not {rows} rows of {columns} cells each")
        if any(not (0 <= row < rows and 0 <= column < columns) for row, column in self.marks):
            raise ValueError(f"{self.name} has a mark outside its {rows} × {columns} cells")
        return self

    @property
    def transposed(self) -> Matrix:
        """The matrix with its rows and columns exchanged."""

        def turned(cells: Cells | None) -> Cells | None:
            return None if cells is None else tuple(zip(*cells, strict=True))

        changed = {
            "rows": self.columns,
            "columns": self.rows,
            "row_axis": self.column_axis,
            "column_axis": self.row_axis,
            "marks": tuple((column, row) for row, column in self.marks),
            **{name: turned(getattr(self, name)) for name in ("values", "low", "high")},
        }
        return self.model_copy(update=changed)

    @classmethod
    def of(
        cls,
        name: str,
        dataset: str,
        values: Values,
        rows: Sequence[Label] | None = None,
        columns: Sequence[Label] | None = None,
        *,
        axes: Mapping[str, Label] | None = None,
        low: Values | None = None,
        high: Values | None = None,
        row_axis: str = "output",
        column_axis: str = "input",
        digits: int | None = None,
        n: int,
        seeds: Iterable[int] = (),
        split: str = "val",
    ) -> Matrix:
        """Return a matrix of nested lists; rows and columns without labels are numbered from 1.

        Parameters
        ----------
        digits
            Decimals that are kept of ``values``.
        """
        cells = [[_cell(value, digits) for value in line] for line in values]
        return cls(
            name=name,
            dataset=dataset,
            split=split,
            axes=dict(axes or {}),
            row_axis=row_axis,
            column_axis=column_axis,
            rows=tuple(rows if rows is not None else range(1, len(cells) + 1)),
            columns=tuple(columns if columns is not None else range(1, len(cells[0]) + 1)),
            values=tuple(map(tuple, cells)),
            low=None if low is None else tuple(map(tuple, low)),
            high=None if high is None else tuple(map(tuple, high)),
            n=n,
            seeds=tuple(seeds),
        )


def _cell(value: float | None, digits: int | None) -> float | None:
    if value is None or math.isnan(value):
        return None
    return value if digits is None else round(value, digits)


class Point(NamedTuple):
    """A point of a plane: the label and the group it is drawn with, and its coordinates."""

    label: str
    group: str
    x: FiniteFloat
    y: FiniteFloat


class Plane(Labelled):
    """Points in a plane.

    Attributes
    ----------
    x, y
        Titles of the axes.
    points
        In the order in which they are drawn.
    joined
        Whether the points of each group form a path, in their order.
    n, seeds
        The number of observations that the points come from, and their seeds.
    """

    kind: Literal["plane"] = "plane"
    x: str
    y: str
    points: tuple[Point, ...]
    joined: bool = False
    n: int
    seeds: tuple[int, ...] = ()


class Curve(Labelled):
    """Numbers along one axis, such as training steps, with their intervals.

    Attributes
    ----------
    axis
        The name of what ``x`` is: ``step``, ``offset``.
    low, high
        Ends of the intervals, or None where no point has one.
    n
        The number of observations of each point.
    """

    kind: Literal["curve"] = "curve"
    axis: str
    x: tuple[int | float, ...]
    y: tuple[Number, ...]
    low: tuple[Number, ...] | None = None
    high: tuple[Number, ...] | None = None
    n: tuple[int, ...]
    seeds: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _one_number_for_each_x(self) -> Curve:
        for numbers in (self.y, self.low, self.high, self.n):
            if numbers is not None and len(numbers) != len(self.x):
                raise ValueError(f"{self.name} has {len(self.x)} x and {len(numbers)} numbers")
        if self.axis in self.axes:
            raise ValueError(f"{self.name} has {self.axis!r} as its x axis and as a fixed axis")
        return self

    @classmethod
    def of(
        cls,
        name: str,
        dataset: str,
        axis: str,
        points: Mapping[int, Ranged] | Mapping[float, Ranged],
        axes: Mapping[str, Label] | None = None,
        seeds: Iterable[int] = (),
        split: str = "val",
    ) -> Curve:
        """Return a curve through intervals, by their x."""
        low, high = ([getattr(point, end) for point in points.values()] for end in ("low", "high"))
        bounded = any(math.isfinite(end) for end in (*low, *high))
        return cls(
            name=name,
            dataset=dataset,
            split=split,
            axes=dict(axes or {}),
            axis=axis,
            x=tuple(points),
            y=tuple(point.value for point in points.values()),
            low=tuple(low) if bounded else None,
            high=tuple(high) if bounded else None,
            n=tuple(point.n for point in points.values()),
            seeds=tuple(seeds),
        )

    def measurements(self) -> list[Measurement]:
        """Return the points as measurements, with x among their axes."""
        nothing: tuple[None, ...] = (None,) * len(self.x)
        low, high = self.low or nothing, self.high or nothing
        return [
            Measurement(
                name=self.name,
                dataset=self.dataset,
                split=self.split,
                axes={**self.axes, self.axis: x},
                value=value,
                low=low[place],
                high=high[place],
                n=self.n[place],
                seeds=self.seeds,
            )
            for place, (x, value) in enumerate(zip(self.x, self.y, strict=True))
        ]


Picture = Annotated[Matrix | Plane | Curve, Field(discriminator="kind")]
Record = Measurement | Matrix | Plane | Curve
"""Anything that a recipe's ``measure`` returns."""
