"""Measures of decomposed states: sizes, angles, variances, products with μ^D (aitken Fig. 2–6).

Everything here reads states a second time and is streamed: functions of a batch's `Parts` give a
`Ratio`, to be taken over many batches with `collect`; classes keep tables by word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from sklearn.metrics import silhouette_score
from torch import Tensor
from torch.nn.functional import normalize

from attnscope.analysis.components import nearest_point
from attnscope.analysis.decomposition import Components, Parts, Side
from attnscope.analysis.streaming import Ratio, mean_of, ratio_of
from attnscope.data.batch import Batch
from attnscope.models.trace import Site

# Fig. 6d, as recorded; the paper's figure starts at −1.
OFFSETS = range(-2, 5)
# Relative to ‖μ‖: anything smaller is float32's rounding (where all samples read the same first
# word), and its direction is noise.
_ROUNDING = 1e-6
# Of the median variance of words.
_STILL = 1e-6


def delta_share(parts: Parts) -> Ratio:
    """Return the share of ‖h − μ‖² that is ‖Δh‖²."""
    delta, both = (x.square().sum(-1) for x in (parts.delta, parts.input_delta))
    return ratio_of(delta, both, parts.mask)


def input_delta_size(parts: Parts) -> Ratio:
    """Return the mean ‖χ + Δh‖ over the mean ‖μ‖."""
    return ratio_of(parts.input_delta.norm(dim=-1), parts.temporal.norm(dim=-1), parts.mask)


def orthogonality(parts: Parts) -> Ratio:
    """Return the mean |cosine| of a state's temporal with its input-delta component."""
    cosine = (_directions(parts) * normalize(parts.temporal, dim=-1, eps=0.0)).sum(-1)
    return mean_of(cosine.abs())


def cross_orthogonality(parts: Parts, temporal: Float[Tensor, "step state"]) -> Ratio:
    """Return the mean |cosine| of input-delta components with the other side's temporal ones.

    Over all pairs, so of encoder states with every μ^D_s, as attention takes them.
    """
    cosine = _directions(parts) @ normalize(temporal.to(parts.delta), dim=-1, eps=0.0).mT
    return mean_of(cosine.abs())


def attention_overlap(
    site: Site, mean: Float[Tensor, "heads steps places"], target_mask: Bool[Tensor, "batch out"]
) -> Ratio:
    """Return how much of a sample's attention the mean attention has: Σ_t min(α_st, ᾱ_st).

    1 where both are the same, 0 where they attend to different positions. The mean's rows are
    taken over the real positions of each sample and sum to 1 there.

    Parameters
    ----------
    site
        Attention of a batch.
    mean
        `attention_cells` averaged over all batches, by ``cell_means``.
    target_mask
        True at real output positions.
    """
    out, inp = site.weights.shape[2:]
    rows = mean[:, :out, :inp].to(site.weights).nan_to_num(0.0)
    rows = rows.masked_fill(~site.mask[:, None, None], 0.0)
    rows = rows / rows.sum(-1, keepdim=True)
    overlap = torch.minimum(site.weights, rows).sum(-1)
    return mean_of(overlap.masked_fill(~target_mask[:, None], torch.nan))


def attention_cells(
    site: Site, target_mask: Bool[Tensor, "batch out"]
) -> Float[Tensor, "batch heads out inp"]:
    """Return the attention weights with NaN at padding, ready for ``cell_means``."""
    real = target_mask[:, None, :, None] & site.mask[:, None, None]
    return site.weights.detach().masked_fill(~real, torch.nan)


def gold_offset(batch: Batch) -> Float[Tensor, "batch out"]:
    """Return t(s) − s of the gold alignment, NaN where there is none: the exact offset."""
    steps = torch.arange(batch.gold.shape[1], device=batch.gold.device)
    unknown = ~batch.target_mask | (batch.gold < 0)
    return (batch.gold - steps).double().masked_fill(unknown, torch.nan)


def marker_offset(
    inputs: Int[Tensor, "batch inp"], mask: Bool[Tensor, "batch inp"], silent: int, late: int
) -> Float[Tensor, "batch inp"]:
    """Return the offset that the authors' code expects of eSCAN, NaN outside the mask.

    At position i it is the number of silent words ("and") up to i, and one more if the next word
    comes after the verb but is said before it ("left"). That the verb itself is then one behind
    is left out there and included in `gold_offset`. The authors' code averages over samples that
    are long enough; a ``mask`` without the end word is inferred, as it gives the line they recorded
    within the error of sampling, and one position more or less does not.
    """
    following = torch.cat([inputs[:, 1:] == late, torch.zeros_like(mask[:, :1])], 1)
    offset = (inputs == silent).cumsum(1) + following.long()
    return offset.double().masked_fill(~mask, torch.nan)


class WordVariance:
    """Each word's variance of states, before and after μ_t is taken away (Fig. 5c).

    tr Cov(h) and tr Cov(h − μ_t) over the word's occurrences. Both are computed after subtracting
    χ_x and the mean state: a constant changes no variance, and small numbers lose no digits.
    """

    def __init__(self, components: Components) -> None:
        self._components = components
        weights = components.time_counts.double() / components.time_counts.sum()
        self._centre = weights @ components.temporal.nan_to_num(0.0)
        types, width = components.word.shape
        self._counts = components.word_counts.new_zeros(types)
        self._sums = components.word.new_zeros(2, types, width)
        self._squares = components.word.new_zeros(2, types)

    def update(self, side: Side) -> None:
        """Add a batch."""
        parts = self._components.split(side)
        ids = side.ids.masked_fill(~parts.mask, 0).flatten()
        self._counts.index_add_(0, ids, parts.mask.flatten().long())
        before = (parts.delta + parts.temporal - self._centre) * parts.mask[..., None]
        for row, values in enumerate((before, parts.delta)):
            self._sums[row].index_add_(0, ids, values.flatten(0, 1))
            self._squares[row].index_add_(0, ids, values.square().sum(-1).flatten())

    @property
    def traces(self) -> Float[Tensor, "2 type"]:
        """The traces tr Cov(h) and tr Cov(h − μ_t) of every word; NaN for one never read."""
        return self._squares / self._counts - (self._sums / self._counts[:, None]).square().sum(-1)

    @property
    def ratio(self) -> Float[Tensor, " type"]:
        """The ratio tr Cov(h − μ_t) / tr Cov(h), NaN for a word that was read less than twice."""
        before, after = self.traces
        return (after / before).masked_fill(self._counts < 2, torch.nan)

    def drop(self, excluded: Sequence[int] = ()) -> float:
        """Return the share of variance that μ_t takes away, its mean over the words."""
        ratio = self.ratio
        types = torch.arange(len(ratio), device=ratio.device)
        out = torch.isin(types, torch.tensor(list(excluded), dtype=torch.long, device=ratio.device))
        return float(1 - ratio.masked_fill(out, torch.nan).nanmean())

    def too_little(self, least: int) -> set[int]:
        """Return the words that are read less often, or whose states hardly vary at all.

        Without recurrence, a word that always has one position has no variance but rounding.
        """
        often, before = self._components.word_counts >= least, self.traces[0]
        still = before <= _STILL * before[often].nanmedian()
        return set((~often | still).nonzero()[:, 0].tolist())


class OffsetProducts:
    """(h^E_t − μ^E_t)·μ^D_s by word and offset t − s (Fig. 6c, d).

    The mean is over samples at each position, then over positions. Pairs count where both t and s
    are real.

    Parameters
    ----------
    encoder, decoder
        Components of states, or of keys and queries.
    offsets
        The values of t − s.
    """

    def __init__(
        self, encoder: Components, decoder: Components, offsets: Sequence[int] = OFFSETS
    ) -> None:
        self._encoder, self._temporal = encoder, decoder.temporal
        self.offsets = tuple(offsets)
        shape = len(encoder.word), len(encoder.temporal), len(self.offsets)
        self._sums = encoder.word.new_zeros(shape)
        self._counts = encoder.word_counts.new_zeros(shape)

    def update(self, side: Side, target_mask: Bool[Tensor, "batch out"]) -> None:
        """Add a batch of encoder states."""
        parts = self._encoder.split(side)
        steps = min(target_mask.shape[1], len(self._temporal))
        products = parts.input_delta @ self._temporal[:steps].mT  # batch, inp, step
        places = torch.arange(side.ids.shape[1], device=side.ids.device)
        partner = places[:, None] - torch.tensor(self.offsets, device=places.device)
        inside = partner.clamp(0, steps - 1)
        index = inside.expand(len(products), -1, -1)
        real = (partner == inside) & parts.mask[..., None] & target_mask[:, inside]
        values = products.gather(-1, index).masked_fill(~real, 0.0)
        time = self._sums.shape[1]
        cells = side.ids.masked_fill(~parts.mask, 0) * time + places.clamp(max=time - 1)
        self._sums.flatten(0, 1).index_add_(0, cells.flatten(), values.flatten(0, 1))
        self._counts.flatten(0, 1).index_add_(0, cells.flatten(), real.flatten(0, 1).long())

    @property
    def by_position(self) -> Float[Tensor, "type inp offset"]:
        """The mean over samples at each position; NaN where there is none."""
        return self._sums / self._counts

    @property
    def mean(self) -> Float[Tensor, "type offset"]:
        """The mean over positions of `by_position`."""
        return self.by_position.nanmean(1)


@dataclass(frozen=True)
class Occurrences:
    """Input-delta components where one word was read, and the words read before it."""

    vectors: Float[Tensor, "occurrence state"]
    preceding: Int[Tensor, " occurrence"]


def occurrences(side: Side, parts: Parts, word: int) -> Occurrences:
    """Return every occurrence of a word but those at the start (Fig. 6a)."""
    here = ((side.ids == word) & parts.mask)[:, 1:]
    return Occurrences(parts.input_delta[:, 1:][here], side.ids[:, :-1][here])


def preceding_word_share(
    found: Occurrences, components: Components, among: Int[Tensor, " candidate"]
) -> float:
    """Return how often the nearest input component, among some words', is the preceding word's."""
    among = among.to(found.preceding.device)
    nearest = among[nearest_point(found.vectors, components.words(among).to(found.vectors))]
    return float((nearest == found.preceding).double().mean())


def preceding_word_silhouette(found: Occurrences) -> float:
    """Return how well occurrences cluster by the preceding word; NaN with less than two words.

    Its time grows with the square of the number of occurrences: a thousand are enough.
    """
    words = found.preceding.unique().numel()
    if not 1 < words < len(found.preceding):
        return float("nan")
    return float(silhouette_score(found.vectors.cpu().numpy(), found.preceding.cpu().numpy()))


def _directions(parts: Parts) -> Float[Tensor, "batch time state"]:
    """Return the directions of input-delta components; NaN at padding and where there is none."""
    size, scale = parts.input_delta.norm(dim=-1), parts.temporal.norm(dim=-1)
    none = ~parts.mask | (size <= _ROUNDING * scale)
    return (parts.input_delta / size[..., None]).masked_fill(none[..., None], torch.nan)
