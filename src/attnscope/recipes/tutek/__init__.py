"""Staying True to Your Word: (How) Can Attention Become Explanation? (Tutek, Šnajder 2020)."""

from __future__ import annotations

from attnscope.recipes.entry import Entry

_HERE = "attnscope.recipes.tutek"

RECIPES = (
    Entry(
        "tutek/table1",
        "tied and masked-word models lose more F1 under other attention (tables 1, 4, 5)",
        "corpora",
        1400,
        15,
        f"{_HERE}.table1",
    ),
    Entry(
        "tutek/table2",
        "their states keep more information about the words",
        "corpora",
        1300,
        20,
        f"{_HERE}.table2",
    ),
    Entry(
        "tutek/table3",
        "their single words carry less of the decision",
        "corpora",
        1400,
        15,
        f"{_HERE}.table3",
    ),
    Entry(
        "tutek/fig1",
        "adversaries of a masked-word model pay more for another attention",
        "corpora",
        300,
        8,
        f"{_HERE}.fig1",
    ),
    Entry(
        "tutek/fig2",
        "what each word of a sentence alone would have the models say (figures 2–7)",
        "corpora",
        60,
        1,
        f"{_HERE}.fig2",
    ),
    Entry(
        "tutek/table6",
        "with more layers the base model depends less on its attention",
        "corpora",
        250,
        4,
        f"{_HERE}.table6",
    ),
    Entry(
        "tutek/initialisation",
        "dot attention stays uniform unless its query starts from N(0, 1)",
        "corpora",
        15,
        1,
        f"{_HERE}.initialisation",
    ),
    Entry(
        "tutek/rationales",
        "how well attention, probe and saliency find the words that people marked",
        "corpora",
        300,
        4,
        "attnscope.recipes.extra.rationales",
    ),
)
