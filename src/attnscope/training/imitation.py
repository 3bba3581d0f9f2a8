"""The imitating adversary as a term: predict as a base unit does, attend elsewhere (tutek Eq. 6).

TVD(ŷ_a, ŷ_b) − λ·JSD(α_a, α_b), with the divergence of the equation itself. Published code of this
adversary trains with KL in its place and with swapped arguments, which its author confirmed as a
mistake, and multiplies the sum by class weights; neither is done here.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field, PrivateAttr
from torch import Tensor

from attnscope.data.batch import Batch
from attnscope.errors import MissingCapability, UsageError
from attnscope.models.base import AttentionModule
from attnscope.models.dropout import Randomness
from attnscope.models.trace import AttentionModel, Trace
from attnscope.scores.attention import site_of
from attnscope.theory.divergence import jensen_shannon, total_variation
from attnscope.training.objective import LoadModel, Term
from attnscope.training.unit import Unit


class Imitation(Term):
    """How far a model's predictions are from a base unit's, less λ times its attention's distance.

    The base is named by all its settings, so that they are part of the imitator's hash; its weights
    are loaded from the workspace of both (`ready`), and it reads every training batch itself:
    nothing of it is stored twice. Both numbers are means over real output words.
    """

    varying: ClassVar[tuple[str, ...]] = ("weight", "divergence")
    kind: Literal["imitation"] = "imitation"
    base: Unit
    which: Literal["best", "last"] = Field("best", description="weights of the base unit")
    divergence: float = Field(0.0, ge=0, description="λ: the weight of attending elsewhere")
    site: str = "cross"
    _model: AttentionModule | None = PrivateAttr(None)

    @property
    def vectorised(self) -> bool:
        """Whether it may run under vmap: if the base may."""
        return self.base.model.vectorised

    def ready(self, load: LoadModel) -> Imitation:
        """Return the term with the base unit's model, which must be trained already."""
        ready = self.model_copy()
        ready._model = load(self.base, self.which)
        return ready

    def __call__(
        self, model: AttentionModel, batch: Batch, trace: Trace, randomness: Randomness
    ) -> Float[Tensor, ""]:
        """Return Eq. 6 on a batch."""
        distance, divergence = imitated(trace, self._base_trace(batch, trace), self.site)
        return (distance - self.divergence * divergence).sum() / batch.target_lengths.sum()

    def _base_trace(self, batch: Batch, trace: Trace) -> Trace:
        if self._model is None:
            raise UsageError(
                f"The model of the base unit {self.base.name} was not loaded: call "
                "ready(model_loader(workspace, device)) on the term."
            )
        base, numbers = self._model, trace.logits.dtype
        # Only if needed: on a GPU this moves an LSTM's weights away from where a graph reads them.
        if next(base.parameters()).dtype != numbers:
            base.to(numbers)
        with torch.no_grad():
            return base.trace(batch, self.base.training.attention)


def imitated(
    trace: Trace, base: Trace, site: str = "cross"
) -> tuple[Float[Tensor, "batch out"], Float[Tensor, "batch out"]]:
    """Return the TVD of outputs and the JSD of attention of two traces of one batch, 0 at padding.

    Several heads count alike.
    """
    if trace.logits.shape != base.logits.shape:
        raise MissingCapability(
            f"A model of {trace.logits.shape[-1]} output types cannot imitate one of "
            f"{base.logits.shape[-1]}."
        )
    real = trace.batch.target_mask
    outputs = total_variation(trace.logits.softmax(-1), base.logits.softmax(-1))
    own, other = site_of(trace, site), site_of(base, site)
    apart = jensen_shannon(own.weights, other.weights, own.mask[:, None, None]).mean(1)
    return outputs * real, apart * real
