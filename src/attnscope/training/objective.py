"""The loss as a sum of named terms, each a small object that a configuration chooses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.data.batch import Batch
from attnscope.models.base import EVERYWHERE, Devices
from attnscope.models.dropout import Randomness
from attnscope.models.trace import AttentionModel, Trace
from attnscope.runs.spec import Spec


class Term(Spec):
    """Root of the terms of an objective.

    Units that train as one vmapped group (`attnscope.training.engine.groups`) may differ in the
    fields that are ``numbers``, each of which is then a tensor of one number.
    """

    numbers: ClassVar[tuple[str, ...]] = ("weight",)
    passes: ClassVar[int] = 0  # how often it reads a batch once more
    weight: float = 1.0

    @property
    def stackable_on(self) -> Devices:
        """Where units with it train as one program: plain operations, no randomness but masks."""
        return EVERYWHERE

    def program(self) -> Term:
        """Return what the terms of all units of one program have in common."""
        return self.model_copy(update=dict.fromkeys(self.numbers, 0.0))

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
    terms: Sequence[Term], model: AttentionModel, trace: Trace, randomness: Randomness
) -> Float[Tensor, ""]:
    """Return the weighted sum of the terms."""
    parts = [term.weight * term(model, trace.batch, trace, randomness) for term in terms]
    return torch.stack(parts).sum()
