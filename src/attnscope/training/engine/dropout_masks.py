"""Dropout masks drawn before a step, for models under `torch.func.vmap`, which cannot draw.

Each model's masks are those that it would draw if trained by itself: from its own generator, in the
order and the shapes in which it asks for them; only then are they padded to the width of the
stacked batches. Models that read one batch share one generator's masks. Mask shapes are recorded by
a dry run; after two input widths they are extrapolated, since corpora of long texts have many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from attnscope.data.batch import Batch
from attnscope.models.dropout import masks_from
from attnscope.models.intervention import AttentionRule
from attnscope.training.engine.vmapped import MASKS, Stack, StackedModels, first_batch
from attnscope.training.objective import Term


class Asked(NamedTuple):
    """A mask that a model asks for: its shape and rate.

    The mask of packed texts has no number of rows here: that is the sum of the batch's lengths of
    the name ``lengths``.
    """

    shape: torch.Size
    rate: float
    lengths: str | None = None

    def size(self, batch: Batch) -> torch.Size:
        """Return the shape of the mask that a model by itself draws for a batch."""
        if self.lengths is None:
            return self.shape
        return torch.Size((int(getattr(batch, self.lengths).sum()), *self.shape))

    def padded(self, columns: Stack) -> torch.Size:
        """Return the shape of the mask in a stack of batches."""
        if self.lengths is None:
            return self.shape
        words = columns[_WORDS[self.lengths]].shape
        return torch.Size((words[1] * words[2], *self.shape))


_WORDS = {"input_lengths": "inputs", "target_lengths": "targets"}
# Calls a function for each row of some columns.
ForEach = Callable[..., None]


def in_turn(function: Callable[..., None], *columns: Sequence[Any]) -> None:
    """Call a function for each row, one after another."""
    for row in zip(*columns, strict=True):
        function(*row)


class DropoutMasks:
    """The masks of several models' batches, step by step.

    Parameters
    ----------
    models, terms, attention
        As in `attnscope.training.engine.vmapped.Gradients`.
    for_each
        How the batches' masks are drawn: in turn, or by several threads.
    """

    def __init__(
        self,
        models: StackedModels,
        terms: Sequence[Term] = (),
        attention: Mapping[str, AttentionRule] | None = None,
        for_each: ForEach = in_turn,
    ) -> None:
        self.model, self.terms, self.attention = models.model, terms, attention
        self.device = next(self.model.parameters()).device
        self.for_each = for_each
        self.asked: dict[tuple[int, torch.Size], dict[int, list[Asked]]] = {}  # by the width

    def __call__(
        self, batches: Sequence[Batch], generators: Sequence[torch.Generator], columns: Stack
    ) -> Stack:
        """Return every batch's masks as a further stacked column; without dropout there is none."""
        asked = [self._asked_for(batch) for batch in batches]
        stacked = [each.padded(columns) for each in self._asked_for(first_batch(columns))]
        if not stacked:
            return {}
        sizes = [shape.numel() for shape in stacked]
        # From pinned memory a GPU copies them without waiting.
        pinned = self.device.type == "cuda"
        rows = torch.empty(len(batches), sum(sizes), dtype=torch.bool, pin_memory=pinned)

        def fill(row: Tensor, own: list[Asked], batch: Batch, generator: torch.Generator) -> None:
            row.zero_()
            masks = masks_from(generator)
            for place, shape, each in zip(row.split(sizes), stacked, own, strict=True):
                size = each.size(batch)
                place.view(shape)[tuple(map(slice, size))] = masks(size, each.rate)

        self.for_each(fill, rows.unbind(), asked, batches, generators)
        return {MASKS: rows}

    def _asked_for(self, batch: Batch) -> list[Asked]:
        width = batch.inputs.shape[1]
        known = self.asked.setdefault((len(batch), batch.targets.shape), {})
        if width not in known:
            extrapolated = _at_width(width, known)
            known[width] = self._dry_run(batch) if extrapolated is None else extrapolated
        return known[width]

    @torch.no_grad()
    def _dry_run(self, batch: Batch) -> list[Asked]:
        asked = []

        def note(
            shape: torch.Size, rate: float, lengths: Int[Tensor, " batch"] | None = None
        ) -> Tensor:
            if lengths is None:
                asked.append(Asked(shape, rate))
            else:
                name = next(name for name in _WORDS if getattr(batch, name) is lengths)
                asked.append(Asked(shape[1:], rate, name))
            return torch.ones(shape, dtype=torch.bool)

        model: Any = self.model
        trace = model.trace(batch.to(self.device), self.attention, note)
        for term in self.terms:
            term(model, trace.batch, trace, note)
        return asked


def _at_width(width: int, known: Mapping[int, list[Asked]]) -> list[Asked] | None:
    """Extrapolate the masks asked for at a width from those at the first two, or return None.

    That is possible if every side of a mask was either the width or the same at both.
    """
    if len(known) < 2:
        return None
    (first, one), (second, other) = list(known.items())[:2]
    if [len(each.shape) for each in one] != [len(each.shape) for each in other]:
        return None
    found = []
    for each, changed in zip(one, other, strict=True):
        sides = list(zip(each.shape, changed.shape, strict=True))
        if any(a != b and (a, b) != (first, second) for a, b in sides):
            return None
        shape = torch.Size(a if a == b else width for a, b in sides)
        found.append(each._replace(shape=shape))
    return found
