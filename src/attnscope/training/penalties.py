"""Penalties on parameters: the squared norm (aitken, sunlu), and |VᵀW| (sunlu §5)."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.errors import MissingCapability, UsageError, suggestion
from attnscope.models.dropout import Randomness
from attnscope.models.trace import AttentionModel, Trace
from attnscope.training.objective import Term


class SquaredNorm(Term):
    """Σ θ² over parameters, without ½: with a weight c the L2 penalty c·Σθ² (aitken's code).

    Biases and initial states count as every other parameter does. ``parts`` are prefixes of
    parameter names: sunlu's penalty is on ``encoder`` alone, and on ``attention.hidden`` for AD.
    """

    vectorised: ClassVar[bool] = True
    per_example: ClassVar[bool] = True
    kind: Literal["squared-norm"] = "squared-norm"
    parts: tuple[str, ...] = Field(("",), min_length=1, description="all parameters by default")

    def __call__(
        self, model: AttentionModel, batch: Batch, trace: Trace, randomness: Randomness
    ) -> Float[Tensor, ""]:
        """Return the sum of squares."""
        if not isinstance(model, nn.Module):
            raise MissingCapability("The squared norm needs a model that is a torch module.")
        named = dict(model.named_parameters())
        for part in self.parts:
            if not any(name.startswith(part) for name in named):
                raise UsageError(
                    f"squared-norm: no parameter starts with {part!r}; {suggestion(part, named)}"
                )
        squares = [p.square().sum() for name, p in named.items() if name.startswith(self.parts)]
        return torch.stack(squares).sum()


class DirectionProduct(Term):
    """|VᵀW|: how far attention and output depend on the same direction of the states (sunlu).

    For an affine encoder it is |V'ᵀW'| with V' = MᵀV and W' = MᵀW, as in the supplement; with more
    than two classes the sum over them.
    """

    vectorised: ClassVar[bool] = True
    per_example: ClassVar[bool] = True
    kind: Literal["direction-product"] = "direction-product"

    def __call__(
        self, model: AttentionModel, batch: Batch, trace: Trace, randomness: Randomness
    ) -> Float[Tensor, ""]:
        """Return the absolute product."""
        if not hasattr(model, "directions"):
            raise MissingCapability(
                "The product of V and W needs a model with directions(): a classifier with dot "
                "attention has them."
            )
        both = model.directions()
        return (both.output @ both.attention).abs().sum()
