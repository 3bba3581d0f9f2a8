"""What sunlu's claims share: which runs are large enough to decide, and how settings differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attnscope.claims.decide import Verdict
from attnscope.claims.pool import Pool
from attnscope.data.known import definitions
from attnscope.recipes.sunlu.units import SunluConfig
from attnscope.runs.result import Measurement, Result

SST, IMDB, NEWS_1, NEWS_2 = "sunlu-sst", "sunlu-imdb", "sunlu-20news-1", "sunlu-20news-2"
_SIZES = ("embedding", "hidden", "lstm_hidden", "epochs")


def full_size(pool: Pool, recipes: Sequence[str], sizes: Mapping[str, Any] | None = None) -> Pool:
    """Return a pool's results of some recipes with at least the default sizes; or quick ones.

    Parameters
    ----------
    sizes
        The least value of each setting; by default those of the recipes on text.
    """
    defaults = SunluConfig()
    least = sizes or {name: getattr(defaults, name) for name in _SIZES}

    def large(result: Result) -> bool:
        return result.scale == "quick" or all(
            result.config.get(name, value) >= value for name, value in least.items()
        )

    found = tuple(r for r in pool.results if r.recipe in recipes and large(r))
    nothing = pool.results[-1].model_copy(update={"measurements": ()})
    return Pool(found or (nothing,))


def wanted(pool: Pool, name: str, corpora: Sequence[str]) -> list[str]:
    """Return the corpora that decide: the paper's, or in a quick run whichever there are."""
    quick = pool.results[-1].scale == "quick"
    return pool.datasets(name) if quick else list(corpora)


def deviations(datasets: Sequence[str], *others: str) -> str:
    """Return how corpora and settings differ from the paper's."""
    known = definitions()
    told = {name: known[name].deviation for name in datasets if name in known}
    parts = [f"{name}: {text.removesuffix('.')}" for name, text in told.items() if text]
    return "; ".join([*parts, *others])


OPEN = (
    "L2 as a weight decay of .001 and 50 LSTM units a direction, neither of which the paper gives; "
    "batches of like length; texts of more than 1000 tokens left out"
)


def one(rows: Sequence[Measurement]) -> Measurement | None:
    """Return the only row, or None."""
    return rows[-1] if rows else None


def shown(row: Measurement | None, digits: int = 1) -> str:
    """Return a number with its interval and the paper's own."""
    if row is None or row.value is None:
        return "not measured"
    ends = "" if row.low is None else f" ({row.low:.{digits}f} to {row.high:.{digits}f})"
    paper = "" if row.published is None else f", paper {row.published:g}"
    return f"{row.value:.{digits}f}{ends}{paper}"


def seeds_of(rows: Sequence[Measurement]) -> int:
    """Return the number of seeds that every row has."""
    return min((len(row.seeds) for row in rows), default=0)


def as_verdict(value: bool | None) -> Verdict:
    """Return holds or fails for a number without an interval; undecided where there is none."""
    if value is None:
        return Verdict.UNDECIDED
    return Verdict.HOLDS if value else Verdict.FAILS
