"""A model's prediction from each token alone (tutek Eq. 9, Table 3, Fig. 2–7).

The readout of a single state is the prediction as if all attention were on it: snell's lexical
probe, read as a probability of the label that the model predicts. A model without a readout is run
again for each position; one that writes several words has one prediction at each. Where most tokens
by themselves already carry the decision, information has leaked between states, and attention
explains little.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.analysis.intervals import RESAMPLES, Interval, sentence_interval
from attnscope.analysis.replaced_attention import (
    decision_order,
    labelled_traces,
    traces_by_length,
)
from attnscope.data.batch import Batch
from attnscope.data.vocabulary import Vocabulary
from attnscope.models.trace import AttentionModel, Trace
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe

# A token within this of the prediction is said to carry it.
NEAR = 0.1


@dataclass(frozen=True)
class TokenProbabilities:
    """Per decision, on the CPU: the prediction, and the predictions from the tokens alone.

    There is one decision per example of a classifier, and one per real output word otherwise, in
    the order of examples and positions.

    Attributes
    ----------
    ids, labels, predicted
        The example of each decision, its right label or word, and the model's.
    confidence
        The model's probability of the label that it predicts.
    token_mean
        The mean over tokens of the probability of that label with all attention on the token.
    token_share
        The share of tokens whose probability is within `NEAR` of the confidence.
    """

    ids: Int[Tensor, " decision"]
    labels: Int[Tensor, " decision"]
    predicted: Int[Tensor, " decision"]
    confidence: Float[Tensor, " decision"]
    token_mean: Float[Tensor, " decision"]
    token_share: Float[Tensor, " decision"]

    @property
    def correct(self) -> Bool[Tensor, " decision"]:
        """True where the prediction is right: the examples of Table 3."""
        return self.predicted == self.labels

    def of_correct(self, name: str) -> Float[np.ndarray, " decision"]:
        """Return a number per decision, NaN where the prediction is wrong: pairs stay pairs."""
        values: Tensor = getattr(self, name)
        return values.double().masked_fill(~self.correct, torch.nan).numpy()

    def interval(
        self, name: str, *, rng: np.random.Generator, resamples: int = RESAMPLES
    ) -> Interval:
        """Return the mean of a number over right predictions, with its interval over examples."""
        _, owner, counts = self.ids.unique_consecutive(return_inverse=True, return_counts=True)
        place = torch.arange(len(owner)) - (counts.cumsum(0) - counts)[owner]
        table = np.full((len(counts), int(counts.max())), np.nan)
        table[owner.numpy(), place.numpy()] = self.of_correct(name)
        return sentence_interval(table, rng=rng, resamples=resamples)


@torch.no_grad()
def compute_token_probabilities(
    model: AttentionModel, batch: Batch, *, site: str = "cross"
) -> TokenProbabilities:
    """Measure tokens one by one.

    Parameters
    ----------
    model
        Any model; where its output is not a readout of the context at the site, it is run again
        for each input position.
    batch
        Examples on the model's device, with a label each or with several output words.
    """
    columns: dict[str, list[Tensor]] = defaultdict(list)
    for rows, trace in traces_by_length(model, batch, site):
        trace = _with_own_labels(trace)
        real = trace.batch.target_mask
        tokens = LexicalProbe(site=site, reading="probability").read(model, trace)
        attended = tokens.mask[real]
        count = attended.sum(-1)
        values, confidence = tokens.values[real], _confidence(trace)[real]
        near = ((values - confidence[:, None]).abs() <= NEAR) & attended
        columns["order"].append(decision_order(rows, trace.batch, batch))
        columns["predicted"].append(trace.batch.targets[real].cpu())
        columns["confidence"].append(confidence.cpu())
        columns["token_mean"].append((values.sum(-1) / count).cpu())  # values are 0 at padding
        columns["token_share"].append((near.sum(-1) / count).cpu())
    back = torch.cat(columns.pop("order")).argsort()
    measured = {name: torch.cat(parts)[back] for name, parts in columns.items()}
    real = batch.target_mask.cpu()
    examples = batch.ids.cpu()[real.nonzero()[:, 0]]
    return TokenProbabilities(examples, batch.targets.cpu()[real], **measured)


@dataclass(frozen=True)
class SentenceProbabilities:
    """One sentence for a figure: its words with the prediction from each alone.

    Attributes
    ----------
    words
        As the model reads them, boundaries included.
    label, confidence
        The predicted label and its probability.
    probabilities
        The probability of that label with all attention on the word.
    attention
        The model's weights; with one head and an affine readout, the logit of the confidence is
        their mean of the words' logits (Eq. 9).
    """

    words: tuple[str, ...]
    label: str
    confidence: float
    probabilities: tuple[float, ...]
    attention: tuple[float, ...]


@torch.no_grad()
def sentence_probabilities(
    model: AttentionModel,
    batch: Batch,
    input_words: Vocabulary,
    labels: Vocabulary,
    *,
    site: str = "cross",
) -> list[SentenceProbabilities]:
    """Return the contents of a figure of sentences, one entry per example.

    Parameters
    ----------
    batch
        A few sentences, on the model's device; their labels are not looked at.
    input_words, labels
        Vocabularies of the source.
    """
    found: dict[int, SentenceProbabilities] = {}
    for rows, trace in labelled_traces(model, batch, site):
        trace = _with_own_labels(trace)
        rules = LexicalProbe(site=site, reading="probability"), Attention(site=site)
        tokens, weights = (rule.read(model, trace) for rule in rules)
        confidence = _confidence(trace)[:, 0].tolist()
        for place, row in enumerate(rows.tolist()):
            real = tokens.input_mask[place]
            found[row] = SentenceProbabilities(
                tuple(input_words.decode(trace.batch.inputs[place][real].tolist())),
                labels.words[int(trace.batch.targets[place, 0])],
                confidence[place],
                tuple(tokens.values[place, 0][real].tolist()),
                tuple(weights.values[place, 0][real].tolist()),
            )
    return [found[row] for row in range(len(batch))]


def _with_own_labels(trace: Trace) -> Trace:
    """Return the trace with the predicted labels as its targets, which the probe reads."""
    return replace(trace, batch=replace(trace.batch, targets=trace.logits.argmax(-1)))


def _confidence(trace: Trace) -> Float[Tensor, "batch out"]:
    return trace.logits.softmax(-1).amax(-1)
