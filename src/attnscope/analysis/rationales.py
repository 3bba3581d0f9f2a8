"""How well a score finds the words that people marked as reasons for the label.

Two readings of each document: the area under its precision–recall curve (average precision), and
F1 when as many words are picked as people marked, where precision, recall and F1 are one number.
Equal values are never put in an order: a tie counts by its expectation, so that a score that is the
same everywhere is exactly at chance. Documents are averaged, splits are not pooled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.intervals import RESAMPLES, Interval, sentence_interval
from attnscope.analysis.replaced_attention import POSITIONS, positions_at_once
from attnscope.data.rationales import Annotated
from attnscope.models.trace import AttentionModel
from attnscope.scores.score import ScoreRule, read_scores

Values = Float[Tensor, "batch inp"]
Marks = Bool[Tensor, "batch inp"]
PerDocument = Float[Tensor, " batch"]


def average_precision(values: Values, rationale: Marks, words: Marks) -> PerDocument:
    """Return the area under each document's precision–recall curve.

    Positions of equal value enter the curve together, as in scikit-learn.

    Parameters
    ----------
    values
        A score, one number per position.
    rationale
        True at marked words.
    words
        True at the positions that could have been marked.

    Returns
    -------
    Tensor
        NaN for a document without a mark.
    """
    ordered, order = values.double().masked_fill(~words, -torch.inf).sort(-1, descending=True)
    marked = (rationale & words).gather(-1, order)
    width = values.shape[-1]
    rank = torch.arange(width, device=values.device).expand_as(order)
    last = torch.ones_like(words)
    last[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    # Each position is judged by the precision at the end of the run of its equals.
    end = torch.where(last, rank, width).flip(-1).cummin(-1).values.flip(-1)
    precision = marked.cumsum(-1).double().gather(-1, end) / (end + 1)
    return (precision * marked).sum(-1) / _count(rationale & words)


def own_length_f1(values: Values, rationale: Marks, words: Marks) -> PerDocument:
    """Return F1 when as many words are picked as were marked: the share of marked ones among them.

    Where equal values straddle the last pick, they are taken in part: the expectation over all
    orders.

    Parameters
    ----------
    values, rationale, words
        As in `average_precision`.
    """
    rationale = rationale & words
    count = rationale.sum(-1, keepdim=True)
    ranked = values.double().masked_fill(~words, -torch.inf).sort(-1, descending=True).values
    least = ranked.gather(-1, (count - 1).clamp(min=0))
    value = values.double()
    above, level = (value > least) & words, (value == least) & words
    left = count - above.sum(-1, keepdim=True)
    part = left.double() / level.sum(-1, keepdim=True)
    picked = above + level * part
    return (picked * rationale).sum(-1) / _count(rationale)


def prevalence(rationale: Marks, words: Marks) -> PerDocument:
    """Return the share of marked words: the exact chance level of F1 and of a constant score."""
    return _count(rationale & words) / words.sum(-1)


def chance_average_precision(rationale: Marks, words: Marks) -> PerDocument:
    """Return the expected average precision of words in a random order.

    With m of n words marked it is p + (1 − p) H_n / n with p = (m − 1)/(n − 1) and the harmonic
    number H_n: more than the prevalence, since a marked word at the top is found early.
    """
    marked, count = _count(rationale & words), words.sum(-1).double()
    others = torch.where(count > 1, (marked - 1) / (count - 1), 1.0)
    harmonic = torch.digamma(count + 1) - torch.digamma(torch.ones_like(count))
    return others + (1 - others) * harmonic / count


def _count(marked: Marks) -> PerDocument:
    count = marked.sum(-1).double()
    return count.masked_fill(count == 0, torch.nan)


@dataclass(frozen=True)
class RationaleAgreement:
    """How well one score finds the marked words, per document, on the CPU.

    Attributes
    ----------
    average_precision, f1
        As `average_precision` and `own_length_f1` have them.
    chance_average_precision, chance_f1
        The values of a random order.
    """

    average_precision: PerDocument
    f1: PerDocument
    chance_average_precision: PerDocument
    chance_f1: PerDocument

    def interval(
        self, name: str, *, rng: np.random.Generator, resamples: int = RESAMPLES
    ) -> Interval:
        """Return a number's mean over documents, with its interval."""
        return sentence_interval(getattr(self, name).numpy(), rng=rng, resamples=resamples)


def rationale_agreement(
    model: AttentionModel,
    texts: Annotated,
    rules: Sequence[ScoreRule],
    *,
    positions: int = POSITIONS,
) -> dict[str, RationaleAgreement]:
    """Compare scores of a classifier with the words that people marked.

    Parameters
    ----------
    model
        A classifier.
    texts
        One split, on the model's device.
    rules
        Scores, for example ``Attention()``, ``LexicalProbe()`` and ``Saliency()``: the last two are
        those of the texts' right labels, which people gave their reasons for.
    positions
        How many input positions are run at once.

    Returns
    -------
    dict
        By the scores' names.
    """
    columns: dict[str, dict[str, list[Tensor]]] = defaultdict(lambda: defaultdict(list))
    order: list[Tensor] = []
    for rows, part in texts.batch.by_length(positions_at_once(positions)):
        order.append(rows)
        width = part.inputs.shape[1]
        marks, words = texts.rationale[rows, :width], texts.words[rows, :width]
        for score in read_scores(rules, model, part):
            values, able = score.values[:, 0].detach(), words & score.input_mask
            for name, numbers in {
                "average_precision": average_precision(values, marks, able),
                "f1": own_length_f1(values, marks, able),
                "chance_average_precision": chance_average_precision(marks, able),
                "chance_f1": prevalence(marks, able),
            }.items():
                columns[score.name][name].append(numbers.cpu())
    back = torch.cat(order).argsort()
    return {
        score: RationaleAgreement(**{n: torch.cat(parts)[back] for n, parts in named.items()})
        for score, named in columns.items()
    }
