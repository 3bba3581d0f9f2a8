"""Tying a state to the embedding of its word, as a term of the objective (tutek §3.1, Eq. 4)."""

from __future__ import annotations

from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor

from attnscope.data.batch import Batch
from attnscope.errors import MissingCapability
from attnscope.models.dropout import Randomness
from attnscope.models.trace import AttentionModel, Trace, needed
from attnscope.training.objective import Term


class Tying(Term):
    """(1/T) Σ_t ‖h_t - e_t‖², the mean over a batch's real words; the weight is δ (tutek Eq. 4).

    ``power`` 1 is the norm itself, as in the authors' later code, which counts padding too.
    """

    vectorised: ClassVar[bool] = True
    kind: Literal["tying"] = "tying"
    power: Literal[1, 2] = 2

    def __call__(
        self, model: AttentionModel, batch: Batch, trace: Trace, randomness: Randomness
    ) -> Float[Tensor, ""]:
        """Return the mean distance of states and embeddings."""
        states = needed(trace.encoder_states, "encoder states")
        words = needed(trace.embeddings, "embeddings")
        if states.shape != words.shape:
            raise MissingCapability(
                f"Tying needs states as wide as the embeddings, and they have {states.shape[-1]} "
                f"and {words.shape[-1]} numbers: choose an encoder of the embeddings' width."
            )
        difference = states - words
        distances = difference.norm(dim=-1) if self.power == 1 else difference.square().sum(-1)
        return distances.masked_fill(~batch.input_mask, 0.0).sum() / batch.input_lengths.sum()
