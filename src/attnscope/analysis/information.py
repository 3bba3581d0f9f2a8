"""Mutual information between words' embeddings and their states, by clusters (tutek §3.4, Table 2).

Embeddings and states of the occurrences of 1000 word types are cut into k clusters, and the mutual
information of the two cluster labels is counted, in nats. Both are clustered together, as we read
the paper, or each by itself, as Voita et al. do. Such an estimate is biased upwards when there are
few occurrences per pair of clusters: its value for shuffled pairs, which have no information about
each other, is reported with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import mutual_info_score
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor

from attnscope.analysis.replaced_attention import POSITIONS, positions_at_once
from attnscope.data.batch import Batch, collate
from attnscope.data.corpus import Corpus
from attnscope.data.randomness import counter_uniform, generator, seed_of
from attnscope.errors import UsageError
from attnscope.models.trace import AttentionModel, needed

CLUSTERS, CLUSTER_BATCH, TYPES, OCCURRENCES = 1000, 100, 1000, 200_000
# Word types are drawn in proportion to their frequency to this power (footnote 6).
_POWER = 0.75
_SHUFFLES = 5

Clustering = Literal["shared", "separate"]
Labels = NDArray[np.integer]
Pair = tuple[Float[Tensor, "occurrence embedding"], Float[Tensor, "occurrence state"]]
Counts = Int[Tensor, " input_type"]
Types = Int[Tensor, " sampled"]


def training_part(source: Corpus, tokens: int) -> Batch:
    """Return random training examples of a corpus, of about so many tokens, or all of them."""
    examples = source.training_examples
    order = torch.randperm(len(examples), generator=generator("part for information")).tolist()
    lengths = np.cumsum([len(examples[place].inputs) for place in order])
    count = int(np.searchsorted(lengths, tokens)) + 1
    return collate([examples[place] for place in order[:count]])


def word_counts(batch: Batch, types: int, without: Iterable[int] = ()) -> Counts:
    """Return how often each word type occurs in some examples.

    Parameters
    ----------
    types
        The size of the vocabulary.
    without
        Ids that count as 0: padding, boundaries, the unknown word.
    """
    counts = torch.bincount(batch.inputs[batch.input_mask], minlength=types).cpu()
    counts[list(without)] = 0
    return counts


def most_frequent(counts: Counts, types: int = TYPES, seed: int = 0) -> Types:
    """Return the most frequent word types, MF; among equals those with the lower id."""
    order = counts.sort(descending=True, stable=True)
    return order.indices[: min(types, int((counts > 0).sum()))].sort().values


def unigram_sample(counts: Counts, types: int = TYPES, seed: int = 0) -> Types:
    """Return word types drawn ∝ frequency^¾ without replacement, RS.

    The paper does not say whether a type may be drawn twice; it could only be clustered once.
    """
    weights = counts.double().pow(_POWER).numpy()
    size = min(types, int((weights > 0).sum()))
    rng = np.random.default_rng(seed_of("unigram sample", seed))
    drawn = rng.choice(len(weights), size, replace=False, p=weights / weights.sum())
    return torch.from_numpy(drawn).sort().values


SAMPLES: dict[str, Callable[[Counts, int, int], Types]] = {
    "most-frequent": most_frequent,
    "unigram-sample": unigram_sample,
}


@dataclass(frozen=True)
class EncodedOccurrences:
    """Occurrences of word types, on the CPU: inputs and outputs of the encoder.

    Attributes
    ----------
    words, embeddings, states
        One row each.
    found
        How many there were before a limit was put on them.
    """

    words: Int[Tensor, " occurrence"]
    embeddings: Float[Tensor, "occurrence embedding"]
    states: Float[Tensor, "occurrence state"]
    found: int


@torch.no_grad()
def occurrences(
    model: AttentionModel,
    batch: Batch,
    types: Types,
    *,
    limit: int = OCCURRENCES,
    seed: int = 0,
    positions: int = POSITIONS,
) -> EncodedOccurrences:
    """Collect embeddings and states of some word types, at most ``limit`` of them, drawn evenly.

    Parameters
    ----------
    model
        Any whose trace has embeddings and encoder states.
    batch
        Examples on the model's device.
    types
        Word types, as `most_frequent` and `unigram_sample` return them.
    limit
        The paper has a million; the default gives the same picture in a fifth of the time.
    seed
        Decides which occurrences are kept: a function of it, the example and the position.
    """
    taken, found = _taken(batch, types, limit, seed)
    rows: list[tuple[Tensor, ...]] = []
    for part_rows, part in batch.by_length(positions_at_once(positions)):
        chosen = taken[part_rows, : part.inputs.shape[1]]
        trace = model.trace(part)
        embeddings = needed(trace.embeddings, "embeddings")
        states = needed(trace.encoder_states, "encoder states")
        arrays = (part.inputs, embeddings, states)
        rows.append(tuple(array[chosen].cpu() for array in arrays))
    words, embeddings, states = (torch.cat(column) for column in zip(*rows, strict=True))
    return EncodedOccurrences(words, embeddings, states, found)


def _taken(
    batch: Batch, types: Types, limit: int, seed: int
) -> tuple[Bool[Tensor, "batch inp"], int]:
    wanted = torch.isin(batch.inputs, types.to(batch.inputs.device)) & batch.input_mask
    found = int(wanted.sum())
    if not found:
        raise UsageError("None of the word types occurs in these examples.")
    if found <= limit:
        return wanted, found
    place = torch.arange(batch.inputs.shape[1], device=batch.inputs.device)
    draw = counter_uniform(seed, batch.ids[:, None], place).masked_fill(~wanted, 2.0)
    last = draw.flatten().kthvalue(limit).values
    return draw <= last, found


@dataclass(frozen=True)
class Information:
    """An estimate of mutual information, in nats.

    Attributes
    ----------
    value
        Of the pairs as they are.
    shuffled
        Of the same clusters with the pairs shuffled: the estimate where there is no information.
    entropy
        Of the embeddings' clusters, which no value exceeds.
    n
        The number of occurrences.
    """

    value: float
    shuffled: float
    entropy: float
    n: int


def mutual_information(
    inputs: Float[Tensor, "occurrence embedding"],
    states: Float[Tensor, "occurrence state"],
    *,
    clusters: int = CLUSTERS,
    clustering: Clustering = "shared",
    batch_size: int = CLUSTER_BATCH,
    seed: int = 0,
) -> Information:
    """Return the mutual information of two representations of the same occurrences.

    Parameters
    ----------
    inputs, states
        The two representations; of one width if their clustering is shared.
    clusters, batch_size
        Of the mini-batch k-means.
    clustering
        Shared: one k-means of both representations together. tutek clusters what it has gathered at
        both levels, and can give no value where states are wider than embeddings, which is an
        obstacle for a shared clustering alone. Separate: one k-means of each [1]_.
    seed
        Decides the clusterings and the shuffles.

    References
    ----------
    .. [1] E. Voita, R. Sennrich, I. Titov. "The Bottom-up Evolution of Representations in the
       Transformer." EMNLP 2019.
    """
    (found,) = mutual_informations(
        [(inputs, states)],
        clusters=clusters,
        clustering=clustering,
        batch_size=batch_size,
        seed=seed,
    )
    return found


def mutual_informations(
    pairs: Sequence[Pair],
    *,
    clusters: int = CLUSTERS,
    clustering: Clustering = "shared",
    batch_size: int = CLUSTER_BATCH,
    seed: int = 0,
    jobs: int = 1,
) -> list[Information]:
    """Return the mutual information of several pairs of representations.

    As `mutual_information` of each; ``jobs`` clusterings are made at once, and inputs that are the
    same in several pairs are clustered once.
    """

    def labels(parts: Sequence[Tensor], name: str) -> list[Labels]:
        own = seed_of("clusters", name, seed) % 2**32
        work = (delayed(cluster_labels)(part, clusters, batch_size, own) for part in parts)
        return list(Parallel(n_jobs=jobs)(work))

    if clustering == "shared":
        both = labels([_together(*pair) for pair in pairs], "shared")
        found = [np.split(one, 2) for one in both]
    else:
        distinct: list[Tensor] = []
        for own, _ in pairs:
            if not any(own.equal(other) for other in distinct):
                distinct.append(own)
        inputs = list(zip(distinct, labels(distinct, "inputs"), strict=True))
        states = labels([states for _, states in pairs], "states")
        firsts = [next(one for part, one in inputs if part.equal(own)) for own, _ in pairs]
        found = [[*both] for both in zip(firsts, states, strict=True)]
    return [label_information(one, other, seed=seed) for one, other in found]


def _together(inputs: Tensor, states: Tensor) -> Tensor:
    if inputs.shape[1] != states.shape[1]:
        raise UsageError(
            f"Embeddings of width {inputs.shape[1]} and states of width {states.shape[1]} cannot "
            "be clustered together: make them equally wide, or set clustering=separate."
        )
    return torch.cat([inputs, states])


def label_information(one: Labels, other: Labels, *, seed: int = 0) -> Information:
    """Return the mutual information of two labellings, and that of their shuffled pairs."""
    rng = np.random.default_rng(seed_of("shuffled pairs", seed))
    shuffled = [mutual_info_score(one, rng.permutation(other)) for _ in range(_SHUFFLES)]
    return Information(
        float(mutual_info_score(one, other)),
        float(np.mean(shuffled)),
        float(mutual_info_score(one, one)),
        len(one),
    )


def cluster_labels(
    points: Float[Tensor, "occurrence width"], clusters: int, batch_size: int, seed: int
) -> Labels:
    """Return the cluster of every point; there are at most as many clusters as points.

    One thread, as everywhere else: scikit-learn would take every core that it finds, and sums over
    threads depend on their number.
    """
    array = points.detach().cpu().numpy()
    means = MiniBatchKMeans(min(clusters, len(array)), batch_size=batch_size, random_state=seed)
    with threadpool_limits(limits=1):
        return means.fit(array).labels_
