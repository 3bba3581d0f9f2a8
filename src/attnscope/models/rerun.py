"""The output under other attention: by the model's readout where it has one, else by running again.

A readout reads the context at one site, ``cross``: other weights there need no second encoding of
the inputs. Everywhere else the model is run again with the attention of the site replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.data.batch import Batch
from attnscope.data.removal import without, writes_its_input
from attnscope.models.intervention import AttentionRule, Given
from attnscope.models.trace import AttentionModel, Trace


def has_readout(model: AttentionModel, trace: Trace, site: str = "cross") -> bool:
    """Tell whether the model's readout takes the context at a site."""
    read = trace.query is not None and hasattr(model, "readout")
    return read and (site == "cross" or len(trace.sites) == 1)


def outputs_of(
    model: AttentionModel, batch: Batch, attention: Mapping[str, AttentionRule]
) -> Float[Tensor, "batch out output_type"]:
    """Return the output logits of a model under some rules, without keeping its sites."""
    outputs = getattr(model, "outputs", None)
    return model.trace(batch, attention).logits if outputs is None else outputs(batch, attention)


def without_words(model: AttentionModel, batch: Batch, drop: Bool[Tensor, "batch inp"]) -> Batch:
    """Return the examples without some input positions, as the model takes them."""
    fill = "filler" if writes_its_input(batch) else "pad"
    return without(batch, drop, int(getattr(model, fill, 0)))


def resuming(model: AttentionModel, batch: Batch, site: str) -> AbstractContextManager[None]:
    """Let `outputs_of` of this batch start at a site, where the model offers that."""
    offered = getattr(model, "resuming", None)
    return nullcontext() if offered is None else offered(batch, site)


def outputs_again(
    model: AttentionModel,
    trace: Trace,
    weights: Float[Tensor, "draw batch heads row inp"],
    site: str,
) -> Float[Tensor, "draw batch out output_type"]:
    """Return the output logits under other weights at a site, one run per draw.

    Rules under which the trace was made stay in force at other sites.
    """
    runs = [
        outputs_of(model, trace.batch, {**trace.attention, site: Given(draw)}) for draw in weights
    ]
    return torch.stack(runs)
