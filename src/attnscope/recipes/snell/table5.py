"""Tables 2–9 and Figure 2: how far attention, probes, proxy and saliency agree on real text.

One run measures them all: both agreements (top 5 % and Kendall), both performances (accuracy and
BLEU), both splits, by the text's procedure and by that of the authors' code. Options leave parts of
it out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import median
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import BeforeValidator

from attnscope.analysis.agreement import attention_entropy
from attnscope.analysis.contextual import contextualised
from attnscope.analysis.intervals import mean_interval, pairs_interval
from attnscope.analysis.stored_agreement import (
    Grid,
    StoredScore,
    each_highest,
    highest,
    mean_agreement,
)
from attnscope.claims.published import published_value
from attnscope.data.batch import Example
from attnscope.data.corpus import Corpus
from attnscope.data.reading import left_out, parts
from attnscope.data.text import Text
from attnscope.models.base import parameter_count
from attnscope.recipes.kit.corpora import (
    NOTHING_LEFT_OUT,
    is_classification,
    left_out_rows,
    printed_name,
)
from attnscope.recipes.kit.lab import Lab
from attnscope.recipes.kit.settings import Several, several
from attnscope.recipes.kit.sheet import Sheet, percent, point, rng
from attnscope.recipes.snell.agreement import (
    CODE,
    CODE_BLEU,
    NEVER,
    PAIRS,
    TEXT,
    AgreementTable,
    Procedure,
    above_chance,
    chance,
    model_rows,
)
from attnscope.recipes.snell.table5_results import CLAIMS, draw
from attnscope.recipes.snell.units import QUICK, TextConfig, model_of, train_corpora
from attnscope.runs.result import Measurement, Record
from attnscope.training.bleu import Bleu
from attnscope.training.progress import counting
from attnscope.training.unit import log_column

__all__ = ["CLAIMS", "EXAMPLES", "HEADLINE", "QUICK", "SHOWN", "Config", "draw", "measure"]


# The name of a pair's agreement under each metric, here and in the published tables.
_NAMES = {"top5pct": "A({})", "kendall_tau": "kendall({})"}
# Where the paper prints what: agreement, split and performance decide the table.
_TABLES = {
    ("top5pct", "val", "accuracy"): "table5",
    ("kendall_tau", "val", "accuracy"): "table3",
    ("top5pct", "train", "accuracy"): "table7",
    ("top5pct", "val", "bleu"): "table6",
    ("kendall_tau", "val", "bleu"): "table4",
    ("top5pct", "train", "bleu"): "table8",
}


def _metrics(value: Any) -> Any:
    return tuple("kendall_tau" if name == "kendall" else name for name in several(value))


class Config(TextConfig):
    """Settings of the agreement tables."""

    agreement: Annotated[
        tuple[Literal["top5pct", "kendall_tau"], ...], BeforeValidator(_metrics)
    ] = ("top5pct", "kendall_tau")
    """Agreements to measure: top5pct gives Tables 2, 5 and 7, kendall_tau Tables 3 and 4."""
    performance: Annotated[tuple[Literal["accuracy", "bleu"], ...], Several] = ("accuracy", "bleu")
    """Performances that ξ is read off: accuracy, and for translations BLEU (Tables 4, 6 and 8)."""
    split: Annotated[tuple[Literal["val", "train"], ...], Several] = ("val", "train")
    """Splits to measure; train gives Tables 7 and 8."""


# The terminal shows Table 5 by the text's procedure; result.json has all of them.
SHOWN = {"way": "text", "agreement": "top5pct", "performance": "accuracy"}
EXAMPLES = "moved"
HEADLINE = (
    "accuracy",
    "majority",
    "bag_of_words",
    "previous_token",
    "accuracy_uniform",
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
    "unknown_share",
    "left_out",
)


def measure(config: Config, lab: Lab) -> list[Record]:
    """Train the units of every corpus and compare their stored scores."""
    rows: list[Record] = []
    corpora = train_corpora(config, lab)
    with counting(lab.progress, "agreements", len(corpora) * len(config.split)) as count:
        for runs in corpora:
            rows += statistics(config, runs.source)
            for split in config.split:
                rows += compared(config, AgreementTable(runs, split, lab.device))
                count(1)
    return rows


def compared(config: Config, table: AgreementTable) -> list[Record]:
    """Measure one split of one corpus."""
    split, logged = table.split, table.runs.reference.log[-1]
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
    if "bleu" in config.performance and log_column(split, "bleu") in logged:
        for metric in metrics:
            rows += agreements(table, CODE_BLEU, metric)
    return [*rows, *model_rows(table)] if split == "val" else rows


def agreements(table: AgreementTable, way: Procedure, metric: str) -> list[Measurement]:
    """Return the agreement of every pair, and by the top 5 % how far it is above chance."""
    sheet = table.sheet(way, _TABLES.get((metric, table.split, way.performance), ""))
    by_chance = metric == "top5pct"
    rows = []
    for pair in (*PAIRS, "alpha,delta"):
        step, values = each_highest(table.grid(pair, way, metric))
        found = {"at": step, "runs": "{} x {}".format(*values.shape)}
        rows.append(table.row(sheet, _NAMES[metric].format(pair), values, found=found))
        if by_chance:
            rows += above_chance(sheet, pair, values, table, table.seeds(values))
    # Shuffled, two scores are as often in one order as in the other.
    none = sheet.point("kendall_random", 0.0, n=len(table.batch))
    return [*rows, chance(sheet, table) if by_chance else none]


def contextual(
    table: AgreementTable, way: Procedure, metric: str, performance: str
) -> list[Record]:
    """Return ξ of every pair, ξ*, and the curves of Figure 2 that they are read off.

    Every reference is compared with all other runs; ξ* is the mean of the references.
    """
    way, column = way.by(performance), log_column(table.split, performance)
    if column not in table.runs.reference.log[-1]:
        return []
    scale = 100 if performance == "accuracy" else 1
    alphas = {run: table.alpha(way, run) for run in table.references}
    runs = [run for run in table.runs.references if {run} != set(alphas)]
    hat: dict[int, list[float]] = {}
    reached = {}
    for step in table.steps:
        hat[step] = []
        for other in runs:
            own = StoredScore(other, "attention", step)
            others = [alpha for run, alpha in alphas.items() if run is not other]
            agreed = [mean_agreement(table.agreement(alpha, own, metric)) for alpha in others]
            hat[step].append(float(np.mean(agreed)))
        reached[step] = [scale * run.log_row(step)[column] for run in runs]
    stars = [scale * run.log_row(way.step(run, table.split))[column] for run in alphas]
    star = mean_interval(stars)

    axes = {"agreement": metric, "performance": performance}
    seeds, own_seeds = ([run.unit.seed for run in each] for each in (runs, alphas))
    where = _TABLES.get((metric, table.split, performance), "")
    sheet = replace(table.sheet(way, where), seeds=seeds)
    plain = "accuracy" if is_classification(table.runs.source) else "token_accuracy"
    printed = {"performance": plain if performance == "accuracy" else performance}
    rows: list[Record] = []
    for pair in PAIRS:
        level = mean_agreement(each_highest(table.grid(pair, way, metric))[1])
        at = contextualised(level, hat, reached, star.value)
        xi = star if at.step is None else mean_interval(at.performance)
        # ξ is of other runs than ξ*, so that it may be the larger one.
        tau = {"tau0": NEVER if at.step is None else at.step, "of": _seeds(seeds)}
        variant = printed | {"agreement": metric}
        rows.append(sheet.row(f"xi({pair})", xi, axes, found=tau, variant=variant))
    # Other people's BLEU compares only with the same signature.
    signed = {"of": _seeds(own_seeds)}
    signed |= {"signature": Bleu().signature()} if performance == "bleu" else {}
    rows.append(sheet.row("xi_star", star, axes, seeds=own_seeds, found=signed, variant=printed))
    majority = 100 * _majority(table) if performance == "accuracy" else 0.0
    floor = max(float(np.mean(reached[table.steps[0]])), majority)
    rows.append(sheet.point("floor", floor, axes))
    if table.split == "val":
        agreement = {step: percent(mean_interval(values)) for step, values in hat.items()}
        performed = {step: mean_interval(values) for step, values in reached.items()}
        rows.append(sheet.curve("hat_agreement", "step", agreement, axes))
        rows.append(sheet.curve("hat_performance", "step", performed, axes))
    return rows


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def curves(table: AgreementTable, way: Procedure) -> list[Record]:
    """Return agreement and entropy through training, and by how much A.7's maximum inflates."""
    sheet, reference = table.sheet(way), table.runs.reference
    uniform = table.grid("alpha,beta_uf", way)
    taken = {step: percent(table.grid_interval(values)) for step, values in uniform.items()}
    top, steps = highest(uniform)[1], list(uniform)
    above = [
        table.row(sheet, "above_end(alpha,beta_uf)", top - uniform[steps[at]], axes={"end": end})
        for end, at in (("start", 0), ("end", -1))
    ]
    inflation = sheet.row("inflation", point(_inflation(uniform)), share=True)
    crossed = replace(sheet, seeds=table.seeds(top))
    rows: list[Record] = [crossed.curve("curve(alpha,beta_uf)", "step", taken), inflation, *above]

    for name, score in (("beta", "lexical_probe"), ("alpha", "attention")):
        values = {}
        for step in table.steps:
            agreed = table.agreement(table.alpha(way), StoredScore(reference, score, step))
            values[step] = percent(point(mean_agreement(agreed)))
        rows.append(sheet.curve(f"curve(alpha,{name})", "step", values))
    entropy = {step: point(_entropy(table, step)) for step in table.steps}
    return [*rows, sheet.curve("entropy(alpha)", "step", entropy)]


def seed_pairs(table: AgreementTable, way: Procedure) -> Measurement:
    """Return how well the attentions of two seeds agree (A.9), above chance."""
    runs = table.runs.references
    scores = [table.alpha(way, run) for run in runs]
    pairs = [table.agreement(u, v) for u, v in combinations(scores, 2)]
    excess = pairs_interval(np.stack(pairs) - table.random, len(runs), rng=rng())
    seeds, found = [run.unit.seed for run in runs], {"pairs": len(pairs)}
    sheet = table.sheet(way)
    return sheet.row("excess(alpha_i,alpha_j)", excess, share=True, seeds=seeds, found=found)


def _entropy(table: AgreementTable, step: int) -> float:
    score = table.runs.reference.stored("attention", step, table.split)
    weights = score.values.double()
    return mean_agreement(attention_entropy(weights, score.input_mask).numpy()[table.mask])


def _majority(table: AgreementTable) -> float:
    words = table.batch.targets[table.batch.target_mask]
    return int(torch.bincount(words).max()) / len(words)


def _inflation(curve: Mapping[int, Grid]) -> float:
    """Return by how much the maximum exceeds checkpoints chosen on the other half of examples."""
    halves = [{step: values[:, :, i::2] for step, values in curve.items()} for i in (0, 1)]
    chosen = [highest(half)[0] for half in halves]
    honest = np.mean([mean_agreement(halves[1 - i][step]) for i, step in enumerate(chosen)])
    return mean_agreement(highest(curve)[1]) - float(honest)


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
