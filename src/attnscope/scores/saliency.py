"""Saliency Δ: how much the right word gains from an input word, to first order (snell §5.1).

Every source embedding is multiplied by a scalar of value 1, and Δ is minus the gradient of
L_t = −log p_{t,y_t} with respect to that scalar: Δ_{t,l} = −e_l · ∂L_t/∂e_l. A positive Δ means
that the word supports the right output: to remove it (scalar 0) would lower its probability.
Neither a norm nor an absolute value is taken. The authors' classification pipeline negates twice,
which turns the sign around; here both tasks have the sign of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.errors import MissingCapability
from attnscope.models.intervention import AttentionRule
from attnscope.models.trace import AttentionModel, Trace, needed
from attnscope.scores.lexical_probe import log_probability
from attnscope.scores.score import ScoreRule


class Saliency(ScoreRule):
    """Δ_{t,l}: embedding times gradient, one backward pass per output position.

    Where attention is learned, gradients flow through it; where an intervention freezes or gives
    it, they flow through the values alone. Reading frees the graph: a trace can be read once.
    """

    kind: Literal["saliency"] = "saliency"

    @property
    def name(self) -> str:
        """``saliency``."""
        return "saliency"

    def trace(
        self,
        model: AttentionModel,
        batch: Batch,
        attention: Mapping[str, AttentionRule] | None = None,
    ) -> Trace:
        """Run the model with a graph, whatever its mode and its parameters' settings."""
        with torch.enable_grad(), _differentiable(model):
            return model.trace(batch, attention)

    def values(self, model: AttentionModel, trace: Trace) -> Float[Tensor, "batch out inp"]:
        """Return −e_l · ∂L_t/∂e_l."""
        with torch.enable_grad():
            gain = log_probability(trace.logits, trace.batch.targets)
            # Examples do not touch each other: the gradient of their sum is that of each.
            gains = gain.where(trace.batch.target_mask, 0.0).sum(0)
            embeddings = needed(trace.embeddings, "embeddings")
            columns = [
                self._gradient(gains[t], embeddings, more=t + 1 < len(gains))
                for t in range(len(gains))
            ]
        return torch.stack([(embeddings.detach() * c).sum(-1) for c in columns], 1)

    @staticmethod
    def _gradient(
        gain: Float[Tensor, ""], embeddings: Float[Tensor, "batch inp embedding"], more: bool
    ) -> Float[Tensor, "batch inp embedding"]:
        found: Tensor | None = None
        if gain.requires_grad and embeddings.requires_grad:
            (found,) = torch.autograd.grad(gain, embeddings, retain_graph=more, allow_unused=True)
        if found is None:
            raise MissingCapability(
                "Saliency needs a trace whose output depends on its embeddings through a graph: "
                "make it with Saliency().trace(model, batch), and let the model's trace return the "
                "embeddings that it uses."
            )
        return found


@contextmanager
def _differentiable(model: AttentionModel) -> Iterator[None]:
    """Let gradients through a model for the time of a pass, and leave it as it was."""
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    fixed = [p for module in modules for p in module.parameters(False) if not p.requires_grad]
    resting = [m for m in modules if isinstance(m, nn.RNNBase) and not m.training]
    # cuDNN has a backward pass for recurrences in training mode alone; with dropout of their own
    # that mode would change the numbers, and PyTorch's own kernels must do.
    steady = [layer for layer in resting if layer.dropout == 0]
    for parameter in fixed:
        parameter.requires_grad_(True)
    for layer in steady:
        layer.training = True
    try:
        with torch.backends.cudnn.flags(
            enabled=torch.backends.cudnn.enabled and len(steady) == len(resting)
        ):
            yield
    finally:
        for layer in steady:
            layer.training = False
        for parameter in fixed:
            parameter.requires_grad_(False)
