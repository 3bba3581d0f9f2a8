"""The subject of an audit: a watched model with its texts, in batches of like length.

Scores are read once and shared by all questions. What is explained is the model's own prediction
(of a classifier) or the given output words (of a translator or a language model).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.analysis.intervals import Interval, sentence_interval
from attnscope.audits.texts import Texts
from attnscope.data.batch import Batch
from attnscope.data.removal import word_positions
from attnscope.data.tokenised import TokenisedBatch
from attnscope.errors import MissingCapability
from attnscope.models.adapted import Adapted
from attnscope.models.trace import Trace
from attnscope.runs.measurement import Label, Measurement, measured
from attnscope.scores.attention import Attention
from attnscope.scores.leave_one_out import LeaveOneOut
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.rollout import Rollout
from attnscope.scores.saliency import Saliency
from attnscope.scores.score import Score, ScoreRule, read_scores
from attnscope.scores.value_norm import ValueNorm

R = TypeVar("R")
# Input positions that are run at once: on a CPU as few as keep it busy, since a batch of texts of
# one length has no padding; a GPU needs many.
POSITIONS = {"cpu": 2**10, "cuda": 2**13}


@dataclass
class Subject:
    """A model, its texts and what was read of them.

    Attributes
    ----------
    model, texts, batch
        The batch has a row for each text that could be read; ids are places in the data.
    seed
        Decides draws and resamples.
    draws
        How many permutations, and words taken out.
    notices
        Sentences that the reader of the audit needs.
    """

    model: Adapted
    texts: Texts
    batch: TokenisedBatch
    seed: int = 0
    draws: int = 5
    positions: int = POSITIONS["cpu"]
    notices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.stored: dict[str, list[Score]] = {}
        self._own: dict[int, Int[Tensor, "batch out"]] = {}

    @property
    def site(self) -> str:
        """The site that is judged: the last one that the output reads."""
        aliases = self.model.places.aliases
        if "last" in aliases:
            return aliases["last"]
        read = [place.name for place in self.model.places if place.keys == "source"]
        if not read:
            raise MissingCapability("No site of the model attends to its inputs: nothing to audit.")
        return read[-1]

    @property
    def labels(self) -> bool:
        """Whether the model says labels."""
        return self.batch.targets.shape[1] == 1

    @cached_property
    def parts(self) -> list[tuple[Tensor, Batch]]:
        """The examples in batches of like length, targets set to a classifier's predictions."""
        found = []
        for rows, part in self._by_length():
            if self.labels:
                with torch.no_grad():
                    part = replace(part, targets=self.model.outputs(part).argmax(-1))
            found.append((rows, part))
        return found

    def _by_length(self) -> Iterator[tuple[Tensor, Batch]]:
        return self.batch.by_length(
            lambda inp, out: self.positions // max(inp, out), equal=self.model.padding_matters
        )

    def halve(self) -> None:
        """Run half as many positions at once, and forget what was read in larger batches."""
        self.positions //= 2
        self.__dict__.pop("parts", None)
        self.stored.clear()
        self._own.clear()

    def own(self, part: Batch) -> Int[Tensor, "batch out"]:
        """Return the model's own outputs on a part, run once."""
        if self.labels:
            return part.targets
        first = int(part.ids[0])
        if first not in self._own:
            with torch.no_grad():
                self._own[first] = self.model.outputs(part).argmax(-1)
        return self._own[first]

    @cached_property
    def accuracy(self) -> Float[np.ndarray, " example"]:
        """The share of right outputs of each example."""
        right = np.zeros(len(self.batch))
        for rows, part in self.parts:
            gold = self.batch.targets[rows.to(self.batch.targets.device)]
            hits = (self.own(part) == gold[:, : part.targets.shape[1]]) & part.target_mask
            right[rows.numpy()] = (hits.sum(1) / part.target_mask.sum(1)).cpu().numpy()
        return right

    @property
    def rules(self) -> dict[str, ScoreRule]:
        """The scores that are compared, by name."""
        rules: dict[str, ScoreRule] = {
            "attention": Attention(site=self.site),
            "value_norm": ValueNorm(site=self.site),
            "rollout": Rollout(),
            "saliency": Saliency(),
            "lexical_probe": LexicalProbe(site=self.site),
            "leave_one_out": LeaveOneOut(),
        }
        if len(self.model.places) == 1:
            del rules["rollout"]  # the same as attention
        return rules

    def scores(self, name: str) -> list[Score]:
        """Return a score on every part, of words alone; read at the first call."""
        return self.all_scores([name])[name]

    def all_scores(self, names: Iterable[str]) -> dict[str, list[Score]]:
        """Return several scores; those that are read for the first time share passes."""
        names = list(names)
        missing = [name for name in names if name not in self.stored]
        rules = [self.rules[name] for name in missing]
        read = [read_scores(rules, self.model, part) for _, part in self.parts] if rules else []
        for place, name in enumerate(missing):
            self.stored[name] = [self.of_words(scores[place]) for scores in read]
        return {name: self.stored[name] for name in names}

    @staticmethod
    def of_words(score: Score) -> Score:
        """Return a score without special pieces, and without a graph."""
        words = word_positions(score.batch)
        mask = score.input_mask & (words if score.input_mask.ndim == 2 else words[:, None])
        values = score.values.detach().nan_to_num(0.0)
        return replace(score, values=values, input_mask=mask)

    def each(self, function: Callable[[Batch], Tensor]) -> Float[np.ndarray, "example ..."]:
        """Return a number (or several) of each example, in the order of the batch."""
        found: list[Tensor] = []
        order: list[Tensor] = []
        for rows, part in self.parts:
            found.append(function(part).detach().double().cpu())
            order.append(rows)
        back = torch.cat(order).argsort()
        return torch.cat(found)[back].numpy()

    def trace(self, part: Batch, keep: Sequence[str] | None = None, rules: Any = None) -> Trace:
        """Run the model on a part without a graph."""
        with torch.no_grad():
            return self.model.trace(part, rules, keep=keep)

    def rng(self) -> np.random.Generator:
        """Return the generator of resamples, the same for every interval."""
        return np.random.default_rng(self.seed)

    def interval(self, values: Any) -> Interval:
        """Return the mean over examples with its interval."""
        return sentence_interval(values, rng=self.rng())

    def row(
        self, name: str, interval: Interval, axes: Mapping[str, Label] | None = None
    ) -> Measurement:
        """Return a measurement of this subject."""
        found = measured(name, self.texts.name, interval, axes, (self.seed,))
        return found.model_copy(update={"split": self.texts.split})

    def mean(self, name: str, values: Any, axes: Mapping[str, Label] | None = None) -> Measurement:
        """Return the mean over examples as a measurement."""
        return self.row(name, self.interval(values), axes)
