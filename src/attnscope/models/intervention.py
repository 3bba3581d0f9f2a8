"""The rules that make attention weights at a site: learned, uniform, permuted, frozen, given, ….

One mechanism serves training under uniform attention (snell §3.2), fragility and adversaries
(tutek), and optimal attention (snell A.1). All respect the mask, which may differ between output
positions (causal attention), and gradients flow through given weights. `Only` restricts a rule to
some heads and rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.data.batch import by_row
from attnscope.data.randomness import counter_uniform
from attnscope.errors import UsageError
from attnscope.runs.spec import Spec

Logits = Float[Tensor, "batch heads out inp"]
Weights = Float[Tensor, "batch heads out inp"]
Mask = Bool[Tensor, "batch *row inp"]  # one row for all output positions, or a row for each
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
        return logits.masked_fill(~by_row(mask)[:, None], float("-inf")).softmax(-1)


LEARNED = Learned()


class Uniform(Intervention):
    """1/L on each of the L real positions."""

    kind: Literal["uniform"] = "uniform"

    def __call__(self, logits: Logits, mask: Mask, ids: Ids) -> Weights:
        """Return equal weights."""
        rows = by_row(mask)
        share = rows.to(logits.dtype) / rows.sum(-1, keepdim=True)
        return share[:, None].expand_as(logits)


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
        real = by_row(mask)[:, None].expand_as(weights)
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


@dataclass(frozen=True)
class OneHot:
    """All weight on one input position, the same for every head and row; elsewhere unchanged rows.

    A row that may not attend to the position keeps its learned weights.
    """

    position: int

    def __call__(self, logits: Logits, mask: Mask, ids: Ids) -> Weights:
        """Return 1 at the position."""
        place = torch.arange(logits.shape[-1], device=logits.device) == self.position
        return _all_on(place.expand(*logits.shape[-2:]), logits, mask, ids)


@dataclass(frozen=True)
class Diagonal:
    """Every row attends to its own position alone: self-attention without context."""

    def __call__(self, logits: Logits, mask: Mask, ids: Ids) -> Weights:
        """Return the identity."""
        out, inp = logits.shape[-2:]
        return _all_on(torch.eye(out, inp, device=logits.device).bool(), logits, mask, ids)


@dataclass(frozen=True)
class Without:
    """The learned weights with some input positions of each example taken out.

    A row with nothing else to attend to keeps its learned weights.
    """

    keys: Bool[Tensor, "batch inp"]

    def __call__(self, logits: Logits, mask: Mask, ids: Ids) -> Weights:
        """Return the softmax over the other positions."""
        rows = by_row(mask)
        left = rows & ~self.keys[:, None]
        left = torch.where(left.any(-1, keepdim=True), left, rows)
        return LEARNED(logits, left, ids)


@dataclass(frozen=True)
class Only:
    """A rule for some heads and some output positions; the others keep their own weights."""

    rule: AttentionRule
    heads: Sequence[int] | None = None
    rows: Sequence[int] | None = None

    def chosen(self, weights: Weights) -> Bool[Tensor, "heads out 1"]:
        """Return True at the heads and rows that the rule is for."""
        heads, out = weights.shape[1:3]
        for name, places, size in (("heads", self.heads, heads), ("rows", self.rows, out)):
            wrong = [place for place in places or () if not -size <= place < size]
            if wrong:
                raise UsageError(f"{name}={wrong[0]}: the site has {size} {name}.")
        return (_marked(self.heads, heads)[:, None] & _marked(self.rows, out))[..., None].to(
            weights.device
        )

    def __call__(self, logits: Logits, mask: Mask, ids: Ids) -> Weights:
        """Return the rule's weights where it applies, and the learned ones elsewhere."""
        own = LEARNED(logits, mask, ids)
        return torch.where(self.chosen(own), self.rule(logits, mask, ids), own)


def _marked(places: Sequence[int] | None, size: int) -> Bool[Tensor, " size"]:
    marked = torch.full((size,), places is None)
    marked[list(places or ())] = True
    return marked


def _all_on(place: Bool[Tensor, "out inp"], logits: Logits, mask: Mask, ids: Ids) -> Weights:
    hot = place & by_row(mask)
    able = hot.any(-1, keepdim=True)
    return torch.where(able[:, None], hot[:, None].to(logits.dtype), LEARNED(logits, mask, ids))
