"""The audit's claims: one per question, with thresholds fixed before any audit was run.

They are about one model on one data set, never about a paper, and read off stored measurements
alone. ``main`` is the site that is judged: the last one that the output reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnscope.claims.decide import Verdict, above, below
from attnscope.claims.pool import Decision, Pool
from attnscope.claims.table import Cell, Cells, Check, Claim, Finding, Needs, Part
from attnscope.runs.result import Result

LEAST = 30
MAIN = {"role": "main", "head": "all"}


def _enough(pool: Pool, cells: Sequence[Cell]) -> str:
    count = int(pool.config().get("examples", 0))
    return "" if count >= LEAST else f"needs {LEAST} examples; there are {count}"


def _claim(statement: str, *checks: Check) -> Claim:
    return Claim(Cells(), checks, Needs(also=_enough), statement=statement)


def _replaceable(cell: Cell) -> Finding:
    """Decide whether other attention was found; that there is none is never shown."""
    row = cell.one("replaceable")
    found = row.low is not None and row.low > 0.5
    return Finding(Verdict.HOLDS if found else Verdict.UNDECIDED, {"main site": row})


def _finds(cell: Cell) -> Finding:
    """Decide whether attention finds what leave-one-out finds: above .8 holds, below .5 fails."""
    row = cell.one("found_share", score="attention")
    held = row.low is not None and row.low > 0.8
    failed = row.high is not None and row.high < 0.5
    verdict = Verdict.HOLDS if held else Verdict.FAILS if failed else Verdict.UNDECIDED
    others = {str(each.axes["score"]): each for each in cell.select("found_share")}
    return Finding(verdict, others)


CLAIMS: dict[str, Claim] = {
    "audit.uniform": _claim(
        "Attention is near uniform.",
        Part("main site", "entropy", above, 0.9, MAIN),
        Part("", "entropy", given={"head": "all"}, each="site"),
    ),
    "audit.idle": _claim(
        "The output depends less on attention than on one random word.",
        Part("main site permuted, minus a word", "dependence", below, 0.0, MAIN),
        Part("a word taken out", "changed", given={"rule": "word"}),
        Part("permuted", "changed", given={"rule": "permuted", "head": "all"}, each="site"),
        Part("uniform", "changed", given={"rule": "uniform", "head": "all"}, each="site"),
    ),
    "audit.replaceable": _claim(
        "Very different attention gives the same output.",
        _replaceable,
        Part("divergence", "adversary_divergence"),
    ),
    "audit.finds": _claim("Attention points at the words that decide.", _finds),
    "audit.agrees": _claim(
        "Attention agrees with the lexical probe more than chance does.",
        Part(
            "lexical probe, minus chance",
            "agreement_above_chance",
            above,
            0.0,
            {"score": "lexical_probe"},
        ),
        Part("minus chance:", "agreement_above_chance", each="score"),
        Part("top word is IBM Model 1's:", "agreement_with_ibm1", each="score"),
    ),
    "audit.gold": _claim(
        "Attention points at what people marked more than chance does.",
        Part("attention, minus chance", "gold_above_chance", above, 0.0, {"score": "attention"}),
        Part("minus chance:", "gold_above_chance", each="score"),
        Part("best head", "gold_best_head"),
    ),
    "audit.temporal": _claim(
        "Attention is about positions more than about words.",
        Part("share of positions", "positional_share", above, 0.5),
    ),
    "audit.stable": _claim(
        "Attention is as stable from model to model as the lexical probe.",
        Part("attention minus probe", "stability_difference", above, 0.0),
        Part("agreement between models:", "stability", each="score"),
    ),
}
# The measurement that decides each claim.
FIGURES: dict[str, tuple[str, dict[str, Any]]] = {
    "audit.uniform": ("entropy", MAIN),
    "audit.idle": ("dependence", MAIN),
    "audit.replaceable": ("replaceable", {}),
    "audit.finds": ("found_share", {"score": "attention"}),
    "audit.agrees": ("agreement_above_chance", {"score": "lexical_probe"}),
    "audit.gold": ("gold_above_chance", {"score": "attention"}),
    "audit.temporal": ("positional_share", {}),
    "audit.stable": ("stability_difference", {}),
}
QUESTIONS = tuple(name.removeprefix("audit.") for name in CLAIMS)


def decide(result: Result) -> dict[str, Decision]:
    """Decide every claim that the result has measurements for."""
    pool = Pool((result,))
    return {name: claim(pool) for name, claim in CLAIMS.items() if name[6:] in _asked(result)}


def _asked(result: Result) -> Sequence[str]:
    return [str(name) for name in result.config.get("questions", QUESTIONS)]


def sentence(result: Result, decisions: dict[str, Decision]) -> str:
    """Return the answer in one sentence, with the best alternative."""
    idle, finds = (decisions.get(f"audit.{name}") for name in ("idle", "finds"))
    site = result.config.get("site", "its last site")
    if int(result.config.get("examples", 0)) < LEAST:
        return f"Undecided: {result.config.get('examples', 0)} examples are fewer than {LEAST}."
    if idle and finds and idle.verdict is Verdict.FAILS and finds.verdict is Verdict.HOLDS:
        return f"Trust the attention at {site}: the output depends on it and it finds what decides."
    reasons = []
    if idle and idle.verdict is Verdict.HOLDS:
        reasons.append("the output depends on it less than on one random word")
    if finds and finds.verdict is Verdict.FAILS:
        reasons.append("it does not find the words that decide")
    if not reasons and not (idle and finds):
        return f"Undecided: the answer takes both questions, idle and finds.{_alternative(result)}"
    start = f"Do not trust the attention at {site}: " if reasons else "Undecided: "
    middle = " and ".join(reasons) or f"the attention at {site} is neither clearly right nor wrong"
    return f"{start}{middle}.{_alternative(result)}"


def _alternative(result: Result) -> str:
    """Return the score that finds most, leave-one-out and chance aside."""
    rows = [r for r in result.select("found_share") if r.axes["score"] not in _YARDSTICKS]
    rows = [row for row in rows if row.value is not None]
    if not rows:
        return ""
    best = max(rows, key=lambda row: row.number)
    low, high = (100 * (end or 0) for end in (best.low, best.high))
    name = str(best.axes["score"]).replace("_", " ")
    verb = "Read" if name != "attention" else "The best score is still"
    instead = " instead" if name != "attention" else ""
    return (
        f" {verb} the {name}{instead}: it finds {100 * best.number:.0f} % [{low:.0f}, {high:.0f}] "
        "of what leave-one-out finds."
    )


_YARDSTICKS = ("leave_one_out", "random")
