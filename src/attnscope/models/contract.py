"""The contract of a model, as checks that anybody can run on their own.

What every measurement relies on: attention is a distribution over real positions, the readout of
the context is the output, interventions take effect, and neither padding nor neighbours change
anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from attnscope.data.batch import Batch
from attnscope.errors import MissingCapability
from attnscope.models.intervention import Given, Uniform
from attnscope.models.trace import AttentionModel, Trace, needed

_PADDING = 3
_PADDED_SIDES = ["inputs", "decoder_inputs", "targets", "gold"]


@dataclass(frozen=True)
class Check:
    """One promise, whether the model keeps it, and by how much it is off."""

    promise: str
    kept: bool
    detail: str = ""


@dataclass(frozen=True)
class ContractReport:
    """All checks of a model."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every promise is kept."""
        return all(check.kept for check in self.checks)

    def __str__(self) -> str:
        marks = {True: "kept  ", False: "BROKEN"}
        return "\n".join(f"{marks[c.kept]}  {c.promise}  {c.detail}" for c in self.checks)


def check_model(
    model: AttentionModel, batch: Batch, tolerance: float | None = None
) -> ContractReport:
    """Run the contract suite on a model.

    Parameters
    ----------
    model
        Anything with ``trace(batch, attention=None, generator=None)`` and, to be probed,
        ``readout(context, query)``.
    batch
        At least two examples, best of unequal lengths.
    tolerance
        Largest difference that counts as equal; by default 1e-5 in single precision and 1e-10 in
        double precision, times the size of the numbers compared.

    Returns
    -------
    ContractReport
        Printed, it says promise by promise what is kept; ``ok`` says it in one word.
    """
    if len(batch) < 2:
        raise MissingCapability("check_model needs a batch of at least two examples.")
    with torch.no_grad():
        trace = model.trace(batch)
    if tolerance is None:
        tolerance = 1e-10 if trace.logits.dtype == torch.float64 else 1e-5
    checks = [_shapes(trace), _same_twice(model, batch, trace)]
    checks += [_distribution(name, trace, tolerance) for name in trace.sites]
    checks += [
        _padding(model, batch, trace, tolerance),
        _neighbours(model, batch, trace, tolerance),
    ]
    for name in trace.sites:
        checks += [
            _uniform(model, batch, name, tolerance),
            _given(model, batch, trace, name, tolerance),
            _gradient(model, batch, trace, name),
        ]
    if hasattr(model, "readout") and trace.query is not None and len(trace.sites) == 1:
        checks.append(_readout(model, trace, tolerance))
    return ContractReport(tuple(checks))


def _close(promise: str, a: Tensor, b: Tensor, tolerance: float) -> Check:
    if a.shape != b.shape:
        return Check(promise, False, f"(shapes {tuple(a.shape)} and {tuple(b.shape)})")
    off = float((a - b).abs().max() / b.abs().max().clamp(min=1.0))
    return Check(promise, off <= tolerance, f"(off by {off:.1e})")


def _real(trace: Trace, values: Tensor, rows: int | None = None) -> Tensor:
    mask = trace.batch.target_mask
    return values[:rows][mask[:rows]]


def _shapes(trace: Trace) -> Check:
    out = tuple(trace.batch.targets.shape)
    inp = tuple(trace.batch.inputs.shape)
    rows = ((trace.logits, out), (trace.query, out))
    columns = ((trace.embeddings, inp), (trace.encoder_states, inp))
    fits = all(part is None or part.shape[:2] == shape for part, shape in (*rows, *columns))
    return Check("the trace has one row per output and per input position", fits)


def _same_twice(model: AttentionModel, batch: Batch, trace: Trace) -> Check:
    with torch.no_grad():
        again = model.trace(batch)
    return Check("the same batch gives the same output twice", trace.logits.equal(again.logits))


def _distribution(name: str, trace: Trace, tolerance: float) -> Check:
    site = trace.sites[name]
    real = site.allowed[:, None]
    outside = site.weights.masked_fill(real, 0.0).abs().max()
    total = (site.weights.sum(-1) - 1).abs().max()
    off = float(torch.maximum(outside, total))
    fits = off <= tolerance and bool((site.weights >= 0).all())
    promise = f"attention at {name!r} is a distribution over real positions"
    return Check(promise, fits, f"(off by {off:.1e})")


def _padding(model: AttentionModel, batch: Batch, trace: Trace, tolerance: float) -> Check:
    # A classifier has one output position and never a padded one.
    sides = ["inputs"] if batch.targets.shape[1] == 1 else _PADDED_SIDES
    padded = replace(batch, **{s: pad(getattr(batch, s), (0, _PADDING)) for s in sides})
    with torch.no_grad():
        wide = model.trace(padded)
    return _close(
        "padding changes no output", _real(wide, wide.logits), _real(trace, trace.logits), tolerance
    )


def _neighbours(model: AttentionModel, batch: Batch, trace: Trace, tolerance: float) -> Check:
    with torch.no_grad():
        alone = model.trace(batch.rows(slice(1)))
    return _close(
        "other examples of the batch change no output",
        _real(alone, alone.logits),
        _real(trace, trace.logits, rows=1),
        tolerance,
    )


def _uniform(model: AttentionModel, batch: Batch, name: str, tolerance: float) -> Check:
    with torch.no_grad():
        site = model.trace(batch, {name: Uniform()}).sites[name]
    share = site.allowed.to(site.weights.dtype) / site.allowed.sum(-1, keepdim=True)
    expected = share[:, None].expand_as(site.weights)
    return _close(f"attention at {name!r} can be made uniform", site.weights, expected, tolerance)


def _given(model: AttentionModel, batch: Batch, trace: Trace, name: str, tolerance: float) -> Check:
    with torch.no_grad():
        again = model.trace(batch, {name: Given(trace.sites[name].weights)})
    promise = f"giving {name!r} its own attention changes nothing"
    return _close(promise, _real(again, again.logits), _real(trace, trace.logits), tolerance)


def _gradient(model: AttentionModel, batch: Batch, trace: Trace, name: str) -> Check:
    weights = trace.sites[name].weights.detach().clone().requires_grad_()
    logits = model.trace(batch, {name: Given(weights)}).logits
    promise = f"gradients flow through attention given at {name!r}"
    if not logits.requires_grad:
        return Check(promise, False)
    grad = torch.autograd.grad(logits.square().sum(), weights, allow_unused=True)[0]
    return Check(promise, grad is not None and bool(grad.abs().max() > 0))


def _readout(model: AttentionModel, trace: Trace, tolerance: float) -> Check:
    (site,) = trace.sites.values()
    with torch.no_grad():
        read = model.readout(site.context, needed(trace.query, "query"))
    promise = "the readout of the context is the output"
    return _close(promise, _real(trace, read), _real(trace, trace.logits), tolerance)
