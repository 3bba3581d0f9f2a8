"""The imitating adversary as a term: predict as a base unit does, attend elsewhere (tutek Eq. 6).

TVD(ŷ_a, ŷ_b) − λ·JSD(α_a, α_b), with the divergence of the equation itself. Published code of this
adversary trains with KL in its place and with the arguments swapped, which its author confirmed as
a mistake; and it multiplies the sum by class weights. Neither is followed here.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field, PrivateAttr
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.errors import MissingCapability, UsageError, WorkspaceError
from attnscope.models.base import Devices
from attnscope.models.dropout import Randomness
from attnscope.models.encoders import one_of_several
from attnscope.models.trace import AttentionModel, Trace
from attnscope.scores.attention import site_of
from attnscope.theory.divergence import jensen_shannon, total_variation
from attnscope.training.loop import load_model
from attnscope.training.objective import Term
from attnscope.training.unit import Unit


class Imitation(Term):
    """How far a model's predictions are from a base unit's, less λ times its attention's distance.

    The base is named by all its settings, so that they are part of the imitator's hash; its weights
    are read from the workspace that both are in (`ready`), and it reads every training batch
    itself: nothing of it is stored twice. Both numbers are means over real output words.
    """

    numbers: ClassVar[tuple[str, ...]] = ("weight", "divergence")
    kind: Literal["imitation"] = "imitation"
    base: Unit
    which: Literal["best", "last"] = Field("best", description="weights of the base unit")
    divergence: float = Field(0.0, ge=0, description="λ: what attending elsewhere is worth")
    site: str = "cross"
    _model: nn.Module | None = PrivateAttr(None)

    def ready(self, workspace: Path, device: str) -> Imitation:
        """Return the term with the base unit's model, which must be trained already."""
        folder = self.base.folder(workspace)
        if not folder.finished()[0]:
            raise WorkspaceError(
                f"{folder.name} is to be imitated and not trained in {workspace}: train it first."
            )
        ready = self.model_copy()
        ready._model = load_model(self.base, folder, self.which).to(device)
        return ready

    @property
    def stackable_on(self) -> Devices:
        """Where the base is, which runs beside them."""
        return self.base.model.stackable_on

    def in_program(self) -> Imitation:
        """Return the term with a base that runs beside several imitators."""
        alike = self.model_copy()
        if self._model is not None:
            alike._model = one_of_several(self._model)
        return alike

    def __call__(
        self, model: AttentionModel, batch: Batch, trace: Trace, randomness: Randomness
    ) -> Float[Tensor, ""]:
        """Return Eq. 6 on a batch."""
        distance, divergence = imitated(trace, self._base_trace(batch, trace), self.site)
        return (distance - self.divergence * divergence).sum() / batch.target_lengths.sum()

    def _base_trace(self, batch: Batch, trace: Trace) -> Trace:
        if self._model is None:
            raise UsageError(
                f"The model of {self.base.name} that is to be imitated was not loaded: call "
                "ready(workspace, device) on the term."
            )
        base, numbers = self._model, trace.logits.dtype
        # Not at every step: on a GPU an LSTM then moves its weights, from where a graph reads them.
        if next(base.parameters()).dtype != numbers:
            base.to(numbers)
        with torch.no_grad():
            return base.trace(batch, self.base.training.attention)  # type: ignore[operator]


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
