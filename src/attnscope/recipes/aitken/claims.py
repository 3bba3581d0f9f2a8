"""Claims that several of aitken's figures decide together, and what all claims have in common.

Thresholds are the catalogue's. Of claims on eSCAN the authors' recorded setting decides, and the
text's lengths without marks are the stricter reading. A network says nothing about the paper's
unless it solves its task: only accepted runs are measured, on every task. Translation is decided on
an English-French corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attnscope.analysis.alignment_terms import MU_MU
from attnscope.analysis.intervals import prediction_interval
from attnscope.analysis.measures.terms import THREE
from attnscope.claims.decide import Verdict, above, below, exactly, verdict
from attnscope.claims.pool import Pool, interval_of
from attnscope.claims.readings import Readings, at_setting
from attnscope.claims.table import (
    Cell,
    Cells,
    Check,
    Claim,
    Finding,
    Given,
    Needs,
    Part,
    Predicate,
    several,
    together,
)
from attnscope.recipes.aitken.units import MODELS, STAND_IN, TRANSLATION

ONE_TO_ONE, ESCAN = "one-to-one-3", "escan"
DEVIATION = (
    "Tatoeba (157,044 training pairs, median 7 tokens) in place of ParaCrawl (over 30 million)"
)
AED, AO = {"model": "aed"}, {"model": "ao"}
ALL = ("ved", *MODELS)
KIND = ("model", "cell", "attention")
ENCODER = {"side": "encoder"}
# The networks of all figures.
USUAL = ("ved gru none", "aed gru dot", "ao gru dot")
# The kinds that aitken.cells needs: other cells, other attention, and no gates.
CELL_KINDS = ("aed lstm dot", "aed ugrnn dot", "aed gru learned", "ao tanh dot")
# Fixed beforehand: thresholds of the catalogue.
NEGLIGIBLE, AGREES, THREE_ENOUGH, HALF, MOST = 0.1, 0.95, 0.8, 0.5, 0.9
SEEDS, CELL_SEEDS = 5, 3
SPREAD_SEEDS = 8  # of each kind, where it is compared with the spread of the GRU networks

# eSCAN as the authors recorded it, and by the lengths that the text names.
RECORDED = {"separator": "marked", "shortest_output": 10, "longest_output": 15}
TEXT_LENGTHS = {"separator": "none", "shortest_output": 15, "longest_output": 20}
ALL_TASKS = "all tasks"  # the data set of numbers over several tasks, eSCAN among them

Need = Callable[[Pool, Sequence[Cell]], str]


def by_setting(words: Predicate, rule: Predicate | None = None) -> Readings:
    """Return a claim on eSCAN: at the recorded setting, and (stricter) by the text's lengths."""
    of_escan = (ESCAN, ALL_TASKS)
    return Readings(
        at_setting(words, RECORDED, of_escan),
        at_setting(words if rule is None else rule, TEXT_LENGTHS, of_escan),
    )


def kind_of(axes: Mapping[str, Any]) -> str:
    """Return the kind of a network in words, as in ``aed lstm dot``."""
    return " ".join(str(axes[axis]) for axis in KIND)


def is_text(dataset: str) -> bool:
    """Return whether a data set is an English-French corpus."""
    return dataset.endswith(TRANSLATION)


def usual(dataset: Any, models: Sequence[str] = MODELS) -> dict[str, Any]:
    """Return the axes of GRU networks with plain attention, or none, on all lengths together."""
    kind = {"cell": "gru", "attention": ("dot", "none"), "length": (None,)}
    return {"dataset": dataset, "model": tuple(models), **kind}


def on_simple_task(
    dataset: Any,
    models: Sequence[str],
    *checks: Check,
    shown: Sequence[str] = (),
    seeds: int = SEEDS,
    **more: Any,
) -> Claim:
    """Return a claim about networks on a task that they solve; those ``shown`` do not decide."""
    cells = Cells("delta_share", ("dataset", "model"), usual(dataset, (*models, *shown)))
    return Claim(cells, checks, Needs(seeds, each={"model": models}), **more)


def on_escan(
    measured: str,
    *checks: Check,
    models: Sequence[str] = MODELS,
    shown: Sequence[str] = (),
    seeds: int = 1,
    **more: Any,
) -> Claim:
    """Return a claim about accepted networks on eSCAN; those ``shown`` do not decide."""

    def lacking(pool: Pool, cells: Sequence[Cell]) -> str:
        have = {cell.given["model"] for cell in cells}
        missing = " and ".join(model for model in models if model not in have)
        some = f"{seeds} runs" if seeds > 1 else "accepted runs"
        return f"needs {some} of {missing} on eSCAN" if missing else ""

    cells = Cells(measured, ("model",), usual(ESCAN, (*models, *shown)))
    return Claim(cells, checks, Needs(seeds, also=lacking), **more)


def no_text(pool: Pool, cells: Sequence[Cell]) -> str:
    """Return that nothing was measured on an English-French corpus."""
    return "" if cells else "needs the networks of aitken/fig4 on English-French"


def on_text(
    measured: str,
    *checks: Check,
    models: Sequence[str] = (),
    seeds: int = 1,
    also: Need = no_text,
    given: Given | None = None,
) -> Claim:
    """Return a claim about networks that translate English to French."""
    cells = Cells(measured, ("dataset", "model"), {**usual(is_text), **(given or {})})
    each = {"model": models} if models else {}
    return Claim(cells, checks, Needs(seeds, each=each, also=also), deviation=stand_in)


def stand_in(pool: Pool, datasets: Sequence[str]) -> str:
    """Return how the corpus differs from the paper's, if it stands in for it."""
    return DEVIATION if STAND_IN in datasets else ""


def _twice_aed(cell: Cell) -> Finding:
    """Decide that VED's share of Δh is at least twice AED's."""
    if cell.given["model"] != "ved":
        return Finding(None, {})
    ved, aed = (interval_of(cell.one("delta_share", model=model)) for model in ("ved", "aed"))
    return Finding(verdict(ved.low >= 2 * aed.high, ved.high < 2 * aed.low), {})


def _no_difference(pool: Pool, cells: Sequence[Cell]) -> str:
    return "" if pool.named("delta_share_difference") else "needs accepted runs of AED and AO"


_DELTA_SMALL = several(
    {
        "one-to-one": Claim(
            Cells("delta_share", ("model",), usual(ONE_TO_ONE, ALL) | ENCODER),
            (
                Part("", "delta_share", below, NEGLIGIBLE, decides_on={"model": MODELS}),
                _twice_aed,
            ),
            Needs(SEEDS, each={"model": ALL}),
        ),
        "eSCAN": Claim(
            Cells(("delta_share", "delta_share_difference"), ("dataset",), {"dataset": ESCAN}),
            (
                Part("AED less AO", "delta_share_difference", above),
                Part("", "delta_share", given=usual(ESCAN) | ENCODER, each="model"),
            ),
            Needs(also=_no_difference),
        ),
    }
)
DELTA_SMALL = by_setting(_DELTA_SMALL)


def _dictionary(french: Given) -> Predicate:
    return several(
        {
            "one-to-one": Claim(
                Cells("dictionary", ("model",), usual(ONE_TO_ONE)),
                (Part("", "dictionary", exactly, 1.0),),
                Needs(each={"model": MODELS}),
            ),
            "eSCAN": on_escan(
                "dictionary",
                Part("verbs", "dictionary", exactly, 1.0),
                Part("maximal at 'and' or 'twice'", "silent_readouts", exactly, 0.0),
            ),
            "English-French": on_text(
                "dictionary", Part("", "dictionary", exactly, 1.0), given=french
            ),
        }
    )


DICTIONARY = by_setting(_dictionary(AO), _dictionary({}))

TEMPORAL_TERMS = (
    Part(f"{MU_MU} less the largest other", "largest_gap", above, given={"form": "raw"}),
    Part("three terms", "term_share", above, THREE_ENOUGH, {"form": "raw", "term": THREE}),
)


def _of_other_kinds(*parts: Check) -> Check:
    """Return a check of the networks that are not those of the figures."""

    def check(cell: Cell) -> Finding:
        if kind_of(cell.given) in USUAL:
            return Finding(None, {})
        return together([part(cell) for part in parts])

    return check


def _every_kind(kinds: Sequence[str], seeds: int) -> Need:
    def lacking(pool: Pool, cells: Sequence[Cell]) -> str:
        have = {kind_of(cell.given) for cell in cells}
        missing = [kind for kind in kinds if kind not in have]
        return f"needs {seeds} seeds of {', '.join(missing)}" if missing else ""

    return lacking


def _within_spread(says: str, name: str, **given: str) -> Check:
    """Return a check that a kind's mean lies where one more GRU network would be expected."""

    def check(cell: Cell) -> Finding:
        own = cell.one(name, **given)
        usual_row = cell.one(name, cell="gru", attention="dot", **given)
        spread = prediction_interval([v for v in usual_row.values if v is not None])
        evidence = {says: own, f"{says}, GRU networks": spread if spread.n else usual_row}
        if spread.n < cell.pool.needed(SPREAD_SEEDS):
            return Finding(Verdict.UNDECIDED, evidence)
        return Finding(verdict(spread.low <= own.number <= spread.high, True), evidence)

    return check


def _cells(one_to_one: Sequence[Check], escan: Sequence[Check], seeds: int) -> Predicate:
    aed = [kind for kind in CELL_KINDS if "aed" in kind]
    return several(
        {
            "one-to-one": Claim(
                Cells("temporal_agreement", KIND, {"dataset": ONE_TO_ONE}),
                (_of_other_kinds(*one_to_one),),
                Needs(seeds, also=_every_kind(CELL_KINDS, seeds)),
            ),
            "eSCAN": Claim(
                Cells("largest_gap", KIND, {"dataset": ESCAN} | AED),
                (_of_other_kinds(*escan),),
                Needs(seeds, also=_every_kind(aed, seeds)),
            ),
        }
    )


CELLS = by_setting(
    _cells(
        (
            _within_spread("temporal_agreement", "temporal_agreement"),
            _within_spread("delta_share", "delta_share", **ENCODER),
            Part("dictionary", "dictionary"),
        ),
        (
            _within_spread(f"share of {MU_MU}", "term_share", form="raw", term=MU_MU),
            _within_spread("three terms", "term_share", form="raw", term=THREE),
        ),
        SPREAD_SEEDS,
    ),
    _cells(
        (
            Part("temporal_agreement", "temporal_agreement", above, AGREES),
            Part("delta_share", "delta_share", below, NEGLIGIBLE, ENCODER),
            Part("dictionary", "dictionary", exactly, 1.0),
        ),
        TEMPORAL_TERMS,
        CELL_SEEDS,
    ),
)
