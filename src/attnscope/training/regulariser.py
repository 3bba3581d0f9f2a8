"""Terms of an objective that depend on the parameters alone."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.errors import MissingCapability
from attnscope.models.trace import AttentionModel, Trace
from attnscope.training.objective import Term


class SquaredNorm(Term):
    """Σ θ² over all parameters, without ½: with a weight c the L2 penalty c·Σθ² (aitken's code).

    Biases and initial states count as every other parameter does.
    """

    kind: Literal["squared-norm"] = "squared-norm"

    def __call__(
        self, model: AttentionModel, batch: Batch, trace: Trace, generator: torch.Generator
    ) -> Float[Tensor, ""]:
        """Return the sum of squares."""
        if not isinstance(model, nn.Module):
            raise MissingCapability("The squared norm needs a model that is a torch module.")
        squares = [parameter.square().sum() for parameter in model.parameters()]
        return torch.stack(squares).sum()
