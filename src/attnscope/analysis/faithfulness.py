"""Does a score find the words that decide? Comprehensiveness and sufficiency of [1]_.

The words that a score ranks highest are taken out (comprehensiveness: how far the output falls), or
all others are (sufficiency: how far it falls with these alone), for several shares of the words,
and the mean is taken. The output is the probability of the example's target: set the targets to
the model's own predictions to ask what decides them. A translator is asked about some of its output
words, each with its own ranking.

.. [1] J. DeYoung et al. "ERASER: A Benchmark to Evaluate Rationalized NLP Models." ACL 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.data.batch import Batch
from attnscope.data.randomness import counter_uniform
from attnscope.data.removal import word_groups
from attnscope.models.rerun import outputs_of, without_words
from attnscope.models.trace import AttentionModel
from attnscope.scores.lexical_probe import probability
from attnscope.scores.score import Score
from attnscope.scores.subwords import merge_words

SHARES = (0.05, 0.1, 0.2, 0.5)
_POSITIONS = 4096  # input positions that are run at once


@dataclass(frozen=True)
class Faithfulness:
    """The fall of the output's probability, per asked output word, on the CPU.

    Attributes
    ----------
    example, position
        The rows of the batch and the output positions that were asked about.
    comprehensiveness
        The mean fall without the highest words.
    sufficiency
        The mean fall with them alone.
    """

    example: Int[Tensor, " asked"]
    position: Int[Tensor, " asked"]
    comprehensiveness: Float[Tensor, " asked"]
    sufficiency: Float[Tensor, " asked"]

    def per_example(self, name: str, count: int) -> Float[np.ndarray, "example asked"]:
        """Return a number as [example, asked word], NaN where fewer words were asked."""
        values = getattr(self, name).double().numpy()
        example = self.example.numpy()
        width = int(np.bincount(example, minlength=count).max())
        table = np.full((count, width), np.nan)
        place = np.zeros(count, dtype=int)
        for row, value in zip(example, values, strict=True):
            table[row, place[row]] = value
            place[row] += 1
        return table


def faithfulness(
    model: AttentionModel, score: Score, *, shares: tuple[float, ...] = SHARES, words: int = 3
) -> Faithfulness:
    """Take out the words that a score ranks highest, and all others.

    Parameters
    ----------
    model
        Any model: only its output is looked at.
    score
        Of pieces or words, on the model's device; pieces are merged into words.
    shares
        Shares of an input's words, rounded up.
    words
        How many output words of each example are asked about, evenly spread.
    """
    return faithfulness_of_all(model, [score], shares=shares, words=words)[0]


@torch.no_grad()
def faithfulness_of_all(
    model: AttentionModel,
    scores: Sequence[Score],
    *,
    shares: tuple[float, ...] = SHARES,
    words: int = 3,
    positions: int = _POSITIONS,
) -> list[Faithfulness]:
    """Do the same for several scores of one batch; an input that many of them leave is run once.

    Parameters
    ----------
    model, shares, words
        As in `faithfulness`.
    scores
        All of the same batch.
    positions
        How many input positions are run at once.
    """
    batch = scores[0].batch
    example, position = asked(batch, words)
    groups = word_groups(batch)[example]
    drops = [torch.zeros_like(groups, dtype=torch.bool)]  # the whole input first
    for score in scores:
        merged = _merged(score)[example, position]
        counts = (merged > -torch.inf).sum(-1)
        for share in shares:
            chosen = _pieces(_top(merged, counts, share), groups)
            drops += [chosen, (groups >= 0) & ~chosen]
    runs = torch.stack(drops)
    own, *left = _probabilities(model, batch, example, position, runs, positions)
    falls = (own - torch.stack(left)).view(len(scores), len(shares), 2, -1).mean(1).cpu()
    return [Faithfulness(example.cpu(), position.cpu(), *each) for each in falls]


def random_score(batch: Batch, seed: int = 0) -> Score:
    """Return random numbers that depend on the seed, the example and the position alone."""
    out, inp = batch.targets.shape[1], batch.inputs.shape[1]
    steps = torch.arange(out, device=batch.inputs.device)[:, None]
    places = torch.arange(inp, device=batch.inputs.device)
    values = counter_uniform(seed, batch.ids[:, None, None], steps, places)
    real = batch.target_mask[:, :, None] & batch.input_mask[:, None]
    return Score("random", values.masked_fill(~real, 0.0), batch.input_mask, batch)


def asked(batch: Batch, words: int) -> tuple[Int[Tensor, " asked"], Int[Tensor, " asked"]]:
    """Return rows and output positions: of each example the same number, evenly spread."""
    device = batch.targets.device
    rows, positions = [], []
    for row, length in enumerate(batch.target_lengths.tolist()):
        count = min(words, length)
        places = torch.linspace(0, length - 1, count + 2).round().long()[1:-1]
        places = places.unique() if length > 1 else torch.zeros(1, dtype=torch.long)
        rows.append(torch.full((len(places),), row))
        positions.append(places)
    return torch.cat(rows).to(device), torch.cat(positions).to(device)


def _merged(score: Score) -> Float[Tensor, "batch out word"]:
    """Return a score of words, −∞ where there is none."""
    batch = score.batch
    steps = torch.arange(batch.targets.shape[1], device=batch.targets.device)
    outputs = steps.expand_as(batch.targets).masked_fill(~batch.target_mask, -1)
    groups = word_groups(batch)
    merged = merge_words(score, groups, outputs)
    # A word counts for an output if the score speaks of one of its pieces there: of a language
    # model's words only those that were written before.
    members = groups[..., None] == torch.arange(merged.values.shape[-1], device=groups.device)
    spoken_of = (score.mask.float() @ members.float()) > 0
    return merged.values.masked_fill(~spoken_of, -torch.inf)


def _top(
    values: Float[Tensor, "asked word"], counts: Int[Tensor, " asked"], share: float
) -> Bool[Tensor, "asked word"]:
    """Return True at the highest share of the words, at least one; the first of equals first."""
    order = values.argsort(dim=-1, descending=True, stable=True)
    rank = torch.zeros_like(order).scatter(
        -1, order, torch.arange(values.shape[-1], device=order.device).expand_as(order)
    )
    wanted = (counts * share).ceil().clamp(min=1)
    return (rank < wanted[:, None]) & (values > -torch.inf)


def _pieces(
    words: Bool[Tensor, "asked word"], groups: Int[Tensor, "asked inp"]
) -> Bool[Tensor, "asked inp"]:
    return words.gather(1, groups.clamp(min=0)) & (groups >= 0)


def _probabilities(
    model: AttentionModel,
    batch: Batch,
    example: Int[Tensor, " asked"],
    position: Int[Tensor, " asked"],
    drops: Bool[Tensor, "run asked inp"],
    at_once: int,
) -> Float[Tensor, "run asked"]:
    """Return the probability of the asked words without what is dropped."""
    rows = example[None, :, None].expand(len(drops), -1, 1)
    runs = torch.cat([rows, drops.to(rows.dtype)], -1)
    once, place = runs.flatten(0, 1).unique(dim=0, return_inverse=True)
    left = without_words(model, batch.rows(once[:, 0]), once[:, 1:].bool())
    found = torch.zeros(left.targets.shape, device=position.device)
    for chosen, part in left.by_length(lambda inp, out: at_once // max(inp, out)):
        values = probability(outputs_of(model, part, {}), part.targets).float()
        found[chosen.to(position.device), : values.shape[1]] = values
    return found[place.view(len(drops), -1), position]
