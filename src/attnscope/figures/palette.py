"""The colours of the project, each with one meaning in every figure.

Built on the palette of Okabe and Ito [1]_, which has eight colours; the further ones were searched
for so that every pair stays apart in normal vision and in simulated protanopia and deuteranopia.

References
----------
.. [1] M. Okabe and K. Ito, "Color Universal Design (CUD)", 2002 (revised 2008).
"""

import colorsys
from collections.abc import Sequence
from typing import Final

NEUTRAL: Final = "#5F5F63"
"""Grey for what carries no meaning of its own: guides, averages, published marks."""

SCORES: Final[dict[str, str]] = {
    "attention": "#201681",  # α
    "lexical_probe": "#9B118B",  # β
    "uniform_probe": "#6B1A28",  # β^uf, the probe of a model trained under uniform attention
    "proxy": "#CC79A7",  # β^px
    "saliency": "#56B4E9",  # Δ
    "ibm_model1": "#603801",
    "logistic": "#8FAF62",
    "gold": "#E69F00",
    "optimal_attention": "#0C0CFC",  # α*
    "temporal_attention": "#009CFC",  # attention of temporal components alone
    "value_norm": "#0066CC",
    "rollout": "#0011BB",
    "leave_one_out": "#FF8899",
    "alignment_term": "#309024",  # the nine parts of a sum, which their labels distinguish
}
"""Colour of each score, by the score's name."""

AGAINST: Final = "#DC3A12"
"""Negative values in a map of any score: a word that speaks against the output."""

ON_DARK: Final[dict[str, str]] = {
    "attention": "#7D72E7",
    "lexical_probe": "#D20AAE",
    "uniform_probe": "#D75B71",
    "proxy": "#CC79A7",
    "saliency": "#6FBEE9",
    "ibm_model1": "#EEC863",
    "logistic": "#A7C376",
    "gold": "#E69F00",
    "optimal_attention": "#5C5FF8",
    "temporal_attention": "#70A6F5",
    "value_norm": "#00FFFF",
    "rollout": "#33FFCC",
    "leave_one_out": "#FFFF00",
    "alignment_term": "#4CA33E",
    "against": "#ED4820",
}
"""The same on a dark page, where most are lighter: searched for near their own hues, and apart."""

ROLES: Final[dict[str, str]] = {
    # Vermillion, moved towards the red of the papers' figures.
    "hard": AGAINST,  # the hard distribution, bad heads, the permuted task
    "control": "#0072B2",  # the control distribution, one good head, the plain task
    "mixed": "#009E73",  # random heads
    "neutral": NEUTRAL,
}
"""Colour of each part that a group plays in a comparison."""

POSITIONS: Final[dict[str, str]] = {
    "keyword": SCORES["gold"],  # the position that holds the information: gold, as in alignment
    "next": "#5A5DF8",
    "mean": NEUTRAL,
    "last": "#000000",
}
"""Colour of each input position that snell's figure 7 follows."""

SIDES: Final[dict[str, str]] = {
    "encoder": "#D55E00",  # orange and purple, as in the paper
    "decoder": "#4B1D73",
}
"""Colour of each side of aitken's networks."""

WORDS: Final[dict[str, str]] = {
    "run": ROLES["control"],
    "walk": ROLES["mixed"],
    "jump": "#6B1A28",
    "left": POSITIONS["next"],
    "and": "#8FAF62",
    "twice": "#56B4E9",
    "<eos>": NEUTRAL,
    "<.>": "#000000",
}
"""Colour of each word of eSCAN; its translation (`TRANSLATED`) has the same.

Figures of aitken show no scores and no roles, whose colours these are again: nine more would not
stay apart from the others. They are apart from each other and from the two sides.
"""

TRANSLATED: Final[dict[str, str]] = {
    "RUN": "run",
    "WALK": "walk",
    "JUMP": "jump",
    "LTURN": "left",
    "<eos>": "<eos>",
}
"""Output words of eSCAN and the input words that they translate."""

GROUPS: Final[dict[str, str]] = {
    "positive": ROLES["control"],
    "negative": ROLES["hard"],
    "neutral": NEUTRAL,
}
"""Colour of each group of word types by polarity."""

FLOW_TERMS: Final[dict[str, str]] = {
    "B": ROLES["control"],
    "C": ROLES["mixed"],
    "E": ROLES["hard"],
    "F": SCORES["gold"],
}
"""Colour of each term of sunlu's gradient flow that figures follow; they show no roles."""

CLASSIFIERS: Final[dict[str, str]] = {
    "base": ROLES["hard"],  # red, as in the paper
    "concat": SCORES["gold"],
    "residual": NEUTRAL,
    "tying": ROLES["mixed"],
    "mlm": ROLES["control"],
    "instance": POSITIONS["next"],
}
"""Colour of each of tutek's models; figures of these show no roles."""

ARCHITECTURES: Final[dict[str, str]] = {"AED": ROLES["control"], "AO": ROLES["hard"]}
"""Colour of each of aitken's architectures, where both are in one panel."""

SEQUENTIAL: Final[tuple[str, ...]] = ("#FFFFFF", "#CBCCEA", "#8F90CF", "#524DA9", "#201681")
"""Heat maps: from nothing (paper white) to most (the colour of attention)."""


def score_colours(name: str) -> tuple[str, str]:
    """Return a score's colour on white and on a dark page; grey for a score of somebody else's.

    Parameters
    ----------
    name : str
        As stored: ``attention``, ``term_temporal_word``.
    """
    family = "alignment_term" if name.startswith("term_") else name
    return SCORES.get(family, NEUTRAL), ON_DARK.get(family, "#A5A5B1")


def group_colours(groups: Sequence[str]) -> dict[str, str]:
    """Return a colour for each group of words, neutral ones first, which others are drawn over.

    Parameters
    ----------
    groups : sequence of str
        ``positive`` and ``negative``, or the labels of a corpus of more than two.
    """
    order = sorted(groups, key=lambda name: name != "neutral")
    own = [name for name in order if name not in GROUPS]
    return {name: GROUPS.get(name) or _label_colour(own.index(name)) for name in order}


_LABELS = (
    *(ROLES["control"], ROLES["hard"], SCORES["gold"], ROLES["mixed"]),
    *("#CC79A7", "#56B4E9", "#6B1A28", "#8FAF62", "#5A5DF8", "#8A5A00"),
)


def _label_colour(place: int) -> str:
    """Return a colour that is never a neutral's grey; beyond ten labels hues around the circle."""
    if place < len(_LABELS):
        return _LABELS[place]
    # The golden angle keeps neighbours apart however many there are.
    hue, light = (0.381966 * place) % 1, (0.35, 0.5)[place % 2]
    channels = colorsys.hls_to_rgb(hue, light, 0.65)
    return "#" + "".join(f"{round(255 * channel):02X}" for channel in channels)


def luminance(colour: str) -> float:
    """Relative luminance of an sRGB colour, from 0 (black) to 1 (white).

    Parameters
    ----------
    colour : str
        ``#RRGGBB``.
    """
    red, green, blue = (_linear(channel) for channel in _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ink(colour: str) -> str:
    """Darken a colour until text in it reads well on white (a contrast of at least 4.5 : 1).

    Parameters
    ----------
    colour : str
        ``#RRGGBB``; returned unchanged when it is dark enough.
    """
    channels = _channels(colour)
    while 1.05 / (luminance(colour) + 0.05) < 4.5:
        channels = [channel * 0.95 for channel in channels]
        colour = "#" + "".join(f"{round(255 * channel):02X}" for channel in channels)
    return colour


def _channels(colour: str) -> list[float]:
    return [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
