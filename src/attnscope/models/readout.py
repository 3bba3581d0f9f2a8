"""The layer between the decoder's state with the context and the output layer (snell Eq. 2, 31).

Each takes the state s and the mapped context P c. `TanhReadout` is the authors' copying model's,
`ReluReadout` the paper's translator's, `SumReadout` the linear variant of A.1, without a hidden
layer.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.models.cells import product

Query = Float[Tensor, "*any query"]


class _HiddenLayer(nn.Linear):
    """A map of state and context to the state's width."""

    def __init__(self, width: int) -> None:
        super().__init__(2 * width, width)

    def mapped(self, query: Query, context: Query) -> Query:
        """Return W [s; P c] + b."""
        return product(torch.cat([query, context], -1), self.weight, self.bias)


class TanhReadout(_HiddenLayer):
    """tanh(W [s; P c] + b)."""

    def forward(self, query: Query, context: Query) -> Query:  # type: ignore[override]
        """Return the hidden layer."""
        return torch.tanh(self.mapped(query, context))


class ReluReadout(_HiddenLayer):
    """ReLU(W [s; P c] + b)."""

    def forward(self, query: Query, context: Query) -> Query:  # type: ignore[override]
        """Return the hidden layer."""
        return torch.relu(self.mapped(query, context))


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
