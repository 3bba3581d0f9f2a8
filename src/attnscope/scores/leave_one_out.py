"""Leave-one-out: how much the right output loses without an input word.

The log-odds of the right word with the whole input, minus those without the word: one run of the
model per input position. It needs nothing of a model but its output, and is the yardstick for
scores that claim to know what the output depends on.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.data.removal import word_groups, word_positions
from attnscope.models.rerun import outputs_of, without_words
from attnscope.models.trace import AttentionModel, Trace
from attnscope.scores.lexical_probe import log_odds
from attnscope.scores.score import ScoreRule


class LeaveOneOut(ScoreRule):
    """The loss in log-odds when a word, with all its pieces, is taken out."""

    kind: Literal["leave_one_out"] = "leave_one_out"

    @property
    def name(self) -> str:
        """``leave_one_out``."""
        return "leave_one_out"

    def mask(self, trace: Trace) -> Bool[Tensor, "batch inp"]:
        """Return the pieces of words."""
        return word_positions(trace.batch)

    def values(self, model: AttentionModel, trace: Trace) -> Float[Tensor, "batch out inp"]:
        """Run the model without each word in turn."""
        batch, groups = trace.batch, word_groups(trace.batch)
        logits = trace.logits
        if getattr(model, "padding_matters", False):  # runs without a word have no padding
            logits = outputs_of(model, batch, trace.attention)
        own = log_odds(logits, batch.targets)
        losses = torch.zeros(*batch.targets.shape, batch.inputs.shape[1]).to(trace.logits)
        for word in range(int(groups.max()) + 1):
            gone = groups == word
            rows = gone.any(1).nonzero()[:, 0]
            part = batch.rows(rows)
            outputs = outputs_of(model, without_words(model, part, gone[rows]), trace.attention)
            lost = own[rows] - log_odds(outputs, part.targets)
            losses[rows] += lost[..., None] * gone[rows][:, None]
        return losses
