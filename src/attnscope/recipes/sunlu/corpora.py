"""The corpora that sunlu's units are measured on: their groups of words, sheets and statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from attnscope.analysis.answers import Answers, read_answers
from attnscope.data.corpus import Corpus
from attnscope.data.reading import left_out, parts
from attnscope.data.token_groups import (
    Grouped,
    GroupRule,
    corpus_counts,
    demand_members,
    nearest_rule,
)
from attnscope.recipes.kit import corpora
from attnscope.recipes.kit.baselines import baseline_rows
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.sunlu.units import PAPERS_RULE, SunluConfig, open_corpus
from attnscope.runs.result import Measurement
from attnscope.training.trained_unit import TrainedUnit

POSITIONS = 2**16  # input positions that are run at once
# The supplement's Table 1: members of each group. The rule for three classes is not given, and is
# the one that comes nearest to these sizes.
GROUP_SIZES = {
    "SST": (265, 412, 1384),
    "IMDB": (1900, 2163, 5968),
    "20News I": (557, 957, 1011),
    "20News II": (49, 268, 192, 164),
}


@lru_cache(maxsize=4)
def groups_of(source: Corpus, rule: GroupRule = PAPERS_RULE) -> Grouped:
    """Return the groups of words by a rule, by default the paper's; only counts enter."""
    counts, labels = corpus_counts(source), source.output_words.words
    printed = corpora.printed_name(source, "sunlu")
    if rule == PAPERS_RULE and printed is not None and len(labels) > 2:
        rule = nearest_rule(counts, GROUP_SIZES[printed], minimum=range(60)).rule
    return Grouped.of(rule, counts, labels)


def demand_groups(config: SunluConfig) -> None:
    """Raise an error for a corpus with an empty group of words, before anything is trained."""
    for name in config.corpus:
        source = open_corpus(config, name)
        demand_members(groups_of(source, config.rule), source, "group_")


def sheet_of(
    source: Corpus, seeds: Iterable[int] = (), table: str = "", *, percent: bool = False
) -> Sheet:
    """Return the sheet of a corpus' held-out part, for one of the paper's tables."""
    split, printed = corpora.held_out(source).split, corpora.printed_name(source, "sunlu")
    return Sheet(source.dataset, split, tuple(seeds), "sunlu", table, printed, percent)


def answers_of(units: Sequence[TrainedUnit], source: Corpus, device: str) -> Answers:
    """Run the best weights of each unit on the held-out texts."""
    models: Any = (unit.best_model.to(device) for unit in units)
    return read_answers(models, corpora.held_out(source).batch.to(device), positions=POSITIONS)


def statistics_rows(source: Corpus, rule: GroupRule = PAPERS_RULE) -> list[Measurement]:
    """Return Table 1, the supplement's group sizes, and how many texts were left out."""
    sheet, found = sheet_of(source, table="table1"), parts(source)
    lengths = [len(example.inputs) for part in found.values() for example in part]
    n, types, groups = len(lengths), len(source.input_words), groups_of(source, rule)
    rows = [
        sheet.point("avg_length", float(np.mean(lengths)), n=n, split="train"),
        sheet.point("vocab_size", types, n=n, split="train"),
    ]
    for split, examples in found.items():
        counts = Counter(int(example.targets[0]) for example in examples)
        for label, name in enumerate(source.output_words.words):
            of, size = {"class": name}, len(examples)
            rows.append(sheet.point(f"{split}_size", counts[label], of, size, split=split))
    printed = GROUP_SIZES.get(str(sheet.printed), (None,) * len(groups.members))
    for (name, ids), members in zip(groups.members.items(), printed, strict=True):
        row = {"published": members, "found": groups.rule.model_dump(), "split": "train"}
        rows.append(sheet.point("group_size", len(ids), {"group": name}, types, **row))
    percents = sheet_of(source, percent=True)
    rows += baseline_rows(percents, source, corpora.held_out(source).examples)
    reasons = left_out(source) or corpora.NOTHING_LEFT_OUT
    return rows + corpora.left_out_rows(sheet, reasons, n)
