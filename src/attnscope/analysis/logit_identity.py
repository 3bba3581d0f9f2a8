"""Three ways to a classifier's logit, compared with its own (tutek Eq. 9).

A model's logit is the attention-weighted mean of the logits of its single states, since the output
is affine and attention sums to 1; the logit of a single state is sunlu's polarity W·h + b and
snell's lexical probe. It holds for any weights, trained or not.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.models.classifier import Classifier
from attnscope.models.trace import needed
from attnscope.scores.lexical_probe import LexicalProbe


@torch.no_grad()
def logit_differences(model: Classifier, batch: Batch) -> dict[str, float]:
    """Return the largest difference of each way, in parts of the largest logit.

    Parameters
    ----------
    model
        A classifier; in float64 the differences are those of rounding.
    batch
        Texts with a label each, on the model's device.
    """
    trace = model.trace(batch)
    site, states = trace.sites["cross"], needed(trace.encoder_states, "encoder states")
    single = model.readout(states[:, :, None], states.new_zeros(*states.shape[:2], 0))
    mean = (site.weights[:, 0, 0, :, None] * single).sum(1)
    # sunlu's polarity, from the parameters themselves.
    polarity = nn.functional.linear(states, model.output.weight, model.output.bias)
    probe = LexicalProbe().read(model, trace)
    own = batch.targets[:, :1, None].expand(-1, states.shape[1], 1)
    log_odds = torch.logit(single.softmax(-1).gather(-1, own)[..., 0])
    return {
        "attention-weighted mean of words": _off(mean, trace.logits[:, 0]),
        "polarity": _off(single[..., -polarity.shape[-1] :], polarity, site.mask),
        "lexical probe": _off(probe.values[:, 0], log_odds, site.mask),
    }


def _off(one: Tensor, other: Tensor, mask: Tensor | None = None) -> float:
    if mask is not None:
        one, other = one[mask], other[mask]
    return float((one - other).abs().max() / (1 + other.abs().max()))
