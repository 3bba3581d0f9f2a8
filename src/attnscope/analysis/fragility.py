"""How much a classifier's decisions depend on its attention weights (tutek §3.2, Table 1).

Trained, uniform and permuted attention, the last over many permutations, are read off one encoding
of the inputs. A permutation is the one that `attnscope.models.intervention.Permuted` makes of its
seed: running the model under that rule gives the same numbers, at a hundred times the cost.
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
from attnscope.analysis.replaced_attention import labelled_traces, outputs_under
from attnscope.data.batch import Batch
from attnscope.errors import UsageError
from attnscope.models.intervention import Permuted, Uniform
from attnscope.models.trace import AttentionModel, Trace
from attnscope.scores.attention import site_of

CONDITIONS = ("trained", "uniform", "permuted")
# Numbers of contexts held at once.
_NUMBERS = 2**24


@dataclass(frozen=True)
class Fragility:
    """Outputs of one model on the same examples under different attention, on the CPU.

    Attributes
    ----------
    ids, labels
        The examples and their right labels.
    probabilities
        Class probabilities by condition (`CONDITIONS`); trained and uniform attention have one
        draw, permuted attention one per permutation.
    """

    ids: Int[Tensor, " example"]
    labels: Int[Tensor, " example"]
    probabilities: dict[str, Float[Tensor, "draw example label"]]

    def predicted(self, condition: str) -> Int[Tensor, "draw example"]:
        """Return the most probable label: of two, the positive one if its probability is > .5."""
        return self.probabilities[condition].argmax(-1)

    def metric(self, condition: str, name: str = "f1", average: Average = "positive") -> float:
        """Return a metric under a condition, the mean over its draws."""
        labels, answers = self.labels.numpy(), self.predicted(condition).numpy()
        return float(classification_metrics(labels, answers, average=average)[name].mean())


@torch.no_grad()
def compute_fragility(
    model: AttentionModel,
    batch: Batch,
    permutations: int = 100,
    *,
    seed: int = 0,
    site: str = "cross",
) -> Fragility:
    """Read a classifier's output under trained, uniform and permuted attention.

    Parameters
    ----------
    model
        Any classifier whose output is a readout of the context at the site.
    batch
        Examples with a label each, on the model's device.
    permutations
        How many permutations of the weights, each within an example's real positions.
    seed
        The permutations are those of ``Permuted(seed)``, ``Permuted(seed + 1)``, ….
    """
    if permutations < 1:
        raise UsageError(f"permutations={permutations}: at least one is needed.")
    seeds = range(seed, seed + permutations)
    parts: dict[str, list[Tensor]] = defaultdict(list)
    order: list[Tensor] = []
    for rows, trace in labelled_traces(model, batch, site):
        order.append(rows)
        parts["trained"].append(trace.logits[None, :, 0].softmax(-1).cpu())
        parts["uniform"].append(_read(model, trace, [Uniform()], site))
        parts["permuted"].append(_read(model, trace, [Permuted(seed=s) for s in seeds], site))
    back = torch.cat(order).argsort()
    probabilities = {name: torch.cat(values, 1)[:, back] for name, values in parts.items()}
    return Fragility(batch.ids.cpu(), batch.targets[:, 0].cpu(), probabilities)


def _read(
    model: AttentionModel, trace: Trace, rules: Sequence[Uniform | Permuted], site: str
) -> Float[Tensor, "draw batch label"]:
    """Return class probabilities under each rule, as many rules at once as memory allows."""
    at = site_of(trace, site)
    at_once = max(1, _NUMBERS // (at.values[:, :, 0].numel() + at.weights.numel()))
    read = []
    for start in range(0, len(rules), at_once):
        chosen = rules[start : start + at_once]
        weights = torch.stack([rule(at.logits, at.mask, trace.batch.ids) for rule in chosen])
        read.append(outputs_under(model, trace, weights, site)[:, :, 0].softmax(-1).cpu())
    return torch.cat(read)


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
    return seeds[0].labels.numpy()


def _predicted(seeds: Sequence[Fragility], condition: str) -> Int[np.ndarray, "seed draw example"]:
    return np.stack([each.predicted(condition).numpy() for each in seeds])
