"""The lexical probe β: the output as if all attention were on one position (snell Eq. 4, 6, 9).

One function of the readout serves translation, classification and the proxy. A model without a
readout is run again with all attention of the rows that the output reads on one position, at one
site, or with a pattern such as ``cross.*`` at several at once. By default β is given
as its log-odds log(β / (1 - β)), which orders positions as β does and never saturates: a
probability of 1 - 1e-9 and one of 1 - 1e-12 are both 1 in single precision.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.models.intervention import OneHot, Only
from attnscope.models.rerun import has_readout, outputs_of, resuming
from attnscope.models.trace import AttentionModel, Trace, needed
from attnscope.scores.attention import mask_of_outputs, site_of
from attnscope.scores.score import ScoreRule

Logits = Float[Tensor, "*any output_type"]
Words = Int[Tensor, "*any"]
Reading = Callable[[Logits, Words], Float[Tensor, "*any"]]

# Numbers held at once while probing: small enough for a cache to help, far above a call's cost.
_CHUNK = 2**22
# On a GPU, where a call costs as much as many numbers.
_GPU_CHUNK = 2**27


def log_probability(logits: Logits, words: Words) -> Float[Tensor, "*any"]:
    """Return log β."""
    return logits.log_softmax(-1).gather(-1, words[..., None]).squeeze(-1)


def probability(logits: Logits, words: Words) -> Float[Tensor, "*any"]:
    """Return β."""
    return log_probability(logits, words).exp()


def log_odds(logits: Logits, words: Words) -> Float[Tensor, "*any"]:
    """Return log(β / (1 - β)): for two classes exactly (2y - 1) times the logit."""
    own = logits.gather(-1, words[..., None])
    others = logits.scatter(-1, words[..., None], float("-inf"))
    return own.squeeze(-1) - (fused_logsumexp(others) if others.is_cuda else others.logsumexp(-1))


def fused_logsumexp(logits: Logits) -> Float[Tensor, "*any"]:
    """Return log Σ exp by the kernel of softmax, which reads and writes the logits once.

    At the largest one, log softmax is −log Σ exp(z − max). PyTorch's own goes over them six times,
    which takes longer than a GPU's product that made them.
    """
    top = logits.max(-1, keepdim=True)
    return (top.values - logits.log_softmax(-1).gather(-1, top.indices)).squeeze(-1)


READINGS: dict[str, Reading] = {
    "log_odds": log_odds,
    "log_probability": log_probability,
    "probability": probability,
}


class LexicalProbe(ScoreRule):
    """β_{t,l}: how probable the right word y_t would be if every head attended to l alone."""

    kind: Literal["lexical_probe"] = "lexical_probe"
    site: str = "cross"
    reading: Literal["log_odds", "log_probability", "probability"] = "log_odds"

    @property
    def name(self) -> str:
        """``lexical_probe``."""
        return "lexical_probe"

    def mask(self, trace: Trace) -> Bool[Tensor, "batch *row inp"]:
        """Return the positions that may be attended."""
        last = self._sites(trace)[-1]
        return mask_of_outputs(trace, trace.sites[last], last)

    def values(self, model: AttentionModel, trace: Trace) -> Float[Tensor, "batch out inp"]:
        """Read the output at every real pair of positions, chunk by chunk, and 0 elsewhere."""
        if self.site in trace.sites and has_readout(model, trace, self.site):
            return self._read_out(model, trace)
        return self._run_again(model, trace)

    def _read_out(self, model: AttentionModel, trace: Trace) -> Float[Tensor, "batch out inp"]:
        """Read every real pair of positions off the readout."""
        site, query = site_of(trace, self.site), needed(trace.query, "query")
        values = site.values.transpose(1, 2)  # batch, inp, heads, value
        real = trace.batch.target_mask[:, :, None] & site.allowed
        cells = real.nonzero()
        # A classifier has two logits a cell, but hundreds of numbers in its context.
        widest = max(trace.logits.shape[-1], values[0, 0].numel() + query.shape[-1])
        chunk = _GPU_CHUNK if cells.is_cuda else _CHUNK
        read = READINGS[self.reading]
        parts = [
            read(
                model.readout(values[example, inp], query[example, out]),
                trace.batch.targets[example, out],
            )
            for example, out, inp in (c.T for c in cells.split(max(1, chunk // widest)))
        ]
        return torch.zeros_like(real, dtype=trace.logits.dtype).masked_scatter(
            real, torch.cat(parts)
        )

    def _run_again(self, model: AttentionModel, trace: Trace) -> Float[Tensor, "batch out inp"]:
        """Run the model once for each input position, all attention on it."""
        names, rows = self._sites(trace), read_rows(trace, self._sites(trace)[-1])
        read, values = READINGS[self.reading], []
        with resuming(model, trace.batch, names[0]):
            for position in range(trace.batch.inputs.shape[1]):
                rule = OneHot(position) if rows is None else Only(OneHot(position), rows=rows)
                rules = {**trace.attention, **dict.fromkeys(names, rule)}
                values.append(read(outputs_of(model, trace.batch, rules), trace.batch.targets))
        return torch.stack(values, -1)

    def _sites(self, trace: Trace) -> list[str]:
        """Return the sites that match the name or pattern, the last one last."""
        if self.site in trace.sites:
            return [self.site]
        found = fnmatch.filter(trace.sites, self.site)
        if not found:
            site_of(trace, self.site)
        return found


def read_rows(trace: Trace, name: str) -> list[int] | None:
    """Return the rows of a site that a classifier's output reads; None where it reads all."""
    reads = trace.sites[name].reads
    if reads is None:
        return None
    read = (reads > 0).any(0)
    return None if bool(read.all()) else read.nonzero()[:, 0].tolist()
