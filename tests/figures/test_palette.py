"""The palette keeps its colours apart for readers with the common forms of colour blindness."""

import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest

from attnscope.figures import palette
from cases import for_each

# Machado, Oliveira and Fernandes (2009), "A physiologically-based model for simulation of color
# vision deficiency", severity 1.0, applied to linear RGB.
VISIONS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = TO_XYZ.sum(axis=1)
ALL = palette.SCORES | palette.ROLES | palette.POSITIONS
WIDER = {*ALL.values(), *palette.SIDES.values(), *palette.WORDS.values()}


def lab(colour: str, vision: str) -> np.ndarray:
    """CIELAB coordinates of a colour as it is seen."""
    srgb = np.array([int(colour[start : start + 2], 16) for start in (1, 3, 5)]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(VISIONS[vision] @ linear, 0, 1) / WHITE
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@for_each("vision", VISIONS)
@for_each("colours", [ALL, palette.ON_DARK], ids=["on white", "on dark"])
def test_every_two_colours_differ_in_every_vision(colours, vision):
    # A difference of 2.3 is just noticeable on large patches; thin lines need several times that.
    apart = {
        pair: float(np.linalg.norm(lab(pair[0], vision) - lab(pair[1], vision)))
        for pair in combinations(sorted(set(colours.values())), 2)
    }
    nearest = min(apart, key=apart.__getitem__)
    assert apart[nearest] >= 15, nearest


@for_each("vision", VISIONS)
def test_words_and_sides_differ_from_each_other_in_every_vision(vision):
    shown = palette.WORDS | palette.SIDES
    for one, other in combinations(shown, 2):
        apart = np.linalg.norm(lab(shown[one], vision) - lab(shown[other], vision))
        assert apart >= 15, (one, other)


def test_a_colour_has_one_meaning():
    # Shared on purpose: the keyword's position is the gold one, a mean stands for nothing else.
    shared = {"keyword": "gold", "mean": "neutral"}
    meanings = {shared.get(name, name): colour for name, colour in ALL.items()}
    assert len(set(meanings.values())) == len(meanings)
    assert all(ALL[name] == ALL[other] for name, other in shared.items())


@for_each("colour", sorted(WIDER))
def test_lines_stand_out_from_white_paper(colour):
    assert 1.05 / (palette.luminance(colour) + 0.05) > 2.2


@for_each("colour", sorted(set(palette.ON_DARK.values())))
def test_colours_stand_out_from_a_dark_page(colour):
    page = palette.luminance("#131418")  # of the report
    assert (palette.luminance(colour) + 0.05) / (page + 0.05) >= 3


def test_every_score_has_its_own_colour_on_a_dark_page():
    assert palette.ON_DARK.keys() == palette.SCORES.keys() | {"against"}
    assert len(set(palette.ON_DARK.values())) == len(palette.ON_DARK)


def test_groups_of_words_have_their_colours_and_labels_distinct_ones():
    tints = palette.group_colours(["positive", "neutral", "negative"])
    assert list(tints) == ["neutral", "positive", "negative"]  # a later one is drawn on top
    assert tints == {name: palette.GROUPS[name] for name in tints}
    assert len(set(palette.group_colours(["a", "b", "c", "d", "neutral"]).values())) == 5


def test_the_nine_terms_of_a_logit_share_a_colour_and_a_strangers_score_is_grey():
    assert palette.score_colours("term_word_delta") == palette.score_colours("alignment_term")
    assert palette.score_colours("frobnication")[0] == palette.NEUTRAL


@for_each("colour", sorted({*ALL.values(), "#FFFF00", "#FFFFFF"}))
def test_text_in_a_colour_meets_the_contrast_of_wcag(colour):
    assert 1.05 / (palette.luminance(palette.ink(colour)) + 0.05) >= 4.5


def test_dark_colours_are_used_for_text_as_they_are():
    assert palette.ink(palette.SCORES["attention"]) == palette.SCORES["attention"]


def test_luminance_of_black_white_and_primaries_is_that_of_the_standard():
    known = {"#000000": 0, "#FFFFFF": 1, "#FF0000": 0.2126, "#00FF00": 0.7152, "#0000FF": 0.0722}
    for colour, value in known.items():
        assert palette.luminance(colour) == pytest.approx(value)


@for_each("vision", VISIONS)
def test_heat_maps_darken_steadily_in_every_vision(vision):
    lightness = [lab(colour, vision)[0] for colour in palette.SEQUENTIAL]
    steps = -np.diff(lightness)
    assert steps.min() > 10


def test_asking_for_a_colour_loads_neither_torch_nor_altair():
    code = (
        "import sys, attnscope.figures.palette, attnscope.figures.save;"
        "attnscope.figures.save.figures_available();"
        "sys.exit(bool({'torch', 'altair'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
