"""One forward pass of any PyTorch model, watched: every attention is seen and can be replaced.

A `TorchFunctionMode` around the model's own forward pass sees ``scaled_dot_product_attention``,
``nn.MultiheadAttention`` and every softmax that weighs a sequence, whoever calls them; no code of
the model is changed and no hook is left behind. A softmax is run as it is, so that its result is
the model's own bit for bit; fused attention is written out in plain operations.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
import torch.utils.checkpoint
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from attnscope.data.batch import Batch
from attnscope.errors import MissingCapability
from attnscope.models.intervention import AttentionRule, Frozen, Learned, Only
from attnscope.models.layout import Form, Layout, allowed_of, one_row, split_mask
from attnscope.models.lineage import TRACKED, Context, Lineage, Origin, Weights, as_heads
from attnscope.models.places import Call, Place
from attnscope.models.values import MATRIX, values_beside

_FUSED = F.scaled_dot_product_attention  # also while it is replaced
_SOFTMAX = {"softmax"}
_HANDLED = {"scaled_dot_product_attention", "multi_head_attention_forward", "embedding"}
_MAPS = {"linear", "addmm"}
_LOOKED_AT = TRACKED | _SOFTMAX | _HANDLED | _MAPS


@dataclass
class Seen:
    """One attention of the pass, as far as it is known yet; weights still have sink columns."""

    call: Call
    place: Place | None
    logits: Float[Tensor, "batch heads out inp"]
    allowed: Tensor
    weights: Float[Tensor, "batch heads out inp"]
    origin: Origin | None
    values: Float[Tensor, "batch heads inp2 value"] | None = None
    factors: tuple[Tensor, Tensor] | None = None
    output_map: Float[Tensor, "stream joined"] | None = None
    input_first: bool = False  # a softmax over the first axis
    form: Form = "heads"

    @property
    def inp(self) -> int:
        """How many positions have a value: those that are no sink."""
        return self.logits.shape[-1] if self.values is None else self.values.shape[2]


class Watch(TorchFunctionMode):
    """The mode: everything that is known about the attentions of one pass.

    Parameters
    ----------
    module
        The model; its submodules give attentions their paths.
    batch
        What it is run on.
    places
        Known places by call; None in a first pass, which looks at every softmax.
    rules
        Replaced attention by the names of places.
    forms
        How softmaxes lie, where a first pass has shown it.

    Attributes
    ----------
    seen
        The attentions of the pass in their order.
    unread
        Calls whose layout is not known.
    recomputed
        Modules whose pass is run again in a backward pass (``torch.utils.checkpoint``).
    """

    def __init__(
        self,
        module: nn.Module,
        batch: Batch,
        places: Mapping[Call, Place] | None = None,
        rules: Mapping[str, AttentionRule] | None = None,
        forms: Mapping[Call, Form] | None = None,
    ) -> None:
        super().__init__()
        self.batch, self.places, self.rules = batch, places, rules or {}
        self.forms = dict(forms or {})
        self.seen: list[Seen] = []
        self.unread: list[Call] = []
        self.recomputed: list[str] = []
        self.embeddings: Tensor | None = None
        self._paths = {id(part): path for path, part in module.named_modules()}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lineage = Lineage()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run a function, and look at it where it may belong to attention."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name not in _LOOKED_AT:
            return func(*args, **kwargs)
        if name in _SOFTMAX:
            return self._softmax(func, args, kwargs)
        if name == "scaled_dot_product_attention":
            return self._fused(*args, **kwargs)
        if name == "multi_head_attention_forward":
            return self._multi_head(func, args, kwargs)
        result = func(*args, **kwargs)
        if name == "embedding":
            return self._embedded(args, kwargs, result)
        if name in _MAPS:
            self._mapped(name, args)
        else:
            self._follow(name, args, kwargs, result)
        return result

    def _follow(self, name: str, args: tuple[Any, ...], kwargs: Any, result: Any) -> None:
        if name in MATRIX and isinstance(self._lineage.of(args[0]), Context) and args[1].ndim == 2:
            self._mapped("linear", (args[0], args[1].mT))
            return
        weighed = values_beside(name, args, lambda x: isinstance(self._lineage.of(x), Weights))
        if weighed is None:
            self._lineage.follow(name, args, kwargs, result)
            return
        origin = self._lineage.of(weighed.weights)
        assert isinstance(origin, Weights)
        seen = self.seen[origin.call]
        size, heads, _, inp = seen.logits.shape
        values = weighed.values
        if seen.input_first and values.ndim == 3 and values.shape[1] == size:
            values = values.transpose(0, 1)
        if seen.values is None and inp - 1 <= values.shape[-2] <= inp:
            seen.values = as_heads(values, size, heads, values.shape[-2])
        self._lineage.mark(result, Context(origin.call))

    def _softmax(self, func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        logits = args[0] if args else kwargs["input"]
        dim = args[1] if len(args) > 1 else kwargs.get("dim")
        own = func(*args, **kwargs)
        call, place = self._call()
        form = self.forms.get(call) if place is None else place.form
        layout = Layout.of(logits, dim, len(self.batch), form) if isinstance(dim, int) else None
        if layout is None:
            self.unread.append(call)
            return own
        if self.places is not None and place is None:
            return own
        shaped = layout.heads(logits if logits.dtype == torch.float64 else logits.float())
        allowed = allowed_of(shaped)
        weights = self._ruled(place, shaped, allowed, layout.heads(own))
        seen = Seen(call, place, shaped, allowed, weights, self._lineage.of(logits))
        seen.input_first, seen.form = dim in (0, -logits.ndim), layout.form
        self.forms[call] = layout.form
        result = layout.back(weights)
        self._lineage.mark(result, Weights(self._add(seen)))
        return result

    def _fused(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        call, place = self._call()
        size, lead = len(self.batch), query.shape[:-2]
        if not lead or lead[0] % size or (len(lead) > 1 and lead[0] != size):
            self.unread.append(call)
            return _FUSED(
                query,
                key,
                value,
                attn_mask,
                dropout_p,
                is_causal,
                scale=scale,
                enable_gqa=enable_gqa,
            )
        heads = lead.numel() // size
        wide = torch.float64 if query.dtype == torch.float64 else torch.float32
        queries = query.reshape(size, heads, *query.shape[-2:]).to(wide)
        if len(lead) > 2 and not enable_gqa:
            key, value = (part.expand(*lead, *part.shape[-2:]) for part in (key, value))
        keys, values = (as_heads(part, size, heads, part.shape[-2]) for part in (key, value))
        assert keys is not None
        assert values is not None
        queries = queries * (query.shape[-1] ** -0.5 if scale is None else scale)
        products = queries @ keys.to(wide).mT
        logits, allowed = split_mask(_by_head(attn_mask, lead, size), is_causal, products)
        able = allowed.any(-1, keepdim=True)
        filled = logits.masked_fill(~allowed & able, -math.inf)
        own = filled.softmax(-1).masked_fill(~able, 0.0)
        logits = logits.masked_fill(~allowed.any(1, keepdim=True), 0.0)
        weights = self._ruled(place, filled, allowed.any(1), own)
        seen = Seen(call, place, logits, allowed.any(1), weights, None, values)
        seen.factors = queries, keys
        context = weights.to(value.dtype) @ values
        result = context.reshape(*query.shape[:-1], value.shape[-1])
        self._lineage.mark(result, Context(self._add(seen)))
        return result

    def _multi_head(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        wanted = kwargs.pop("need_weights", True)
        averaged = kwargs.pop("average_attn_weights", True)
        before = len(self.seen)
        with _replaced_fused(self._fused):
            output, _ = func(*args, **kwargs, need_weights=False)
        if len(self.seen) == before:
            return output, None
        self.seen[-1].output_map = kwargs.get("out_proj_weight", args[11] if args[11:] else None)
        weights = self.seen[-1].weights.to(output.dtype)
        weights = weights.mean(1) if averaged else weights
        # A single sequence has no batch axis.
        return output, (weights if output.ndim == 3 else weights[0]) if wanted else None

    def _ruled(self, place: Place | None, logits: Tensor, allowed: Tensor, own: Tensor) -> Tensor:
        """Return the weights that the site's rule gives, or its own."""
        if place is not None and logits.shape[1] != place.heads:
            raise MissingCapability(
                f"{place.name} has {logits.shape[1]} heads in this pass and had {place.heads} in "
                "the first one: its attention cannot be measured."
            )
        rule = self.rules.get(place.name) if place else None
        if rule is None or place is None or isinstance(rule, Learned):
            return own
        step = sum(each.place is place for each in self.seen) if place.steps else None
        return replaced(rule, logits, allowed, own, self.batch, place.sinks, step)

    def _call(self) -> tuple[Call, Place | None]:
        """Return where the innermost module calls attention, from the frames above."""
        module, line = "", ""
        frame = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            if not line and file != __file__:
                line = f"{file.rpartition('/')[2]}:{frame.f_lineno}"
            held = (frame.f_locals.get(name) for name in ("self", "module"))
            found = next((self._paths[id(part)] for part in held if id(part) in self._paths), None)
            if found is not None:
                module = found
                break
            if frame.f_back is None:
                break
            frame = frame.f_back
        number = self._counts[module, line]
        self._counts[module, line] += 1
        call = Call(module, line, number)
        if self.places is None:
            if _is_recomputed(sys._getframe(2)):
                self.recomputed.append(module)
            return call, None
        return call, self.places.get(call) or self._step_place(call)

    def _step_place(self, call: Call) -> Place | None:
        """Return the place that is called once per output word, whichever word it is."""
        first = (self.places or {}).get(Call(call.module, call.line))
        return first if first is not None and first.steps else None

    def _add(self, seen: Seen) -> int:
        self.seen.append(seen)
        return len(self.seen) - 1

    def _embedded(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor) -> Tensor:
        """Keep the embeddings of the inputs, batch first, in the graph of what depends on them."""
        ids = args[0] if args else kwargs["input"]
        if self.embeddings is not None:
            return result
        if ids.equal(self.batch.inputs):
            self.embeddings = result
        elif ids.equal(self.batch.inputs.T):
            self.embeddings = result.transpose(0, 1)
            return self.embeddings.transpose(0, 1)
        return result

    def _mapped(self, name: str, args: tuple[Any, ...]) -> None:
        """Note the linear map that the heads' joined context enters."""
        entering, matrix = args[:2] if name == "linear" else (args[1], args[2].mT)
        origin = self._lineage.of(entering)
        if not isinstance(origin, Context) or self.seen[origin.call].output_map is not None:
            return
        seen = self.seen[origin.call]
        if seen.values is None:
            return
        context = (seen.weights[..., : seen.inp].to(seen.values) @ seen.values).transpose(1, 2)
        if any(_enters(way, entering) for way in (context, context.transpose(0, 1))):
            seen.output_map = matrix


def replaced(
    rule: AttentionRule,
    logits: Float[Tensor, "batch heads out inp"],
    allowed: Tensor,
    own: Float[Tensor, "batch heads out inp"],
    batch: Batch,
    sinks: int = 0,
    step: int | None = None,
) -> Float[Tensor, "batch heads out inp"]:
    """Return the weights of a rule, with what it leaves untouched bit for bit the model's own.

    Parameters
    ----------
    logits, allowed, own
        Of the model.
    sinks
        How many last columns belong to no input; a rule shares out what they leave.
    step
        The output word, where the site is called once for each: the rule then sees all rows.
    """
    if isinstance(rule, Only):
        ruled = replaced(rule.rule, logits, allowed, own, batch, sinks, step)
        return torch.where(_chosen(rule, own, batch, step), ruled, own)
    if isinstance(rule, Frozen):
        return own.detach()
    inp = logits.shape[-1] - sinks
    able = allowed[..., :inp].any(-1, keepdim=True)
    # A row with nothing to attend to (padding under a window) keeps what the model makes of it.
    mask = allowed[..., :inp] | ~able
    logits = logits[..., :inp].clamp(min=torch.finfo(logits.dtype).min)
    if step is None:
        ruled = rule(logits, mask, batch.ids)
    else:
        ruled = _at_step(rule, logits, mask, batch, step)
    ruled = torch.where(able[:, None], ruled, own[..., :inp].to(ruled.dtype)).to(own.dtype)
    if not sinks:
        return ruled
    left, shared = (each[..., :inp].sum(-1, keepdim=True) for each in (own, ruled))
    # Weights of a trace leave the sink its share already: given back, they stay as they are.
    scale = torch.where(shared > 0, left / shared, 1.0).detach()
    return torch.cat([ruled * scale, own[..., inp:]], -1)


def _at_step(rule: AttentionRule, logits: Tensor, mask: Tensor, batch: Batch, step: int) -> Tensor:
    out = batch.targets.shape[1]
    rows = logits.expand(-1, -1, out, -1)
    return rule(rows, mask.expand(-1, out, -1), batch.ids)[:, :, step : step + 1]


def _chosen(rule: Only, own: Tensor, batch: Batch, step: int | None) -> Tensor:
    if step is None:
        return rule.chosen(own)
    rows = own.expand(-1, -1, batch.targets.shape[1], -1)
    return rule.chosen(rows)[:, step : step + 1]


def _enters(context: Float[Tensor, "batch out heads value"], entering: Tensor) -> bool:
    """Tell whether a map's input is the context with its heads joined."""
    joined, found = context.flatten(2).flatten(0, 1), entering.flatten(0, -2)
    return joined.shape == found.shape and torch.allclose(joined, found, rtol=1e-2, atol=1e-3)


def _by_head(mask: Tensor | None, lead: torch.Size, batch: int) -> Tensor | None:
    """Return a mask of fused attention as one of [batch, heads, out, inp] or what spreads to it.

    It spreads over the queries' leading axes: a mask of three is [heads, out, inp] for queries of
    four, and [batch · heads, out, inp] for queries of three.
    """
    if mask is None or (len(lead) == 2 and mask.ndim <= 4):
        return mask
    return mask.expand(*lead, *mask.shape[-2:]).reshape(batch, -1, *mask.shape[-2:])


def _is_recomputed(frame: FrameType | None) -> bool:
    """Tell whether a frame is inside a pass that a backward pass runs again."""
    while frame is not None:
        if frame.f_code.co_filename == torch.utils.checkpoint.__file__:
            return True
        frame = frame.f_back
    return False


@contextmanager
def _replaced_fused(function: Any) -> Iterator[None]:
    """Let `multi_head_attention_forward` call another attention for the time of one call."""
    kept = F.scaled_dot_product_attention
    F.scaled_dot_product_attention = function
    try:
        yield
    finally:
        F.scaled_dot_product_attention = kept


__all__ = ["Seen", "Watch", "one_row", "replaced"]
