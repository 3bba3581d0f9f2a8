"""The claims that several of aitken's recipes decide together, each predicate written once.

They read these measurements, intervals over networks, whoever makes them; axes are ``model`` (ved,
aed, ao), ``cell`` (gru, lstm, ugrnn, tanh) and ``attention`` (dot, learned; none for ved):

- ``delta_share``, also ``side`` (encoder decides, decoder beside): ‖Δh‖² of ‖h − μ‖²;
- ``delta_share_difference`` on eSCAN: AED's less AO's;
- ``dictionary``: share of output words whose readout aligns most with their translation's χ;
- ``silent_readouts`` on eSCAN: how many readouts have their maximum at 'and' or 'twice';
- ``temporal_agreement``: how often μ^D·μ^E has its maximum where the full alignment has it;
- ``term_share`` and ``largest_gap`` on eSCAN, also ``form``: `largest_term` reads them;
- ``attention_similarity`` and ``share_similarity_spearman`` for `average_attention`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attnscope.analysis.intervals import Interval
from attnscope.claims.decide import Verdict, above, all_of, below, verdict
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.recipes.aitken.fig4_units import DEVIATION, STAND_IN
from attnscope.runs.result import Measurement

# The networks of all figures.
USUAL = ("ved gru none", "aed gru dot", "ao gru dot")
ONE_TO_ONE = "one-to-one-3"
ESCAN = "escan"
TRANSLATION = "en-fr"  # ends the name of an English-French corpus
NO_TRANSLATION = "the part about English-French needs the networks of aitken/fig4"

MU_MU = "muD.muE"
THREE = "muD.muE+muD.chiE+muD.deltahE"
# Fixed beforehand: thresholds of the catalogue.
NEGLIGIBLE, AGREES, THREE_ENOUGH, SEEDS, CELL_SEEDS = 0.1, 0.95, 0.8, 5, 3


def translation_rows(pool: Pool, name: str) -> list[Measurement]:
    """Return the measurements of a name on an English-French corpus."""
    return [row for row in pool.select(name) if row.dataset.endswith(TRANSLATION)]


def deviation_of(rows: Iterable[Measurement]) -> str:
    """Return how the corpus differs from the paper's, if it stands in for it."""
    return DEVIATION if any(row.dataset == STAND_IN for row in rows) else ""


def kind_of(row: Measurement) -> str:
    """Return the network's kind in words, as in ``aed lstm dot``."""
    return " ".join(str(row.axes[axis]) for axis in ("model", "cell", "attention"))


def _usual(rows: Iterable[Measurement]) -> dict[str, Measurement]:
    """Return the rows of the figures' networks by architecture."""
    return {str(row.axes["model"]): row for row in rows if kind_of(row) in USUAL}


def _too_few(rows: Iterable[Measurement], needed: int) -> list[str]:
    return [f"{row.dataset} {kind_of(row)}" for row in rows if len(row.seeds) < needed]


def _noted(verdicts: Sequence[Verdict], missing: Sequence[str]) -> tuple[Verdict, str]:
    """Decide all parts; what is missing leaves a claim undecided that has not failed."""
    parts = [*verdicts, *(Verdict.UNDECIDED for _ in missing)]
    return all_of(parts), "; ".join(missing)


def delta_small(pool: Pool) -> Decision:
    """Decide aitken.delta-small, on encoder states."""
    simple = _usual(pool.select("delta_share", ONE_TO_ONE, side="encoder"))
    escan = _usual(pool.select("delta_share", ESCAN, side="encoder"))
    gaps = pool.select("delta_share_difference", ESCAN)
    evidence = {
        f"{row.dataset} {row.axes['model']}": interval_of(row)
        for row in (*simple.values(), *escan.values())
    } | {f"{row.dataset}, AED less AO": interval_of(row) for row in gaps}
    few = _too_few(simple.values(), pool.needed(SEEDS))
    if few:
        return undecided(f"needs {SEEDS} seeds of {', '.join(few)}", evidence)
    parts, missing = [], []
    if {"ved", "aed", "ao"} <= set(simple):
        parts += [below(interval_of(simple[model]), NEGLIGIBLE) for model in ("aed", "ao")]
        ved, aed = interval_of(simple["ved"]), interval_of(simple["aed"])
        parts.append(verdict(ved.low >= 2 * aed.high, ved.high < 2 * aed.low))
    else:
        missing.append("one-to-one needs VED, AED and AO of aitken/fig2")
    parts += [above(interval_of(row)) for row in gaps]
    if not gaps:
        missing.append("eSCAN needs accepted runs of AED and AO of aitken/fig3")
    result, note = _noted(parts, missing)
    return Decision(result, evidence, note=note)


def dictionary(pool: Pool) -> Decision:
    """Decide aitken.dictionary: every word of every network, silent words for none."""
    simple = _usual(pool.select("dictionary", ONE_TO_ONE))
    escan = _usual(pool.select("dictionary", ESCAN))
    silent = _usual(pool.select("silent_readouts", ESCAN))
    french = translation_rows(pool, "dictionary")
    rows = (*simple.values(), *escan.values(), *french)
    evidence = {f"{row.dataset} {row.axes['model']}": interval_of(row) for row in rows} | {
        f"escan {model}, maximal at 'and' or 'twice'": interval_of(row)
        for model, row in silent.items()
    }
    missing = [
        f"{name} needs AED and AO of {recipe}"
        for name, recipe, found in (
            ("one-to-one", "aitken/fig2", simple),
            ("eSCAN", "aitken/fig5", escan),
        )
        if not {"aed", "ao"} <= set(found)
    ]
    if not french:
        missing.append(NO_TRANSLATION)
    attending = [row for row in rows if row.axes["model"] != "ved"]
    parts = [_exactly(row, 1.0) for row in attending] + [
        _exactly(row, 0.0) for row in silent.values()
    ]
    result, note = _noted(parts, missing)
    return Decision(result, evidence, deviation_of(french), note)


def _exactly(row: Measurement, value: float) -> Verdict:
    """Decide that all networks have a value: their mean then is that value itself."""
    return verdict(row.value == value, row.value is not None)


def largest_term(pool: Pool, kind: str) -> tuple[Verdict, dict[str, Interval]]:
    """Decide on eSCAN that μ^D·μ^E is the largest term and three terms are more than .8."""
    gap, three = (
        [row for row in pool.select(name, ESCAN, form="raw", **axes) if kind_of(row) == kind]
        for name, axes in (("largest_gap", {}), ("term_share", {"term": THREE}))
    )
    evidence = {
        f"{kind}: {label}": interval_of(row)
        for label, rows in (("muD.muE less the largest other", gap), ("three terms", three))
        for row in rows
    }
    if not gap or not three:
        return Verdict.UNDECIDED, evidence
    parts = [above(interval_of(gap[0])), above(interval_of(three[0]), THREE_ENOUGH)]
    return all_of(parts), evidence


# What must be there for the claim to be decided: of cells, of attention, and without gates.
CELL_KINDS = ("aed lstm dot", "aed ugrnn dot", "aed gru learned", "ao tanh dot")


def cells(pool: Pool) -> Decision:
    """Decide aitken.cells: each kind is as the usual one on one-to-one, AED also on eSCAN."""
    rows = {
        name: {kind_of(row): row for row in pool.select(name, ONE_TO_ONE, **axes)}
        for name, axes in (
            ("temporal_agreement", {}),
            ("delta_share", {"side": "encoder"}),
            ("dictionary", {}),
        )
    }
    others = set(rows["temporal_agreement"]) - set(USUAL)
    parts: list[Verdict] = []
    evidence: dict[str, Interval] = {}
    missing = []
    for kind in sorted(others | set(CELL_KINDS)):
        found = {name: table[kind] for name, table in rows.items() if kind in table}
        evidence |= {f"one-to-one {kind}: {name}": interval_of(row) for name, row in found.items()}
        if len(found) < len(rows) or _too_few(found.values(), pool.needed(CELL_SEEDS)):
            missing.append(f"one-to-one needs {CELL_SEEDS} seeds of {kind} of aitken/fig2")
            continue
        parts += [
            above(interval_of(found["temporal_agreement"]), AGREES),
            below(interval_of(found["delta_share"]), NEGLIGIBLE),
            _exactly(found["dictionary"], 1.0),
        ]
    for kind in (kind for kind in CELL_KINDS if kind.startswith("aed")):
        largest, shares = largest_term(pool, kind)
        evidence |= {f"escan {name}": values for name, values in shares.items()}
        gaps = [
            row for row in pool.select("largest_gap", ESCAN, form="raw") if kind_of(row) == kind
        ]
        if not gaps or _too_few(gaps, pool.needed(CELL_SEEDS)):
            missing.append(f"eSCAN needs {CELL_SEEDS} accepted runs of {kind} of aitken/fig5")
        parts.append(largest)
    result, note = _noted(parts, missing)
    return Decision(result, evidence, note=note)


def average_attention(pool: Pool) -> Decision:
    """Decide aitken.average-attention: the Spearman coefficient over tasks and architectures."""
    similar = pool.select("attention_similarity")
    shares = pool.select("term_share", form="raw", term=MU_MU)
    evidence: dict[str, object] = {
        f"{row.dataset} {kind_of(row)}": {
            "similarity": interval_of(row),
            "share of muD.muE": [
                interval_of(share)
                for share in shares
                if (share.dataset, kind_of(share)) == (row.dataset, kind_of(row))
            ],
        }
        for row in similar
    }
    rows = {row.axes["form"]: row for row in pool.select("share_similarity_spearman")}
    evidence |= {f"Spearman, {form} shares": interval_of(row) for form, row in rows.items()}
    if "raw" not in rows:
        return undecided("needs solved runs of at least three tasks", evidence)
    missing = [] if translation_rows(pool, "attention_similarity") else [NO_TRANSLATION]
    result, note = _noted([above(interval_of(rows["raw"]))], missing)
    return Decision(result, evidence, deviation_of(similar), note)
