"""The lexical probe β: the output as if all attention were on one position (snell Eq. 4, 6, 9).

One function of the readout serves translation, classification and the proxy. By default β is given
as its log-odds log(β / (1 - β)), which orders positions as β does and never saturates: a
probability of 1 - 1e-9 and one of 1 - 1e-12 are both 1 in single precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.errors import MissingCapability
from attnscope.models.trace import AttentionModel, Trace
from attnscope.scores.attention import site_of
from attnscope.scores.score import ScoreRule

Logits = Float[Tensor, "*any output_type"]
Words = Int[Tensor, "*any"]
Reading = Callable[[Logits, Words], Float[Tensor, "*any"]]

# Numbers held at once while probing: small enough for a cache to help, far above a call's cost.
_CHUNK = 2**22


def log_probability(logits: Logits, words: Words) -> Float[Tensor, "*any"]:
    """Return log β."""
    return logits.log_softmax(-1).gather(-1, words[..., None]).squeeze(-1)


def probability(logits: Logits, words: Words) -> Float[Tensor, "*any"]:
    """Return β."""
    return log_probability(logits, words).exp()


def log_odds(logits: Logits, words: Words) -> Float[Tensor, "*any"]:
    """Return log(β / (1 - β)): for two classes exactly (2y - 1) times the logit."""
    own = logits.gather(-1, words[..., None])
    others = logits.scatter(-1, words[..., None], float("-inf")).logsumexp(-1)
    return own.squeeze(-1) - others


READINGS: dict[str, Reading] = {
    "log_odds": log_odds,
    "log_probability": log_probability,
    "probability": probability,
}


class LexicalProbe(ScoreRule):
    """β_{t,l}: how probable the right word y_t would be if every head attended to l alone."""

    kind: Literal["lexical_probe"] = "lexical_probe"
    site: str = "cross"
    reading: Literal["log_odds", "log_probability", "probability"] = "log_odds"

    @property
    def name(self) -> str:
        """``lexical_probe``."""
        return "lexical_probe"

    def mask(self, trace: Trace) -> Bool[Tensor, "batch inp"]:
        """Return the positions that may be attended."""
        return site_of(trace, self.site).mask

    def values(self, model: AttentionModel, trace: Trace) -> Float[Tensor, "batch out inp"]:
        """Read the output at every real pair of positions, chunk by chunk, and 0 elsewhere."""
        site = site_of(trace, self.site)
        if not hasattr(model, "readout"):
            raise MissingCapability("The lexical probe needs a model with a readout.")
        values = site.values.transpose(1, 2)  # batch, inp, heads, value
        real = trace.batch.target_mask[:, :, None] & site.mask[:, None]
        cells = real.nonzero()
        # A classifier has two logits a cell, but hundreds of numbers in its context.
        widest = max(trace.logits.shape[-1], values[0, 0].numel() + trace.query.shape[-1])
        read = READINGS[self.reading]
        parts = [
            read(
                model.readout(values[example, inp], trace.query[example, out]),
                trace.batch.targets[example, out],
            )
            for example, out, inp in (c.T for c in cells.split(max(1, _CHUNK // widest)))
        ]
        return torch.zeros_like(real, dtype=trace.logits.dtype).masked_scatter(
            real, torch.cat(parts)
        )
