"""The first passes over a model: which softmaxes are attention, what to call them, who reads them.

Three examples of unequal lengths are run under watch, once with all softmaxes looked at and a
second time in shorter form: what does not grow with the input (landmarks, kernels) is no attention
to it. The gradient of the output with respect to a site's weights shows which rows it reads: rows
whose gradient is exactly 0 are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.errors import MissingCapability
from attnscope.models.lineage import factors_of
from attnscope.models.places import (
    Call,
    Kind,
    LeftOut,
    Place,
    Places,
    Reads,
    Shape,
    kind_of,
    loops,
    named,
)
from attnscope.models.watching import Seen, Watch

Run = Callable[[Batch], Tensor]


@dataclass(frozen=True)
class Discovery:
    """Attention sites of a model, and its logits in the first pass."""

    places: Places
    logits: Float[Tensor, "batch out output_type"]


def discover(module: nn.Module, run: Run, batch: Batch) -> Discovery:
    """Find the attention sites of a model.

    Parameters
    ----------
    module
        The model.
    run
        Runs it on a batch and returns logits.
    batch
        A few examples of unequal lengths, targets of another length than inputs.
    """
    watch = Watch(module, batch)
    with torch.enable_grad(), watch:
        logits = run(batch)
    short = Watch(module, shorter(batch))
    with torch.no_grad(), short:
        run(short.batch)
    lengths = {seen.call: seen.inp for seen in short.seen if seen.values is not None}
    candidates = [seen for seen in watch.seen if seen.values is not None]
    own = {batch.inputs.shape[1], batch.targets.shape[1]}
    kept = [seen for seen in candidates if _follows(seen, lengths, own)]
    # Of an image or a sound nothing grows: its length is always the same.
    kept = kept if any(seen.inp != lengths.get(seen.call) for seen in kept) else candidates
    if not kept:
        raise MissingCapability(_nothing_seen(module))
    left_out = [LeftOut(call.module, "windows or another shape") for call in watch.unread]
    left_out += [
        LeftOut(seen.call.module, f"{seen.inp} fixed positions, not the input's")
        for seen in candidates
        if seen not in kept
    ]
    reads = _reads(logits, kept, batch)
    return Discovery(Places(_placed(kept, reads, batch), left_out), logits.detach())


def _follows(seen: Seen, lengths: Mapping[Call, int], own: set[int]) -> bool:
    """Tell whether the positions attended to are those of the input or of the output."""
    return seen.inp in own or lengths.get(seen.call, seen.inp) != seen.inp


def shorter(batch: Batch) -> Batch:
    """Return the shorter examples of a batch, without the padding of the longest."""
    rows = batch.input_lengths.argsort()[: max(1, len(batch) - 1)]
    return batch.rows(rows).trimmed()


def _placed(kept: Sequence[Seen], reads: Sequence[Reads], batch: Batch) -> list[Place]:
    source, target = batch.inputs.shape[1], batch.targets.shape[1]
    looped = loops(((seen.call, seen.logits.shape[2]) for seen in kept), target)
    found: list[tuple[Kind, Place]] = []
    for seen, rows in zip(kept, reads, strict=True):
        steps = (seen.call.module, seen.call.line) in looped
        if steps and seen.call.number:
            continue  # the same site at another output word
        heads, out = seen.logits.shape[1:3]
        causal = _causal(seen.allowed[..., : seen.inp])
        shape = Shape(target if steps else out, seen.inp, causal)
        kind = "cross" if steps else kind_of(shape, seen.call.module, source, target)
        found.append(
            (
                kind,
                Place(
                    name="",
                    module=seen.call.module,
                    heads=heads,
                    queries=_side(shape.out, source, target),
                    keys="target"
                    if kind == "decoder" and source != target
                    else "source"
                    if seen.inp == source
                    else "other",
                    causal=causal,
                    reads="own" if steps else rows,
                    product=_factors(seen) is not None,
                    mapped=seen.output_map is not None,
                    steps=steps,
                    sinks=seen.logits.shape[-1] - seen.inp,
                    call=seen.call,
                ),
            )
        )
    return list(named(found))


def _factors(seen: Seen) -> tuple[Tensor, Tensor] | None:
    size, heads, out, _ = seen.logits.shape
    return seen.factors or factors_of(seen.origin, size, heads, out, seen.inp)


def _side(length: int, source: int, target: int) -> str:
    return {target: "target", source: "source"}.get(length, "other")


def _causal(allowed: Bool[Tensor, "batch out inp"]) -> bool:
    out, inp = allowed.shape[1:]
    return out == inp > 1 and not bool(allowed.triu(1).any())


def _reads(
    logits: Float[Tensor, "batch out output_type"], kept: Sequence[Seen], batch: Batch
) -> list[Reads]:
    """Return which rows of each site the output depends on."""
    if not logits.requires_grad:
        return ["all"] * len(kept)
    stream = torch.Generator().manual_seed(0)
    toward = torch.randn(logits.shape, generator=stream).to(logits)
    real = batch.target_mask[..., None].to(logits.device)
    with torch.enable_grad():
        output = (logits * toward).masked_fill(~real, 0.0).sum()
    weights = [seen.weights for seen in kept]
    slopes = torch.autograd.grad(output, weights, allow_unused=True)
    return [_pattern(slope, batch) for slope in slopes]


def _pattern(slope: Tensor | None, batch: Batch) -> Reads:
    if slope is None or not bool(slope.any()):
        return "none"
    read = slope.abs().sum((1, 3)) > 0
    rows = torch.arange(read.shape[1], device=read.device).expand_as(read)
    last = (batch.input_lengths - 1).to(read.device)[:, None]
    if batch.targets.shape[1] > 1:
        return "own" if read.shape[1] == batch.targets.shape[1] else "all"
    if not bool((read & (rows != 0)).any()):
        return "first"
    return "last" if not bool((read & (rows != last)).any()) else "all"


def _nothing_seen(module: nn.Module) -> str:
    config = getattr(module, "config", None)
    kernel = getattr(config, "_attn_implementation", None)
    named = f" (its attention runs as {kernel!r})" if kernel not in (None, "eager", "sdpa") else ""
    return (
        f"No attention was seen in {type(module).__name__}{named}: no softmax of its forward pass "
        "weighs a sequence; compiled, scripted and fused kernels cannot be watched."
    )
