"""Checkpoints of a training run: folders ``checkpoint-N``, as a Trainer writes them."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from pickle import UnpicklingError

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from attnscope.errors import UsageError
from attnscope.models.adapted import Adapted
from attnscope.runs.atomic import read_json

_INDEX = "model.safetensors.index.json"
_FILES = ("model.safetensors", "pytorch_model.bin")


def find_checkpoints(folder: Path) -> dict[int, Path]:
    """Return the folders of checkpoints by step; gaps are allowed."""
    found = {}
    for path in sorted(folder.glob("checkpoint-*")):
        number = re.fullmatch(r"checkpoint-(\d+)", path.name)
        if number is not None and path.is_dir():
            found[int(number[1])] = path
    if not found:
        raise UsageError(f"{folder} has no folder checkpoint-N.")
    return dict(sorted(found.items()))


def with_weights(model: Adapted, path: Path) -> Adapted:
    """Return a copy of an adapted model with the weights of a checkpoint.

    They are read as safetensors, or with ``weights_only``.
    """
    twin = copy.copy(model)
    twin._modules = dict(model._modules)
    twin.module = copy.deepcopy(model.module)
    state = _weights(path)
    own = twin.module.state_dict()
    wrong = [n for n, value in state.items() if n in own and own[n].shape != value.shape]
    if wrong:
        raise UsageError(
            f"{path} is of another shape: {wrong[0]} is {list(state[wrong[0]].shape)}, and the "
            f"model's is {list(own[wrong[0]].shape)}."
        )
    missing = [n for n in twin.module.load_state_dict(state, strict=False).missing_keys if n in own]
    tied = getattr(twin.module, "_tied_weights_keys", None) or ()
    missing = [name for name in missing if not any(key in name for key in tied)]
    if missing:
        raise UsageError(f"{path} lacks weights of the model: {missing[0]}.")
    return twin


def _weights(path: Path) -> dict[str, Tensor]:
    try:
        for name in _FILES:
            file = path / name
            if file.exists() and file.suffix == ".safetensors":
                return load_file(file)
            if file.exists():
                return torch.load(file, weights_only=True, map_location="cpu")
        if (path / _INDEX).exists():  # a large model in several files
            told = read_json(path / _INDEX)["weight_map"]
            names = sorted({Path(str(name)).name for name in told.values()})
            parts = [load_file(path / name) for name in names]
            return {name: value for part in parts for name, value in part.items()}
    except UnpicklingError as error:
        raise UsageError(f"{path} has pickled objects besides weights: not loaded.") from error
    except (OSError, RuntimeError, SafetensorError) as error:
        raise UsageError(f"{path} has weights that cannot be read ({error}).") from error
    raise UsageError(f"{path} has no weights ({' or '.join(_FILES)}).")
