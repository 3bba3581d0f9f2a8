"""How near measured numbers are to the printed ones: every comparable cell of the papers, counted.

A cell is *within tolerance* if it lies within three points of the measured number (of rates and
BLEU; three percent of counts, lengths and nats) or inside its 95 % interval. Where the number of
each seed is kept, the interval is that in which the paper's own runs are expected
(`attnscope.analysis.intervals.prediction_interval`). A printed bound is met from one side.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from attnscope.analysis.intervals import Interval, prediction_interval
from attnscope.claims.papers import PAPERS
from attnscope.claims.pool import interval_of
from attnscope.claims.printed_cells import CellQuery, is_result, is_statistic, queries
from attnscope.claims.published import PublishedRow, published
from attnscope.claims.verdicts import deciding
from attnscope.runs.result import Measurement, Result

POINTS, SHARE = 3.0, 0.03
OWN, PART, STAND_IN = "own", "part", "stand-in"
NOT_KNOWN = "not known"
# How many runs the papers' numbers are means of; one where they do not say.
_RUNS = {"tutek": 5}


@dataclass(frozen=True)
class ComparedCell:
    """A printed result with the measured number next to it, if there is one.

    Attributes
    ----------
    paper, row
        The printed number.
    corpus
        ``own``, ``part`` or ``stand-in``: how the measured data set relates to the paper's.
    measured
        The measured number in the printed unit with its interval, None where there is none.
    """

    paper: str
    row: PublishedRow
    corpus: str
    measured: Interval | None

    @property
    def statistic(self) -> bool:
        """Whether it is the size of a corpus or a model, and not a result of an experiment."""
        return is_statistic(self.paper, self.row)

    @property
    def tolerance(self) -> float:
        """How far off still counts, in the printed unit."""
        if self.row.unit in ("percent", "percentage points", "bleu"):
            return POINTS
        return SHARE if self.row.unit == "fraction" else SHARE * abs(self.row.value)

    @cached_property
    def off(self) -> float:
        """How far the measured number is from the printed one, 0 for a bound that is met."""
        assert self.measured is not None
        off = self.measured.value - self.row.value
        if "lower bound" in self.row.note:
            return min(off, 0.0)
        return max(off, 0.0) if "upper bound" in self.row.note else off

    @property
    def inside(self) -> bool:
        """Whether the printed number is in the measured one's interval."""
        found = self.measured
        if found is None or math.isnan(found.low):
            return False
        return self.off == 0 or found.low <= self.row.value <= found.high

    @property
    def within(self) -> bool:
        """Whether it is within tolerance."""
        near = self.measured is not None and abs(self.off) <= self.tolerance + 1e-9
        return near or self.inside

    @property
    def distance(self) -> float:
        """How many tolerances the measured number is off."""
        size = self.tolerance or 1.0
        return abs(self.off) / size


def compare(results: Iterable[Result], way: str = "text") -> list[ComparedCell]:
    """Return every printed result of the papers, with the measured number where there is one.

    Measured numbers are those of the runs that decide claims.

    Parameters
    ----------
    way
        ``text`` or ``code``: the procedure, where a paper's text and its authors' code differ.
    """
    by_recipe: dict[str, list[Result]] = defaultdict(list)
    for result in deciding(result for result in results if result.scale != "quick"):
        by_recipe[result.recipe].append(result)
    found = []
    for paper in PAPERS:
        for row in published(paper):
            if is_result(paper, row):
                found.append(_compared(paper, row, by_recipe, way))
    return found


def _compared(
    paper: str, row: PublishedRow, results: dict[str, list[Result]], way: str
) -> ComparedCell:
    places = queries(paper, row, way)
    for asked in places:
        found = _find(asked, results.get(asked.recipe, []))
        if found is not None:
            measurement, corpus = found
            interval = _interval(measurement, _RUNS.get(paper, 1)).scaled(asked.factor)
            if asked.error:
                interval = interval.shifted(row.value)
            return ComparedCell(paper, row, corpus, interval)
    return ComparedCell(paper, row, places[0].corpus if places else OWN, None)


def _find(asked: CellQuery, results: Sequence[Result]) -> tuple[Measurement, str] | None:
    """Return the measurement, and how its data relate to the paper's."""
    preferred = [result for result in results if _has(result, asked)]
    corpus = PART if asked.corpus == OWN and not preferred else asked.corpus
    for name in filter(None, (asked.name, asked.otherwise)):
        rows = [
            row
            for result in reversed(preferred or list(results))
            for row in reversed(result.select(name, asked.dataset, **asked.axes))
            if row.value is not None and asked.split in ("", row.split)
        ]
        if rows:
            # The latest over most seeds, as for claims.
            return max(rows, key=lambda row: len(row.seeds)), corpus
    return None


def _has(result: Result, asked: CellQuery) -> bool:
    return all(result.config.get(name) == value for name, value in asked.settings.items())


def _interval(row: Measurement, runs: int) -> Interval:
    """Return the interval in which the paper's runs are expected; the mean's where that is wider.

    Crossed intervals hold the examples' noise too, which the seeds' numbers alone do not show.
    """
    own, values = interval_of(row), [value for value in row.values if value is not None]
    if len(values) < 2:
        return own
    new = prediction_interval(values, runs)
    wider = new.high - new.low > own.high - own.low
    return Interval(own.value, new.low, new.high, own.n) if wider else own


@dataclass(frozen=True)
class Tally:
    """How many cells there are, are comparable, within tolerance, and inside the interval."""

    cells: int
    comparable: int
    within: int
    inside: int

    @classmethod
    def of(cls, cells: Sequence[ComparedCell]) -> Tally:
        """Count cells."""
        comparable = [cell for cell in cells if cell.measured is not None]
        return cls(
            len(cells),
            len(comparable),
            sum(cell.within for cell in comparable),
            sum(cell.inside for cell in comparable),
        )

    @property
    def share(self) -> str:
        """The share within tolerance, in percent."""
        return f"{100 * self.within / self.comparable:.0f} %" if self.comparable else "–"


def farthest(cells: Sequence[ComparedCell], count: int) -> list[ComparedCell]:
    """Return the comparable cells that are off by the most tolerances, the farthest first."""
    results = [cell for cell in cells if not cell.statistic]
    off = [cell for cell in results if cell.measured is not None and not cell.within]
    return sorted(off, key=lambda cell: -cell.distance)[:count]


def sentence(cells: Sequence[ComparedCell]) -> str:
    """Return the totals in one sentence; sizes of corpora and models are counted last."""
    results = [cell for cell in cells if not cell.statistic]
    every, sizes = Tally.of(results), Tally.of([cell for cell in cells if cell.statistic])
    own = Tally.of([cell for cell in results if cell.corpus == OWN])
    theirs = Tally.of([cell for cell in results if cell.corpus != STAND_IN])
    return (
        f"Of {every.cells:,} printed results {every.comparable:,} have a measured number, and "
        f"{every.within:,} of these ({every.share}) are within tolerance, {every.inside:,} inside "
        f"its interval; without stand-ins for corpora {theirs.within:,} of {theirs.comparable:,} "
        f"({theirs.share}), on the papers' own corpora {own.within:,} of {own.comparable:,} "
        f"({own.share}). Of {sizes.comparable} sizes of corpora and models {sizes.within} are."
    )


def reason(cell: ComparedCell) -> str:
    """Return why a cell is off: the first line of the list that fits, and what shows it.

    What no run here shows, and print does not, is said to be supposed.
    """
    for line in _reasons():
        if _fits(line, cell):
            shown = f"{line['reason']} (shown: {line['shown']})"
            return shown if line["shown"] else f"supposed: {line['reason']}"
    return NOT_KNOWN


def _fits(line: Mapping[str, str], cell: ComparedCell) -> bool:
    variant = {f"{key}={value}" for key, value in cell.row.variant}
    return (
        line["paper"] == cell.paper
        and line["table"] in ("", cell.row.table)
        and line["dataset"] in ("", cell.row.dataset)
        and line["variant"] in ("", *variant)
        and line["metric"] in ("", cell.row.metric)
        and line["corpus"] in ("", cell.corpus)
    )


@cache
def _reasons() -> list[dict[str, str]]:
    path = files("attnscope.claims").joinpath("fidelity_reasons.csv")
    with path.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))
