"""The pooled measurements of finished runs that a claim is decided on, and the decision."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from attnscope.analysis.intervals import Interval
from attnscope.analysis.learning import learned
from attnscope.claims.decide import Outcome, Verdict
from attnscope.runs.result import Measurement, Result, select

Sizes = Mapping[str, float] | Mapping[str, Mapping[str, float]]
"""The least value of settings; or of those of each recipe, by its name."""


@dataclass(frozen=True)
class Pool:
    """Results of one recipe; of measurements of one key that over most seeds counts."""

    results: tuple[Result, ...]

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """All measurements, each key once.

        Over several seeds the seeds are no part of the key: more networks of a task replace fewer.
        Of as many the later one counts, as of single runs with the same seed.
        """
        by_key: dict[tuple[Any, ...], Measurement] = {}
        for row in (row for result in self.results for row in result.numbers):
            own = row.seeds if len(row.seeds) < 2 else ()
            key = (row.name, row.dataset, row.split, tuple(sorted(row.axes.items())), own)
            if key not in by_key or len(row.seeds) >= len(by_key[key].seeds):
                by_key[key] = row
        return tuple(by_key.values())

    @cached_property
    def _by_name(self) -> dict[str, list[Measurement]]:
        found: dict[str, list[Measurement]] = {}
        for row in self.measurements:
            found.setdefault(row.name, []).append(row)
        return found

    def named(self, name: str) -> list[Measurement]:
        """Return the measurements of a name."""
        return self._by_name.get(name, [])

    def select(self, name: str, dataset: str | None = None, **axes: Any) -> list[Measurement]:
        """Return the measurements of a name whose data set and axes are as given."""
        return select(self.named(name), name, dataset, **axes)

    def values(self, name: str, dataset: str | None = None, **axes: Any) -> list[float | None]:
        """Return the values of `select`."""
        return [row.value for row in self.select(name, dataset, **axes)]

    def datasets(self, name: str) -> list[str]:
        """Return the data sets on which a name was measured, in order."""
        return list(dict.fromkeys(row.dataset for row in self.select(name)))

    def outcomes(self, **axes: Any) -> list[Outcome]:
        """Return whether and when each run learned, by its ``accuracy`` and ``steps_to_95``."""
        reached = {_run(row): row.value for row in self.select("steps_to_95", **axes)}
        found = []
        for row in self.select("accuracy", **axes):
            steps = reached[_run(row)]
            found.append(Outcome(learned(row.number), None if steps is None else int(steps)))
        return found

    @property
    def quick(self) -> bool:
        """Whether the results are of quick runs."""
        return self.results[-1].scale == "quick"

    def needed(self, count: int) -> int:
        """Return how many seeds or corpora a claim needs; a quick run shows less than that."""
        return 1 if self.quick else count

    def full_size(self, sizes: Sizes) -> Pool:
        """Return the results whose settings are at least of these sizes, and quick ones."""
        large = [result for result in self.results if _is_large(result, sizes)]
        nothing = self.results[-1].model_copy(update={"measurements": (), "pictures": ()})
        return self if len(large) == len(self.results) else Pool(tuple(large) or (nothing,))

    def with_settings(
        self, settings: Mapping[str, Any], datasets: Collection[str] = ()
    ) -> Pool | None:
        """Return the results with these settings, and quick ones; None if there is none.

        Where data sets are named, other results keep what they measured on other data sets.
        """
        fitting = [result for result in self.results if _has_settings(result, settings)]
        if not fitting:
            return None
        if len(fitting) == len(self.results):
            return self
        if not datasets:
            return Pool(tuple(fitting))
        kept = []
        for result in self.results:
            fits = _has_settings(result, settings)
            kept.append(result if fits else _without(result, datasets))
        return Pool(tuple(kept))

    def config(self) -> Mapping[str, Any]:
        """Return the settings of the latest result."""
        return self.results[-1].config


@dataclass(frozen=True)
class Decision:
    """A verdict with the numbers it rests on, and how the setting differs from the paper's.

    Evidence is measurements, intervals, numbers, text, and lists and mappings of them; a number
    with an interval is never a list of three.
    """

    verdict: Verdict
    evidence: Mapping[str, Any] = field(default_factory=dict)
    deviation: str = ""
    note: str = ""


def _run(row: Measurement) -> tuple[Any, ...]:
    return (*sorted(row.axes.items()), row.seeds)


def _is_large(result: Result, sizes: Sizes) -> bool:
    own = sizes.get(result.recipe, sizes)
    assert isinstance(own, Mapping)
    values = ((result.config.get(name), size) for name, size in own.items())
    # A setting that is not given takes its size from the corpus, such as epochs.
    return result.scale == "quick" or all(value is None or value >= size for value, size in values)


def _has_settings(result: Result, settings: Mapping[str, Any]) -> bool:
    return result.scale == "quick" or all(
        result.config.get(name, value) == value for name, value in settings.items()
    )


def _without(result: Result, datasets: Collection[str]) -> Result:
    """Return a result without what it measured on some data sets."""
    kept = {
        name: tuple(row for row in getattr(result, name) if row.dataset not in datasets)
        for name in ("measurements", "pictures")
    }
    return result.model_copy(update=kept)


def interval_of(row: Measurement) -> Interval:
    """Return a measurement as an interval; a missing number is NaN, which decides nothing."""
    value, low, high = (math.nan if end is None else end for end in (row.value, row.low, row.high))
    values = tuple(math.nan if each is None else each for each in row.values)
    return Interval(value, low, high, row.n, values)


def undecided(note: str, evidence: Mapping[str, Any] | None = None) -> Decision:
    """Return a decision that says what is missing."""
    return Decision(Verdict.UNDECIDED, evidence or {}, note=note)
