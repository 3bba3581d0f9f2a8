"""Trained models that share one build.

`TrainedUnit.best_model` builds its model anew and keeps it. Where many units of one model are
measured in turn, reading its word vectors takes longer than the measurement, and all of them
together more memory than there is.
"""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache
from typing import Literal

import torch
from torch import nn

from attnscope.data.source import Source
from attnscope.models.base import ModelSpec
from attnscope.models.trace import AttentionModel
from attnscope.training.trained_unit import TrainedUnit


def loaded_model(
    unit: TrainedUnit, device: str = "cpu", which: Literal["best", "last"] = "best"
) -> AttentionModel:
    """Return a unit's model on a device, in evaluation mode; the unit does not keep it.

    Parameters
    ----------
    which
        The weights of the best step, or of the last one.
    """
    model = deepcopy(_built(unit.unit.source, unit.unit.model))
    arrays = unit.folder.load_weights(which)[1]
    for name, parameter in model.named_parameters():
        parameter.copy_(torch.from_numpy(arrays[name]))
    return model.to(device)  # type: ignore[return-value]


@lru_cache(maxsize=4)
def _built(source: Source, spec: ModelSpec) -> nn.Module:
    return spec.build(source, 0).eval().requires_grad_(False)
