"""How a configuration names a model, and how a model is built from it."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from torch import nn

from attnscope.data.source import Source
from attnscope.models.trace import AttentionModel
from attnscope.runs.spec import Spec

if TYPE_CHECKING:

    class AttentionModule(nn.Module, AttentionModel):
        """A torch module that is an `AttentionModel`; to Python any module is one."""
else:
    AttentionModule = nn.Module


class ModelSpec(Spec):
    """Root of the models that a configuration can name.

    A model that says that it is ``vectorised`` may be trained together with others that have the
    same settings: units of several seeds are then one `torch.func.vmap` (`training.engine`).
    """

    # Dotted names of the settings in which vectorised models may differ: numbers that a model keeps
    # in its buffers, which are stacked like parameters, and seeds of its initialisation.
    varying: ClassVar[tuple[str, ...]] = ()

    @property
    def vectorised(self) -> bool:
        """Whether several models may run under `torch.func.vmap`; off unless a model opts in.

        Such a model is plain tensor operations, without control flow on data, and its only
        randomness is `dropped`; `Recurrence` counts as plain.
        """
        return False

    @property
    def recurrent(self) -> bool:
        """Whether it has a `Recurrence`: PyTorch's own LSTM or GRU."""
        return False

    @abstractmethod
    def build(self, source: Source, seed: int) -> nn.Module:
        """Return a freshly initialised model for the types of a source."""


def parameter_count(model: nn.Module) -> int:
    """Return the number of parameters, shared ones counted once."""
    return sum(parameter.numel() for parameter in model.parameters())
