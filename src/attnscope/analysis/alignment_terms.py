"""The nine terms of an attention logit, and the attention that one of them gives (aitken Eq. 3).

A logit is q·k, and q and k are the sums of their three components, hence nine products. Queries
and keys are decomposed as they enter the site, per head: their maps are affine and components are
means, so these are the maps of the states' components, a bias belonging to the temporal one; and
the terms sum to the logit whatever the maps are. Additive attention is not a product and has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.agreement import argmax_at
from attnscope.analysis.decomposition import Components, Decomposition, Parts, Side, Sides
from attnscope.data.batch import by_row
from attnscope.errors import MissingCapability, suggestion
from attnscope.models.trace import Site, Trace

PARTS = ("temporal", "word", "delta")
# The decoder's part first: ("delta", "word") is Δh^D·χ^E.
TERMS = tuple(product(PARTS, repeat=2))
_SYMBOLS = {"temporal": "mu", "word": "chi", "delta": "deltah"}
TERM_NAMES = tuple(f"{_SYMBOLS[decoder]}D.{_SYMBOLS[encoder]}E" for decoder, encoder in TERMS)
"""The names of `TERMS` as measurements have them: ``muD.muE``, ``muD.chiE``, …"""
MU_MU = TERM_NAMES[0]
Reads = Literal["encoder", "decoder"]

# Numbers of all nine terms held at once.
_CELLS = 2**22


@dataclass(frozen=True)
class QueriesAndKeys:
    """A view for `decompose`: queries as the decoder's side, keys as the encoder's.

    ``queries`` and ``keys`` name the words at the site's output and input positions; in an
    encoder's self-attention both are the encoder's. Heads lie side by side in the width.
    """

    site: str = "cross"
    queries: Reads = "decoder"
    keys: Reads = "encoder"

    def of(self, trace: Trace) -> Site:
        """Return the site, or raise an error that explains why there are no terms."""
        if self.site not in trace.sites:
            raise MissingCapability(
                f"The model does not attend at {self.site!r}; {suggestion(self.site, trace.sites)}"
            )
        return trace.sites[self.site]

    def __call__(self, trace: Trace) -> Sides:
        """Return both sides."""
        site, batch = self.of(trace), trace.batch
        if site.queries is None or site.keys is None:
            raise MissingCapability(
                f"Attention at {self.site!r} is not a product of queries and keys, so its logits "
                "have no terms: use a model with dot-product attention."
            )
        words = {
            "encoder": (batch.inputs, batch.input_mask),
            "decoder": (batch.decoder_inputs, batch.target_mask),
        }
        key_ids, mask = words[self.keys]
        keys = Side(_side_by_side(site.keys), key_ids, mask & site.allowed.any(1))
        return Sides(keys, Side(_side_by_side(site.queries), *words[self.queries]))


CROSS = QueriesAndKeys()


def logit_scale(trace: Trace, view: QueriesAndKeys = CROSS) -> float:
    """Return c of the logits c q·k, and raise an error for logits that are not such a multiple.

    Terms are those of q·k; their shares do not depend on c, but a softmax does.
    """
    sides, site = view(trace), view.of(trace)
    assert sides.decoder is not None
    real = (sides.decoder.mask[:, :, None] & sides.encoder.mask[:, None] & site.allowed)[:, None]
    queries, keys = (
        side.states.double().unflatten(-1, (site.logits.shape[1], -1)).transpose(1, 2)
        for side in (sides.decoder, sides.encoder)
    )
    products = (queries @ keys.mT).masked_fill(~real, 0.0)
    logits = site.logits.double().masked_fill(~real, 0.0)
    size = products.square().sum()
    scale = float((products * logits).sum() / size) if size > 0 else 1.0
    # Float32's rounding is far below, and any bias or activation far above.
    fits = scale > 0 and bool((logits - scale * products).norm() <= 1e-4 * logits.norm())
    if not fits:  # Infinite logits (a causal mask) do not fit either.
        raise MissingCapability(
            f"Logits at {view.site!r} are not a multiple of q·k, so they have no terms: "
            "give queries and keys as they enter the product."
        )
    return scale


@dataclass(frozen=True)
class AlignmentTerms:
    """The terms of every logit of a batch, in the order of `TERMS`; 0 outside the mask.

    With ``bias`` there is a tenth: what the logits have next to q·k, such as a position bias.
    """

    values: Float[Tensor, "batch heads term out inp"]
    mask: Bool[Tensor, "batch out inp"]

    @property
    def total(self) -> Float[Tensor, "batch heads out inp"]:
        """The alignment q·k, with its bias where that is a term."""
        return self.values.sum(2)


def compute_alignment_terms(
    trace: Trace,
    components: Decomposition,
    view: QueriesAndKeys = CROSS,
    *,
    bias: bool = False,
) -> Iterator[AlignmentTerms]:
    """Yield the nine terms of q·k, a few examples at a time and in their order.

    Parameters
    ----------
    trace
        A forward pass.
    components
        Of the same view: ``decompose(traces, view)``.
    view
        Which site.
    bias
        Whether what the logits have next to q·k is a tenth term.
    """
    queries, keys = _split(trace, components, view)
    site = view.of(trace)
    heads, rest = site.logits.shape[1], site.bias if bias else None
    mask = queries.mask[:, :, None] & keys.mask[:, None] & site.allowed
    rows = max(1, _CELLS // max(1, 9 * heads * mask[:1].numel()))
    first, second = (_stacked(parts, heads) for parts in (queries, keys))
    for start in range(0, len(mask), rows):
        chunk = slice(start, start + rows)
        values = torch.einsum("bihtk,bjhlk->bhijtl", first[chunk], second[chunk])
        # Parts are 0 outside their own masks, so that the terms are 0 there too.
        values = values.flatten(2, 3)
        if rest is not None:
            values = torch.cat([values, rest[chunk].to(values)[:, :, None]], 2)
        if site.mask.ndim == 3 or rest is not None:
            values = values.masked_fill(~mask[chunk, None, None], 0.0)
        yield AlignmentTerms(values, mask[chunk])


def alignment_parts(terms: AlignmentTerms) -> Float[Tensor, "batch 4 out inp"]:
    """Return the alignment of one head, and in it μ·μ, μ·χ + μ·Δh, and the rest; NaN outside."""
    values = terms.values[:, 0]
    temporal, both, total = values[:, 0], values[:, 1] + values[:, 2], values.sum(1)
    parts = torch.stack([total, temporal, both, total - temporal - both], 1)
    return parts.masked_fill(~terms.mask[:, None], torch.nan)


def temporal_alignment(components: Decomposition, heads: int = 1) -> Float[Tensor, "heads out inp"]:
    """Return μ^D_s·μ^E_t for every head; ``components`` are those of queries and keys."""
    queries, keys = (
        side.temporal.unflatten(-1, (heads, -1)).transpose(0, 1) for side in _both(components)
    )
    return queries @ keys.mT


def temporal_attention(
    components: Decomposition, heads: int = 1, scale: float = 1.0
) -> Float[Tensor, "heads out inp"]:
    """Return the attention of temporal components alone: softmax over t of μ^D_s·μ^E_t.

    Parameters
    ----------
    components
        Of queries and keys.
    heads
        How many heads they hold.
    scale
        The scale of the logits, see `logit_scale`.

    Returns
    -------
    Tensor
        0 at an encoder step that no example reaches, and NaN at such a decoder step.
    """
    unreached = components.encoder.time_counts == 0
    logits = scale * temporal_alignment(components, heads)
    return logits.masked_fill(unreached, -torch.inf).softmax(-1)


def temporal_agreement(
    trace: Trace,
    components: Decomposition,
    view: QueriesAndKeys = CROSS,
    within: int = 0,
) -> Float[Tensor, "batch heads out"]:
    """Return whether temporal components alone have their maximum where the full logits have it.

    With ``within=1`` the position before or after it counts too. Maxima are over the real input
    positions of each example; NaN where nothing can be said.
    """
    queries, keys = _split(trace, components, view)
    logits = view.of(trace).logits
    size, heads = logits.shape[:2]
    first, second = (_stacked(parts, heads)[:, 0] for parts in (queries, keys))
    mask = keys.mask.repeat_interleave(heads, 0)
    real = by_row(keys.mask) & view.of(trace).allowed
    highest = logits.masked_fill(~real[:, None], -torch.inf).argmax(-1)
    highest = highest.masked_fill(~queries.mask[:, None], -1)
    if view.of(trace).mask.ndim == 3:
        mask = real.repeat_interleave(heads, 0)
    agree = argmax_at((first @ second.mT).flatten(0, 1), highest.flatten(0, 1), mask, within)
    return agree.unflatten(0, (size, heads))


def _split(trace: Trace, components: Decomposition, view: QueriesAndKeys) -> tuple[Parts, Parts]:
    sides = view(trace)
    queries, keys = _both(components)
    assert sides.decoder is not None
    return queries.split(sides.decoder), keys.split(sides.encoder)


def _both(components: Decomposition) -> tuple[Components, Components]:
    if components.decoder is None:
        raise MissingCapability(
            "These components have no decoder's side: decompose queries and keys of a site."
        )
    return components.decoder, components.encoder


def _side_by_side(heads: Float[Tensor, "batch heads time key"]) -> Float[Tensor, "batch time all"]:
    return heads.transpose(1, 2).flatten(2)


def _stacked(parts: Parts, heads: int) -> Float[Tensor, "batch 3 heads time key"]:
    """Return the three components with their heads apart."""
    both = torch.stack([getattr(parts, name) for name in PARTS], 1)
    return both.unflatten(-1, (heads, -1)).transpose(2, 3)
