"""The grammar of the film reviews.

Capitals are symbols to rewrite, `!` hands the opposite polarity to what follows, and a repeated
alternative is a more likely one. All nouns are singular and nothing after `a` begins with a vowel,
so every sentence agrees.
"""

from __future__ import annotations

from random import Random

from attnscope.data.randomness import pick


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_POLAR = {  # by label: negative words, positive words
    "QUALITY": (
        _words(
            "awful bad boring clumsy dreadful dull empty flat lazy messy noisy painful pointless "
            "shallow silly stale tedious terrible ugly weak"
        ),
        _words(
            "beautiful brilliant charming clever delightful elegant fresh funny good graceful "
            "gripping honest lovely moving splendid superb tender vivid witty wonderful"
        ),
    ),
    "FEEL": (
        _words("detest dislike hate loathe mock resent"),
        _words("admire adore enjoy love praise recommend"),
    ),
}
_THINGS = _words(
    "acting camera cast comedy dialogue drama ending film hero humour mystery opening pace plot "
    "romance script singing soundtrack story villain"
)
_RULES: dict[str, tuple[str, ...]] = {
    "REVIEW": ("LEAD CLAUSE .",) * 9
    + ("LEAD CLAUSE and CLAUSE .",) * 6
    + ("FACT , and CLAUSE .", "CLAUSE , and FACT .") * 3
    + (
        "although !CLAUSE , CLAUSE .",
        "CLAUSE , although !CLAUSE .",
        "despite the !QUALITY THING , LEAD CLAUSE .",
    ),
    "CLAUSE": ("SUBJECT is VERDICT", "SUBJECT is VERDICT", "PEOPLE FEEL OBJECT") * 8
    + ("SUBJECT is not !QUALITY", "PEOPLE do not !FEEL OBJECT"),
    "VERDICT": ("QUALITY", "DEGREE QUALITY", "DEGREE QUALITY", "QUALITY and QUALITY"),
    "SUBJECT": ("the THING", "the THING", "this THING", "the QUALITY THING", "the THING PLACE"),
    "OBJECT": ("the THING", "this QUALITY THING", "the THING PLACE"),
    "FACT": ("the film lasts for two hours", "we meet a KIND PERSON in a NEAR town"),
    "LEAD": ("",) * 6 + ("for the most part ,", "to be fair ,", "once again ,", "after all ,"),
    "PLACE": ("in the second half", "on a large screen", "of this KIND film", "at the cinema"),
    "PEOPLE": ("i", "we", "you", "they", "most critics", "my friends", "many parents"),
    "DEGREE": _words("very really truly quite rather so"),
    "KIND": _words("danish french korean local polish russian swedish turkish"),
    "NEAR": _words("busy distant nearby northern quiet small"),
    "PERSON": _words("doctor driver farmer painter soldier teacher waiter"),
    "THING": _THINGS,
}
_NEVER_TWICE = frozenset(_THINGS).union(*_POLAR["QUALITY"], *_POLAR["FEEL"])


def draw_review(rng: Random) -> tuple[tuple[str, ...], int]:
    """Draw the tokens of a review and its label."""
    label = pick(rng, (0, 1))
    while True:
        tokens = tuple(_rewrite(rng, "REVIEW", label))
        content = [token for token in tokens if token in _NEVER_TWICE]
        if len(set(content)) == len(content):  # no "dull and dull"
            return tokens, label


def _rewrite(rng: Random, symbol: str, label: int) -> list[str]:
    if symbol.startswith("!"):
        return _rewrite(rng, symbol[1:], 1 - label)
    if symbol in _POLAR:
        return [pick(rng, _POLAR[symbol][label])]
    if symbol not in _RULES:
        return [symbol]
    parts = pick(rng, _RULES[symbol]).split()
    return [word for part in parts for word in _rewrite(rng, part, label)]
