"""The classifier's prediction from each token alone (tutek Eq. 9, Table 3, Fig. 2–7).

The readout of a single state is the prediction as if all attention were on it: snell's lexical
probe, read as a probability of the label that the model predicts. Where most tokens by themselves
already carry the decision, information has leaked between states, and attention explains little.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.analysis.intervals import RESAMPLES, Interval, sentence_interval
from attnscope.analysis.replaced_attention import labelled_traces
from attnscope.data.batch import Batch
from attnscope.data.vocabulary import Vocabulary
from attnscope.models.trace import AttentionModel, Trace
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe

# A token within this of the prediction is said to carry it.
NEAR = 0.1


@dataclass(frozen=True)
class TokenProbabilities:
    """Per example, on the CPU: the prediction, and the predictions from its tokens alone.

    Attributes
    ----------
    ids, labels, predicted
        The examples, their right labels and the model's.
    confidence
        The model's probability of the label that it predicts.
    token_mean
        The mean over tokens of the probability of that label with all attention on the token.
    token_share
        The share of tokens whose probability is within `NEAR` of the confidence.
    """

    ids: Int[Tensor, " example"]
    labels: Int[Tensor, " example"]
    predicted: Int[Tensor, " example"]
    confidence: Float[Tensor, " example"]
    token_mean: Float[Tensor, " example"]
    token_share: Float[Tensor, " example"]

    @property
    def correct(self) -> Bool[Tensor, " example"]:
        """True where the prediction is right: the examples of Table 3."""
        return self.predicted == self.labels

    def of_correct(self, name: str) -> Float[np.ndarray, " example"]:
        """Return a number per example, NaN where the prediction is wrong: pairs stay pairs."""
        values: Tensor = getattr(self, name)
        return values.double().masked_fill(~self.correct, torch.nan).numpy()

    def interval(
        self, name: str, *, rng: np.random.Generator, resamples: int = RESAMPLES
    ) -> Interval:
        """Return the mean of a number over correctly classified examples, with its interval."""
        return sentence_interval(self.of_correct(name), rng=rng, resamples=resamples)


@torch.no_grad()
def compute_token_probabilities(
    model: AttentionModel, batch: Batch, *, site: str = "cross"
) -> TokenProbabilities:
    """Measure a classifier's tokens one by one.

    Parameters
    ----------
    model
        Any classifier whose output is a readout of the context at the site.
    batch
        Examples with a label each, on the model's device.
    """
    columns: dict[str, list[Tensor]] = defaultdict(list)
    for rows, trace in labelled_traces(model, batch, site):
        trace = _with_own_labels(trace)
        tokens = LexicalProbe(site=site, reading="probability").read(model, trace)
        real, count = tokens.input_mask, tokens.input_mask.sum(1)
        values, confidence = tokens.values[:, 0], _confidence(trace)
        near = ((values - confidence[:, None]).abs() <= NEAR) & real
        columns["rows"].append(rows)
        columns["predicted"].append(trace.batch.targets[:, 0].cpu())
        columns["confidence"].append(confidence.cpu())
        columns["token_mean"].append((values.sum(1) / count).cpu())  # values are 0 at padding
        columns["token_share"].append((near.sum(1) / count).cpu())
    back = torch.cat(columns.pop("rows")).argsort()
    measured = {name: torch.cat(parts)[back] for name, parts in columns.items()}
    return TokenProbabilities(batch.ids.cpu(), batch.targets[:, 0].cpu(), **measured)


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
        confidence = _confidence(trace).tolist()
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


def _confidence(trace: Trace) -> Float[Tensor, " batch"]:
    return trace.logits[:, 0].softmax(-1).amax(-1)
