"""Optimisers that a configuration can name, and their state as plain arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from attnscope.runs.spec import Spec
from attnscope.runs.tensors import Arrays


class OptimizerSpec(Spec):
    """Root of the optimisers."""

    @abstractmethod
    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return the optimiser of some parameters."""


class Adam(OptimizerSpec):
    """Adam with PyTorch's defaults, as in all of snell."""

    kind: Literal["adam"] = "adam"
    lr: float = Field(1e-3, gt=0)

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return Adam."""
        return torch.optim.Adam(parameters, lr=self.lr)


def optimizer_arrays(optimizer: torch.optim.Optimizer) -> Arrays:
    """Return the state as arrays named ``optimizer.<parameter>.<part>``."""
    state = optimizer.state_dict()["state"]
    return {
        f"optimizer.{index}.{part}": np.asarray(torch.as_tensor(value).cpu())
        for index, parts in state.items()
        for part, value in parts.items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, arrays: Arrays) -> None:
    """Put back what `optimizer_arrays` returned."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, array in arrays.items():
        prefix, _, rest = name.partition(".")
        if prefix == "optimizer":
            index, _, part = rest.partition(".")
            state.setdefault(int(index), {})[part] = torch.from_numpy(array.copy())
    optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
