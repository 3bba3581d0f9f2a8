"""Sentences about a user's corpus from sunlu's recipes: do telling words draw attention?"""

from __future__ import annotations

from attnscope.own_text.about import (
    REPORT,
    About,
    CorpusNumbers,
    accuracy_sentence,
    accuracy_warnings,
    ends,
    in_percent,
    learned,
    shown,
)
from attnscope.runs.result import Measurement

_NOTHING = "So nothing follows from which words draw its attention."
_EVEN = 3.0  # points that even attention may cost, as the paper's claim has it


def about_scales(numbers: CorpusNumbers) -> About:
    """Return the sentences about Table 2, of the first model at its best scaling factor."""
    rows = numbers.all("accuracy")
    drops = {row.axes["lambda"]: row for row in numbers.all("drop", model=_first(rows))}
    if not rows or not drops:
        return About(numbers.dataset)
    best = float(next(iter(drops.values())).found["best"])
    cell = {"model": _first(rows), "lambda": best}
    accuracy = numbers.one("accuracy", **cell)
    if accuracy is None:
        return About(numbers.dataset)
    small, large = drops[min(drops)], drops[max(drops)]
    entropy = numbers.one("entropy", model=_first(rows), **{"lambda": max(drops)})
    even = "" if entropy is None else f" (entropy {entropy.number:.3f} of 1)"
    kept = large.number <= _EVEN
    return About(
        numbers.dataset,
        (*numbers.warnings, *accuracy_warnings(numbers, accuracy)),
        (
            f"With {_first(rows)} and its best scaling factor, λ = {best:g}: "
            + accuracy_sentence(numbers, accuracy)[:1].lower()
            + accuracy_sentence(numbers, accuracy)[1:],
            f"Attention that is all but even{even}, at λ = {max(drops):g}, costs "
            f"{shown(large.number)} points{ends(large)}; attention on few words, at "
            f"λ = {min(drops):g}, costs {shown(small.number)} points{ends(small)}.",
        ),
        (
            "Attention is not needed for the answers here: even weights do as well, as in the "
            "paper."
            if kept
            else "Attention is needed for the answers here: even weights do worse, unlike in the "
            "paper.",
        ),
        ("`attnscope run sunlu/scores` shows which words draw attention.", REPORT),
    )


def _first(rows: list[Measurement]) -> str:
    return str(rows[0].axes["model"]) if rows else ""


def about_scores(numbers: CorpusNumbers) -> About:
    """Return the sentences about the scores of words, of the plain model at the first λ."""
    rows = numbers.all("AUC(attention)", model="DP", penalty=0.0)
    accuracy = numbers.one("accuracy", penalty=0.0)
    if not rows or accuracy is None:
        return About(numbers.dataset)
    scale = min(float(row.axes["lambda"]) for row in rows)
    own = [row for row in rows if row.axes["lambda"] == scale]
    return _about_groups(numbers, own, accuracy, "attention score")


def about_weights(numbers: CorpusNumbers) -> About:
    """Return the sentences about the mean attention weights of words."""
    rows = numbers.all("mean AUC(weight)")
    return _about_groups(numbers, rows, None, "mean attention weight")


def _about_groups(
    numbers: CorpusNumbers, rows: list[Measurement], accuracy: Measurement | None, score: str
) -> About:
    if not rows:
        return About(numbers.dataset)
    found = [] if accuracy is None else [accuracy_sentence(numbers, accuracy)]
    warned = [] if accuracy is None else accuracy_warnings(numbers, accuracy)
    shares = [in_percent(row) for row in rows[:6]]
    told = [f"{row.axes['group']} {shown(row.number)} %{ends(row)}" for row in shares]
    more = f", and {len(rows) - 6} more" if len(rows) > 6 else ""
    found.append(
        f"A word of a label has a higher {score} than a neutral word in this share of pairs "
        f"(chance 50): {', '.join(told)}{more}."
    )
    above = sum((row.number if row.low is None else row.low) > 0.5 for row in rows)
    word = "Words" if above == len(rows) else f"In {above} of {len(rows)} labels, words"
    meaning = f"{word} that tell the label draw more attention than others"
    like = ", as in the paper." if above == len(rows) else "; in the paper all of them do."
    return About(
        numbers.dataset,
        (*numbers.warnings, *warned),
        tuple(found),
        (meaning + like if accuracy is None or learned(numbers, accuracy) else _NOTHING,),
        ("The Trajectories view of `attnscope report` shows each word with both scores.",),
    )


RULES = {
    "sunlu/table2": about_scales,
    "sunlu/scores": about_scores,
    "sunlu/weights": about_weights,
}
