"""Each of the nine terms' share of the alignment, raw and row-centred (aitken Fig. 5a).

The definition is that of the authors' code. A term that is the same at all input positions has a
raw share and yet cannot change attention; row-centred terms are without such constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.analysis.alignment_terms import (
    CROSS,
    AlignmentTerms,
    QueriesAndKeys,
    compute_alignment_terms,
    logit_scale,
)
from attnscope.analysis.decomposition import Decomposition
from attnscope.analysis.streaming import CellMeans
from attnscope.models.trace import Trace

Form = Callable[[AlignmentTerms], AlignmentTerms]


def raw(terms: AlignmentTerms) -> AlignmentTerms:
    """Return the terms as they are."""
    return terms


def row_centred(terms: AlignmentTerms) -> AlignmentTerms:
    """Take from each term its mean over input positions, which cannot change a softmax."""
    real = terms.mask[:, None, None]
    mean = terms.values.sum(-1, keepdim=True) / real.sum(-1, keepdim=True).clamp(min=1)
    return replace(terms, values=(terms.values - mean).masked_fill(~real, 0.0))


FORMS: dict[str, Form] = {"raw": raw, "centred": row_centred}


@dataclass(frozen=True)
class TermShares:
    """Shares of the nine terms, in the order of `TERMS`.

    Attributes
    ----------
    per_step
        Mean over examples at each decoder step; NaN where there is none.
    per_example
        Mean over the decoder steps of each example, for intervals over examples; where lengths
        differ, their mean weighs late steps less than `mean` does.
    counts
        How many examples reach each step.
    """

    per_step: Float[Tensor, "heads term out"]
    per_example: Float[Tensor, "example heads term"]
    counts: Int[Tensor, " out"]

    @property
    def mean(self) -> Float[Tensor, "heads term"]:
        """Mean over examples, then over decoder steps: the paper's number."""
        return self.per_step.nanmean(-1)


def compute_term_shares(
    traces: Iterable[Trace],
    components: Decomposition,
    view: QueriesAndKeys = CROSS,
    forms: Mapping[str, Form] = FORMS,
    top: int = 5,
    *,
    bias: bool = False,
) -> dict[str, TermShares]:
    """Return each term's share of the absolute contributions to an alignment (Fig. 5a of [1]_).

    At each decoder step the input positions with the largest alignments are taken (all of them
    where there are fewer), |term| / Σ |terms| at each, and the mean over positions, over examples,
    and last over steps. So it is neither an explained variance nor a ratio to the alignment.

    Parameters
    ----------
    traces
        Forward passes; a second pass over the examples that the components come from.
    components, view
        As in `compute_alignment_terms`.
    forms
        Transforms the terms before shares are taken; positions are chosen by the alignment.
    top
        How many positions.
    bias
        Whether what the logits have next to q·k is a tenth term, as a position bias is.

    Returns
    -------
    dict
        Shares by the name of the form.

    References
    ----------
    .. [1] K. Aitken, V. V. Ramasesh, Y. Cao, N. Maheswaranathan. "Understanding How
       Encoder-Decoder Architectures Attend." NeurIPS 2021.
    """
    steps = {form: CellMeans() for form in forms}
    examples: dict[str, list[Tensor]] = {form: [] for form in forms}
    for number, trace in enumerate(traces):
        if number == 0 and not bias:
            logit_scale(trace, view)  # Only to refuse logits that the terms would not sum to.
        for terms in compute_alignment_terms(trace, components, view, bias=bias):
            places = _top_positions(terms, top)
            for name, form in forms.items():
                shares = _shares_at(form(terms), *places)
                steps[name].update(shares)
                examples[name].append(shares.nanmean(-1).cpu())
    return {
        name: TermShares(
            found.mean.cpu(), torch.cat(examples[name]), found.counts.amax((0, 1)).cpu()
        )
        for name, found in steps.items()
    }


def _top_positions(
    terms: AlignmentTerms, top: int
) -> tuple[Int[Tensor, "batch heads out top"], Bool[Tensor, "batch heads out top"]]:
    """Return the input positions with the largest alignments, and which of them are real."""
    real = terms.mask[:, None].expand_as(terms.total)
    ranked = terms.total.masked_fill(~real, -torch.inf)
    places = ranked.topk(min(top, ranked.shape[-1])).indices
    return places, real.gather(-1, places)


def _shares_at(
    terms: AlignmentTerms,
    places: Int[Tensor, "batch heads out top"],
    real: Bool[Tensor, "batch heads out top"],
) -> Float[Tensor, "batch heads term out"]:
    """Return the mean share over positions; NaN where no position has any contribution."""
    index = places[:, :, None].expand(-1, -1, terms.values.shape[2], -1, -1)
    sizes = terms.values.gather(-1, index).abs()
    shares = sizes / sizes.sum(2, keepdim=True)
    return shares.masked_fill(~real[:, :, None], torch.nan).nanmean(-1)
