"""The claims that figure 2 decides, on intervals over networks.

Thresholds are the catalogue's. Where it names a quantity without one (the mass on the diagonal),
more than half of it is asked for. What a network does says nothing of the paper's unless it solves
its task: below a mean word accuracy of .97 a claim is undecided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attnscope.claims.decide import Verdict, above, all_of, below, verdict
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.recipes.aitken.shared_claims import (
    AGREES,
    MU_MU,
    NEGLIGIBLE,
    ONE_TO_ONE,
    SEEDS,
    cells,
    delta_small,
    dictionary,
)
from attnscope.recipes.aitken.units import SOLVED
from attnscope.runs.result import Measurement

FIVE_WORDS = "one-to-one-5"
REVERSED = "reversed-3"
SORTING = "sorting-"
SORTING_TERM = "deltahD.chiE"
GRU = {"cell": "gru"}
MOST = 0.9  # "in ≥ 90 % of steps"
HALF = 0.5

Rows = dict[str, Measurement]


def _usual(pool: Pool, name: str, dataset: str, models: Sequence[str], **axes: Any) -> Rows:
    """Return a measurement of each GRU network with plain attention, or none."""
    return {
        model: row
        for model in models
        for row in pool.select(name, dataset, model=model, **GRU, **axes)
        if row.axes["attention"] in ("dot", "none") and "length" not in row.axes
    }


def _told(rows: Mapping[str, Measurement], what: str) -> dict[str, Any]:
    return {f"{model}: {what}": interval_of(row) for model, row in rows.items()}


def _lacking(pool: Pool, dataset: str, models: Sequence[str]) -> Decision | None:
    """Return why nothing can be decided, or None: too few seeds, or a task that is not solved."""
    rows = _usual(pool, "word_accuracy", dataset, models)
    evidence = _told(rows, "word accuracy")
    if set(rows) < set(models):
        return undecided(f"needs {', '.join(models)} on {dataset}", evidence)
    if any(len(row.seeds) < pool.needed(SEEDS) for row in rows.values()):
        return undecided(f"needs {SEEDS} seeds of {', '.join(models)} on {dataset}", evidence)
    failed = [model for model, row in rows.items() if row.value is None or row.value < SOLVED]
    if failed:
        named = ", ".join(failed)
        return undecided(f"{named} does not solve {dataset}: mean word accuracy < .97", evidence)
    return None


def _decided(
    pool: Pool,
    dataset: str,
    models: Sequence[str],
    parts: Iterable[tuple[str, Rows, Verdict]],
    beside: Mapping[str, Any] | None = None,
    **told_beside: str,
) -> Decision:
    """Decide that all parts hold; each has a name, the rows it rests on and its verdict."""
    lacking = _lacking(pool, dataset, models)
    named = list(parts)
    evidence: dict[str, Any] = {}
    for what, rows, _ in named:
        evidence |= _told(rows, what)
    evidence |= dict(beside or {})
    if lacking is not None:
        return undecided(lacking.note, dict(lacking.evidence) | evidence)
    return Decision(all_of([part for _, _, part in named]), evidence, **told_beside)


def _all_above(rows: Rows, bound: float) -> Verdict:
    return all_of([above(interval_of(row), bound) for row in rows.values()])


def _all_below(rows: Rows, bound: float) -> Verdict:
    return all_of([below(interval_of(row), bound) for row in rows.values()])


def one_to_one(pool: Pool) -> Decision:
    """Decide aitken.one-to-one: at least 4 of 5 seeds of each reach .99."""
    models = ("ved", "aed", "ao")
    rates = _usual(pool, "solved", ONE_TO_ONE, models)
    accuracy = _usual(pool, "word_accuracy", ONE_TO_ONE, models)
    evidence = _told(rates, "share of seeds ≥ .99") | _told(accuracy, "word accuracy")
    if set(rates) < set(models) or any(r.n < pool.needed(SEEDS) for r in rates.values()):
        return undecided(f"needs {SEEDS} seeds of VED, AED and AO", evidence)
    enough = [verdict((row.value or 0.0) >= 0.8, True) for row in rates.values()]
    return Decision(all_of(enough), evidence)


def _temporal_parts(
    pool: Pool, dataset: str, models: Sequence[str]
) -> list[tuple[str, Rows, Verdict]]:
    agreement = _usual(pool, "temporal_agreement", dataset, models)
    mass = _usual(pool, "gold_mass", dataset, models, of="temporal", within=1)
    return [
        ("argmax agreement", agreement, _all_above(agreement, AGREES)),
        ("mass within one position of the diagonal", mass, _all_above(mass, HALF)),
    ]


def _masses(pool: Pool, dataset: str, models: Sequence[str]) -> dict[str, Any]:
    """Return where attention and its temporal part lie, beside what decides."""
    evidence: dict[str, Any] = {}
    for of, label in (("temporal", "softmax(muD.muE)"), ("attention", "attention")):
        rows = _usual(pool, "gold_mass", dataset, models, of=of, within=0)
        evidence |= _told(rows, f"{label} on the diagonal")
    return evidence


def temporal_attention(pool: Pool) -> Decision:
    """Decide aitken.temporal-attention."""
    models = ("aed", "ao")
    parts = _temporal_parts(pool, ONE_TO_ONE, models)
    return _decided(pool, ONE_TO_ONE, models, parts, _masses(pool, ONE_TO_ONE, models))


def circle(pool: Pool) -> Decision:
    """Decide aitken.circle, on the paths of encoder and decoder both."""
    parts = []
    for side in ("encoder", "decoder"):
        radius = _usual(pool, "radius_variation", ONE_TO_ONE, ("aed",), side=side)
        turns = _usual(pool, "monotone", ONE_TO_ONE, ("aed",), side=side)
        parts += [
            (f"{side} radius variation", radius, _all_below(radius, 0.25)),
            (f"{side} steps that turn the same way", turns, _all_above(turns, MOST)),
        ]
    aligned = _usual(pool, "aligned_steps", ONE_TO_ONE, ("aed",))
    parts.append(("steps with their cosine largest at s = t", aligned, _all_above(aligned, MOST)))
    beside = _told(_usual(pool, "aligned_steps", ONE_TO_ONE, ("ao",)), "the same, not deciding")
    return _decided(pool, ONE_TO_ONE, ("aed",), parts, beside)


def decoder_temporal(pool: Pool) -> Decision:
    """Decide aitken.decoder-temporal."""
    name = "decoder ‖χ + Δh‖ / ‖μ‖"
    rows = _usual(pool, "input_delta_size", ONE_TO_ONE, ("aed",), side="decoder")
    other = _usual(pool, "input_delta_size", ONE_TO_ONE, ("ao",), side="decoder")
    parts = [(name, rows, _all_below(rows, 1 / 3))]
    return _decided(pool, ONE_TO_ONE, ("aed",), parts, _told(other, name))


def orthogonal(pool: Pool) -> Decision:
    """Decide aitken.orthogonal, on AED's encoder states and their own temporal components."""
    own = _usual(pool, "orthogonality", ONE_TO_ONE, ("aed",), side="encoder")
    parts = [("encoder mean |cosine|", own, _all_below(own, 0.1))]
    beside: dict[str, Any] = {}
    for side in ("encoder", "decoder", "encoder with decoder"):
        rows = _usual(pool, "orthogonality", ONE_TO_ONE, ("aed", "ao"), side=side)
        beside |= _told(rows, f"{side} mean |cosine|")
    note = "the encoder's own pairs decide; those with the other side's temporal components beside"
    return _decided(pool, ONE_TO_ONE, ("aed",), parts, beside, note=note)


def readout_context(pool: Pool) -> Decision:
    """Decide aitken.readout-context: less than one point is lost without the decoder's half."""
    rows = _usual(pool, "accuracy_drop", ONE_TO_ONE, ("aed",))
    parts = [("accuracy lost without the decoder's half", rows, _all_below(rows, 0.01))]
    beside = _told(_usual(pool, "readout_norms", ONE_TO_ONE, ("aed",)), "‖W_c‖ / ‖W_h‖")
    return _decided(pool, ONE_TO_ONE, ("aed",), parts, beside)


def low_dimensional(pool: Pool) -> Decision:
    """Decide aitken.low-dimensional: three axes for temporal components, a simplex for words."""
    models = ("ved", "aed", "ao")
    temporal = _usual(pool, "explained_variance", ONE_TO_ONE, models, of="temporal", axes=3)
    parts = [("variance of temporal components in 3 axes", temporal, _all_above(temporal, MOST))]
    for dataset in (ONE_TO_ONE, FIVE_WORDS):
        rows = _usual(pool, "simplex_error", dataset, ("aed", "ao"))
        parts.append((f"{dataset} largest error of a cosine", rows, _all_below(rows, 0.1)))
    beside = _told(
        _usual(pool, "explained_variance", ONE_TO_ONE, models, of="temporal", axes=2),
        "in 2 axes",
    ) | _told(
        _usual(pool, "explained_variance", FIVE_WORDS, ("aed", "ao"), of="word", axes=3),
        "five words' components in 3 axes",
    )
    lacking = _lacking(pool, FIVE_WORDS, ("aed", "ao"))
    if lacking is not None:
        return lacking
    note = "three words' components span a plane whatever the network, and so are not counted"
    return _decided(pool, ONE_TO_ONE, models, parts, beside, note=note)


def ved_path(pool: Pool) -> Decision:
    """Decide aitken.ved-path, on the encoder's path with the decoder's after it."""
    steps = _usual(pool, "adjacent_steps", ONE_TO_ONE, ("ved",))
    away = _usual(pool, "steps_from_last", ONE_TO_ONE, ("ved",))
    last = all_of(
        [verdict(row.value == 0.0, row.low is not None and row.low > 0) for row in away.values()]
    )
    parts = [
        ("steps whose nearest is an adjacent one", steps, _all_above(steps, MOST)),
        ("steps from the last to the one nearest to the decoder's first", away, last),
    ]
    return _decided(pool, ONE_TO_ONE, ("ved",), parts)


def reversed_targets(pool: Pool) -> Decision:
    """Decide aitken.reversed, at one fixed length; varying lengths are shown beside."""
    models = ("aed", "ao")
    parts = _temporal_parts(pool, REVERSED, models)
    varying = f"{REVERSED}-varying"
    beside = _masses(pool, REVERSED, models)
    beside |= {
        f"{model}, varying lengths: word accuracy": interval_of(row)
        for model, row in _usual(pool, "word_accuracy", varying, models).items()
    }
    beside |= {
        f"aed, length {row.axes['length']}: argmax agreement": interval_of(row)
        for row in pool.select("temporal_agreement", varying, model="aed")
        if "length" in row.axes
    }
    note = (
        "with lengths varying t = S + 1 − s depends on the length, which AO cannot know: its "
        "accuracy there is reported and decides nothing"
    )
    return _decided(pool, REVERSED, models, parts, beside, note=note)


def sorting(pool: Pool) -> Decision:
    """Decide aitken.sorting, on AED's row-centred terms with distinct letters."""
    aed = [row.dataset for row in pool.select("term_share", model="aed")]
    tasks = [name for name in dict.fromkeys(aed) if name.startswith(SORTING)]
    distinct = [name for name in tasks if not name.endswith("-repeated")]
    if not distinct:
        return undecided("needs AED on sorting")
    dataset = distinct[0]
    gap = _usual(pool, "term_gap", dataset, ("aed",), form="centred")
    temporal = _usual(pool, "term_share", dataset, ("aed",), form="centred", term=MU_MU)
    parts = [
        (f"row-centred {SORTING_TERM} less the largest other", gap, _all_above(gap, 0.0)),
        (f"row-centred {MU_MU}", temporal, _all_below(temporal, NEGLIGIBLE)),
    ]
    beside: dict[str, Any] = {}
    for name in tasks:
        for row in pool.select("term_share", name, form="raw"):
            if row.axes["term"] in (SORTING_TERM, MU_MU):
                key = f"{name} {row.axes['model']}: raw share of {row.axes['term']}"
                beside[key] = interval_of(row)
    for row in pool.select("word_accuracy"):
        if row.dataset.startswith(SORTING):
            beside[f"{row.dataset} {row.axes['model']}: word accuracy"] = interval_of(row)
    sizes = "{sorted_shortest} to {sorted_longest} distinct ones of {letters} letters"
    deviation = f"the paper gives no sizes of sorting: {sizes.format(**pool.config())}"
    return _decided(pool, dataset, ("aed",), parts, beside, deviation=deviation)


CLAIMS = {
    "aitken.one-to-one": one_to_one,
    "aitken.temporal-attention": temporal_attention,
    "aitken.circle": circle,
    "aitken.decoder-temporal": decoder_temporal,
    "aitken.orthogonal": orthogonal,
    "aitken.delta-small": delta_small,
    "aitken.dictionary": dictionary,
    "aitken.readout-context": readout_context,
    "aitken.low-dimensional": low_dimensional,
    "aitken.ved-path": ved_path,
    "aitken.reversed": reversed_targets,
    "aitken.sorting": sorting,
    "aitken.cells": cells,
}
