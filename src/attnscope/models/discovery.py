"""The first passes over a model: which softmaxes are attention, what to call them, who reads them.

Three examples of unequal lengths are run under watch, once with all softmaxes looked at and a
second time in shorter form: what does not grow with the input (landmarks, kernels) is no attention
to it, and what looks like heads and grows is rows. The gradient of the output with respect to a
site's weights shows which rows it reads: rows whose gradient is exactly 0 are not read. It also
shows that a site's first axis is that of the examples: none has a gradient from another's output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.errors import MissingCapability
from attnscope.models.layout import Form
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
    watch, logits = _watched(module, run, batch)
    short = _shorter_pass(module, run, batch, watch.forms)
    rows = _rows(watch, short)
    if rows:
        watch, logits = _watched(module, run, batch, watch.forms | rows)
        short = _shorter_pass(module, run, batch, watch.forms)
    _demand_one_pass(module, watch)
    whole = [seen for seen in watch.seen if seen.values is not None]
    mixed = _mixed(logits, whole, short)
    candidates = [seen for seen in whole if seen.call not in mixed]
    lengths = {seen.call: seen.inp for seen in short.seen if seen.values is not None}
    own = {batch.inputs.shape[1], batch.targets.shape[1]}
    kept = [seen for seen in candidates if _follows(seen, lengths, own)]
    # Of an image or a sound nothing grows: its length is always the same.
    kept = kept if any(seen.inp != lengths.get(seen.call) for seen in kept) else candidates
    if not kept:
        raise MissingCapability(_nothing_seen(module, mixed))
    left_out = [LeftOut(call.module, "windows or another shape") for call in watch.unread]
    left_out += [LeftOut(call.module, "its axes cannot be told apart") for call in mixed]
    left_out += [
        LeftOut(seen.call.module, f"{seen.inp} fixed positions, not the input's")
        for seen in candidates
        if seen not in kept
    ]
    reads = _reads(logits, kept, batch)
    return Discovery(Places(_placed(kept, reads, batch), left_out), logits.detach())


def _watched(
    module: nn.Module, run: Run, batch: Batch, forms: Mapping[Call, Form] | None = None
) -> tuple[Watch, Tensor]:
    watch = Watch(module, batch, forms=forms)
    with torch.enable_grad(), watch:
        return watch, run(batch)


@torch.no_grad()
def _shorter_pass(module: nn.Module, run: Run, batch: Batch, forms: Mapping[Call, Form]) -> Watch:
    watch = Watch(module, shorter(batch), forms=forms)
    with watch:
        run(watch.batch)
    return watch


def _rows(watch: Watch, short: Watch) -> dict[Call, Form]:
    """Return the softmaxes over [B·T, L]: as many heads of one row as there are positions."""
    heads = {seen.call: seen.logits.shape[1] for seen in short.seen}
    found: dict[Call, Form] = {}
    for seen in watch.seen:
        count, out = seen.logits.shape[1:3]
        if out == 1 and heads.get(seen.call, count) != count:
            found[seen.call] = "rows"
    return found


def _demand_one_pass(module: nn.Module, watch: Watch) -> None:
    if watch.recomputed:
        raise MissingCapability(
            f"{watch.recomputed[0] or type(module).__name__} is run again in backward passes "
            "(torch.utils.checkpoint), where it cannot be watched: switch that off."
        )


def _mixed(logits: Tensor, seen: Sequence[Seen], short: Watch) -> list[Call]:
    """Return the calls whose heads change with the input's length, or whose examples mix."""
    heads = {each.call: each.logits.shape[1] for each in short.seen}
    mixed = {e.call for e in seen if heads.get(e.call, e.logits.shape[1]) != e.logits.shape[1]}
    if seen and logits.requires_grad and len(logits) > 1:
        with torch.enable_grad():
            one = logits[0].square().sum()
        slopes = torch.autograd.grad(
            one, [each.weights for each in seen], allow_unused=True, retain_graph=True
        )
        others = zip(seen, slopes, strict=True)
        mixed |= {e.call for e, slope in others if slope is not None and bool(slope[1:].any())}
    return [each.call for each in seen if each.call in mixed]


def _follows(seen: Seen, lengths: Mapping[Call, int], own: set[int]) -> bool:
    """Tell whether the positions attended to are those of the input or of the output."""
    return seen.inp in own or lengths.get(seen.call, seen.inp) != seen.inp


def shorter(batch: Batch) -> Batch:
    """Return the shorter examples of a batch, without the padding of the longest."""
    return batch.rows(shorter_rows(batch)).trimmed()


def shorter_rows(batch: Batch) -> Int[Tensor, " row"]:
    """Return the examples that have neither the longest input nor, if lengths differ, output."""
    by_length = batch.input_lengths.argsort()[: max(1, len(batch) - 1)]
    out = batch.target_lengths
    less = by_length[out[by_length] < out.max()]
    return less if len(less) else by_length


def _placed(kept: Sequence[Seen], reads: Sequence[Reads], batch: Batch) -> list[Place]:
    source, target = batch.inputs.shape[1], batch.targets.shape[1]
    looped = loops(((seen.call, seen.logits.shape[2]) for seen in kept), target)
    sites: list[tuple[Kind, Shape, bool, Seen, Reads]] = []
    for seen, rows in zip(kept, reads, strict=True):
        steps = (seen.call.module, seen.call.line) in looped
        if steps and seen.call.number:
            continue  # the same site at another output word
        causal = _causal(seen.allowed[..., : seen.inp])
        shape = Shape(target if steps else seen.logits.shape[2], seen.inp, causal)
        kind = "cross" if steps else kind_of(shape, seen.call.module, source, target)
        sites.append((kind, shape, steps, seen, rows))
    # A causal classifier without an encoder attends to its inputs.
    writes = target > 1 or any(kind == "cross" and shape.out > 1 for kind, shape, *_ in sites)
    found: list[tuple[Kind, Place]] = []
    for kind, shape, steps, seen, rows in sites:
        found.append(
            (
                kind,
                Place(
                    name="",
                    module=seen.call.module,
                    heads=seen.logits.shape[1],
                    queries=_side(shape.out, source, target),
                    keys="target"
                    if kind == "decoder" and writes and source != target
                    else "source"
                    if seen.inp == source
                    else "other",
                    causal=shape.causal,
                    reads="own" if steps else rows,
                    product=_factors(seen) is not None,
                    mapped=seen.output_map is not None,
                    steps=steps,
                    sinks=seen.logits.shape[-1] - seen.inp,
                    form=seen.form,
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


def _nothing_seen(module: nn.Module, mixed: Sequence[Call]) -> str:
    if mixed:
        return (
            f"No attention of {type(module).__name__} can be measured: the axes of its softmax in "
            f"{mixed[0].line} cannot be told apart."
        )
    config = getattr(module, "config", None)
    kernel = getattr(config, "_attn_implementation", None)
    named = f" (its attention runs as {kernel!r})" if kernel not in (None, "eager", "sdpa") else ""
    return (
        f"No attention was seen in {type(module).__name__}{named}: no softmax of its forward pass "
        "weighs a sequence; compiled, scripted and fused kernels cannot be watched."
    )
