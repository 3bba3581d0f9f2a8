"""Gradient-flow terms by group of words, at every evaluation (sun & lu, Eq. 19, 27).

The terms are those of the whole training part under the likelihood alone, without dropout; under
another optimiser than plain descent, or with penalties, they are one part of what moves the scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from jaxtyping import Int
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.data.corpus import Corpus, training_batches
from attnscope.data.polarity_texts import PolarityTexts
from attnscope.data.source import Source
from attnscope.data.token_groups import GroupRule, corpus_counts
from attnscope.errors import UsageError
from attnscope.models.intervention import AttentionRule
from attnscope.models.trace import AttentionModel
from attnscope.theory.gradient_flow.classifier import classifier_flow
from attnscope.theory.gradient_flow.groups import group_row
from attnscope.training.metric import Metric


class GradientFlow(Metric):
    """All gradient-flow terms by group; groups are the source's own where it knows them."""

    kind: Literal["gradient-flow"] = "gradient-flow"
    groups: GroupRule = GroupRule()

    @property
    def name(self) -> str:
        """The prefix of its columns."""
        return "flow"

    def __call__(
        self,
        model: AttentionModel,
        batch: Batch,
        source: Source,
        split: str,
        attention: Mapping[str, AttentionRule] | None = None,
    ) -> dict[str, float]:
        """Return `group_row` over the training part, whatever the split."""
        if not isinstance(source, Corpus):
            raise UsageError(
                f"{source.dataset} is generated on the fly and has no fixed training set."
            )
        assert isinstance(model, nn.Module)
        flow = classifier_flow(model, training_batches(source))
        row = group_row(*flow, _groups(source, self.groups))
        return {f"{self.name}.{key}": value for key, value in row.items()}


@lru_cache(maxsize=2)
def _groups(source: Corpus, rule: GroupRule) -> Mapping[str, Int[Tensor, " _"]]:
    if isinstance(source, PolarityTexts):
        return source.groups
    return rule.groups(corpus_counts(source), source.output_words.words)
