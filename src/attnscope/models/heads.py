"""Attention heads of the sequence-to-sequence model: bilinear logits, and two ways to join heads.

Logits are a = (W s + b)·h per head (snell Eq. 1, 20). `SummedHeads` follows the text: contexts are
summed, then mapped once (Eq. 21). `AveragedHeads` follows the authors' code: every head has a
context map of its own, and heads are averaged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.data.randomness import seeded

States = Float[Tensor, "batch inp state"]
Values = Float[Tensor, "batch heads inp value"]


class Heads(nn.Module, ABC):
    """K bilinear heads; subclasses say what they attend to and how their contexts are joined.

    Parameters
    ----------
    queries, keys
        Widths of decoder and encoder states.
    seeds
        One seed per head: a head's initialisation depends on its own seed alone, so that the same
        head can stand in many models (snell §5.2).
    """

    def __init__(self, queries: int, keys: int, seeds: Sequence[int]) -> None:
        super().__init__()
        self.query_maps = nn.ModuleList(self._drawn(seed, "query", queries, keys) for seed in seeds)

    @staticmethod
    def _drawn(seed: int, part: str, inputs: int, outputs: int) -> nn.Linear:
        with seeded("head", part, seed):
            return nn.Linear(inputs, outputs)

    def queries(
        self, states: Float[Tensor, "batch out state"]
    ) -> Float[Tensor, "batch heads out key"]:
        """Return W s + b for every head."""
        return torch.stack([head(states) for head in self.query_maps], 1)

    @abstractmethod
    def values(self, states: States) -> Values:
        """Return what each head's context is a mean of."""

    @abstractmethod
    def merge(self, context: Float[Tensor, "*any heads value"]) -> Float[Tensor, "*any context"]:
        """Join the heads' contexts."""


class SummedHeads(Heads):
    """Contexts are summed and mapped once; values are the encoder states themselves."""

    def __init__(self, queries: int, keys: int, seeds: Sequence[int]) -> None:
        super().__init__(queries, keys, seeds)
        self.project = nn.Linear(keys, queries)

    def values(self, states: States) -> Values:
        """Return the encoder states, once per head (a view)."""
        return states[:, None].expand(-1, len(self.query_maps), -1, -1)

    def merge(self, context: Float[Tensor, "*any heads value"]) -> Float[Tensor, "*any context"]:
        """Return the map of the sum."""
        return self.project(context.sum(-2))


class AveragedHeads(Heads):
    """Every head maps what it attends to, and heads are averaged."""

    def __init__(self, queries: int, keys: int, seeds: Sequence[int]) -> None:
        super().__init__(queries, keys, seeds)
        self.value_maps = nn.ModuleList(self._drawn(seed, "value", keys, queries) for seed in seeds)

    def values(self, states: States) -> Values:
        """Return the mapped states of every head."""
        return torch.stack([head(states) for head in self.value_maps], 1)

    def merge(self, context: Float[Tensor, "*any heads value"]) -> Float[Tensor, "*any context"]:
        """Return the mean over heads."""
        return context.mean(-2)


HEADS: dict[str, type[Heads]] = {"summed": SummedHeads, "averaged": AveragedHeads}
