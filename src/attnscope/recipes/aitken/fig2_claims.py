"""The claims of §3: one-to-one translation, reversed and sorted.

Where the catalogue names a quantity without a threshold (the mass on the diagonal), more than half
of it is required.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnscope.analysis.intervals import Interval
from attnscope.claims.decide import Verdict, above, below, by_value, reaches, verdict
from attnscope.claims.pool import Pool
from attnscope.claims.table import Cell, Cells, Claim, Finding, Needs, Part
from attnscope.recipes.aitken.claims import (
    AED,
    AGREES,
    ALL,
    AO,
    CELLS,
    DELTA_SMALL,
    DICTIONARY,
    HALF,
    MOST,
    NEGLIGIBLE,
    ONE_TO_ONE,
    SEEDS,
    on_simple_task,
    unsolved,
    usual,
)
from attnscope.recipes.aitken.measures.terms import MU_MU, SORTING_TERM
from attnscope.recipes.aitken.units import MODELS

FIVE_WORDS, REVERSED, VARYING = "one-to-one-5", "reversed-3", "reversed-3-varying"
_SIDES = ("encoder", "decoder")
_ALIGNED = "steps with their cosine largest at s = t"
_DECODER = "decoder ‖χ + Δh‖ / ‖μ‖"
_ON_THE_DIAGONAL = (
    Part("argmax agreement", "temporal_agreement", above, AGREES),
    Part(
        "mass within one position of the diagonal",
        "gold_mass",
        above,
        HALF,
        {"of": "temporal", "within": 1},
    ),
    Part("softmax(muD.muE) on the diagonal", "gold_mass", given={"of": "temporal", "within": 0}),
    Part("attention on the diagonal", "gold_mass", given={"of": "attention", "within": 0}),
)


def _at_zero(interval: Interval) -> Verdict:
    """Decide that a distance is 0 in every network."""
    return verdict(interval.value == 0.0, interval.low > 0)


def _cosine(side: str, **more: Any) -> Part:
    return Part(f"{side} mean |cosine|", "orthogonality", given={"side": side}, **more)


def _sorts(dataset: str) -> bool:
    return dataset.startswith("sorting-")


def _sorts_distinct(dataset: str) -> bool:
    return _sorts(dataset) and not dataset.endswith("-repeated")


def _of_sorting(cell: Cell) -> Finding:
    """Show raw shares and accuracies of all networks that sort."""
    shown: dict[str, Any] = {}
    anything = {"dataset": _sorts, "model": None}
    for term in (MU_MU, SORTING_TERM):
        for row in cell.select("term_share", form="raw", term=term, **anything):
            shown[f"{row.dataset} {row.axes['model']}: raw share of {term}"] = row
    for row in cell.select("word_accuracy", **anything):
        shown[f"{row.dataset} {row.axes['model']}: word accuracy"] = row
    return Finding(None, shown)


def _sizes_of_sorting(pool: Pool, datasets: Sequence[str]) -> str:
    sizes = "{sorted_shortest} to {sorted_longest} distinct ones of {letters} letters"
    return f"the paper gives no sizes of sorting: {sizes.format(**pool.config())}"


CLAIMS: dict[str, Any] = {
    "aitken.one-to-one": Claim(
        Cells("solved", ("model",), usual(ONE_TO_ONE, ALL)),
        (
            Part("share of seeds ≥ .99", "solved", by_value(reaches), 0.8),
            Part("word accuracy", "word_accuracy"),
        ),
        Needs(SEEDS, each={"model": ALL}),
    ),
    "aitken.temporal-attention": on_simple_task(ONE_TO_ONE, MODELS, *_ON_THE_DIAGONAL),
    "aitken.circle": on_simple_task(
        ONE_TO_ONE,
        ("aed",),
        *(
            Part(f"{x} radius variation", "radius_variation", below, 0.25, {"side": x}, only=AED)
            for x in _SIDES
        ),
        *(
            Part(f"{x} steps that turn one way", "monotone", above, MOST, {"side": x}, only=AED)
            for x in _SIDES
        ),
        Part(_ALIGNED, "aligned_steps", above, MOST, only=AED),
        Part(_ALIGNED, "aligned_steps", only=AO),
        Part("steps with their product largest at s = t", "dot_aligned_steps"),
        shown=("ao",),
    ),
    "aitken.decoder-temporal": on_simple_task(
        ONE_TO_ONE,
        ("aed",),
        Part(_DECODER, "input_delta_size", below, 1 / 3, {"side": "decoder"}, only=AED),
        Part(_DECODER, "input_delta_size", given={"side": "decoder"}, only=AO),
        shown=("ao",),
    ),
    "aitken.orthogonal": on_simple_task(
        ONE_TO_ONE,
        ("aed",),
        _cosine("encoder", rule=below, bound=0.1, only=AED),
        *(_cosine(side) for side in (*_SIDES, "encoder with decoder")),
        shown=("ao",),
        note="the encoder's own pairs decide; those with the other side's components are shown",
    ),
    "aitken.delta-small": DELTA_SMALL,
    "aitken.dictionary": DICTIONARY,
    "aitken.readout-context": on_simple_task(
        ONE_TO_ONE,
        ("aed",),
        Part("accuracy lost without the decoder's half", "accuracy_drop", below, 0.01),
        Part("‖W_c‖ / ‖W_h‖", "readout_norms"),
    ),
    "aitken.low-dimensional": Claim(
        Cells("word_accuracy", ("dataset", "model"), usual((ONE_TO_ONE, FIVE_WORDS), ALL)),
        (
            Part(
                "variance of temporal components in 3 axes",
                "explained_variance",
                above,
                MOST,
                {"of": "temporal", "axes": 3},
                only={"dataset": ONE_TO_ONE},
            ),
            Part("largest error of a cosine", "simplex_error", below, 0.1, only={"model": MODELS}),
            Part(
                "variance of temporal components in 2 axes",
                "explained_variance",
                given={"of": "temporal", "axes": 2},
                only={"dataset": ONE_TO_ONE},
            ),
            Part(
                "five words' components in 3 axes",
                "explained_variance",
                given={"of": "word", "axes": 3},
                only={"dataset": FIVE_WORDS},
            ),
        ),
        Needs(SEEDS, each={"model": ALL, "dataset": (ONE_TO_ONE, FIVE_WORDS)}, also=unsolved),
        note="three words' components span a plane whatever the network, and so are not counted",
    ),
    "aitken.ved-path": on_simple_task(
        ONE_TO_ONE,
        ("ved",),
        Part("steps whose nearest is an adjacent one", "adjacent_steps", above, MOST),
        Part(
            "steps from the last to the one nearest to the decoder's first",
            "steps_from_last",
            _at_zero,
        ),
        Part("the same at length", "steps_from_last", given={"length": None}, each="length"),
    ),
    "aitken.reversed": on_simple_task(
        REVERSED,
        MODELS,
        *_ON_THE_DIAGONAL,
        Part("varying lengths: word accuracy", "word_accuracy", given={"dataset": VARYING}),
        Part(
            "argmax agreement, length",
            "temporal_agreement",
            given={"dataset": VARYING, "length": None},
            each="length",
            only=AED,
        ),
        note=(
            "with lengths varying t = S + 1 − s depends on the length, which AO cannot know: its "
            "accuracy there is reported and decides nothing"
        ),
    ),
    "aitken.sorting": on_simple_task(
        _sorts_distinct,
        ("aed",),
        Part(
            f"row-centred {SORTING_TERM} less the largest other",
            "term_gap",
            above,
            given={"form": "centred"},
        ),
        Part(
            f"row-centred {MU_MU}",
            "term_share",
            below,
            NEGLIGIBLE,
            {"form": "centred", "term": MU_MU},
        ),
        _of_sorting,
        deviation=_sizes_of_sorting,
    ),
    "aitken.cells": CELLS,
}
