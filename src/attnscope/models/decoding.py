"""A model's own output: the label it predicts, or the words it writes, greedily."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from attnscope.data.batch import Batch, Example, collate
from attnscope.models.trace import AttentionModel


@torch.no_grad()
def respond(
    model: AttentionModel,
    inputs: Sequence[int],
    boundaries: tuple[int, int] | None,
    limit: int = 50,
) -> Batch:
    """Return a batch of one example whose target is the model's most probable output.

    Parameters
    ----------
    boundaries
        Ids that start and end an output sequence; None if the output is one label.
    limit
        Most words to write.
    """
    if boundaries is None:
        asked = collate([Example(0, inputs, [0], [0])])
        return collate([Example(0, inputs, [0], [int(model.trace(asked).logits.argmax())])])
    start, end = boundaries
    output: list[int] = []
    while len(output) < limit and end not in output:
        read = [start, *output]
        asked = collate([Example(0, inputs, read, read)])
        output.append(int(model.trace(asked).logits[0, -1].argmax()))
    return collate([Example(0, inputs, [start, *output[:-1]], output)])
