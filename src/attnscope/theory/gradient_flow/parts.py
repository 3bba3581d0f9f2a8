"""Parts of a classifier without context under gradient flow (sunlu §3): encoders and attentions.

Each part computes something from every type's embedding or state, and how that moves under a pull
on it: through the embeddings, and through the part's own parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

Embeddings = Float[Tensor, "type embedding"]
States = Float[Tensor, "type state"]
Hidden = Float[Tensor, "type hidden"]
PerType = Float[Tensor, " type"]


@runtime_checkable
class EncoderFlow(Protocol):
    """How an embedding becomes the state h_e that attention and output read."""

    def states(self, embeddings: Embeddings) -> States:
        """Return h_e for every type."""
        ...

    def to_embeddings(self, pull: States) -> Embeddings:
        """Carry a pull on the states back to the embeddings."""
        ...

    def moved(self, embeddings: Embeddings, pull: States) -> dict[str, States]:
        """Return how the states move under a pull on them, by the parameters that move.

        ``""`` are the embeddings; the encoder's own parameters are named after it.
        """
        ...


@runtime_checkable
class AttentionFlow(Protocol):
    """How a state becomes the attention score a_e."""

    @property
    def scale(self) -> float:
        """λ."""
        ...

    def logits(self, states: States) -> PerType:
        """Return a_e for every type."""
        ...

    def slopes(self, states: States) -> States:
        """Return ∂a_e/∂h_e."""
        ...

    def moved(self, states: States, pull: PerType) -> dict[str, PerType]:
        """Return how the scores move with the attention's own parameters under a pull on them."""
        ...


@dataclass(frozen=True)
class WordFlow:
    """h = e: the paper's model."""

    def states(self, embeddings: Embeddings) -> States:
        """Return the embeddings."""
        return embeddings

    def to_embeddings(self, pull: States) -> Embeddings:
        """Return the pull."""
        return pull

    def moved(self, embeddings: Embeddings, pull: States) -> dict[str, States]:
        """Return the pull."""
        return {"": pull}


@dataclass(frozen=True)
class AffineFlow:
    """h = M e, with or without a bias (supplement Eq. 59–64)."""

    weight: Float[Tensor, "state embedding"]
    bias: Float[Tensor, " state"] | None = None

    def states(self, embeddings: Embeddings) -> States:
        """Return M e."""
        return torch.nn.functional.linear(embeddings, self.weight, self.bias)

    def to_embeddings(self, pull: States) -> Embeddings:
        """Return Mᵀ g."""
        return pull @ self.weight

    def moved(self, embeddings: Embeddings, pull: States) -> dict[str, States]:
        """Return M Mᵀ g through the embeddings and Σ_f (eᵀf) g_f through M."""
        own = through_linear(embeddings, pull, self.bias)
        return {"": self.to_embeddings(pull) @ self.weight.T, "_encoder": own}


@dataclass(frozen=True)
class DotFlow:
    """a = hᵀV / λ (Eq. 1)."""

    query: Float[Tensor, " state"]
    scale: float = 1.0

    def logits(self, states: States) -> PerType:
        """Return hᵀV / λ."""
        return states @ self.query / self.scale

    def slopes(self, states: States) -> States:
        """Return V / λ, the same for every type."""
        return (self.query / self.scale).expand_as(states)

    def moved(self, states: States, pull: PerType) -> dict[str, PerType]:
        """Return Σ_f (hᵀh_f) ρ(f) / λ²: the sum of term F."""
        return {"F": states @ (states.T @ pull) / self.scale**2}


class Activation(NamedTuple):
    """A function with its derivative, which is given the function's value."""

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]


TANH = Activation(torch.tanh, lambda value: 1 - value.square())
RELU = Activation(torch.relu, lambda value: (value > 0).to(value.dtype))


@dataclass(frozen=True)
class AdditiveFlow:
    """a = f(M_a h)ᵀV / λ, with or without a bias (supplement Eq. 65–68: f = tanh)."""

    weight: Float[Tensor, "hidden state"]
    query: Float[Tensor, " hidden"]
    bias: Float[Tensor, " hidden"] | None = None
    scale: float = 1.0
    activation: Activation = TANH

    def _hidden(self, states: States) -> Hidden:
        inside = torch.nn.functional.linear(states, self.weight, self.bias)
        return self.activation.value(inside)

    def _hidden_slopes(self, hidden: Hidden) -> Hidden:
        return self.activation.slope(hidden) * self.query / self.scale

    def logits(self, states: States) -> PerType:
        """Return f(M_a h)ᵀV / λ."""
        return self._hidden(states) @ self.query / self.scale

    def slopes(self, states: States) -> States:
        """Return M_aᵀ D V / λ, D being diag(f')."""
        return self._hidden_slopes(self._hidden(states)) @ self.weight

    def moved(self, states: States, pull: PerType) -> dict[str, PerType]:
        """Return the movement through V, which is term F, and through M_a."""
        hidden = self._hidden(states)
        slopes = self._hidden_slopes(hidden)
        own = through_linear(states, pull[:, None] * slopes, self.bias)
        through_query = hidden @ (hidden.T @ pull) / self.scale**2
        return {"F": through_query, "F_hidden": (own * slopes).sum(-1)}


def through_linear(
    inputs: Float[Tensor, "type inp"],
    pull: Float[Tensor, "type out"],
    bias: Float[Tensor, " out"] | None,
) -> Float[Tensor, "type out"]:
    """Return how the outputs of a linear map move with its weight, and its bias if it has one."""
    moved = inputs @ (inputs.T @ pull)
    return moved if bias is None else moved + pull.sum(0)
