"""Sentences about a user's parallel text from aitken's recipes: is attention time, or words?"""

from __future__ import annotations

from attnscope.own_text.about import REPORT, About, CorpusNumbers, ends, in_percent, shown
from attnscope.runs.result import Measurement

_HALF = 50.0


def about_translation(numbers: CorpusNumbers) -> About:
    """Return the sentences about Figures 4 and 5, of the network with recurrence."""
    accuracy = _percentage(numbers, "token_accuracy", reads="right words")
    share = _percentage(numbers, "largest_share", form="raw")
    alike = _percentage(numbers, "attention_similarity")
    time = _percentage(numbers, "variance_drop")
    if accuracy is None or share is None:
        return About(numbers.dataset)
    found = [
        f"The translator with recurrence finds {shown(accuracy.number)} % of the next words "
        f"when it reads the right ones{ends(accuracy)}.",
        "Of the nine parts of an attention logit (time step, word and rest of both sides), the "
        f"largest has {shown(share.number)} % of it{ends(share)}.",
    ]
    if alike is not None:
        found.append(
            f"A sentence's attention is to {shown(alike.number)} % that of the mean "
            f"sentence{ends(alike)}."
        )
    if time is not None:
        found.append(
            f"The time step accounts for {shown(time.number)} % of how a word's state varies"
            f"{ends(time)}."
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


def _percentage(numbers: CorpusNumbers, name: str, **axes: str) -> Measurement | None:
    row = numbers.one(name, model="aed", **axes)
    return None if row is None else in_percent(row)


RULES = {"aitken/fig4": about_translation, "aitken/fig5": about_translation}
