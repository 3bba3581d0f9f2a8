"""Tables 2–9 and Figure 2: how far attention, probes, proxy and saliency agree on real text.

One run measures them all: both agreements (top 5 % and Kendall), both performances (accuracy and
BLEU), both splits, by the text's procedure and by that of the authors' code. Options leave parts of
it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from attnscope.claims.published import published_value
from attnscope.data.batch import Example
from attnscope.data.corpus import Corpus
from attnscope.data.text import Text
from attnscope.models.base import parameter_count
from attnscope.recipes.kit.corpora import (
    NOTHING_LEFT_OUT,
    is_classification,
    left_out,
    left_out_rows,
    parts,
    printed_name,
)
from attnscope.recipes.kit.lab import Lab
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.options import Several, several
from attnscope.recipes.snell.agreement import (
    CODE,
    PAIRS,
    TEXT,
    AgreementTable,
    agreements,
    contextual,
    curves,
    seed_pairs,
)
from attnscope.recipes.snell.table5_claims import CLAIMS
from attnscope.recipes.snell.table5_figures import draw
from attnscope.recipes.snell.units import QUICK, Runs, TextConfig, model_of, train_corpora
from attnscope.runs.result import Measurement, Record

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


# The terminal shows Table 5 by the text's procedure; result.json has all of them.
SHOWN = {"way": "text", "agreement": "top5pct", "performance": "accuracy"}
EXAMPLES = "moved"
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


def measure(config: Config, lab: Lab) -> list[Record]:
    """Train the units of every corpus and compare their stored scores."""
    rows: list[Record] = []
    for runs in train_corpora(config, lab):
        rows += statistics(config, runs.source)
        for split in config.split:
            rows += compared(config, runs, split)
    return rows


def compared(config: Config, runs: Runs, split: str) -> list[Record]:
    """Measure one split of one corpus."""
    table = AgreementTable(runs, split)
    # The paper has Kendall's τ for the validation split alone.
    metrics = config.agreement if split == "val" else ("top5pct",)
    rows: list[Record] = []
    for way in (TEXT, CODE):
        for metric in metrics:
            rows += agreements(table, way, metric)
            for performance in config.performance:
                rows += contextual(table, way, metric, performance)
        rows.append(seed_pairs(table, way))
        if split == "val":
            rows += curves(table, way)
    return rows


def statistics(config: TextConfig, source: Corpus) -> list[Measurement]:
    """Return Table 9: sizes, median lengths, vocabulary, parameters, and what was left out."""
    examples = parts(source)
    count = len(examples["train"])
    printed = printed_name(source, "snell")
    sheet = Sheet(source.dataset, "train", (), "snell", "table9", printed)
    rows = []
    for split in ("train", "val"):
        rows.append(sheet.point(f"{split}_size", len(examples[split]), {}, count, split=split))
        sides = {"": "inputs"} if is_classification(source) else {"src": "inputs", "trg": "targets"}
        for side, field in sides.items():
            length = _median_length(examples[split], field, source)
            axes = {"side": side} if side else {}
            rows.append(sheet.point("median_length", length, axes, count, split=split))
    model = model_of(config, source).build(source, 0)
    embeddings = {id(p): p.numel() for name, p in model.named_parameters() if "embedding" in name}
    size = parameter_count(model)
    rest = size - sum(embeddings.values())
    published = published_value("snell", "text-A.8", printed, "params") if printed else None
    rows += [
        sheet.point("vocab_size", len(source.input_words), {}, count),
        sheet.point("parameters", size, {}, count, published=published),
        sheet.point("parameters_without_embeddings", rest, {}, count),
    ]
    return [*rows, *left_out_rows(sheet, left_out(source) or NOTHING_LEFT_OUT, count)]


# Boundaries are not counted: the paper's medians are those of the words.
_BOUNDARIES = {"inputs": 2, "targets": 1}


def _median_length(examples: Sequence[Example], side: str, source: Corpus) -> float:
    boundaries = _BOUNDARIES[side] if isinstance(source, Text) else 1
    return median(len(getattr(example, side)) for example in examples) - boundaries
