"""Optimisers that a configuration can name, and their state as plain arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from attnscope.runs.spec import Spec
from attnscope.runs.tensors import Arrays
from attnscope.training.engine.vmapped import StackedModels, clip_each


class OptimizerSpec(Spec):
    """Root of the optimisers."""

    @abstractmethod
    def build(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        """Return the optimiser of some parameters."""

    def build_stacked(self, models: StackedModels) -> torch.optim.Optimizer:
        """Return the optimiser of several models as one, which treats each of them by itself.

        By default the one of their stacked parameters, as is right for an optimiser that treats
        every number by itself.
        """
        return self.build(_trained(models))


class Adam(OptimizerSpec):
    """Adam with PyTorch's defaults, as in all of snell."""

    kind: Literal["adam"] = "adam"
    lr: float = Field(1e-3, gt=0)

    def build(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        """Return Adam."""
        trained = list(parameters)
        return torch.optim.Adam(trained, lr=self.lr, fused=_fused(trained))


class Sgd(OptimizerSpec):
    """Plain gradient descent, as in sunlu's synthetic experiments."""

    kind: Literal["sgd"] = "sgd"
    lr: float = Field(0.015, gt=0)

    def build(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        """Return gradient descent."""
        return torch.optim.SGD(parameters, lr=self.lr)


class Adagrad(OptimizerSpec):
    """Adagrad as in sunlu's code: at its k-th step, from 0, the rate is lr / (1 + k·lr_decay)."""

    kind: Literal["adagrad"] = "adagrad"
    lr: float = Field(0.02, gt=0)
    lr_decay: float = Field(0.001, ge=0)
    weight_decay: float = Field(0.0, ge=0)

    def build(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        """Return Adagrad."""
        return torch.optim.Adagrad(
            parameters, lr=self.lr, lr_decay=self.lr_decay, weight_decay=self.weight_decay
        )


class _Clipped(OptimizerSpec):
    """Adam of a clipped gradient; variants say with which settings."""

    clip: float = Field(gt=0, description="largest norm of a model's whole gradient")

    def build(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        """Return the optimiser, which clips and decays by itself."""
        trained = list(parameters)
        return self._optimizer(trained, lambda: clip_grad_norm_(trained, self.clip))

    def build_stacked(self, models: StackedModels) -> torch.optim.Optimizer:
        """Return the optimiser that clips every model's gradient by its own norm."""
        return self._optimizer(_trained(models), lambda: clip_each(models, self.clip))

    @abstractmethod
    def _optimizer(self, parameters: list[Tensor], clip: Callable[[], object]) -> _DecayingAdam:
        """Return the optimiser that calls ``clip`` first."""


class ClippedAdam(_Clipped):
    """Adam with weight decay and a clipped gradient; the settings are tutek's."""

    kind: Literal["clipped-adam"] = "clipped-adam"
    lr: float = Field(1e-3, gt=0)
    weight_decay: float = Field(1e-5, ge=0)
    clip: float = Field(5.0, gt=0, description="largest norm of a model's whole gradient")

    def _optimizer(self, parameters: list[Tensor], clip: Callable[[], object]) -> _DecayingAdam:
        adam = _DecayingAdam(parameters, lr=self.lr, weight_decay=self.weight_decay)
        adam.clip, adam.decay = clip, 1.0
        return adam


class AitkenAdam(_Clipped):
    """Adam as in aitken's code: a clipped gradient, and a learning rate that decays by the step.

    With eps = 0.1, far above most gradients, an update is far smaller than the learning rate.
    """

    kind: Literal["aitken-adam"] = "aitken-adam"
    lr: float = Field(0.1, gt=0)
    betas: tuple[float, float] = (0.9, 0.99)
    eps: float = Field(0.1, gt=0)
    decay: float = Field(0.9997, gt=0, le=1, description="the rate at step k is lr · decay^k")
    clip: float = Field(10.0, gt=0, description="largest norm of a model's whole gradient")

    def _optimizer(self, parameters: list[Tensor], clip: Callable[[], object]) -> _DecayingAdam:
        adam = _DecayingAdam(parameters, lr=self.lr, betas=self.betas, eps=self.eps)
        adam.clip, adam.decay = clip, self.decay
        return adam


class _DecayingAdam(torch.optim.Adam):
    """Adam that clips first, and whose learning rate is a function of the steps it has made.

    The rate is worked out afresh from the state, so that a restored state is all it needs.
    """

    clip: Callable[[], object]
    decay: float

    def __init__(self, parameters: list[Tensor], **settings: Any) -> None:
        super().__init__(parameters, fused=_fused(parameters), **settings)

    def step(self, closure: Any = None) -> Any:
        """Clip, set the learning rate, and update."""
        self.clip()
        made = max((int(parts["step"]) for parts in self.state.values()), default=0)
        for group in self.param_groups:
            group["lr"] = self.defaults["lr"] * self.decay**made
        return super().step(closure)


def _fused(parameters: list[Tensor]) -> bool | None:
    """Return whether Adam is one pass over all numbers, not one for each operation.

    A GPU keeps PyTorch's own choice, which a recorded graph replays.
    """
    return True if all(each.device.type == "cpu" for each in parameters) else None


def _trained(models: StackedModels) -> list[Tensor]:
    return [parameter for parameter in models.parameters.values() if parameter.requires_grad]


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
