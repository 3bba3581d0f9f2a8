"""Understanding Attention for Text Classification (Sun, Lu 2020)."""

from __future__ import annotations

from attnscope.recipes.entry import Entry

_HERE = "attnscope.recipes.sunlu"

RECIPES = (
    Entry(
        "sunlu/gradient-flow",
        "the terms that move polarity and attention scores are exact; the supplement's misprints",
        "nothing",
        1,
        None,
        f"{_HERE}.gradient_flow",
    ),
    Entry(
        "sunlu/table2",
        "accuracy over seven scaling factors, four models and four corpora (tables 1, 2)",
        "corpora",
        5000,
        10,
        f"{_HERE}.table2",
    ),
    Entry(
        "sunlu/scores",
        "polarity and attention scores of positive, negative and neutral words (figures 2–4)",
        "corpora",
        1000,
        6,
        f"{_HERE}.scores",
    ),
    Entry(
        "sunlu/weights",
        "mean attention weights of the same words, and outliers with their sentences (figure 5)",
        "corpora",
        10,
        2,
        f"{_HERE}.weights",
    ),
    Entry(
        "sunlu/synthetic",
        "which term moves which group of words, through training (supplement C)",
        "nothing",
        60,
        6,
        f"{_HERE}.synthetic",
    ),
)
