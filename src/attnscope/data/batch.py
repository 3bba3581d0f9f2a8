"""A batch of examples: padded ids, true lengths, and where known the gold source positions.

Classification is translation with one output position (snell §2.4): its target is the label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor


def prefix_mask(lengths: Int[Tensor, " batch"], width: int) -> Bool[Tensor, "batch width"]:
    """Return True at the first ``length`` positions of each row."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]


def by_row(mask: Bool[Tensor, "batch *out inp"]) -> Bool[Tensor, "batch _ inp"]:
    """Return a mask with an output axis: of size 1 where all output positions share one row."""
    return mask if mask.ndim == 3 else mask[:, None]


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor on a device, without waiting for it."""
    # From pinned memory a GPU takes it when it gets there; otherwise this process would wait.
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


@dataclass(frozen=True)
class Batch:
    """Examples as padded tensors.

    ``decoder_inputs`` are the target words shifted right (teacher forcing); a classifier ignores
    them. ``gold`` is the input position that each output word comes from, -1 where there is none.
    Lengths stay on the CPU, where packing needs them: asking a GPU for them would stall it.
    """

    ids: Int[Tensor, " batch"]
    inputs: Int[Tensor, "batch inp"]
    input_lengths: Int[Tensor, " batch"]
    decoder_inputs: Int[Tensor, "batch out"]
    targets: Int[Tensor, "batch out"]
    target_lengths: Int[Tensor, " batch"]
    gold: Int[Tensor, "batch out"]

    @property
    def input_mask(self) -> Bool[Tensor, "batch inp"]:
        """True at real input positions."""
        return prefix_mask(self.input_lengths.to(self.inputs.device), self.inputs.shape[1])

    @property
    def target_mask(self) -> Bool[Tensor, "batch out"]:
        """True at real output positions."""
        return prefix_mask(self.target_lengths.to(self.targets.device), self.targets.shape[1])

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        inputs, outputs = self.inputs.shape[1], self.targets.shape[1]
        return f"Batch(examples={len(self)}, inputs={inputs}, outputs={outputs})"

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch on a device."""
        moved = [f.name for f in fields(self) if not f.name.endswith("lengths")]
        return replace(self, **{name: getattr(self, name).to(device) for name in moved})

    def rows(self, index: slice | Tensor) -> Batch:
        """Return some of the examples, with their padding; any of them several times."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: part[_on(index, part)] for name, part in parts.items()})

    def spread(self, most: int) -> Batch:
        """Return at most so many of the examples, evenly spread over the batch."""
        if len(self) <= most:
            return self
        return self.rows(torch.linspace(0, len(self) - 1, most).round().long()).trimmed()

    def trimmed(self) -> Batch:
        """Return the batch without the padding that all its examples share."""
        inp, out = int(self.input_lengths.max()), int(self.target_lengths.max())
        return replace(
            self,
            inputs=self.inputs[:, :inp],
            decoder_inputs=self.decoder_inputs[:, :out],
            targets=self.targets[:, :out],
            gold=self.gold[:, :out],
        )

    @property
    def padded(self) -> bool:
        """Whether some row has padding."""
        sides = (self.input_lengths, self.inputs), (self.target_lengths, self.targets)
        return any(bool((lengths < ids.shape[1]).any()) for lengths, ids in sides)

    def by_length(
        self, rows_for: Callable[[int, int], int], *, equal: bool = False
    ) -> Iterator[tuple[Int[Tensor, " row"], Batch]]:
        """Yield all examples in batches of like length, each with the rows that it came from.

        Parameters
        ----------
        rows_for
            How many examples of at most this input and output length make a batch.
        equal
            Whether lengths within a batch are the same, so that no row has padding.
        """
        if equal:
            lengths = torch.stack([self.input_lengths, self.target_lengths], 1)
            for inp, out in lengths.unique(dim=0).tolist():
                alike = (lengths == torch.tensor([inp, out])).all(1).nonzero()[:, 0]
                for rows in alike.split(max(1, rows_for(inp, out))):
                    yield rows, self.rows(rows).trimmed()
            return
        longest = torch.maximum(self.input_lengths, self.target_lengths)
        order = longest.argsort(stable=True, descending=True)
        while len(order):
            inp = int(self.input_lengths[order].max())
            out = int(self.target_lengths[order].max())
            size = max(1, rows_for(inp, out))
            rows, order = order[:size], order[size:]
            yield rows, self.rows(rows).trimmed()


def _on(index: slice | Tensor, part: Tensor) -> slice | Tensor:
    """Return an index where a part is: lengths are on the CPU, the rest may be on a GPU."""
    return index if isinstance(index, slice) else index.to(part.device)


Ids = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class Example:
    """One example before padding; ``gold`` may be empty."""

    id: int
    inputs: Ids
    decoder_inputs: Ids
    targets: Ids
    gold: Ids = ()


def collate(examples: Sequence[Example], pad: int = 0) -> Batch:
    """Pad examples to a batch."""

    def padded(rows: Sequence[Ids], fill: int) -> Tensor:
        lengths = np.array([len(row) for row in rows])
        table = np.full((len(rows), int(lengths.max())), fill, dtype=np.int64)
        table[np.arange(table.shape[1]) < lengths[:, None]] = np.concatenate(rows)
        return torch.from_numpy(table)

    return Batch(
        ids=torch.tensor([example.id for example in examples]),
        inputs=padded([example.inputs for example in examples], pad),
        input_lengths=torch.tensor([len(example.inputs) for example in examples]),
        decoder_inputs=padded([example.decoder_inputs for example in examples], pad),
        targets=padded([example.targets for example in examples], pad),
        target_lengths=torch.tensor([len(example.targets) for example in examples]),
        gold=padded([_gold(example) for example in examples], -1),
    )


def _gold(example: Example) -> Ids:
    return example.gold if len(example.gold) else [-1] * len(example.targets)
