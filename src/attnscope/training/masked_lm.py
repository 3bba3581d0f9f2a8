"""Masked language modelling as a term of the objective (tutek §3.1, Eq. 5).

A second pass of the same encoder reads the text with some words masked, and predicts them from its
states by the product with the embedding table, without any new parameter. The mask token is the
padding's row of the table, which the model reads nowhere else. As in BERT's code the number of
masked words is the rounded share of a text's length and at least one; which they are, and what
replaces them, depends on the step's randomness, the example and the position alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from attnscope.data.batch import Batch, moved
from attnscope.data.randomness import counter_uniform
from attnscope.data.tokens import SPECIALS
from attnscope.errors import MissingCapability
from attnscope.models.dropout import Randomness, keys_from
from attnscope.models.trace import AttentionModel, Trace
from attnscope.training.objective import Term

# Of the chosen words, 80 % are masked, 10 % replaced by another word and 10 % kept (BERT).
_MASKED, _REPLACED = 0.8, 0.9


class MaskedWords(Term):
    """Cross-entropy of randomly chosen words, predicted by a second pass that does not see them.

    ``sum`` is the sum over the chosen words divided by the number of texts, so that longer texts
    weigh more: tutek's η, the weight, falls with their length (footnote 5). ``mean`` is the mean
    over the chosen words of the batch. The paper names neither.
    """

    passes: ClassVar[int] = 1
    vectorised: ClassVar[bool] = True
    kind: Literal["masked-words"] = "masked-words"
    share: float = Field(0.15, gt=0, lt=1, description="of a text's words that are predicted")
    reduction: Literal["sum", "mean"] = "sum"
    mask: int = Field(0, ge=0, description="the id of the mask token: the padding's")
    specials: int = Field(
        len(SPECIALS), ge=0, description="ids below it are never chosen and never replace a word"
    )

    def __call__(
        self, model: AttentionModel, batch: Batch, trace: Trace, randomness: Randomness
    ) -> Float[Tensor, ""]:
        """Run the second pass and return its loss."""
        table = getattr(model, "embedding", None)
        if not hasattr(model, "encode") or not isinstance(table, nn.Embedding):
            raise MissingCapability(
                "Masked words need a model with encode(batch, randomness) and an embedding table."
            )
        chosen = choose_words(self, batch, len(table.weight), randomness)
        _, states = model.encode(replace(batch, inputs=chosen.inputs), randomness)
        if states.shape[-1] != table.embedding_dim:
            raise MissingCapability(
                f"Masked words are predicted by the embedding table of width {table.embedding_dim}"
                f", and the encoder's states have {states.shape[-1]}: make them equally wide."
            )
        cells, counted = chosen.cells.flatten(), chosen.counted.flatten()
        # Under vmap, where masks are given instead of drawn, shapes must not depend on the data.
        if isinstance(randomness, torch.Generator):
            cells, counted = cells[counted], counted[counted]
        logits = states.flatten(0, 1).index_select(0, cells) @ table.weight.T
        words = batch.inputs.flatten().index_select(0, cells)
        losses = nn.functional.cross_entropy(logits, words, reduction="none") * counted
        if self.reduction == "sum":
            return losses.sum() / len(batch)
        return losses.sum() / chosen.counted.sum().clamp(min=1)


@dataclass(frozen=True)
class ChosenWords:
    """A batch's inputs with some words masked or replaced, and their positions.

    ``cells`` are positions of the flattened batch, for every text as many as a text of the batch's
    width would have; those that are not ``counted`` are not chosen words.
    """

    inputs: Int[Tensor, "batch inp"]
    cells: Int[Tensor, "batch cell"]
    counted: Bool[Tensor, "batch cell"]


def choose_words(
    term: MaskedWords, batch: Batch, types: int, randomness: Randomness
) -> ChosenWords:
    """Choose words of every text, and mask or replace most of them."""
    inputs, width = batch.inputs, batch.inputs.shape[1]
    places = torch.arange(width, device=inputs.device)
    keys = moved(keys_from(randomness, 3), inputs.device)
    order, fate, other = (counter_uniform(key, batch.ids[:, None], places) for key in keys)

    can_be = batch.input_mask & (inputs >= term.specials)
    ranking = order.masked_fill(~can_be, 2.0).argsort(-1)
    counts = moved(_count(term, batch.input_lengths), inputs.device)[:, None]
    first = ranking[:, : int(_count(term, torch.tensor(width)))]
    ranks = torch.arange(first.shape[1], device=inputs.device)
    counted = (ranks < counts) & can_be.gather(1, first)
    cells = torch.arange(len(batch), device=inputs.device)[:, None] * width + first

    chosen = can_be & (ranking.argsort(-1) < counts)
    words = term.specials + (other * (types - term.specials)).long()
    changed = torch.where(fate < _MASKED, term.mask, torch.where(fate < _REPLACED, words, inputs))
    return ChosenWords(torch.where(chosen, changed, inputs), cells, counted)


def _count(term: MaskedWords, lengths: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
    return (lengths * term.share).round().long().clamp(min=1)
