"""Where a tensor came from, as far as attention needs it: products, softmaxes and contexts.

Inside a watched pass every result of a tracked function carries an origin: the two factors of a
product (queries and keys of the logits that come from it), the softmax whose weights it is, or the
site whose context it is. Origins pass through functions that scale, mask, reshape or cast. Nothing
here changes a number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary


@dataclass(frozen=True)
class Product:
    """Logits that are ``scale`` · left @ right, through whatever was added or masked since."""

    left: Tensor  # *, row, width
    right: Tensor  # *, column, width
    scale: float = 1.0


@dataclass(frozen=True)
class Weights:
    """Attention weights of a call; the number counts the pass's softmaxes."""

    call: int


@dataclass(frozen=True)
class Context:
    """Σ_l α_l v_l of a call."""

    call: int


Origin = Product | Weights | Context

# Functions through which logits and weights pass: they scale, shift, mask, cast or reshape.
_SHAPES = {
    "view",
    "reshape",
    "transpose",
    "permute",
    "unsqueeze",
    "squeeze",
    "expand",
    "expand_as",
    "view_as",
    "flatten",
    "unflatten",
    "movedim",
    "swapaxes",
    "contiguous",
    "clone",
    "to",
    "float",
    "half",
    "bfloat16",
    "double",
    "type",
    "type_as",
    "dropout",
    "dropout_",
    "__getitem__",
    "narrow",
    "split",
    "__get__",
}
_VALUES = {
    "add",
    "add_",
    "__add__",
    "__iadd__",
    "__radd__",
    "sub",
    "sub_",
    "__sub__",
    "__isub__",
    "masked_fill",
    "masked_fill_",
    "where",
    "tanh",
    "clamp",
    "max",
    "maximum",
    "nan_to_num",
    "cat",
    "concat",
}
_SCALES = {"mul", "mul_", "__mul__", "__imul__", "__rmul__", "multiply"}
_QUOTIENTS = {"div", "div_", "__truediv__", "__itruediv__", "true_divide"}
_PRODUCTS = {"matmul", "__matmul__", "bmm", "baddbmm", "einsum"}
TRACKED = _SHAPES | _VALUES | _SCALES | _QUOTIENTS | _PRODUCTS


class Lineage:
    """The origins of the tensors that are alive in one pass."""

    def __init__(self) -> None:
        self._origins = WeakIdKeyDictionary()

    def of(self, tensor: Any) -> Origin | None:
        """Return a tensor's origin, or None."""
        return self._origins.get(tensor) if isinstance(tensor, Tensor) else None

    def mark(self, tensor: Any, origin: Origin | None) -> None:
        """Give a tensor an origin."""
        if origin is not None and isinstance(tensor, Tensor):
            self._origins[tensor] = origin

    def follow(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Pass origins on from a function's arguments to its result."""
        if name in _PRODUCTS:
            self.mark(result, self._product(name, args, kwargs))
            return
        if name == "__getitem__" and not _plain_index(args[1]):
            return
        origin = next((o for o in map(self.of, _tensors(args)) if o is not None), None)
        if origin is None or (isinstance(origin, Context) and name not in _SHAPES):
            return
        if isinstance(origin, Product) and name in _SCALES | _QUOTIENTS:
            origin = _scaled(origin, args, name in _QUOTIENTS)
        for each in result if isinstance(result, tuple | list) else (result,):
            self.mark(each, origin)

    def _product(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Origin | None:
        if name == "einsum":
            return _einsum_product(args)
        if name == "baddbmm":
            args = (*args[1:], *(kwargs[n] for n in ("batch1", "batch2") if n in kwargs))
            scale = float(kwargs.get("alpha", 1.0))
        else:
            scale = 1.0
        if len(args) < 2 or not all(isinstance(part, Tensor) for part in args[:2]):
            return None
        left, right = args[:2]
        right = right[:, None] if right.ndim == 1 else right
        return Product(left if left.ndim > 1 else left[None], right.mT, scale)


def _plain_index(index: Any) -> bool:
    """Tell whether an index only cuts or adds axes: picked positions are no longer a sequence."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is Ellipsis or isinstance(part, slice) for part in parts)


def _tensors(args: Iterable[Any]) -> Iterable[Any]:
    for each in args:
        if isinstance(each, tuple | list):
            yield from (part for part in each if isinstance(part, Tensor))
        elif isinstance(each, Tensor):
            yield each


def _scaled(origin: Product, args: tuple[Any, ...], divided: bool) -> Product | None:
    numbers = [a for a in args if isinstance(a, int | float)]
    numbers += [float(a) for a in args if isinstance(a, Tensor) and a.ndim == 0]
    if not numbers:
        return None  # scaled by a tensor: no longer one multiple of q·k
    factor = float(numbers[0])
    return replace(origin, scale=origin.scale / factor if divided else origin.scale * factor)


def letters(args: tuple[Any, ...]) -> tuple[str, str, str] | None:
    """Return the letters of an einsum of two factors: of both, and of the result."""
    if len(args) < 3 or not isinstance(args[0], str) or "." in args[0] or "->" not in args[0]:
        return None
    inputs, output = args[0].replace(" ", "").split("->")
    parts = inputs.split(",")
    return (parts[0], parts[1], output) if len(parts) == 2 else None


def _einsum_product(args: tuple[Any, ...]) -> Product | None:
    found = letters(args)
    if found is None:
        return None
    first, second, out = found
    summed = [c for c in first if c in second and c not in out]
    if len(summed) != 1 or len(out) < 2:
        return None
    # Logits are …, row, column: the factor that has the row's letter holds the queries.
    row, column, key = out[-2], out[-1], summed[0]
    factors = {first: args[1], second: args[2]}
    queries = next((f for f in factors if row in f and column not in f), None)
    keys = next((f for f in factors if column in f and row not in f), None)
    if queries is None or keys is None or first == second:
        return None
    lead = out[:-2]
    return Product(
        ordered(factors[queries], queries, lead + row + key),
        ordered(factors[keys], keys, lead + column + key),
    )


def ordered(tensor: Tensor, have: str, want: str) -> Tensor:
    """Return a tensor with its axes in the order of letters; one that it lacks has size 1."""
    present = [c for c in want if c in have]
    rest = [c for c in have if c not in want]
    moved = tensor.permute([have.index(c) for c in [*present, *rest]])
    for place, letter in enumerate(want):
        if letter not in have:
            moved = moved.unsqueeze(place)
    return moved


def as_heads(tensor: Tensor, batch: int, heads: int, time: int) -> Tensor | None:
    """Return [..., time, width] as [batch, heads, time, width], or None if it has no such shape."""
    if tensor.ndim < 2 or tensor.shape[-2] != time:
        return None
    lead, tail = tensor.shape[:-2], tensor.shape[-2:]
    size = lead.numel()
    if size == batch * heads:
        return tensor.reshape(batch, heads, *tail)
    if size == batch:
        return tensor.reshape(batch, 1, *tail).expand(batch, heads, *tail)
    if size in (1, heads) and (not lead or lead[-1] == size):
        return tensor.reshape(1, size, *tail).expand(batch, heads, *tail)
    if heads and size and size % batch == 0 and heads % (size // batch) == 0:
        groups = size // batch  # grouped queries: several heads share their keys
        return tensor.reshape(batch, groups, *tail).repeat_interleave(heads // groups, 1)
    return None


def factors_of(
    origin: Origin | None, batch: int, heads: int, out: int, inp: int
) -> tuple[Tensor, Tensor] | None:
    """Return queries (scaled) and keys of logits that are their product, or None."""
    if not isinstance(origin, Product) or origin.left.shape[-1] != origin.right.shape[-1]:
        return None
    for queries, keys in ((origin.left, origin.right), (origin.right, origin.left)):
        q, k = as_heads(queries, batch, heads, out), as_heads(keys, batch, heads, inp)
        if q is not None and k is not None:
            return q * origin.scale, k
    return None
