"""What the predicates of tutek's claims share: which runs count, cells, and how we deviate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attnscope.claims.decide import Verdict
from attnscope.claims.pool import Decision, Pool, undecided
from attnscope.data.known import definitions
from attnscope.data.text import OWN
from attnscope.recipes.tutek.units import TutekConfig
from attnscope.runs.result import Measurement

SEEDS = 5
_SIZES = ("hidden", "epochs", "most_steps")


def full_size(pool: Pool) -> Pool:
    """Return the results with at least the default sizes; quick runs show what they can."""
    defaults = {key: TutekConfig.model_fields[key].default for key in _SIZES}

    def large(config: Mapping[str, Any]) -> bool:
        return all(config.get(key, own) >= own for key, own in defaults.items())

    found = tuple(r for r in pool.results if r.scale == "quick" or large(r.config))
    nothing = pool.results[-1].model_copy(update={"measurements": ()})
    return Pool(found or (nothing,))


def counting(rows: Iterable[Measurement], pool: Pool, seeds: int = SEEDS) -> list[Measurement]:
    """Return the rows that decide: enough seeds, and no corpus of the package's own.

    A quick run shows what it would say with what it has.
    """
    if pool.results[-1].scale == "quick":
        return list(rows)
    return [row for row in rows if len(row.seeds) >= seeds and row.dataset not in OWN]


def cells(
    pool: Pool, name: str, *axes: str, seeds: int = SEEDS, **fixed: Any
) -> dict[tuple[Any, ...], Measurement]:
    """Return the deciding rows of a name by corpus and some of their axes, the latest of each."""
    rows = counting(pool.select(name, **fixed), pool, seeds)
    return {(row.dataset, *(row.axes[axis] for axis in axes)): row for row in rows}


def told(row: Measurement) -> str:
    """Return a number with its interval and the paper's, for evidence."""
    if row.value is None:
        return "not defined"
    ends = "" if row.low is None else f" ({row.low:.3g} to {row.high:.3g})"
    paper = "" if row.published is None else f", paper {row.published:g}"
    return f"{row.value:.3g}{ends}{paper}"


def evidence_of(rows: Mapping[tuple[Any, ...], Measurement]) -> dict[str, str]:
    """Return cells as evidence."""
    return {" ".join(map(str, key)): told(row) for key, row in rows.items()}


def too_few(needs: str, have: int, evidence: Mapping[str, Any]) -> Decision:
    """Return what a claim lacks."""
    return undecided(f"needs {needs} at the default sizes; there are {have}", evidence)


def against(keys: Iterable[Sequence[Any]], parts: Sequence[Verdict]) -> str:
    """Return on which cells a claim does not hold."""
    odd = [
        " ".join(map(str, key))
        for key, part in zip(keys, parts, strict=True)
        if part is not Verdict.HOLDS
    ]
    return f"not held: {', '.join(odd)}" if odd else ""


def deviations(pool: Pool, datasets: Iterable[str]) -> str:
    """Return how corpora, embeddings and training differ from the paper's."""
    config = pool.config()
    known = definitions()
    told_of = {name: known[name].deviation for name in sorted(set(datasets)) if name in known}
    parts = [f"{name}: {text.removesuffix('.')}" for name, text in told_of.items() if text]
    vectors = config.get("vectors") or "random"
    parts.append(f"embeddings: {vectors}, frozen in every model")
    steps = config.get("most_steps", TutekConfig.model_fields["most_steps"].default)
    parts.append(f"at most {steps} steps, the best of eight validation losses")
    return "; ".join(parts)
