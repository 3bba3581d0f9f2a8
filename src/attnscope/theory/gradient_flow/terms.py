"""Terms that move a word's polarity and attention score under gradient flow (sunlu Eq. 8–27).

Without context the loss depends on the parameters through two tables alone: each type's polarity
s_e and attention score a_e. Its derivatives by them are −π(e)/m and −ρ(e)/m
(`attnscope.theory.gradient_flow.pulls`), so that every term is π or ρ carried back through one
group of parameters and forth again: sums over (t, j) of … eᵀe_j become products of matrices. One
form serves words and affine encoders, dot-product and additive attention, one logit and K.

The affine and multi-class forms are the supplement's with its misprints corrected (Eq. 82 lacks
α_j, Eq. 83 a factor 1/λ); the additive one is exact, where the supplement has a first-order
expansion. All are about the mean likelihood alone: no dropout, no penalty, plain descent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.theory.gradient_flow.parts import (
    AttentionFlow,
    Embeddings,
    EncoderFlow,
    PerType,
    States,
    WordFlow,
    through_linear,
)
from attnscope.theory.gradient_flow.pulls import Pulls


@dataclass(frozen=True)
class Parameters:
    """A classifier without context, as plain tensors.

    Attributes
    ----------
    embeddings
        E, one row a type.
    output
        W, one row a logit: one for two labels (the second label's, the first one's is 0), or K.
    attention, encoder
        The layers between the two.
    output_bias
        Of the logits; the paper's models have none.
    """

    embeddings: Embeddings
    output: Float[Tensor, "logit state"]
    attention: AttentionFlow
    encoder: EncoderFlow = field(default_factory=WordFlow)
    output_bias: Float[Tensor, " logit"] | None = None

    def to(self, *args: Any) -> Parameters:
        """Return the parameters on a device or in a precision, such as ``torch.float64``."""
        moved: Parameters = _to(self, *args)
        return moved

    @property
    def states(self) -> States:
        """h_e for every type."""
        return self.encoder.states(self.embeddings)

    @property
    def polarity(self) -> Float[Tensor, "type logit"]:
        """s_e = W h_e for every type (Eq. 7)."""
        return torch.nn.functional.linear(self.states, self.output, self.output_bias)

    @property
    def attention_scores(self) -> PerType:
        """a_e for every type (Eq. 1)."""
        return self.attention.logits(self.states)


@dataclass(frozen=True)
class Terms:
    """Each term of ds_e/dτ and da_e/dτ for every type, by name.

    ``polarity`` has A, B and C of Eq. 19, ``attention`` D, E and F of Eq. 27. An affine encoder
    adds to A, B, D and E their counterparts through M (``A_encoder`` …), additive attention the
    movement through its hidden layer (``F_hidden``).
    """

    polarity: Mapping[str, Float[Tensor, "type logit"]]
    attention: Mapping[str, PerType]

    @property
    def polarity_rate(self) -> Float[Tensor, "type logit"]:
        """ds_e/dτ."""
        return torch.stack([*self.polarity.values()]).sum(0)

    @property
    def attention_rate(self) -> PerType:
        """da_e/dτ."""
        return torch.stack([*self.attention.values()]).sum(0)


@torch.no_grad()
def flow_terms(parameters: Parameters, pulls: Pulls) -> Terms:
    """Return all terms for all types.

    Parameters
    ----------
    parameters
        The classifier.
    pulls
        π and ρ over a corpus, from `corpus_pulls`.

    References
    ----------
    .. [1] X. Sun, W. Lu. "Understanding Attention for Text Classification." ACL 2020, Eq. 19, 27.
    """
    pull = pulls.mean(parameters.embeddings.dtype)
    states, output = parameters.states, parameters.output
    slopes = parameters.attention.slopes(states)
    polarity: dict[str, Tensor] = {}
    attention: dict[str, Tensor] = {}
    for (of_polarity, of_attention), source in (
        (("A", "E"), pull.attention[:, None] * slopes),
        (("B", "D"), pull.polarity @ output),
    ):
        for where, change in parameters.encoder.moved(parameters.embeddings, source).items():
            polarity[of_polarity + where] = change @ output.T
            attention[of_attention + where] = (change * slopes).sum(-1)
    polarity["C"] = through_linear(states, pull.polarity, parameters.output_bias)
    attention |= parameters.attention.moved(states, pull.attention)
    return Terms(dict(sorted(polarity.items())), dict(sorted(attention.items())))


@torch.no_grad()
def embedding_rate(parameters: Parameters, pulls: Pulls) -> Embeddings:
    """Return de/dτ for every type (sunlu Eq. 11, 13)."""
    pull = pulls.mean(parameters.embeddings.dtype)
    slopes = parameters.attention.slopes(parameters.states)
    source = pull.polarity @ parameters.output + pull.attention[:, None] * slopes
    return parameters.encoder.to_embeddings(source)


def similarity_rate(
    parameters: Parameters,
    pulls: Pulls,
    first: Int[Tensor, " first"],
    second: Int[Tensor, " second"],
) -> Float[Tensor, "first second"]:
    """Return d(e_iᵀe_k)/dτ for types i of ``first`` and k of ``second`` (supplement Eq. 44).

    Where the paper prints (s_i − s) a_k / λ with a_k = e_kᵀV/λ, the second 1/λ is too many.
    """
    rate, embeddings = embedding_rate(parameters, pulls), parameters.embeddings
    return rate[first] @ embeddings[second].T + embeddings[first] @ rate[second].T


def alignments(parameters: Parameters) -> dict[str, Tensor]:
    """Return the products that give the terms their sign and size.

    For dot-product attention on words ``VW`` is VᵀW, ``VV`` ‖V‖² and ``WW`` ‖W‖² (K classes: a
    vector and a matrix). With an affine encoder they are W'ᵀV' and so on, as in its terms A, B, D
    and E; with additive attention, where each type has its own slope ∂a_e/∂h_e in place of V/λ,
    means over types.
    """
    slopes = parameters.attention.slopes(parameters.states) * parameters.attention.scale
    query = parameters.encoder.to_embeddings(slopes)
    output = parameters.encoder.to_embeddings(parameters.output)
    means = {"VW": query.mean(0) @ output.T, "VV": query.square().sum(1).mean()}
    return {**means, "WW": output @ output.T}


def _to(part: Any, *args: Any) -> Any:
    if isinstance(part, Tensor):
        return part.to(*args)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    return replace(part, **{f.name: _to(getattr(part, f.name), *args) for f in fields(part)})
