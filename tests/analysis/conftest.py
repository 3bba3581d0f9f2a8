"""Classifiers to be measured: one of the package, and one whose every number is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from attnscope.data.batch import Batch, Example, collate
from attnscope.data.tasks import KeywordTask
from attnscope.models.attentions import Additive
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.trace import Trace, attend

SPEC = ClassifierSpec(embedding=5, encoder=Recurrent(hidden=4), attention=Additive(hidden=3))


class Given(nn.Module):
    """Word types with given states and attention logits, and a linear readout without bias."""

    def __init__(self, states: Sequence, scores: Sequence, weight: Sequence) -> None:
        super().__init__()
        self.states, self.scores, self.weight = (
            nn.Parameter(torch.tensor(part, dtype=torch.float64))
            for part in (states, scores, weight)
        )

    def trace(self, batch: Batch, attention=None, generator=None) -> Trace:
        states = self.states[batch.inputs]
        logits = self.scores[batch.inputs][:, None, None]
        site = attend(batch, logits, states[:, None], (attention or {}).get("cross"))
        query = states.new_zeros(len(batch), 1, 0)
        outputs = self.readout(site.context, query)
        return Trace(batch, states, states, None, query, outputs, {"cross": site})

    def readout(self, context: Tensor, query: Tensor) -> Tensor:
        return context.squeeze(-2) @ self.weight.T


@pytest.fixture
def given() -> type[Given]:
    """A classifier whose states, attention logits and readout are given."""
    return Given


@pytest.fixture
def classifier() -> Callable[[int], nn.Module]:
    """Build a small classifier of the package, in float64, with weights that matter."""

    def build(seed: int = 0) -> nn.Module:
        model = SPEC.build(KeywordTask(types=9), seed).double()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(3)  # As initialised, attention is all but uniform.
        return model.requires_grad_(False)

    return build


@pytest.fixture
def reviews() -> Batch:
    """Twelve examples of 1 to 12 words, in no order of length."""
    stream = torch.Generator().manual_seed(3)
    lengths = (torch.randperm(12, generator=stream) + 1).tolist()
    return collate(
        [
            Example(10 * n + 7, torch.randint(9, (length,), generator=stream).numpy(), [0], [n % 2])
            for n, length in enumerate(lengths)
        ]
    )
