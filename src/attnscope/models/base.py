"""How a configuration names a model, and how a model is built from it."""

from __future__ import annotations

from abc import abstractmethod

from torch import nn

from attnscope.data.source import Source
from attnscope.runs.spec import Spec

Devices = frozenset[str]
EVERYWHERE, GPU, NOWHERE = frozenset({"cpu", "cuda"}), frozenset({"cuda"}), frozenset[str]()


class ModelSpec(Spec):
    """Root of the models that a configuration can name."""

    @property
    def stackable_on(self) -> Devices:
        """The devices on which units train as one program (`attnscope.training.engine.groups`).

        They can where a model is plain tensor operations with no randomness but that of `dropped`.
        """
        return NOWHERE

    def program(self) -> ModelSpec:
        """Return what all models that run as one program with this one have in common.

        That is the spec without the settings that a model holds as numbers in its buffers: they are
        stacked like parameters, and so may differ. By default there are none.
        """
        return self

    @abstractmethod
    def build(self, source: Source, seed: int) -> nn.Module:
        """Return a freshly initialised model for the types of a source."""


def parameter_count(model: nn.Module) -> int:
    """Return the number of parameters, shared ones counted once."""
    return sum(parameter.numel() for parameter in model.parameters())
