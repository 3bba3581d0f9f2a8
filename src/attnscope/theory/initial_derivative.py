"""How the bag-of-words proxy starts to learn: its derivative at initialisation (snell §4.1, A.2).

Under gradient flow on the loss of Eq. 14 the velocity of the logits W e_i tends to 2(C − C̄) as d
grows (Eq. 53), that of the probabilities to 1/|O| of it: the printed Eq. 15 and 54 lack this
factor, which is the softmax's derivative at a uniform output.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.data.batch import Batch
from attnscope.theory.counts import bag_of_words, count_table


class PaddedPairs(NamedTuple):
    """Sentence pairs as padded ids and masks, in the order in which this folder takes them."""

    inputs: Int[Tensor, "batch inp"]
    input_mask: Bool[Tensor, "batch inp"]
    targets: Int[Tensor, "batch out"]
    target_mask: Bool[Tensor, "batch out"]

    @classmethod
    def of(cls, batch: Batch) -> PaddedPairs:
        """Return the pairs of a batch."""
        return cls(batch.inputs, batch.input_mask, batch.targets, batch.target_mask)


def random_corpus(
    generator: torch.Generator, input_types: int = 6, output_types: int = 5, pairs: int = 8
) -> PaddedPairs:
    """Draw sentence pairs of two to six words on either side, lengths independent."""

    def side(types: int) -> tuple[Tensor, Tensor]:
        device = generator.device
        lengths = torch.randint(2, 7, (pairs, 1), generator=generator, device=device)
        ids = torch.randint(types, (pairs, 6), generator=generator, device=device)
        return ids, torch.arange(6, device=device) < lengths

    return PaddedPairs(*side(input_types), *side(output_types))


def draw_proxy(generator: torch.Generator, types: int, d: int) -> Float[Tensor, "type d"]:
    """Draw one vector from N(0, I/d) for each type, e or W: products tend to I (Eq. 47–49)."""
    size = (types, d)
    draw = torch.randn(size, generator=generator, device=generator.device, dtype=torch.float64)
    return draw / d**0.5


def logit_velocity(
    output_weights: Float[Tensor, "output_type d"],
    embeddings: Float[Tensor, "input_type d"],
    pairs: PaddedPairs,
) -> Float[Tensor, "input_type output_type"]:
    """Return d(W e_i)_o/dτ under gradient flow, exactly, at any W and e.

    Parameters
    ----------
    output_weights, embeddings
        W and e, one row a type.
    pairs
        The corpus; the loss is its sum over all output words (Eq. 14).

    Returns
    -------
    Tensor
        G W Wᵀ + e eᵀ G, with G = −∂L/∂(e Wᵀ). Only the two Gram matrices are formed, so that d
        may be large.

    References
    ----------
    .. [1] Snell et al., "Approximating How Single Head Attention Learns", 2021, Eq. 37–46.
    """
    weights = 1 / pairs.input_mask.sum(1).to(embeddings.dtype)
    ones = torch.ones_like(weights)
    mean = bag_of_words(pairs.inputs, pairs.input_mask, len(embeddings), weights).to_dense()
    words = bag_of_words(pairs.targets, pairs.target_mask, len(output_weights), ones).to_dense()
    predicted = (mean @ (embeddings @ output_weights.T)).softmax(-1)
    descent = mean.T @ (words - words.sum(1, keepdim=True) * predicted)
    through_embeddings = descent @ (output_weights @ output_weights.T)
    through_weights = (embeddings @ embeddings.T) @ descent
    return through_embeddings + through_weights


def probability_velocity(
    output_weights: Float[Tensor, "output_type d"],
    embeddings: Float[Tensor, "input_type d"],
    pairs: PaddedPairs,
) -> Float[Tensor, "input_type output_type"]:
    """Return dθ_{i,o}/dτ for θ = softmax(W e_i) (Eq. 13), exactly, at any W and e."""
    velocity = logit_velocity(output_weights, embeddings, pairs)
    theta = (embeddings @ output_weights.T).softmax(-1)
    return theta * (velocity - (theta * velocity).sum(-1, keepdim=True))


def predicted_logit_velocity(
    counts: Float[Tensor, "input_type output_type"],
) -> Float[Tensor, "input_type output_type"]:
    """Return 2(C − C̄), the limit of the logits' velocity (Eq. 50, 51, 53)."""
    return 2 * (counts - counts.mean(-1, keepdim=True))


def predicted_probability_velocity(
    counts: Float[Tensor, "input_type output_type"],
) -> Float[Tensor, "input_type output_type"]:
    """Return (2/|O|)(C − C̄), the limit of the probabilities' velocity (Eq. 15, 54; corrected)."""
    return predicted_logit_velocity(counts) / counts.shape[-1]


class InitialVelocities(NamedTuple):
    """The velocities of logits and probabilities at one initialisation, next to their laws."""

    counts: Float[Tensor, "input_type output_type"]
    logit: Float[Tensor, "input_type output_type"]
    theta: Float[Tensor, "input_type output_type"]

    @classmethod
    def of(
        cls,
        output_weights: Float[Tensor, "output_type d"],
        embeddings: Float[Tensor, "input_type d"],
        pairs: PaddedPairs,
    ) -> InitialVelocities:
        """Return the velocities at W and e on a corpus, and its count table."""
        return cls(
            count_table(*pairs, len(embeddings), len(output_weights)),
            logit_velocity(output_weights, embeddings, pairs),
            probability_velocity(output_weights, embeddings, pairs),
        )

    @property
    def centred(self) -> Float[Tensor, "input_type output_type"]:
        """C − C̄, the mean being over output types."""
        return self.counts - self.counts.mean(-1, keepdim=True)

    def errors(self) -> dict[str, float]:
        """Return the largest absolute error of each law.

        Eq. 53 of the logits, Eq. 15 of the probabilities with its missing factor, and as printed.
        """
        gaps = {
            "logit": self.logit - predicted_logit_velocity(self.counts),
            "theta": self.theta - predicted_probability_velocity(self.counts),
            "theta as printed": self.theta - predicted_logit_velocity(self.counts),
        }
        return {law: float(gap.abs().max()) for law, gap in gaps.items()}

    def slope(self, quantity: str) -> float:
        """Return the least-squares slope of the velocity of ``logit`` or ``theta`` on C − C̄."""
        velocity = {"logit": self.logit, "theta": self.theta}[quantity]
        return float((velocity * self.centred).sum() / self.centred.square().sum())
