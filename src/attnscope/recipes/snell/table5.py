"""Tables 2–9 and Figure 2: how far attention, probes, proxy and saliency agree on real text.

One run measures them all: both agreements (top 5 % and Kendall), both performances (accuracy and
BLEU), both splits, in the text's way and in the authors' code's. Options leave parts of it out.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from attnscope.recipes.options import Several, several
from attnscope.recipes.recipe import Lab
from attnscope.recipes.showing import right_and_wrong
from attnscope.recipes.snell.agreement_rows import PAIRS, agreement_rows
from attnscope.recipes.snell.corpus_statistics import statistics_rows
from attnscope.recipes.snell.table5_claims import CLAIMS
from attnscope.recipes.snell.table5_figures import draw
from attnscope.recipes.snell.text_units import TextConfig, train_corpora
from attnscope.runs.result import Measurement

__all__ = ["CLAIMS", "EXAMPLES", "HEADLINE", "QUICK", "SHOWN", "Config", "draw", "measure"]


def _metrics(value: Any) -> Any:
    return tuple("kendall_tau" if name == "kendall" else name for name in several(value))


class Config(TextConfig):
    """Settings of the agreement tables."""

    # Table 5 (and 2) is top5pct, Table 3 kendall_tau; 4, 6 and 8 are the BLEU versions; 7 and 8 the
    # training split.
    agreement: Annotated[
        tuple[Literal["top5pct", "kendall_tau"], ...], BeforeValidator(_metrics)
    ] = ("top5pct", "kendall_tau")
    performance: Annotated[tuple[Literal["accuracy", "bleu"], ...], Several] = ("accuracy", "bleu")
    split: Annotated[tuple[Literal["val", "train"], ...], Several] = ("val", "train")


QUICK = {
    "corpus": "grammar-sentiment,grammar-translation",
    "seeds": 2,
    "embedding": 32,
    "hidden": 16,
    "steps": 150,
    "translation_hidden": 32,
    "translation_steps": 300,
    "examples": 100,
    "proxy_dimension": 32,
    "proxy_epochs": 10,
    "proxy_translation_epochs": 10,
}
# The terminal shows Table 5 in the text's way; result.json has all of them.
SHOWN = {"way": "text", "agreement": "top5pct", "performance": "accuracy"}
EXAMPLES = right_and_wrong
HEADLINE = (
    *(f"A({pair})" for pair in PAIRS),
    "A_random",
    "xi(alpha,beta_uf)",
    "xi(alpha,beta)",
    "xi_star",
    "train_size",
    "val_size",
    "median_length",
    "vocab_size",
    "parameters",
    "left_out",
)


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train the units of every corpus and compare their stored scores."""
    rows: list[Measurement] = []
    for runs in train_corpora(config, lab):
        rows += statistics_rows(config, runs.source)
        for split in config.split:
            # The paper has Kendall's τ for the validation split alone.
            metrics = config.agreement if split == "val" else ("top5pct",)
            rows += agreement_rows(runs, split, metrics, config.performance)
    return rows
