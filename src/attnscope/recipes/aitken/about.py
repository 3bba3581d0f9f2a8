"""Sentences about a user's parallel text from aitken's recipes: is attention time, or words?"""

from __future__ import annotations

from attnscope.recipes.kit.about import REPORT, About, CorpusNumbers, ends, shown
from attnscope.runs.result import Measurement

_HALF = 0.5


def about_translation(numbers: CorpusNumbers) -> About:
    """Return the sentences about Figures 4 and 5, of the network with recurrence."""
    accuracy = numbers.one("token_accuracy", model="aed", reads="right words")
    share = numbers.one("largest_share", model="aed", form="raw")
    alike = numbers.one("attention_similarity", model="aed")
    if accuracy is None or share is None:
        return About(numbers.dataset)
    found = [
        f"The translator with recurrence finds {shown(100 * accuracy.number)} % of the next words "
        f"when it reads the right ones{_percent(accuracy)}.",
        "Of the nine parts of an attention logit (time step, word and rest of both sides), the "
        f"largest has {shown(100 * share.number)} % of it{_percent(share)}.",
    ]
    if alike is not None:
        found.append(
            f"A sentence's attention is to {shown(100 * alike.number)} % that of the mean "
            f"sentence{_percent(alike)}."
        )
    time = numbers.one("variance_drop", model="aed")
    if time is not None:
        found.append(
            f"The time step accounts for {shown(100 * time.number)} % of how a word's state varies"
            f"{_percent(time)}."
        )
    split = share.number < _HALF
    return About(
        numbers.dataset,
        (),
        tuple(found),
        (
            "No part decides where the translator looks: neither time nor words alone, as in the "
            "paper."
            if split
            else "One part decides where the translator looks, unlike in the paper's translation.",
        ),
        ("The Trajectories view of `attnscope report` shows the paths of the time steps.", REPORT),
    )


def _percent(row: Measurement) -> str:
    if row.low is None or row.high is None:
        return ""
    return ends(row.model_copy(update={"low": 100 * row.low, "high": 100 * row.high}))
