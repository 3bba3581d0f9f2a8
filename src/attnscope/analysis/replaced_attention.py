"""The output under other attention weights, where possible from one encoding of the inputs.

A model whose output is ``readout(context, query)`` need not read its inputs again when the weights
at its last site change: the states are the same, and so are the query and the values. Any other
model, or site, is run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.data.batch import Batch
from attnscope.errors import MissingCapability, UsageError
from attnscope.models.rerun import has_readout, outputs_again
from attnscope.models.trace import AttentionModel, Trace, needed
from attnscope.scores.attention import site_of

# Input positions that are encoded at once.
POSITIONS = 2**15
_ROUNDING = 1e-4  # tolerated difference between readout and logits, relative to the largest


def outputs_under(
    model: AttentionModel,
    trace: Trace,
    weights: Float[Tensor, "draw batch heads row inp"],
    site: str = "cross",
) -> Float[Tensor, "draw batch out output_type"]:
    """Return the output logits as they would be under other weights at a site.

    Parameters
    ----------
    model, trace
        A model and its trace of a batch; gradients flow into the weights.
    weights
        One or several weightings of the same batch.
    site
        Any site; where the readout takes its context, the model is not run again.
    """
    values = site_of(trace, site).values
    if not has_readout(model, trace, site):
        return outputs_again(model, trace, weights, site)
    draws, batch, heads, out, inp = weights.shape
    # Draws are joined to output positions, so that one product serves them all.
    joined = weights.movedim(0, 2).reshape(batch, heads, draws * out, inp)
    contexts = (joined @ values).view(batch, heads, draws, out, -1).permute(2, 0, 3, 1, 4)
    query = needed(trace.query, "query")
    return model.readout(contexts, query.expand(draws, *query.shape))


def labelled_traces(
    model: AttentionModel, batch: Batch, site: str = "cross", *, positions: int = POSITIONS
) -> Iterator[tuple[Int[Tensor, " row"], Trace]]:
    """Yield traces of a classifier on examples of like length, with the rows that they came from.

    Parameters
    ----------
    model
        A classifier; one whose readout does not give its output raises one sentence.
    batch
        Examples with a label each, on the model's device.
    positions
        How many input positions are run at once.
    """
    if batch.targets.shape[1] != 1:
        raise UsageError("A label per example is needed, and these have several output words.")
    yield from traces_by_length(model, batch, site, positions=positions)


def traces_by_length(
    model: AttentionModel, batch: Batch, site: str = "cross", *, positions: int = POSITIONS
) -> Iterator[tuple[Int[Tensor, " row"], Trace]]:
    """Yield traces on examples of like length; as `labelled_traces`, for any number of outputs."""
    equal = bool(getattr(model, "padding_matters", False))
    for rows, part in batch.by_length(positions_at_once(positions), equal=equal):
        with torch.no_grad():
            trace = model.trace(part)
            site_of(trace, site)
            _demand_readout(model, trace, site)
        yield rows, trace


def decision_order(
    rows: Int[Tensor, " row"], part: Batch, whole: Batch
) -> Int[Tensor, " decision"]:
    """Return the place of each real output word of a part among those of the whole batch.

    Parameters
    ----------
    rows
        The rows of the whole batch that the part came from.
    """
    owners, positions = part.target_mask.cpu().nonzero().T
    return rows.cpu()[owners] * whole.targets.shape[1] + positions


def positions_at_once(positions: int) -> Callable[[int, int], int]:
    """Return how many examples of a length make a batch, for `Batch.by_length`."""
    return lambda inp, out: positions // max(inp, out)


def _demand_readout(model: AttentionModel, trace: Trace, site: str) -> None:
    if not has_readout(model, trace, site):
        return  # the model is run again, which is its output by definition
    own = outputs_under(model, trace, site_of(trace, site).weights[None], site)[0]
    off = float((own - trace.logits).abs().max())
    if off > _ROUNDING * (1 + float(trace.logits.abs().max())):
        raise MissingCapability(
            f"The readout of the context at {site!r} is not the model's output (off by {off:.2g}): "
            "other attention there cannot be read without running the model again."
        )
