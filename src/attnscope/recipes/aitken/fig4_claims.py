"""The claims about translation; they are decided on an English-French corpus alone.

Beside the shares of figure 5a these read ``largest_share`` (of the nine terms), ``early_gap`` (at
s = 1, 2, 3) and ``late_difference``, intervals over networks (see `fig4_measure`), and for the
offset ``offset_change``, ``width_change`` and ``diagonal_change``.
"""

from __future__ import annotations

from attnscope.claims.decide import Verdict, above, all_of, below
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.recipes.aitken.escan_units import MODELS
from attnscope.recipes.aitken.fig4_measure import EARLY
from attnscope.recipes.aitken.shared_claims import (
    MU_MU,
    deviation_of,
    dictionary,
    translation_rows,
)
from attnscope.runs.result import Measurement

# Fixed beforehand, as the catalogue has them.
_DOMINATES, _SEEDS = 0.5, 3


def _of(pool: Pool, name: str, model: str, **axes: object) -> list[Measurement]:
    """Return the measurements of raw terms, or of what has no form, of an architecture."""
    wanted = {"model": model, **axes}
    return [
        row
        for row in translation_rows(pool, name)
        if row.axes.get("form", "raw") == "raw"
        and all(row.axes.get(axis) == value for axis, value in wanted.items())
    ]


def translation_terms(pool: Pool) -> Decision:
    """Decide aitken.translation-terms: no share above ½; in AED μ^D·μ^E is largest, but early.

    At each of s = 1, 2, 3 it must be above all others, and its mean share from s = 8 on below that
    of these three.
    """
    parts: list[Verdict] = []
    evidence: dict[str, object] = {}
    for model in MODELS:
        largest = _of(pool, "largest_share", model)
        if not largest:
            return undecided(f"needs {model} on an English-French corpus", evidence)
        if len(largest[0].seeds) < pool.needed(_SEEDS):
            return undecided(f"needs {_SEEDS} seeds of {model}", evidence)
        evidence |= {f"{model}: largest mean share": interval_of(row) for row in largest}
        evidence |= {
            f"{model}: mean share of {row.axes['term']}": interval_of(row)
            for row in _of(pool, "term_share", model)
        }
        parts += [below(interval_of(row), _DOMINATES) for row in largest]
    gaps, late = _of(pool, "early_gap", "aed"), _of(pool, "late_difference", "aed")
    evidence |= {
        f"aed: {MU_MU} less the largest other at s = {row.axes['step']}": interval_of(row)
        for row in gaps
    } | {f"aed: {MU_MU} at s >= 8 less s <= 3": interval_of(row) for row in late}
    if len(gaps) < EARLY or not late:
        return undecided("needs sentences that are long enough", evidence)
    parts += [above(interval_of(row)) for row in gaps]
    parts += [below(interval_of(row)) for row in late]
    return Decision(all_of(parts), evidence, deviation_of(gaps))


def offset_on_text(pool: Pool) -> tuple[Verdict, dict[str, object]]:
    """Decide the part of aitken.offset about English-French, for both architectures.

    The maximum of μ^D·μ^E drifts to t < s, its attention widens, and is most diagonal early.
    """
    parts: list[Verdict] = []
    evidence: dict[str, object] = {}
    for model in MODELS:
        for name, axes, rule in (
            ("offset_change", {"of": "maximum"}, below),
            ("width_change", {}, above),
            ("diagonal_change", {}, above),
        ):
            rows = _of(pool, name, model, **axes)
            parts += [rule(interval_of(row)) for row in rows] or [Verdict.UNDECIDED]
            evidence |= {f"{model}: {name}": interval_of(row) for row in rows}
    return all_of(parts), evidence


CLAIMS = {
    "aitken.translation-terms": translation_terms,
    "aitken.dictionary": dictionary,
}
