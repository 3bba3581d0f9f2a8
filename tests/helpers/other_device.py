"""A device that is not the CPU, for machines that have none: what mixes the two fails as on a GPU.

Tensors on it are those of the CPU, in a wrapper that says ``meta``. An operation takes tensors of
one device; indices on the CPU and numbers without an axis are let in, as a GPU lets them in.
Operations can be recorded and done again in the same memory, as by a CUDA graph; what such a graph
cannot hold fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only

from attnscope.training.engine.recurrent_cells import ELEMENTWISE

DEVICE = torch.device("meta")  # the one that every PyTorch has
_COPIES = ("_to_copy", "copy_", "copy")
_INDEXING = ("index", "index_put", "index_put_", "_unsafe_index")
# A graph cannot wait for numbers: those that decide a shape, or that Python reads.
_WAITING = ("_local_scalar_dense", "equal", "masked_select", "nonzero", "_unique2", "unique_dim")


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


class Recording:
    """Operations on the other device, done again in the same memory by a call.

    As with a CUDA graph, what is done again reads and writes the tensors of the first time; Python
    is not asked.
    """

    _now: Recording | None = None

    def __init__(self, work: Callable[[], Any]) -> None:
        self.done: list[tuple[Any, Any, dict[str, Any], Any]] = []
        Recording._now = self
        try:
            self.result = work()
        finally:
            Recording._now = None

    @classmethod
    def note(cls, func: Any, args: Any, kwargs: dict[str, Any], found: Any) -> None:
        """Note an operation that was done, if there is a recording."""
        if cls._now is not None:
            cls._now.done.append((func, args, kwargs, found))

    @classmethod
    def demand_recordable(cls, name: str, args: Any, there: bool, given: list[bool]) -> None:
        """Raise at what a graph cannot hold, if there is a recording.

        ``there`` is whether the result is on the other device, and ``given`` the same of the
        tensors given.
        """
        if cls._now is None or not (there or any(given)):
            return
        masks = name in _INDEXING and any(
            isinstance(each, torch.Tensor) and each.dtype == torch.bool
            for each in tree_leaves(args[1])
        )
        if masks or name in _WAITING or (name in _COPIES and {there, *given} != {True}):
            raise RuntimeError(f"{name}: a graph cannot wait for the CPU")

    def __call__(self) -> None:
        """Do everything again."""
        for func, args, kwargs, found in self.done:
            again = func(*args, **kwargs)
            for place, numbers in zip(tree_leaves(found), tree_leaves(again), strict=True):
                # Views, and what was changed in place, are there already.
                if isinstance(place, torch.Tensor) and place.data_ptr() != numbers.data_ptr():
                    place.copy_(numbers)


def _fused_gru_back(gradient: Any, kept: Any, has_bias: bool) -> Any:
    return (*ELEMENTWISE.gru_back(gradient, kept), None, None)


def _fused_lstm_back(*parts: Any) -> Any:
    return (*ELEMENTWISE.lstm_back(*parts[:-1]), None)


# Operations that PyTorch has on a GPU alone; there they take matrices.
_ON_A_GPU: dict[str, Callable[..., Any]] = {
    "_thnn_fused_lstm_cell": ELEMENTWISE.lstm,
    "_thnn_fused_lstm_cell_backward_impl": _fused_lstm_back,
    "_thnn_fused_gru_cell": ELEMENTWISE.gru,
    "_thnn_fused_gru_cell_backward": _fused_gru_back,
}


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
    given = [isinstance(each, Elsewhere) for each in tensors]
    Recording.demand_recordable(name, args, there, given)
    bare, named = tree_map_only(Elsewhere, lambda each: each.inner, (args, kwargs))
    if asked is not None:
        named["device"] = torch.device("cpu")
    work = _ON_A_GPU.get(name, func)
    if name in _ON_A_GPU and any(each.ndim != 2 for each in tensors):
        raise RuntimeError(f"{name}: a GPU takes matrices")
    found = work(*bare, **named)
    if not there:
        return found
    Recording.note(work, bare, named, found)
    wrapped = tree_map_only(torch.Tensor, Elsewhere, found)
    if name in _ON_A_GPU:
        return wrapped
    return return_and_correct_aliasing(func, args, kwargs, wrapped)


def _demand_one_device(name: str, args: Any, tensors: list[torch.Tensor]) -> None:
    if name in _INDEXING and isinstance(args[0], Elsewhere):
        tensors = [args[0], *args[2:3]]
    if len({isinstance(each, Elsewhere) for each in tensors if each.ndim}) > 1:
        raise RuntimeError(f"{name}: some tensors are on {DEVICE}, others on the CPU")
