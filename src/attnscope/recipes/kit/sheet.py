"""Numbers of one data set as measurements, next to the numbers that the paper prints.

A `Sheet` holds the fields that all measurements of a table share: data set, split, seeds, and where
the paper prints it. Each of its methods names how a number was sampled, and so its interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from attnscope.analysis.intervals import Interval, crossed_interval, mean_interval, rate_interval
from attnscope.analysis.learning import learned, learned_at
from attnscope.analysis.measures.numbers import Lines, Number
from attnscope.claims.published import PublishedRow, published_row
from attnscope.runs.pictures import Curve, Matrix, Plane, Point, Values
from attnscope.runs.result import Measurement, measured
from attnscope.training.trained_unit import TrainedUnit

Axes = Mapping[str, Any]


@dataclass(frozen=True)
class Sheet:
    """Makes the measurements of one data set.

    >>> sheet = Sheet("sst", "test", range(5), "tutek", "table1", printed="SST", percent=True)
    >>> right = [[1.0, 0.0, 1.0]] * 5  # seed × text
    >>> sheet.crossed("accuracy", right, {"model": "base"}, share=True).n  # texts
    3

    Attributes
    ----------
    dataset, split, seeds
        What was measured. ``seeds`` are those that a number is the mean of; a row may have others.
    paper, table, printed
        Where the paper prints the numbers, and its own name of the data set (None: it has none).
        A number is looked up by its name and axes; ``published`` or ``variant`` of a row override
        the number found and the axes that single it out.
    percent
        Whether the sheet is in percent. Rows marked as a ``share`` are then multiplied by 100, and
        printed fractions too; on a sheet of fractions printed percentages are divided by 100.
    axes
        Axes of every row.
    """

    dataset: str
    split: str = "val"
    seeds: Sequence[int] = ()
    paper: str = ""
    table: str = ""
    printed: str | None = None
    percent: bool = False
    axes: Axes = field(default_factory=dict)

    def mean(
        self, name: str, values: ArrayLike, axes: Axes | None = None, **row: Any
    ) -> Measurement:
        """Return the mean of one number a seed with its interval over seeds."""
        return self.row(name, mean_interval(values), axes, **row)

    def crossed(
        self, name: str, table: ArrayLike, axes: Axes | None = None, **row: Any
    ) -> Measurement:
        """Return the mean of a table of seeds × texts with its interval over both."""
        return self.row(name, crossed_interval(table, rng=rng()), axes, **row)

    def rate(
        self, name: str, successes: int, trials: int, axes: Axes | None = None, **row: Any
    ) -> Measurement:
        """Return a share of trials with its exact interval."""
        return self.row(name, rate_interval(successes, trials), axes, **row)

    def point(
        self, name: str, value: float, axes: Axes | None = None, n: int = 1, **row: Any
    ) -> Measurement:
        """Return a number that has no interval."""
        return self.row(name, point(value, n), axes, **row)

    def over_seeds(self, found: Sequence[Mapping[Number, float]], **row: Any) -> list[Measurement]:
        """Return the means of numbers that every seed has under the same keys.

        A number that is undefined for every seed, such as that of a word at an offset where it
        never occurs, is left out.
        """
        keys = found[0] if found else ()
        rows = [self.mean(k.name, [one[k] for one in found], dict(k.axes), **row) for k in keys]
        return [row for row in rows if row.n]

    def outcomes(
        self, units: Sequence[TrainedUnit], step: int, axes: Axes | None = None
    ) -> list[Measurement]:
        """Return each unit's accuracy at a step and its steps to .95, and how many had learned.

        `attnscope.claims.pool.Pool.outcomes` reads them.
        """
        rows, accuracies = [], [float(unit.log_row(step)["accuracy"]) for unit in units]
        for index, (unit, accuracy) in enumerate(zip(units, accuracies, strict=True)):
            run = {"step": step, "run": index, **(axes or {})}
            n, seeds = unit.unit.training.examples, (unit.unit.seed,)
            reached = learned_at(unit.log, step)
            steps = math.nan if reached is None else reached
            rows.append(self.point("accuracy", accuracy, run, n, seeds=seeds))
            rows.append(self.point("steps_to_95", steps, run, n, seeds=seeds))
        rate = rate_interval(sum(map(learned, accuracies)), len(units))
        own, every = {"step": step, **(axes or {})}, [unit.unit.seed for unit in units]
        return [*rows, self.row("seeds_learned", rate.scaled(rate.n), own, seeds=every)]

    def row(
        self,
        name: str,
        interval: Interval,
        axes: Axes | None = None,
        *,
        share: bool = False,
        seeds: Sequence[int] | None = None,
        split: str | None = None,
        found: Axes | None = None,
        published: float | None = None,
        variant: Axes | None = None,
    ) -> Measurement:
        """Return an interval as a measurement.

        Parameters
        ----------
        name, interval, axes
            The number, its ends, and the axes that distinguish it from others of its name.
        share
            Whether it is a fraction, which a sheet in percent multiplies by 100.
        seeds, split
            Where they are not the sheet's.
        found
            Values that came out with the number and do not identify it.
        published, variant
            The printed number, or the axes by which it is found (the row's own by default).
        """
        own = dict(axes or {})
        where = self.split if split is None else split
        if published is None:
            published = self._published(name, where, own if variant is None else variant)
        return measured(
            name,
            self.dataset,
            percent(interval) if share and self.percent else interval,
            {**self.axes, **own},
            self.seeds if seeds is None else seeds,
            published,
            found,
        ).model_copy(update={"split": where})

    def matrix(
        self, name: str, values: Values, axes: Axes | None = None, *, n: int = 1, **fields: Any
    ) -> Matrix:
        """Return a table of numbers as a picture; ``fields`` as in `Matrix.of`."""
        return Matrix.of(name, values=values, n=n, **self._picture(axes), **fields)

    def plane(
        self,
        name: str,
        points: Sequence[Point],
        axes: Axes | None = None,
        *,
        x: str,
        y: str,
        joined: bool = False,
        n: int = 1,
    ) -> Plane:
        """Return points in a plane as a picture; ``x`` and ``y`` are the titles of its axes."""
        return Plane(
            name=name, x=x, y=y, points=tuple(points), joined=joined, n=n, **self._picture(axes)
        )

    def curve(
        self, name: str, along: str, points: Mapping[Any, Interval], axes: Axes | None = None
    ) -> Curve:
        """Return intervals by their x, such as training steps, as a picture."""
        return Curve.of(name, axis=along, points=points, **self._picture(axes))

    def curves(self, found: Sequence[Lines]) -> list[Curve]:
        """Return the means of lines that every seed has under the same keys.

        A point is the mean of the seeds whose lines reach it; one that none has is left out.
        """
        made = []
        for key, first in found[0].items() if found else ():
            lines = [one[key] for one in found]
            points: dict[int, Interval] = {}
            x = max((line.x for line in lines), key=len)
            columns = zip_longest(*(line.y.tolist() for line in lines), fillvalue=math.nan)
            for place, values in zip(x, columns, strict=True):
                mean = mean_interval(list(values))
                if mean.n:
                    points[place] = mean
            made.append(self.curve(key.name, first.axis, points, dict(key.axes)))
        return made

    def mean_matrix(self, name: str, tables: Sequence[Tensor], **labels: Any) -> list[Matrix]:
        """Return the mean of one table a seed with the intervals of its cells; none of none.

        Tables may have different numbers of rows: a cell is the mean of the seeds that have it.
        """
        if not tables:
            return []
        absent = [math.nan] * tables[0].shape[1]
        ends: dict[str, Any] = {"value": [], "low": [], "high": []}
        for rows in zip_longest(*(table.tolist() for table in tables), fillvalue=absent):
            means = [mean_interval(list(values)) for values in zip(*rows, strict=True)]
            for end, lines in ends.items():
                lines.append([getattr(mean, end) for mean in means])
        values, bounds = ends.pop("value"), ends if len(tables) > 1 else {}
        return [self.matrix(name, values, n=len(tables), **bounds, **labels)]

    def _picture(self, axes: Axes | None) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "split": self.split,
            "axes": {**self.axes, **(axes or {})},
            "seeds": tuple(self.seeds),
        }

    def _published(self, name: str, split: str, variant: Axes) -> float | None:
        if not self.table or self.printed is None:
            return None
        # Some papers do not say which split they print.
        for where in (split, ""):
            row = published_row(self.paper, self.table, self.printed, name, split=where, **variant)
            if row is not None:
                return self._in_unit(row)
        return None

    def _in_unit(self, row: PublishedRow) -> float:
        if self.percent and row.unit == "fraction":
            return 100 * row.value
        if not self.percent and row.unit in ("percent", "percentage points"):
            return row.value / 100
        return row.value


def rng() -> np.random.Generator:
    """Return the randomness of a bootstrap: the same numbers get the same interval."""
    return np.random.default_rng(0)


def point(value: float, n: int = 1) -> Interval:
    """Return a number without an interval."""
    return Interval(value, math.nan, math.nan, n)


def percent(interval: Interval) -> Interval:
    """Return an interval of shares in percent."""
    return interval.scaled(100)
