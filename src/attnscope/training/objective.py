"""The loss as a sum of named terms, each a small object that a configuration chooses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.data.batch import Batch
from attnscope.models.dropout import Randomness
from attnscope.models.trace import AttentionModel, Trace
from attnscope.runs.spec import Spec


class Term(Spec):
    """Root of the terms of an objective.

    One that is ``stackable`` is plain tensor operations, with no randomness but masks, so that
    several units run as one program (`attnscope.training.together`).
    """

    stackable: ClassVar[bool] = True
    weight: float = 1.0

    def ready(self, workspace: Path, device: str) -> Term:
        """Return the term with what it needs of a workspace: by default nothing."""
        return self

    def in_program(self) -> Term:
        """Return the term as units of one program compute it: in shapes that no number changes."""
        return self

    @abstractmethod
    def __call__(
        self, model: AttentionModel, batch: Batch, trace: Trace, randomness: Randomness
    ) -> Float[Tensor, ""]:
        """Return the term's value, before its weight."""


class Likelihood(Term):
    """Mean negative log-likelihood of the real output words (snell Eq. 3; the mean, as in code)."""

    kind: Literal["likelihood"] = "likelihood"

    def __call__(
        self, model: AttentionModel, batch: Batch, trace: Trace, randomness: Randomness
    ) -> Float[Tensor, ""]:
        """Return the mean over all real output positions of the batch."""
        return negative_log_likelihood(trace).sum() / batch.target_lengths.sum()


def negative_log_likelihood(trace: Trace) -> Float[Tensor, "batch out"]:
    """Return -log p_{t,y_t}, 0 at padding."""
    batch = trace.batch
    # Flattened, because the form with further axes has no repeatable kernel on a GPU.
    loss = torch.nn.functional.cross_entropy(
        trace.logits.flatten(0, 1), batch.targets.flatten(), reduction="none"
    )
    return loss.view_as(batch.targets) * batch.target_mask


def total(
    terms: Sequence[Term],
    model: AttentionModel,
    trace: Trace,
    randomness: Randomness,
    weights: Iterable[float | Tensor] | None = None,
) -> Float[Tensor, ""]:
    """Return the weighted sum of the terms, by their own weights unless others are given."""
    weights = [term.weight for term in terms] if weights is None else weights
    parts = [
        weight * term(model, trace.batch, trace, randomness)
        for weight, term in zip(weights, terms, strict=True)
    ]
    return torch.stack(parts).sum()
