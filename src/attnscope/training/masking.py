"""Masked language modelling as a term of the objective (tutek §3.1, Eq. 5).

A second pass of the same encoder reads the text with some words hidden, and predicts them from its
states by the product with the embedding table: nothing of it is new. The table has no word for
"hidden", and a vector of its own would be a new parameter, so the row of the padding stands for
it: the model reads it nowhere else. As in BERT's code the number of hidden words is the rounded
share of a text's length and at least one; which they are, and what is put in their places, depends
on the step's generator, the example and the position alone. That number follows from lengths,
which are on the CPU, so that a GPU is never waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from attnscope.data.batch import Batch, moved, prefix_mask
from attnscope.data.randomness import counter_uniform
from attnscope.data.tokens import SPECIALS
from attnscope.errors import MissingCapability
from attnscope.models.trace import AttentionModel, Trace
from attnscope.training.objective import Term

# Of the chosen words, 80 % are hidden, 10 % replaced by another word and 10 % left (BERT).
_HIDDEN, _REPLACED = 0.8, 0.9


class MaskedWords(Term):
    """Cross-entropy of words chosen at random, read from a second pass that does not see them.

    ``sum`` is the sum over the chosen words divided by the number of texts, so that longer texts
    weigh more: tutek's η, the weight, falls with their length (footnote 5). ``mean`` is the mean
    over the chosen words of the batch. The paper names neither.
    """

    stackable: ClassVar[bool] = False
    kind: Literal["masked-words"] = "masked-words"
    share: float = Field(0.15, gt=0, lt=1, description="of a text's words that are predicted")
    reduction: Literal["sum", "mean"] = "sum"
    mask: int = Field(0, ge=0, description="the id that stands for a hidden word: the padding's")
    specials: int = Field(
        len(SPECIALS), ge=0, description="ids below it are never chosen and replace no word"
    )

    def __call__(
        self, model: AttentionModel, batch: Batch, trace: Trace, generator: torch.Generator
    ) -> Float[Tensor, ""]:
        """Run the second pass and return its loss."""
        table = getattr(model, "embedding", None)
        if not hasattr(model, "encode") or not isinstance(table, nn.Embedding):
            raise MissingCapability(
                "Masked words need a model with encode(batch, generator) and an embedding table."
            )
        chosen = choose_words(self, batch, len(table.weight), generator)
        _, states = model.encode(replace(batch, inputs=chosen.inputs), generator)
        if states.shape[-1] != table.embedding_dim:
            raise MissingCapability(
                f"Masked words are predicted by the embedding table of width {table.embedding_dim}"
                f", and the encoder's states have {states.shape[-1]}: make them equally wide."
            )
        logits = states.flatten(0, 1).index_select(0, chosen.cells) @ table.weight.T
        words = batch.inputs.flatten().index_select(0, chosen.cells)
        losses = nn.functional.cross_entropy(logits, words, reduction="none") * chosen.counted
        return losses.sum() / _DIVISORS[self.reduction](chosen)


@dataclass(frozen=True)
class ChosenWords:
    """A batch's inputs with some words hidden or replaced, and where they are.

    ``cells`` are positions of the flattened batch; one that is not ``counted`` stands for a word
    that could not be chosen, in a text with too few that can.
    """

    inputs: Int[Tensor, "batch inp"]
    cells: Int[Tensor, " cell"]
    counted: Bool[Tensor, " cell"]


_DIVISORS: dict[str, Callable[[ChosenWords], Tensor | int]] = {
    "sum": lambda chosen: len(chosen.inputs),
    "mean": lambda chosen: chosen.counted.sum().clamp(min=1),
}


def choose_words(
    term: MaskedWords, batch: Batch, types: int, generator: torch.Generator
) -> ChosenWords:
    """Choose words of every text, and put something else in most of their places."""
    inputs, width = batch.inputs, batch.inputs.shape[1]
    places = torch.arange(width, device=inputs.device)
    keys = torch.randint(2**62, (3,), generator=generator, device=generator.device).tolist()
    order, fate, other = (counter_uniform(key, batch.ids[:, None], places) for key in keys)

    can_be = batch.input_mask & (inputs >= term.specials)
    ranking = order.masked_fill(~can_be, 2.0).argsort(-1)
    counts = (batch.input_lengths * term.share).round().long().clamp(min=1)
    rows, ranks = moved(prefix_mask(counts, width).nonzero().T.contiguous(), inputs.device)
    cells = rows * width + ranking[rows, ranks]

    chosen = can_be & (ranking.argsort(-1) < moved(counts, inputs.device)[:, None])
    words = term.specials + (other * (types - term.specials)).long()
    changed = torch.where(fate < _HIDDEN, term.mask, torch.where(fate < _REPLACED, words, inputs))
    return ChosenWords(
        torch.where(chosen, changed, inputs), cells, can_be.flatten().index_select(0, cells)
    )
