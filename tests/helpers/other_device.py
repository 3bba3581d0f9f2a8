"""A device that is not the CPU, for machines that have none: what mixes the two fails as on a GPU.

Tensors on it are those of the CPU, in a wrapper that says ``meta``. An operation takes tensors of
one device; indices on the CPU and numbers without an axis are let in, as a GPU lets them in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map_only

DEVICE = torch.device("meta")  # the one that every PyTorch has
_COPIES = ("_to_copy", "copy_", "copy")
_INDEXING = ("index", "index_put", "index_put_", "_unsafe_index")


class Elsewhere(torch.Tensor):
    """A tensor that says that it is on the other device."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Elsewhere:
        return torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=DEVICE,
            requires_grad=inner.requires_grad,
        )

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    def __repr__(self, **_: Any) -> str:
        return f"Elsewhere({self.inner})"

    def tolist(self) -> Any:
        """Return numbers, as every device does."""
        return self.cpu().tolist()

    def numpy(self, **_: Any) -> Any:
        """Refuse, as every device but the CPU does."""
        raise TypeError("A tensor that is not on the CPU has no numpy array: use cpu() first.")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Operations(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


_ITEMS = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)


class _Literals(TorchFunctionMode):
    """Tensors from numbers and lists, which PyTorch makes without asking a dispatch mode."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.tensor, torch.as_tensor) and kwargs.get("device") is not None:
            return func(*args, **kwargs | {"device": None}).to(kwargs["device"])
        if func in _ITEMS:
            places = args[1] if isinstance(args[1], tuple) else (args[1],)
            listed = tuple(torch.tensor(p).long() if isinstance(p, list) else p for p in places)
            args = (args[0], listed, *args[2:])
        return func(*args, **kwargs)


@contextmanager
def other_device() -> Iterator[torch.device]:
    """Let tensors be made on the other device."""
    with _Operations(), _Literals():
        yield DEVICE


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run an operation on the CPU, and say where its results are."""
    name = func._schema.name.partition("::")[2]
    tensors = [each for each in tree_flatten((args, kwargs))[0] if isinstance(each, torch.Tensor)]
    if any(each.is_meta and not isinstance(each, Elsewhere) for each in tensors):
        raise NotImplementedError(f"{name}: PyTorch made a tensor that has no numbers")
    asked = kwargs.get("device")
    if asked is not None:
        there = torch.device(asked).type == DEVICE.type
    elif name == "copy_":
        there = isinstance(args[0], Elsewhere)
    else:
        there = any(isinstance(each, Elsewhere) for each in tensors)
        if there and name not in _COPIES:
            _demand_one_device(name, args, tensors)
    bare, named = tree_map_only(Elsewhere, lambda each: each.inner, (args, kwargs))
    if asked is not None:
        named["device"] = torch.device("cpu")
    found = func(*bare, **named)
    if not there:
        return found
    wrapped = tree_map_only(torch.Tensor, Elsewhere, found)
    return return_and_correct_aliasing(func, args, kwargs, wrapped)


def _demand_one_device(name: str, args: Any, tensors: list[torch.Tensor]) -> None:
    if name in _INDEXING and isinstance(args[0], Elsewhere):
        tensors = [args[0], *args[2:3]]
    if len({isinstance(each, Elsewhere) for each in tensors if each.ndim}) > 1:
        raise RuntimeError(f"{name}: some tensors are on {DEVICE}, others on the CPU")
