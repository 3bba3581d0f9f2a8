"""π(e) and ρ(e): how a corpus pulls at each word type's polarity and attention score.

π is sunlu Eq. 15, 16 and ρ sunlu Eq. 20, for the loss of Eq. 5 and the output of Eq. 6.

Both are sums over the occurrences of a type: π(e) = Σ α_j r and ρ(e) = Σ α_j r·(s_j − s), where
r = −∂ℓ/∂s is yβ for two labels and onehot − p for K. Over m examples they are −m times the loss's
derivatives by s_e and a_e, which makes them all that gradient flow needs to know of the corpus.
They are taken batch by batch, as scatter sums in double precision.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot, pad

from attnscope.data.batch import Batch
from attnscope.errors import MissingCapability, UsageError, suggestion
from attnscope.models.trace import AttentionModel, needed


@dataclass(frozen=True)
class Pulls:
    """π and ρ of every type over ``examples`` examples.

    Attributes
    ----------
    polarity
        π(e), one number a logit.
    attention
        ρ(e).
    examples
        m.
    """

    polarity: Float[Tensor, "type logit"]
    attention: Float[Tensor, " type"]
    examples: int

    def mean(self, dtype: torch.dtype) -> Pulls:
        """Return π/m and ρ/m, for one example, in a precision."""
        sums = (self.polarity, self.attention)
        polarity, attention = (part.div(max(self.examples, 1)).to(dtype) for part in sums)
        return replace(self, polarity=polarity, attention=attention, examples=1)

    def __add__(self, other: Pulls) -> Pulls:
        return Pulls(
            self.polarity + other.polarity,
            self.attention + other.attention,
            self.examples + other.examples,
        )


def residual(
    logits: Float[Tensor, "batch logit"], labels: Int[Tensor, " batch"]
) -> Float[Tensor, "batch logit"]:
    """Return −∂ℓ/∂s of each example: yβ for one logit, onehot − p for several."""
    shown = pad(logits, (1, 0)) if logits.shape[1] == 1 else logits
    missing = one_hot(labels, shown.shape[1]) - shown.softmax(-1)
    return missing[:, -logits.shape[1] :]


def position_pulls(
    inputs: Int[Tensor, "batch inp"],
    weights: Float[Tensor, "batch inp"],
    polarity: Float[Tensor, "batch inp logit"],
    labels: Int[Tensor, " batch"],
    types: int,
) -> Pulls:
    """Sum one batch's pulls by type; the output is Σ_j α_j s_j, that of a linear layer.

    Parameters
    ----------
    inputs, weights
        Word ids, and the attention on them: 0 at padding.
    polarity
        s_j at each position.
    labels
        The right class of each example.
    types
        The size of the vocabulary.
    """
    output = (weights[..., None] * polarity).sum(1)
    rest = residual(output, labels)
    of_polarity = weights[..., None] * rest[:, None]
    of_attention = weights * ((polarity - output[:, None]) * rest[:, None]).sum(-1)
    columns = [*of_polarity.unbind(-1), of_attention]
    sums = [_by_type(inputs, column, types) for column in columns]
    return Pulls(torch.stack(sums[:-1], 1), sums[-1], len(inputs))


@torch.no_grad()
def corpus_pulls(
    polarity: Float[Tensor, "type logit"],
    attention_scores: Float[Tensor, " type"],
    batches: Iterable[Batch],
) -> Pulls:
    """Return π and ρ of a classifier without context over a corpus, in one pass.

    Parameters
    ----------
    polarity, attention_scores
        s_e and a_e of every type, for example `Parameters.polarity` and
        `Parameters.attention_scores`.
    batches
        The corpus; the label is the one target. Move it to the tables' device first.
    """

    def pulls(batch: Batch) -> Pulls:
        scores = attention_scores[batch.inputs].masked_fill(~batch.input_mask, -torch.inf)
        found = scores.softmax(-1), polarity[batch.inputs]
        return position_pulls(batch.inputs, *found, batch.targets[:, 0], len(polarity))

    return _summed(map(pulls, batches))


@torch.no_grad()
def traced_pulls(
    model: AttentionModel, batches: Iterable[Batch], types: int, site: str = "cross"
) -> Pulls:
    """Return π and ρ of any classifier with a linear output layer, its states with context or not.

    With context they are still the pulls on each occurrence's polarity and attention logit, but no
    longer all that moves a word.

    Parameters
    ----------
    model, site
        A classifier, and where its attention is.
    batches
        The corpus, on the model's device.
    types
        The size of the vocabulary.

    Returns
    -------
    Pulls
        π has a number for each label: of two labels the second is the paper's, the first its
        negative.
    """

    def pulls(batch: Batch) -> Pulls:
        trace = model.trace(batch)
        if site not in trace.sites:
            raise MissingCapability(
                f"The model has no site {site!r}; {suggestion(site, trace.sites)}"
            )
        at = trace.sites[site]
        query = needed(trace.query, "query").expand(-1, batch.inputs.shape[1], -1)
        polarity = model.readout(at.values.transpose(1, 2), query)
        weights = at.weights.mean(1)[:, 0]
        return position_pulls(batch.inputs, weights, polarity, batch.targets[:, 0], types)

    return _summed(map(pulls, batches))


def _summed(parts: Iterable[Pulls]) -> Pulls:
    total: Pulls | None = None
    for part in parts:
        total = part if total is None else total + part
    if total is None:
        raise UsageError("There is nothing to sum: give at least one batch.")
    return total


def _by_type(
    inputs: Int[Tensor, "batch inp"], values: Float[Tensor, "batch inp"], types: int
) -> Float[Tensor, " type"]:
    sums = values.new_zeros(types, dtype=torch.float64)
    # Unlike index_add_, which adds in any order on a GPU, this gives the same bytes every time.
    return sums.index_put_((inputs.flatten(),), values.flatten().double(), accumulate=True)
