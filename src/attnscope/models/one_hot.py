"""Words as one-hot vectors, and what a cell makes of them: by products or by looking up rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from attnscope.models.cells import RecurrentCell

Ids = Int[Tensor, "batch time"]
Places = Float[Tensor, "..."]
Vectors = Float[Tensor, "batch time width"]
Drive = Float[Tensor, "batch time gates"]


@dataclass(frozen=True)
class OneHotInputs:
    """One-hot vectors of a width, with positions added; products are taken as such.

    ``types`` is the number of words, and may be smaller than the width. ``average`` is the id that
    stands for the average word, 1/d everywhere, if there is one.
    """

    width: int
    types: int
    average: int = -1

    def vectors(self, ids: Ids, places: Places, dtype: torch.dtype) -> Vectors:
        """Return the vectors of words at their places."""
        # Not `torch.nn.functional.one_hot`, which looks at the ids and stalls a GPU.
        words = (ids[..., None] == torch.arange(self.width, device=ids.device)).to(dtype)
        return words.where(ids[..., None] != self.average, 1 / self.width) + places

    def drive(self, cell: RecurrentCell, ids: Ids, places: Places) -> Drive:
        """Return A x + b."""
        return cell.drive(self.vectors(ids, places, cell.input_map.dtype))

    def embeddings(self, cell: RecurrentCell, ids: Ids, places: Places) -> Vectors:
        """Return the vectors, a leaf of the graph where gradients are kept."""
        vectors = self.vectors(ids, places, cell.input_map.dtype)
        # Inside `torch.func` a parameter is a plain tensor, and no leaf can be made.
        weight = cell.input_map
        if isinstance(weight, nn.Parameter) and weight.requires_grad and torch.is_grad_enabled():
            vectors.requires_grad_()
        return vectors

    def every(self, ids: Ids) -> Int[Tensor, "type time"]:
        """Return every word at each place of some words."""
        words = torch.arange(self.types, device=ids.device)
        return words[:, None].expand(-1, ids.shape[1])

    def select(self, table: Float[Tensor, "type time state"], ids: Ids) -> Vectors:
        """Return the rows of words at their places, out of those of every word at each place."""
        # A product and not a gather, whose gradient has no deterministic kernel on a GPU.
        chosen = ids.T[..., None] == torch.arange(self.types, device=ids.device)
        rows = chosen.to(table.dtype) @ table.transpose(0, 1)
        return rows.transpose(0, 1).contiguous()


class OneHotRows(OneHotInputs):
    """The same numbers by looking up rows: for thousands of words, products are mostly with 0."""

    def drive(self, cell: RecurrentCell, ids: Ids, places: Places) -> Drive:
        """Return A x + b."""
        rows = cell.input_map.T
        average = ids[..., None] == self.average
        looked_up = embedding(ids.where(ids != self.average, 0), rows)
        words = torch.where(average, rows.mean(0), looked_up)
        # Positions have the width of the words; no positions have none.
        placed = linear(places, cell.input_map) if places.ndim else places
        return words + placed + cell.bias

    def embeddings(self, cell: RecurrentCell, ids: Ids, places: Places) -> Vectors:
        """Return the vectors, apart from the graph."""
        return self.vectors(ids, places, cell.input_map.dtype)


WordsName = Literal["products", "rows"]
WORDS: dict[str, type[OneHotInputs]] = {"products": OneHotInputs, "rows": OneHotRows}
