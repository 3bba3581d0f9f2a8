"""The claim about optimal attention (snell A.1), decided."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from attnscope.analysis.intervals import Interval
from attnscope.claims.decide import Verdict, about_equal, all_of, much_greater, verdict
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.data.known import definitions

MAIN = "multi30k-de-en"  # the corpus of A.1, in the direction of the authors' code
EXAMPLE = "worked example"
BLEU_MARGIN = 1.5


def optimal(pool: Pool) -> Decision:
    """Decide snell.optimal-attention: the worked example, certificate, agreement, and BLEU."""
    example, shown_example = _example_verdict(pool)
    evidence: dict[str, Any] = {EXAMPLE: shown_example}
    datasets = pool.datasets("excess(alpha_opt,beta)")
    deciding = [name for name in datasets if name == MAIN or pool.needed(2) == 1]
    parts = [example]
    for name in datasets:
        verdicts, evidence[name] = _corpus_verdicts(pool, name)
        parts += verdicts if name in deciding else []
    if not deciding:
        return undecided(f"needs a run on {MAIN}, has {', '.join(datasets) or 'none'}", evidence)
    known = definitions()
    deviation = "; ".join(
        f"{name}: {known[name].deviation.removesuffix('.')}" for name in deciding if name in known
    )
    note = "BLEU is that of one run each: its difference is decided as a number without interval"
    return Decision(all_of(parts), evidence, deviation, note)


def _example_verdict(pool: Pool) -> tuple[Verdict, Any]:
    beta, optimum = (
        [row.value for row in pool.select(name, EXAMPLE)] for name in ("beta", "alpha_opt")
    )
    printed = [row.published for row in pool.select("alpha_opt", EXAMPLE)]
    gaps = [gap for gap in pool.values("largest_gap", EXAMPLE) if gap is not None]
    if len(gaps) != 1 or None in (*beta, *optimum, *printed):
        return Verdict.UNDECIDED, "not measured"
    certified = gaps[0] <= pool.config()["tolerance"]
    as_printed = np.allclose(cast(Any, optimum), cast(Any, printed), atol=1e-3)
    largest = bool(np.argmax(cast(Any, beta)) == 0)
    shown = {"alpha_opt": optimum, "beta": beta, "gap": gaps[0]}
    return verdict(certified and as_printed and largest, certified), shown


def _corpus_verdicts(pool: Pool, dataset: str) -> tuple[list[Verdict], Any]:
    def one(name: str) -> Interval:
        return interval_of(pool.select(name, dataset, way="text")[-1])

    unsolved, gap = one("unconverged").value, one("largest_gap").value
    difference = one("bleu_difference").value
    bleu = {str(row.axes["model"]): row.value for row in pool.select("bleu", dataset, way="text")}
    agreement = one("A(alpha_opt,beta)")
    parts = [
        # Without a certificate nothing is known of α^opt: this fails no claim.
        verdict(unsolved == 0, False),
        much_greater(one("excess(alpha_opt,beta)"), one("ratio(alpha_opt,beta)")),
        about_equal(Interval(difference, difference, difference, 1), BLEU_MARGIN),
    ]
    return parts, {
        "A(alpha_opt,beta)": agreement,
        "A_random": one("A_random").value,
        "largest gap": gap,
        "words without certificate": unsolved,
        "BLEU": bleu,
    }


CLAIMS = {"snell.optimal-attention": optimal}
