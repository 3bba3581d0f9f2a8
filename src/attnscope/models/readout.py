"""What stands between the decoder's state with the context and the output layer (snell Eq. 2, 31).

Each takes the state s and the mapped context P c. `Tanh` is the authors' copying model, `Relu` the
paper's translator, `Added` the linear variant of A.1, in which there is no hidden layer.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

Query = Float[Tensor, "*any query"]


class _Beside(nn.Linear):
    """A map of the state beside the context, to the state's width."""

    def __init__(self, width: int) -> None:
        super().__init__(2 * width, width)


class Tanh(_Beside):
    """tanh(W [s; P c] + b)."""

    def forward(self, query: Query, context: Query) -> Query:  # type: ignore[override]
        """Return the hidden layer."""
        return torch.tanh(super().forward(torch.cat([query, context], -1)))


class Relu(_Beside):
    """ReLU(W [s; P c] + b)."""

    def forward(self, query: Query, context: Query) -> Query:  # type: ignore[override]
        """Return the hidden layer."""
        return torch.relu(super().forward(torch.cat([query, context], -1)))


class Added(nn.Module):
    """P c + s: what follows is linear in the context."""

    def __init__(self, width: int) -> None:
        super().__init__()

    def forward(self, query: Query, context: Query) -> Query:
        """Return the sum."""
        return query + context


READOUTS: dict[str, type[Tanh] | type[Relu] | type[Added]] = {
    "tanh": Tanh,
    "relu": Relu,
    "linear": Added,
}
