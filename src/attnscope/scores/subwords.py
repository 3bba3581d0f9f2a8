"""Scores of subword pieces, merged into scores of words.

Attention on a word is the attention on its pieces together, and an output word attends as its
pieces do on average. For scores that are not shares (a probe, a translation probability) the value
of a word may be the sum, the mean or the largest of its pieces' values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.data.batch import Batch, by_row, prefix_mask
from attnscope.errors import UsageError, suggestion
from attnscope.scores.score import Score

WORD_START = "▁"
Rule = Literal["sum", "mean", "max"]
Values = Float[Tensor, "batch row inp"]
Groups = Int[Tensor, "batch inp"]
Merge = Callable[[Values, Groups, int], Float[Tensor, "batch row word"]]

# Shares and effects add up; of likelihoods the largest of its pieces counts for a word.
RULE_OF_SCORE: dict[str, Rule] = {
    "attention": "sum",
    "saliency": "sum",
    "logistic": "sum",
    "value_norm": "sum",
    "rollout": "sum",
}
_OTHERWISE: Rule = "max"


def word_groups(pieces: Sequence[str], specials: Sequence[str] = ()) -> list[int]:
    """Return the number of the word that each SentencePiece piece belongs to.

    A piece that begins with "▁" starts a word, as does the first piece; a special piece belongs to
    none (-1).
    """
    groups, word = [], -1
    for piece in pieces:
        if piece not in specials and (word < 0 or piece.startswith(WORD_START)):
            word += 1
        groups.append(-1 if piece in specials else word)
    return groups


def word_groups_of_ids(
    ids: Int[Tensor, "batch piece"],
    lengths: Int[Tensor, " batch"],
    pieces: Sequence[str],
    specials: Sequence[str] = (),
) -> Int[Tensor, "batch piece"]:
    """Return `word_groups` of every row of a batch, -1 at its padding.

    Parameters
    ----------
    ids, lengths
        For example ``batch.inputs`` and ``batch.input_lengths``.
    pieces
        The vocabulary: the piece of each id.
    specials
        Those of them that belong to no word, for example ``("<pad>", "<bos>", "<eos>")``.
    """

    def marked(flags: list[bool]) -> Bool[Tensor, "batch piece"]:
        return torch.tensor(flags, device=ids.device)[ids]

    inside = prefix_mask(lengths.to(ids.device), ids.shape[1])
    inside = inside & ~marked([piece in set(specials) for piece in pieces])
    starts = inside & marked([piece.startswith(WORD_START) for piece in pieces])
    first = inside & (inside.cumsum(1) == 1)
    return ((starts | first).cumsum(1) - 1).masked_fill(~inside, -1)


def merge_words(
    score: Score,
    input_groups: Int[Tensor, "batch inp"],
    output_groups: Int[Tensor, "batch out"],
    rule: Rule | None = None,
) -> Score:
    """Merge a score of pieces into one of words.

    Parameters
    ----------
    score
        Of pieces.
    input_groups, output_groups
        The word that each piece belongs to, numbered from 0 without gaps; -1 for a piece of no
        word, which is dropped. Positions outside the score's masks are dropped too.
    rule
        How the values of a word's input pieces are merged: ``sum``, ``mean`` or ``max``. By
        default ``sum`` for attention, saliency and logistic weights, ``max`` for all others. Over
        the pieces of an output word the mean is taken.

    Returns
    -------
    Score
        Of the same examples and under the same name. Words have no ids: in its batch they are
        numbered from 0 in each sentence, lengths are numbers of words, decoder inputs are 0 and
        gold positions are unknown (-1). A word none of whose pieces has a value is outside
        its ``input_mask``.
    """
    rule = RULE_OF_SCORE.get(score.name, _OTHERWISE) if rule is None else rule
    if rule not in _MERGES:
        raise UsageError(f"rule={rule!r}: no way to merge pieces; {suggestion(rule, _MERGES)}")
    inputs, words_in = _counted(input_groups, score.batch.input_mask, "input")
    outputs, words_out = _counted(output_groups, score.target_mask, "output")
    spoken_of = inputs.masked_fill(~by_row(score.input_mask).any(1), -1)
    width, height = int(words_in.max()), int(words_out.max())
    values = _MERGES[rule](score.values, spoken_of, width)
    values = _mean(values.transpose(1, 2), outputs, height).transpose(1, 2)
    input_mask = _members(spoken_of, width).any(1)
    target_mask = prefix_mask(words_out, height)
    values = values.masked_fill(~(target_mask[:, :, None] & input_mask[:, None]), 0.0)
    return Score(score.name, values, input_mask, _word_batch(score.batch, words_in, words_out))


def _counted(
    groups: Int[Tensor, "batch piece"], mask: Bool[Tensor, "rows width"], side: str
) -> tuple[Int[Tensor, "batch piece"], Int[Tensor, " batch"]]:
    """Return the groups of real pieces, and how many words each example has."""
    if groups.shape != mask.shape:
        raise UsageError(
            f"{side}_groups is {list(groups.shape)}: the score has {list(mask.shape)} pieces."
        )
    groups = groups.to(mask.device).masked_fill(~mask, -1)
    counts = groups.amax(1) + 1
    present = _members(groups, int(counts.max())).any(1).sum(1)
    if bool((present < counts).any()) or bool((groups < -1).any()):
        raise UsageError(
            f"{side}_groups must number the words of each example from 0 without gaps."
        )
    return groups, counts


def _members(groups: Groups, words: int) -> Bool[Tensor, "batch inp word"]:
    return groups[..., None] == torch.arange(words, device=groups.device)


def _sum(values: Values, groups: Groups, words: int) -> Float[Tensor, "batch row word"]:
    # A product, not a scatter: the same numbers every time on a GPU too.
    return values.masked_fill(groups[:, None] < 0, 0.0) @ _members(groups, words).to(values)


def _mean(values: Values, groups: Groups, words: int) -> Float[Tensor, "batch row word"]:
    pieces = _members(groups, words).sum(1).clamp(min=1)
    return _sum(values, groups, words) / pieces[:, None]


def _max(values: Values, groups: Groups, words: int) -> Float[Tensor, "batch row word"]:
    # Pieces of no word fall into a place in front, which is cut off.
    places = (groups + 1)[:, None].expand_as(values)
    found = values.new_zeros(*values.shape[:2], words + 1)
    return found.scatter_reduce(-1, places, values, "amax", include_self=False)[..., 1:]


_MERGES: dict[str, Merge] = {"sum": _sum, "mean": _mean, "max": _max}


def _word_batch(
    batch: Batch, words_in: Int[Tensor, " batch"], words_out: Int[Tensor, " batch"]
) -> Batch:
    def numbered(counts: Int[Tensor, " batch"]) -> Int[Tensor, "batch word"]:
        places = torch.arange(int(counts.max()), device=counts.device)
        return places.expand(len(counts), -1) * (places < counts[:, None])

    inputs, targets = numbered(words_in), numbered(words_out)
    return Batch(
        ids=batch.ids,
        inputs=inputs,
        input_lengths=words_in.cpu(),
        decoder_inputs=torch.zeros_like(targets),
        targets=targets,
        target_lengths=words_out.cpu(),
        gold=torch.full_like(targets, -1),
    )
