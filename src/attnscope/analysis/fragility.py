"""How much a model's decisions depend on its attention weights (tutek §3.2, Table 1).

Trained, uniform and permuted attention, the last over many permutations, are read off one encoding
of the inputs where the model has a readout; else it is run again. A permutation is the one that
`attnscope.models.intervention.Permuted` makes of its seed: running the model under that rule gives
the same numbers, for a readout at a hundred times the cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.analysis.classification import Average, classification_metrics, metric_intervals
from attnscope.analysis.intervals import RESAMPLES, Interval
from attnscope.analysis.replaced_attention import decision_order, outputs_under, traces_by_length
from attnscope.data.batch import Batch
from attnscope.errors import UsageError
from attnscope.models.intervention import Permuted, Uniform
from attnscope.models.rerun import resuming
from attnscope.models.trace import AttentionModel, Trace
from attnscope.scores.attention import site_of

CONDITIONS = ("trained", "uniform", "permuted")
# Numbers of contexts held at once.
_NUMBERS = 2**24


@dataclass(frozen=True)
class Fragility:
    """Outputs of one model on the same examples under different attention, on the CPU.

    There is one decision per example of a classifier, and one per real output word otherwise, in
    the order of examples and positions. Draws are by condition (`CONDITIONS`): trained and uniform
    attention have one, permuted attention one per permutation.

    Attributes
    ----------
    ids, labels
        The example of each decision and its right label or word.
    answers
        The most probable label; of two, the positive one if its probability is > .5.
    probabilities
        The probability of the right label.
    """

    ids: Int[Tensor, " decision"]
    labels: Int[Tensor, " decision"]
    answers: dict[str, Int[Tensor, "draw decision"]]
    probabilities: dict[str, Float[Tensor, "draw decision"]]

    def metric(self, condition: str, name: str = "f1", average: Average = "positive") -> float:
        """Return a metric under a condition, the mean over its draws."""
        labels, answers = self.labels.numpy(), self.answers[condition].numpy()
        return float(classification_metrics(labels, answers, average=average)[name].mean())

    def changed(self, condition: str) -> Float[np.ndarray, " example"]:
        """Return each example's share of decisions that are not those of trained attention."""
        changed = (self.answers[condition] != self.answers["trained"]).double().mean(0)
        _, owners, counts = self.ids.unique_consecutive(return_inverse=True, return_counts=True)
        sums = torch.zeros(len(counts), dtype=torch.float64).index_add_(0, owners, changed)
        return (sums / counts).numpy()


@torch.no_grad()
def compute_fragility(
    model: AttentionModel,
    batch: Batch,
    permutations: int = 100,
    *,
    seed: int = 0,
    site: str = "cross",
) -> Fragility:
    """Read a model's output under trained, uniform and permuted attention.

    Parameters
    ----------
    model
        Any model; where its output is not a readout of the context at the site, it is run again
        for each permutation.
    batch
        Examples on the model's device, with a label each or with several output words, which are
        given as targets.
    permutations
        How many permutations of the weights, each within an example's real positions.
    seed
        The permutations are those of ``Permuted(seed)``, ``Permuted(seed + 1)``, ….
    """
    if permutations < 1:
        raise UsageError(f"permutations={permutations}: at least one is needed.")
    rules: dict[str, Sequence[Uniform | Permuted]] = {
        "uniform": [Uniform()],
        "permuted": [Permuted(seed=each) for each in range(seed, seed + permutations)],
    }
    answers: dict[str, list[Tensor]] = defaultdict(list)
    right: dict[str, list[Tensor]] = defaultdict(list)
    order: list[Tensor] = []
    for rows, trace in traces_by_length(model, batch, site):
        order.append(decision_order(rows, trace.batch, batch))
        read = {"trained": _decisions(trace.logits[None], trace.batch)}
        read |= {name: _read(model, trace, each, site) for name, each in rules.items()}
        for name, (said, probability) in read.items():
            answers[name].append(said)
            right[name].append(probability)
    back = torch.cat(order).argsort()
    real = batch.target_mask.cpu()
    return Fragility(
        batch.ids.cpu()[real.nonzero()[:, 0]],
        batch.targets.cpu()[real],
        {name: torch.cat(parts, 1)[:, back] for name, parts in answers.items()},
        {name: torch.cat(parts, 1)[:, back] for name, parts in right.items()},
    )


Decisions = tuple[Int[Tensor, "draw decision"], Float[Tensor, "draw decision"]]


def _decisions(logits: Float[Tensor, "draw batch out output_type"], batch: Batch) -> Decisions:
    """Return the answers at real output words, and the probabilities of the right ones."""
    real = batch.target_mask
    probabilities = logits[:, real].softmax(-1)
    right = batch.targets[real].expand(len(logits), -1)[..., None]
    return probabilities.argmax(-1).cpu(), probabilities.gather(-1, right)[..., 0].cpu()


def _read(
    model: AttentionModel, trace: Trace, rules: Sequence[Uniform | Permuted], site: str
) -> Decisions:
    """Return the decisions under each rule, as many rules at once as memory allows."""
    at = site_of(trace, site)
    numbers = max(at.values[:, :, 0].numel() + at.weights.numel(), trace.logits.numel())
    at_once = max(1, _NUMBERS // numbers)
    read = []
    with resuming(model, trace.batch, site):
        for start in range(0, len(rules), at_once):
            chosen = rules[start : start + at_once]
            weights = torch.stack([rule(at.logits, at.mask, trace.batch.ids) for rule in chosen])
            read.append(_decisions(outputs_under(model, trace, weights, site), trace.batch))
    answers, right = (torch.cat(parts) for parts in zip(*read, strict=True))
    return answers, right


def fragility_intervals(
    seeds: Sequence[Fragility],
    *,
    rng: np.random.Generator,
    average: Average = "positive",
    resamples: int = RESAMPLES,
) -> dict[str, dict[str, Interval]]:
    """Return the metrics of each condition and their change against trained attention.

    Parameters
    ----------
    seeds
        One for every trained model, all of the same examples.
    rng, average, resamples
        As in `attnscope.analysis.classification.metric_intervals`.

    Returns
    -------
    dict
        ``trained``, ``uniform``, ``permuted``, ``uniform_change`` and ``permuted_change``, each by
        metric; a change is negative where the metric falls, as the paper prints it.
    """
    labels = _common_labels(seeds)
    said = {condition: _predicted(seeds, condition) for condition in CONDITIONS}
    measured = partial(metric_intervals, labels, rng=rng, average=average, resamples=resamples)
    levels = {name: measured(said[name]) for name in CONDITIONS}
    changes = {
        f"{name}_change": measured(said[name], baseline=said["trained"]) for name in CONDITIONS[1:]
    }
    return levels | changes


def difference_intervals(
    seeds: Sequence[Fragility],
    others: Sequence[Fragility],
    condition: str = "trained",
    *,
    rng: np.random.Generator,
    average: Average = "positive",
    resamples: int = RESAMPLES,
) -> dict[str, Interval]:
    """Return each metric of some models less that of others, paired over seeds and examples.

    Parameters
    ----------
    seeds, others
        As many of each, all of the same examples.
    condition
        One of `CONDITIONS`.
    rng, average, resamples
        As in `attnscope.analysis.classification.metric_intervals`.
    """
    labels = _common_labels([*seeds, *others])
    own, baseline = (_predicted(each, condition) for each in (seeds, others))
    return metric_intervals(
        labels, own, rng=rng, average=average, baseline=baseline, resamples=resamples
    )


def extra_drops(
    seeds: Sequence[Fragility],
    others: Sequence[Fragility],
    condition: str,
    *,
    metric: str = "f1",
    average: Average = "positive",
) -> Float[np.ndarray, " seed"]:
    """Return how much more of a metric than its counterpart each model loses under a condition.

    Parameters
    ----------
    seeds, others
        As many of each; a model is compared with the other of its place.
    condition
        ``uniform`` or ``permuted``.
    """

    def drop(one: Fragility) -> float:
        return one.metric("trained", metric, average) - one.metric(condition, metric, average)

    return np.array([drop(one) - drop(other) for one, other in zip(seeds, others, strict=True)])


def _common_labels(seeds: Sequence[Fragility]) -> Int[np.ndarray, " example"]:
    if any(not each.ids.equal(seeds[0].ids) for each in seeds):
        raise UsageError("The seeds were not measured on the same examples.")
    if len(seeds[0].ids.unique()) < len(seeds[0].ids):
        raise UsageError("F1 is a metric of labels: take Fragility.changed of output words.")
    return seeds[0].labels.numpy()


def _predicted(seeds: Sequence[Fragility], condition: str) -> Int[np.ndarray, "seed draw example"]:
    return np.stack([each.answers[condition].numpy() for each in seeds])
