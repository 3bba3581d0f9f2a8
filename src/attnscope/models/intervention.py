"""What decides the attention weights at a site: learned, uniform, permuted, frozen or given.

One mechanism serves training under uniform attention (snell §3.2), fragility and adversaries
(tutek), and optimal attention (snell A.1). All respect the mask, and gradients flow through given
weights.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.data.randomness import counter_uniform
from attnscope.runs.spec import Spec

Logits = Float[Tensor, "batch heads out inp"]
Weights = Float[Tensor, "batch heads out inp"]
Mask = Bool[Tensor, "batch inp"]
Ids = Int[Tensor, " batch"]
AttentionRule = Callable[[Tensor, Tensor, Tensor], Tensor]


class Intervention(Spec):
    """Root of the rules that a configuration can name."""

    @abstractmethod
    def __call__(self, logits: Logits, mask: Mask, ids: Ids) -> Weights:
        """Return the weights for the logits of a batch."""


class Learned(Intervention):
    """Softmax of the logits over real positions: no intervention."""

    kind: Literal["learned"] = "learned"

    def __call__(self, logits: Logits, mask: Mask, ids: Ids) -> Weights:
        """Return the masked softmax."""
        return logits.masked_fill(~mask[:, None, None], float("-inf")).softmax(-1)


LEARNED = Learned()


class Uniform(Intervention):
    """1/L on each of the L real positions."""

    kind: Literal["uniform"] = "uniform"

    def __call__(self, logits: Logits, mask: Mask, ids: Ids) -> Weights:
        """Return equal weights."""
        share = mask.to(logits.dtype) / mask.sum(-1, keepdim=True)
        return share[:, None, None].expand_as(logits)


class Permuted(Intervention):
    """The learned weights, permuted among the real positions of each row.

    The permutation depends on the seed, the example's id, head and output position alone, so it is
    the same however the example is batched and padded.
    """

    kind: Literal["permuted"] = "permuted"
    seed: int = 0

    def __call__(self, logits: Logits, mask: Mask, ids: Ids) -> Weights:
        """Return the learned weights in a random order."""
        weights = LEARNED(logits, mask, ids)
        _, heads, out, inp = weights.shape
        steps = [torch.arange(size, device=ids.device) for size in (heads, out, inp)]
        draw = counter_uniform(
            self.seed,
            ids[:, None, None, None],
            steps[0][:, None, None],
            steps[1][:, None],
            steps[2],
        )
        real = mask[:, None, None].expand_as(weights)
        # Real positions come first in both orders: once as they stand, once shuffled.
        standing = (~real).to(torch.int8).argsort(dim=-1, stable=True)
        shuffled = draw.masked_fill(~real, 2.0).argsort(-1)
        return torch.zeros_like(weights).scatter(-1, standing, weights.gather(-1, shuffled))


class Frozen(Intervention):
    """The learned weights as constants: nothing is learned through them."""

    kind: Literal["frozen"] = "frozen"

    def __call__(self, logits: Logits, mask: Mask, ids: Ids) -> Weights:
        """Return the masked softmax without its gradient."""
        return LEARNED(logits, mask, ids).detach()


@dataclass(frozen=True)
class Given:
    """Weights from elsewhere, for exactly this batch; gradients flow into them."""

    weights: Weights

    def __call__(self, logits: Logits, mask: Mask, ids: Ids) -> Weights:
        """Return the given weights."""
        return self.weights.to(logits).expand_as(logits)
