"""The corpora behind the recipes: Table 1's statistics, the groups of words, what is held out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Int
from torch import Tensor

from attnscope.claims.published import published_value
from attnscope.data.batch import Batch, Example, collate
from attnscope.data.corpus import Corpus
from attnscope.data.text import Text
from attnscope.data.token_groups import NEUTRAL, GroupRule, corpus_counts, nearest_rule
from attnscope.runs.result import Measurement

NEGATIVE, POSITIVE = "negative", "positive"
# The supplement's Table 1: members of each group. The rule for three classes is not given, and is
# the one that comes nearest to these sizes.
GROUP_SIZES = {
    "SST": (265, 412, 1384),
    "IMDB": (1900, 2163, 5968),
    "20News I": (557, 957, 1011),
    "20News II": (49, 268, 192, 164),
}


def printed_name(source: Corpus) -> str | None:
    """Return what the paper calls a corpus, if it has it."""
    name = source.definition.published if isinstance(source, Text) else None
    return name if name in GROUP_SIZES else None


@dataclass(frozen=True)
class Grouped:
    """A corpus' groups of words: of each label, in its order, and the neutral ones.

    With two labels the groups are called ``negative`` (the first label's) and ``positive``.
    """

    rule: GroupRule
    members: dict[str, Int[Tensor, " _"]]

    @property
    def polar(self) -> tuple[str, ...]:
        """The labels' groups."""
        return tuple(name for name in self.members if name != NEUTRAL)


@lru_cache(maxsize=4)
def groups_of(source: Corpus) -> Grouped:
    """Return the groups by the paper's rule; only counts enter."""
    counts, labels = corpus_counts(source), source.output_words.words
    printed = printed_name(source)
    rule = GroupRule()
    if printed is not None and len(labels) > 2:
        rule = nearest_rule(counts, GROUP_SIZES[printed], minimum=range(60)).rule
    names = (NEGATIVE, POSITIVE) if len(labels) == 2 else labels
    return Grouped(rule, rule.groups(counts, names))


def held_out(source: Corpus) -> tuple[str, Sequence[Example]]:
    """Return the part that accuracy is reported on: ``test``, or ``val`` where there is no test."""
    test = source.test_examples if isinstance(source, Text) else ()
    return ("test", test) if test else ("val", source.validation_examples)


@lru_cache(maxsize=2)
def held_out_batch(source: Corpus) -> Batch:
    """Return that part as one batch."""
    return collate(held_out(source)[1])


def statistics_rows(source: Corpus) -> list[Measurement]:
    """Return Table 1 and the supplement's group sizes, beside the printed ones."""
    parts = {"train": source.training_examples, "val": source.validation_examples}
    if isinstance(source, Text) and source.test_examples:
        parts["test"] = source.test_examples
    every = [example for part in parts.values() for example in part]
    length = float(np.mean([len(example.inputs) for example in every]))
    rows = [
        _row(source, "avg_length", length, len(every)),
        _row(source, "vocab_size", len(source.input_words), len(every)),
    ]
    for split, examples in parts.items():
        counts = Counter(int(example.targets[0]) for example in examples)
        for label, name in enumerate(source.output_words.words):
            n = len(examples)
            rows.append(_row(source, f"{split}_size", counts[label], n, split, **{"class": name}))
    rows += _group_rows(source)
    dropped = source.loaded.left_out if isinstance(source, Text) else {}
    for reason, count in (dropped or {"train: anything": 0}).items():
        split, _, why = reason.partition(": ")
        rows.append(_row(source, "left_out", count, len(every), split, reason=why))
    return rows


def _group_rows(source: Corpus) -> list[Measurement]:
    groups, printed = groups_of(source), printed_name(source)
    sizes = GROUP_SIZES[printed] if printed else (None,) * len(groups.members)
    rows = []
    for (name, ids), published in zip(groups.members.items(), sizes, strict=True):
        row = _row(source, "group_size", len(ids), len(source.input_words), group=name)
        found = groups.rule.model_dump()
        rows.append(row.model_copy(update={"published": published, "found": found}))
    return rows


def _row(
    source: Corpus, name: str, value: float, n: int, split: str = "", **axes: str
) -> Measurement:
    printed, published = printed_name(source), None
    if printed and name not in ("group_size", "left_out"):
        variant: dict[str, Any] = dict(axes)
        published = published_value(
            "sunlu", "table1", printed, name, split=split or None, **variant
        )
    return Measurement(
        name=name,
        dataset=source.dataset,
        split=split or "train",
        axes=dict(axes),
        value=value,
        n=n,
        published=published,
    )
