"""The loss as a sum of named terms, each a small object that a configuration chooses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.data.batch import Batch
from attnscope.models.base import AttentionModule
from attnscope.models.dropout import Randomness
from attnscope.models.trace import AttentionModel, Trace
from attnscope.runs.spec import Spec

# From a unit and "best" or "last" to its trained model, on the device of the training.
LoadModel = Callable[[Any, str], AttentionModule]


class Term(Spec):
    """Root of the terms of an objective: a subclass needs a ``kind`` and ``__call__``.

    A term that says that it is ``vectorised`` lets its units train together: several seeds are then
    one `torch.func.vmap` (`training.engine`). The units may differ in the fields named in
    ``varying``, each of which is then a tensor of one number. A term that is a mean over a batch's
    labelled texts, or a function of parameters alone, says so with ``per_example``: batches may
    then be read in parts (`training.like_lengths`).
    """

    varying: ClassVar[tuple[str, ...]] = ("weight",)
    passes: ClassVar[int] = 0  # how often it runs the model on the batch again
    per_example: ClassVar[bool] = False
    weight: float = 1.0

    @property
    def vectorised(self) -> bool:
        """Whether it may run under `torch.func.vmap`; off unless a term opts in.

        Such a term is plain tensor operations: no boolean indexing, no control flow on data, no
        randomness but what ``randomness`` gives.
        """
        return False

    def ready(self, load: LoadModel) -> Term:
        """Return the term with the trained models it needs; most need none."""
        return self

    @abstractmethod
    def __call__(
        self, model: AttentionModel, batch: Batch, trace: Trace, randomness: Randomness
    ) -> Float[Tensor, ""]:
        """Return the term's value, before its weight."""


class Likelihood(Term):
    """Mean negative log-likelihood of the real output words (snell Eq. 3, sunlu Eq. 5)."""

    vectorised: ClassVar[bool] = True
    per_example: ClassVar[bool] = True
    kind: Literal["likelihood"] = "likelihood"

    def __call__(
        self, model: AttentionModel, batch: Batch, trace: Trace, randomness: Randomness
    ) -> Float[Tensor, ""]:
        """Return the mean over all real output positions of the batch."""
        return negative_log_likelihood(trace).sum() / batch.target_lengths.sum()


def negative_log_likelihood(trace: Trace) -> Float[Tensor, "batch out"]:
    """Return -log p_{t,y_t}, 0 at padding."""
    batch = trace.batch
    # Flattened, because the form with further axes has no deterministic kernel on a GPU.
    loss = torch.nn.functional.cross_entropy(
        trace.logits.flatten(0, 1), batch.targets.flatten(), reduction="none"
    )
    return loss.view_as(batch.targets) * batch.target_mask


def total(
    terms: Sequence[Term], model: AttentionModel, trace: Trace, randomness: Randomness
) -> Float[Tensor, ""]:
    """Return the weighted sum of the terms."""
    parts = [term.weight * term(model, trace.batch, trace, randomness) for term in terms]
    return torch.stack(parts).sum()
