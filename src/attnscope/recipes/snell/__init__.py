"""Approximating How Single Head Attention Learns (Snell, Zhong, Klein, Steinhardt 2021)."""

from __future__ import annotations

from attnscope.recipes.entry import Entry

_HERE = "attnscope.recipes.snell"

RECIPES = (
    Entry(
        "snell/fig3",
        "copying permutations fails for some seeds, copying samples never does",
        "nothing",
        75,
        2,
        f"{_HERE}.fig3",
    ),
    Entry(
        "snell/fig6",
        "one good head among eight is enough; more random heads fail less often",
        "nothing",
        600,
        13,
        f"{_HERE}.fig6",
    ),
    Entry(
        "snell/fig7",
        "under uniform attention word knowledge is local first, then moves to the last state",
        "nothing",
        100,
        4,
        f"{_HERE}.fig7",
    ),
    Entry(
        "snell/permutation-function",
        "a fixed reordering is never learned though its word knowledge is that of copying",
        "nothing",
        270,
        6,
        f"{_HERE}.permutation_function",
    ),
    Entry(
        "snell/cooccurrence",
        "what the count table knows of each distribution (figures 1, 4, 5, 8)",
        "nothing",
        1,
        None,
        f"{_HERE}.cooccurrence",
    ),
    Entry(
        "snell/initial-derivative",
        "the proxy's first derivative is the centred count table (Eq. 15 corrected, Eq. 53)",
        "nothing",
        1,
        None,
        f"{_HERE}.initial_derivative",
    ),
    Entry(
        "snell/table5",
        "how attention, probes, proxy and saliency agree on real text (tables 2–9, figure 2)",
        "corpora",
        3000,
        25,
        f"{_HERE}.table5",
    ),
    Entry(
        "snell/table10",
        "attention cannot be learned on top of frozen random features",
        "corpora",
        2000,
        12,
        f"{_HERE}.table10",
    ),
    Entry(
        "snell/table11",
        "the bag-of-words proxy is a logistic regression",
        "corpora",
        2000,
        12,
        f"{_HERE}.table11",
    ),
    Entry(
        "snell/optimal-attention",
        "the best attention often, not always, goes where the lexical probe is highest (A.1)",
        "corpora",
        1800,
        15,
        f"{_HERE}.optimal_attention",
    ),
    Entry(
        "snell/alignment",
        "IBM Model 1, attention and lexical probe against gold word alignments",
        "corpora",
        1800,
        15,
        "attnscope.recipes.extra.alignment",
    ),
)
