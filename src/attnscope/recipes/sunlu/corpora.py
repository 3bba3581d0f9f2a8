"""The corpora: groups of words, Table 1, and classifiers on held-out texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from attnscope.analysis.agreement import attention_entropy
from attnscope.analysis.classification import metric_intervals
from attnscope.analysis.intervals import Interval
from attnscope.data.batch import Batch
from attnscope.data.corpus import Corpus
from attnscope.data.token_groups import NEUTRAL, GroupRule, corpus_counts, nearest_rule
from attnscope.figures import palette
from attnscope.recipes.kit.corpora import (
    NOTHING_LEFT_OUT,
    held_out,
    left_out,
    left_out_rows,
    parts,
    printed_name,
)
from attnscope.recipes.kit.sheet import Sheet, rng
from attnscope.runs.result import Measurement
from attnscope.training.trained_unit import TrainedUnit

_POSITIONS = 2**16  # input positions that are run at once
NEGATIVE, POSITIVE = "negative", "positive"
# The supplement's Table 1: members of each group. The rule for three classes is not given, and is
# the one that comes nearest to these sizes.
GROUP_SIZES = {
    "SST": (265, 412, 1384),
    "IMDB": (1900, 2163, 5968),
    "20News I": (557, 957, 1011),
    "20News II": (49, 268, 192, 164),
}


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

    @property
    def binary(self) -> bool:
        """Whether there are two labels, and so one polarity."""
        return set(self.polar) == {NEGATIVE, POSITIVE}


@lru_cache(maxsize=4)
def groups_of(source: Corpus) -> Grouped:
    """Return the groups by the paper's rule; only counts enter."""
    counts, labels = corpus_counts(source), source.output_words.words
    printed = printed_name(source, "sunlu")
    rule = GroupRule()
    if printed is not None and len(labels) > 2:
        rule = nearest_rule(counts, GROUP_SIZES[printed], minimum=range(60)).rule
    names = (NEGATIVE, POSITIVE) if len(labels) == 2 else labels
    return Grouped(rule, rule.groups(counts, names))


def colours_of(groups: Sequence[str]) -> dict[str, str]:
    """Return a colour for each group of words; neutral is grey."""
    roles, scores = palette.ROLES, palette.SCORES
    others = iter((roles["control"], roles["hard"], scores["gold"], roles["mixed"]))
    # The most words of a corpus are neutral: they lie below the others.
    order = sorted(groups, key=lambda name: name != NEUTRAL)
    return {name: palette.GROUPS.get(name) or next(others, palette.NEUTRAL) for name in order}


def sheet_of(
    source: Corpus, seeds: Iterable[int] = (), table: str = "", *, percent: bool = False
) -> Sheet:
    """Return the sheet of a corpus' held-out part, for one of the paper's tables."""
    split, printed = held_out(source).split, printed_name(source, "sunlu")
    return Sheet(source.dataset, split, tuple(seeds), "sunlu", table, printed, percent)


def batches(source: Corpus) -> Iterator[tuple[Int[Tensor, " _"], Batch]]:
    """Yield the held-out texts in batches of like length, with their places."""
    yield from held_out(source).batch.by_length(lambda inp, out: max(1, _POSITIONS // inp))


@dataclass(frozen=True)
class Answers:
    """The seeds of a cell on held-out texts.

    Attributes
    ----------
    labels
        The right label of each text.
    predicted
        Labels by seed and text, with an axis of size 1 for repetitions between them.
    entropy
        Of attention, over log L, by seed and text; NaN where a text has one word.
    dev
        Mean accuracy on the development part.
    """

    seeds: tuple[int, ...]
    labels: NDArray[np.int64]
    predicted: NDArray[np.int64]
    entropy: NDArray[np.float64]
    dev: float

    def accuracy(self, less: Answers | None = None) -> Interval:
        """Return the accuracy, or by how much it exceeds that of other seeds' answers."""
        other = None if less is None else less.predicted
        return metric_intervals(self.labels, self.predicted, baseline=other, rng=rng())["accuracy"]


def answers_of(units: Sequence[TrainedUnit], source: Corpus, device: str) -> Answers:
    """Run the best weights of each unit on the held-out texts."""
    found = [_run(unit, source, device) for unit in units]
    return Answers(
        tuple(unit.unit.seed for unit in units),
        held_out(source).batch.targets[:, 0].numpy(),
        np.stack([predicted for predicted, _ in found])[:, None],
        np.stack([entropy for _, entropy in found]),
        float(np.mean([unit.log_row(unit.best_step)["accuracy"] for unit in units])),
    )


@torch.no_grad()
def _run(
    unit: TrainedUnit, source: Corpus, device: str
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    model: Any = unit.best_model.to(device)
    count = len(held_out(source).examples)
    labels, entropy = np.zeros(count, np.int64), np.full(count, np.nan)
    for places, part in batches(source):
        trace = model.trace(part.to(device))
        labels[places] = trace.logits[:, 0].argmax(-1).cpu().numpy()
        site = trace.sites["cross"]
        spread = attention_entropy(site.weights[:, 0].double(), site.mask)
        entropy[places] = spread[:, 0].cpu().numpy()
    return labels, entropy


def statistics_rows(source: Corpus) -> list[Measurement]:
    """Return Table 1, the supplement's group sizes, and how many texts were left out."""
    sheet, found = sheet_of(source, table="table1"), parts(source)
    lengths = [len(example.inputs) for part in found.values() for example in part]
    n = len(lengths)
    rows = [
        sheet.point("avg_length", float(np.mean(lengths)), n=n, split="train"),
        sheet.point("vocab_size", len(source.input_words), n=n, split="train"),
    ]
    for split, examples in found.items():
        counts = Counter(int(example.targets[0]) for example in examples)
        for label, name in enumerate(source.output_words.words):
            of, size = {"class": name}, len(examples)
            rows.append(sheet.point(f"{split}_size", counts[label], of, size, split=split))
    rows += _group_rows(sheet, source)
    return rows + left_out_rows(sheet, left_out(source) or NOTHING_LEFT_OUT, n)


def _group_rows(sheet: Sheet, source: Corpus) -> list[Measurement]:
    groups, types = groups_of(source), len(source.input_words)
    printed = GROUP_SIZES.get(str(sheet.printed), (None,) * len(groups.members))
    return [
        sheet.point(
            "group_size",
            len(ids),
            {"group": name},
            types,
            split="train",
            published=published,
            found=groups.rule.model_dump(),
        )
        for (name, ids), published in zip(groups.members.items(), printed, strict=True)
    ]
