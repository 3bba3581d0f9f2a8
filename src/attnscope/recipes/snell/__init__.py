"""Approximating How Single Head Attention Learns (Snell, Zhong, Klein, Steinhardt 2021)."""

from __future__ import annotations

from attnscope.recipes.entry import Entry


def _entry(
    name: str,
    title: str,
    cpu: float,
    gpu: float | None,
    needs: str = "nothing",
    at: str = "snell",
) -> Entry:
    module = f"attnscope.recipes.{at}.{name.replace('-', '_')}"
    return Entry(f"snell/{name}", title, needs, cpu, gpu, module)


RECIPES = (
    _entry("fig3", "copying permutations fails for some seeds, copying samples never does", 75, 2),
    _entry(
        "fig6", "one good head among eight is enough; more random heads fail less often", 600, 13
    ),
    _entry(
        "fig7",
        "under uniform attention word knowledge is local first, then moves to the last state",
        100,
        4,
    ),
    _entry(
        "permutation-function",
        "a fixed reordering is never learned though its word knowledge is that of copying",
        270,
        6,
    ),
    _entry("cooccurrence", "the count table of each distribution (figures 1, 4, 5, 8)", 1, None),
    _entry(
        "initial-derivative",
        "the proxy's first derivative is the centred count table (Eq. 15 corrected, Eq. 53)",
        1,
        None,
    ),
    _entry(
        "table5",
        "how attention, probes, proxy and saliency agree on real text (tables 2–9, figure 2)",
        3000,
        25,
        "corpora",
    ),
    _entry(
        "table10",
        "attention cannot be learned on top of frozen random features",
        2000,
        12,
        "corpora",
    ),
    _entry("table11", "the bag-of-words proxy is a logistic regression", 2000, 12, "corpora"),
    _entry(
        "optimal-attention",
        "the best attention often, not always, goes where the lexical probe is highest (A.1)",
        1800,
        15,
        "corpora",
    ),
    _entry(
        "alignment",
        "IBM Model 1, attention and lexical probe against gold word alignments",
        1800,
        15,
        "corpora",
        at="extra",
    ),
)
