"""Understanding How Encoder-Decoder Architectures Attend (Aitken et al. 2021)."""

from __future__ import annotations

from attnscope.recipes.entry import Entry

_HERE = "attnscope.recipes.aitken"

RECIPES = (
    Entry(
        "aitken/fig2",
        "temporal components alone give the attention of one-to-one translation, not of sorting",
        "nothing",
        300,
        5,
        f"{_HERE}.fig2",
    ),
    Entry(
        "aitken/fig3",
        "on eSCAN recurrence holds subphrases, and attention falls on their ends",
        "nothing",
        300,
        4,
        f"{_HERE}.fig3",
    ),
    Entry(
        "aitken/fig4",
        "translating English to French, no term of the alignment dominates, least of all late",
        "corpora",
        300,
        4,
        f"{_HERE}.fig4",
    ),
    Entry(
        "aitken/fig5",
        "temporal terms dominate alignments where attention is close to its mean",
        "corpora",
        700,
        7,
        f"{_HERE}.fig5",
    ),
    Entry(
        "aitken/fig6",
        "without recurrence words hide from attention; with it they know their context",
        "nothing",
        300,
        4,
        f"{_HERE}.fig6",
    ),
    Entry(
        "aitken/beyond",
        "which of the findings carry over to a bidirectional encoder and to a Transformer's heads",
        "nothing",
        90,
        4,
        "attnscope.recipes.extra.beyond",
    ),
)
