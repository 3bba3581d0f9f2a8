"""How a classifier weighs the positions of a text: a query against keys made of its states.

Logits are q·k/λ. The keys are the states (dot attention: sunlu's DP, tutek's dot) or a hidden
layer over them (additive attention: snell Eq. 7, sunlu's AD, tutek's additive). The query is a
parameter or is computed from the text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float
from pydantic import Field, SerializeAsAny
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.errors import MissingCapability
from attnscope.models.encoders import Choice, States
from attnscope.models.intervention import AttentionRule
from attnscope.models.trace import Site, attend
from attnscope.runs.spec import Spec

Keys = Float[Tensor, "batch inp key"]
Mask = Bool[Tensor, "batch inp"]
Divisor = Annotated[float, Field(gt=0)] | Literal["root"]


class QuerySpec(Spec):
    """Root of the queries."""

    @abstractmethod
    def build(self, states: int, keys: int, bias: bool) -> Query:
        """Return the query for states and keys of these widths, its logits with or without bias."""


class Query(nn.Module, ABC):
    """A query vector for each text, and its products with keys."""

    @abstractmethod
    def vectors(self, states: States, mask: Mask) -> Float[Tensor, "batch key"]:
        """Return q."""

    @abstractmethod
    def logits(self, keys: Keys, states: States, mask: Mask) -> Float[Tensor, "batch inp"]:
        """Return q·k, with the bias where there is one."""

    @property
    @abstractmethod
    def direction(self) -> Float[Tensor, " key"]:
        """The query that all texts share; an error where each has its own."""


class LearnedQuery(QuerySpec):
    """One vector for all texts, the papers' own.

    ``initial`` is PyTorch's for a linear layer, Kaiming-uniform with √5, or N(0, 1): with the
    former tutek's dot attention stayed uniform (their appendix C); sunlu has the latter.
    """

    kind: Literal["learned"] = "learned"
    initial: Literal["default", "normal"] = "default"

    def build(self, states: int, keys: int, bias: bool) -> Query:
        """Return the vector."""
        query = _Learned(keys, bias)
        if self.initial == "normal":
            nn.init.normal_(query.weight)
        return query


class _Learned(Query):
    bias: nn.Parameter | None

    def __init__(self, keys: int, bias: bool) -> None:
        super().__init__()
        drawn = nn.Linear(keys, 1, bias)
        self.weight = drawn.weight
        self.register_parameter("bias", drawn.bias)

    def vectors(self, states: States, mask: Mask) -> Float[Tensor, "batch key"]:
        """Return the same vector for each text."""
        return self.weight.expand(len(states), -1)

    def logits(self, keys: Keys, states: States, mask: Mask) -> Float[Tensor, "batch inp"]:
        """Return q·k + b."""
        return nn.functional.linear(keys, self.weight, self.bias).squeeze(-1)

    @property
    def direction(self) -> Float[Tensor, " key"]:
        """The vector."""
        return self.weight[0]


class InstanceQuery(QuerySpec):
    """One query per text: q = W h̄ + b, h̄ being the mean of its states.

    tutek's footnote 8 says that such queries "work equally well" without defining them. This one
    exists for every encoder, and is the learned query b where W = 0.
    """

    kind: Literal["instance"] = "instance"

    def build(self, states: int, keys: int, bias: bool) -> Query:
        """Return the map, with a separate bias of the logits if asked for."""
        return _Instance(states, keys, bias)


class _Instance(Query):
    bias: nn.Parameter | None

    def __init__(self, states: int, keys: int, bias: bool) -> None:
        super().__init__()
        self.map = nn.Linear(states, keys)
        self.register_parameter("bias", nn.Parameter(torch.zeros(1)) if bias else None)

    def vectors(self, states: States, mask: Mask) -> Float[Tensor, "batch key"]:
        """Return W h̄ + b."""
        real = states.masked_fill(~mask[..., None], 0.0)
        return self.map(real.sum(1) / mask.sum(-1, keepdim=True))

    def logits(self, keys: Keys, states: States, mask: Mask) -> Float[Tensor, "batch inp"]:
        """Return q·k."""
        logits = (keys @ self.vectors(states, mask)[..., None]).squeeze(-1)
        return logits if self.bias is None else logits + self.bias

    @property
    def direction(self) -> Float[Tensor, " key"]:
        """Raise: every text has its own."""
        raise MissingCapability(
            "Attention with one query per text has no single direction V: "
            "use a model with a learned query."
        )


class AttentionSpec(Spec):
    """Root of the attentions that a classifier can have."""

    scale: Divisor = Field(1.0, description="λ, the divisor of the logits; root: √ of the width")
    query: SerializeAsAny[QuerySpec] = LearnedQuery()

    @abstractmethod
    def build(self, width: int) -> TextAttention:
        """Return the attention over states of a width."""

    def divisor(self, width: int) -> float:
        """Return λ for keys of a width."""
        return width**0.5 if self.scale == "root" else float(self.scale)


class TextAttention(nn.Module, ABC):
    """Attention over the states of a text.

    λ is a buffer and not part of the weights, so that stacked models may differ in it. It is exact
    until it is moved to the model's precision.
    """

    divisor: Float[Tensor, ""]

    def __init__(self, divisor: float) -> None:
        super().__init__()
        exact = torch.tensor(divisor, dtype=torch.float64)
        self.register_buffer("divisor", exact, persistent=False)

    @abstractmethod
    def forward(self, batch: Batch, states: States, rule: AttentionRule | None) -> Site:
        """Return the site: one head, one output position, the states as values."""

    @property
    @abstractmethod
    def direction(self) -> Float[Tensor, " state"]:
        """V of the logits h·V/λ; an error where they are not such a product."""


class DotProduct(AttentionSpec):
    """a_l = q·h_l/λ (sunlu Eq. 1; tutek Eq. 11, whose scale is ``root``).

    ``keys`` are the states, or the states at length 1, as tutek's later code has them together with
    scale 1.
    """

    kind: Literal["dot"] = "dot"
    keys: Literal["states", "unit-length"] = "states"

    def build(self, width: int) -> TextAttention:
        """Return the attention."""
        query = self.query.build(width, width, bias=False)
        keys = states_as_keys if self.keys == "states" else _unit_length
        return DotProductAttention(query, keys, self.divisor(width))


def states_as_keys(states: States) -> Keys:
    """Return the states."""
    return states


def _unit_length(states: States) -> Keys:
    return nn.functional.normalize(states, dim=-1)


class DotProductAttention(TextAttention):
    """q·k/λ, the keys being a function of the states."""

    def __init__(self, query: Query, keys: Callable[[Tensor], Tensor], divisor: float) -> None:
        super().__init__(divisor)
        self.query, self.keys = query, keys

    def forward(self, batch: Batch, states: States, rule: AttentionRule | None) -> Site:
        """Return the site with queries and keys; queries are divided by λ, so logits are q·k."""
        keys, mask = self.keys(states), batch.input_mask
        logits = self.query.logits(keys, states, mask) / self.divisor
        queries = self.query.vectors(states, mask) / self.divisor
        return attend(
            batch,
            logits[:, None, None],
            states[:, None],
            rule,
            queries=queries[:, None, None],
            keys=keys[:, None],
        )

    @property
    def direction(self) -> Float[Tensor, " state"]:
        """The query."""
        return self.query.direction


class Additive(AttentionSpec):
    """a_l = q·f(W h_l + b)/λ: a hidden layer over each state; by default snell's (Eq. 7).

    ``bias`` is the hidden layer's. ``output_bias`` adds the same number to every logit, which does
    not change the softmax; snell's published parameter counts include it, sunlu and tutek lack it.
    """

    kind: Literal["additive"] = "additive"
    hidden: int = Field(256, ge=1)
    activation: Literal["relu", "tanh"] = "relu"
    bias: Choice = "on"
    output_bias: Choice = "on"

    def build(self, width: int) -> TextAttention:
        """Return the attention."""
        hidden = nn.Linear(width, self.hidden, self.bias == "on")
        query = self.query.build(width, self.hidden, bias=self.output_bias == "on")
        activation = torch.relu if self.activation == "relu" else torch.tanh
        return AdditiveAttention(hidden, activation, query, self.divisor(self.hidden))


class AdditiveAttention(TextAttention):
    """q·f(W h + b)/λ, ``hidden`` being W and b."""

    def __init__(
        self,
        hidden: nn.Linear,
        activation: Callable[[Tensor], Tensor],
        query: Query,
        divisor: float,
    ) -> None:
        super().__init__(divisor)
        self.hidden, self.activation, self.query = hidden, activation, query

    def forward(self, batch: Batch, states: States, rule: AttentionRule | None) -> Site:
        """Return the site, without queries and keys: logits are not a product with the states."""
        keys = self.activation(self.hidden(states))
        logits = self.query.logits(keys, states, batch.input_mask) / self.divisor
        return attend(batch, logits[:, None, None], states[:, None], rule)

    @property
    def direction(self) -> Float[Tensor, " state"]:
        """Raise: there is none."""
        raise MissingCapability(
            "Additive attention has no direction V among the states: "
            "use a model with dot attention."
        )
