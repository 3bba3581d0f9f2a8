"""The layer between the decoder's state with the context and the output layer (snell Eq. 2, 31).

Each takes the state s and the mapped context P c. `TanhReadout` is the authors' copying model's,
`ReluReadout` the paper's translator's, `SumReadout` the linear variant of A.1, without a hidden
layer.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

Query = Float[Tensor, "*any query"]


class _HiddenLayer(nn.Linear):
    """A map of state and context to the state's width."""

    def __init__(self, width: int) -> None:
        super().__init__(2 * width, width)


class TanhReadout(_HiddenLayer):
    """tanh(W [s; P c] + b)."""

    def forward(self, query: Query, context: Query) -> Query:  # type: ignore[override]
        """Return the hidden layer."""
        return torch.tanh(super().forward(torch.cat([query, context], -1)))


class ReluReadout(_HiddenLayer):
    """ReLU(W [s; P c] + b)."""

    def forward(self, query: Query, context: Query) -> Query:  # type: ignore[override]
        """Return the hidden layer."""
        return torch.relu(super().forward(torch.cat([query, context], -1)))


class SumReadout(nn.Module):
    """P c + s: the output is linear in the context."""

    def __init__(self, width: int) -> None:
        super().__init__()

    def forward(self, query: Query, context: Query) -> Query:
        """Return the sum."""
        return query + context


READOUTS: dict[str, type[TanhReadout] | type[ReluReadout] | type[SumReadout]] = {
    "tanh": TanhReadout,
    "relu": ReluReadout,
    "linear": SumReadout,
}
