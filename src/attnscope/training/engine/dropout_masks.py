"""Masks of dropout that are drawn before a step, for models that run as one program.

Each model's masks are those it would draw if trained by itself: from its own generator, in the
order it asks for them, in the shapes that its own batch gives them; only then are they padded to
those of the stacked batches. Models that read one batch have one generator's masks, which are drawn
once. What a model and its objective ask for follows from the shape of a batch, and is found by
running them; where two widths show how, not at every other one, which of long texts are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from attnscope.data.batch import Batch
from attnscope.models.dropout import masks_from
from attnscope.models.intervention import AttentionRule
from attnscope.training.engine.vmapped import MASKS, Stack, StackedModels, first_batch
from attnscope.training.objective import Term

Asked = tuple[torch.Size, float]  # a shape and a rate

# How the batches' masks are drawn, by the models' device: in turn on the core that trains them;
# side by side for a GPU, which would wait for them.
_DRAWING: dict[str, Callable[[int], Callable[..., Iterable[Any]]]] = {
    "cpu": lambda models: map,
    "cuda": lambda models: ThreadPoolExecutor(models).map,
}


class PreparedMasks:
    """The masks of several models' batches, step after step.

    Parameters
    ----------
    models, terms, attention
        As in `attnscope.training.engine.vmapped.Gradients`.
    """

    def __init__(
        self,
        models: StackedModels,
        terms: Sequence[Term] = (),
        attention: Mapping[str, AttentionRule] | None = None,
    ) -> None:
        self.model, self.terms, self.attention = models.model, terms, attention
        self.device = next(self.model.parameters()).device
        self.each = _DRAWING[self.device.type](len(models))
        self.asked: dict[tuple[int, torch.Size], dict[int, list[Asked]]] = {}  # by the width

    def __call__(
        self, batches: Sequence[Batch], generators: Sequence[torch.Generator], columns: Stack
    ) -> Stack:
        """Return every batch's masks, one after another, as a further one of the stacked columns.

        Models that ask for none have no such column.
        """
        asked = [self._asked_for(batch) for batch in batches]
        stacked = [shape for shape, _ in self._asked_for(first_batch(columns))]
        if not stacked:
            return {}
        sizes = [shape.numel() for shape in stacked]
        # From pinned memory a GPU takes them without another copy.
        pinned = self.device.type == "cuda"
        rows = torch.empty(len(batches), sum(sizes), dtype=torch.bool, pin_memory=pinned)

        def draw(row: Tensor, own: list[Asked], generator: torch.Generator) -> None:
            row.zero_()
            masks = masks_from(generator)
            for place, shape, (size, rate) in zip(row.split(sizes), stacked, own, strict=True):
                place.view(shape)[tuple(map(slice, size))] = masks(size, rate)

        list(self.each(draw, rows, asked, generators))
        return {MASKS: rows}

    def _asked_for(self, batch: Batch) -> list[Asked]:
        width = batch.inputs.shape[1]
        known = self.asked.setdefault((len(batch), batch.targets.shape), {})
        if width not in known:
            followed = _at_width(width, known)
            known[width] = self._noted(batch) if followed is None else followed
        return known[width]

    @torch.no_grad()
    def _noted(self, batch: Batch) -> list[Asked]:
        asked = []

        def note(shape: torch.Size, rate: float) -> Tensor:
            asked.append((shape, rate))
            return torch.ones(shape, dtype=torch.bool)

        model: Any = self.model
        trace = model.trace(batch.to(self.device), self.attention, note)
        for term in self.terms:
            term(model, trace.batch, trace, note)
        return asked


def _at_width(width: int, known: Mapping[int, list[Asked]]) -> list[Asked] | None:
    """Return what is asked for at a width, by what was at the first two; None if they do not say.

    They do if every side of a mask was the width or the same at both.
    """
    if len(known) < 2:
        return None
    (first, one), (second, other) = list(known.items())[:2]
    if [len(shape) for shape, _ in one] != [len(shape) for shape, _ in other]:
        return None
    found = []
    for (shape, rate), (changed, _) in zip(one, other, strict=True):
        sides = list(zip(shape, changed, strict=True))
        if any(a != b and (a, b) != (first, second) for a, b in sides):
            return None
        found.append((torch.Size(a if a == b else width for a, b in sides), rate))
    return found
