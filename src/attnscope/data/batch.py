"""A batch of examples: padded ids, true lengths, and where known the gold source positions.

Classification is translation with one output position (snell §2.4): its target is the label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def prefix_mask(lengths: Int[Tensor, " batch"], width: int) -> Bool[Tensor, "batch width"]:
    """Return True at the first ``length`` positions of each row."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]


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

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch on a device."""
        moved = [f.name for f in fields(self) if not f.name.endswith("lengths")]
        return replace(self, **{name: getattr(self, name).to(device) for name in moved})

    def rows(self, index: slice | Tensor) -> Batch:
        """Return some of the examples, with their padding."""
        return replace(self, **{f.name: getattr(self, f.name)[index] for f in fields(self)})


@dataclass(frozen=True)
class Example:
    """One example before padding; ``gold`` may be empty."""

    id: int
    inputs: Sequence[int]
    decoder_inputs: Sequence[int]
    targets: Sequence[int]
    gold: Sequence[int] = ()


def collate(examples: Sequence[Example], pad: int = 0) -> Batch:
    """Pad examples to a batch."""

    def padded(rows: list[Sequence[int]], fill: int) -> Tensor:
        tensors = [torch.tensor(list(row), dtype=torch.long) for row in rows]
        return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=fill)

    return Batch(
        ids=torch.tensor([example.id for example in examples]),
        inputs=padded([example.inputs for example in examples], pad),
        input_lengths=torch.tensor([len(example.inputs) for example in examples]),
        decoder_inputs=padded([example.decoder_inputs for example in examples], pad),
        targets=padded([example.targets for example in examples], pad),
        target_lengths=torch.tensor([len(example.targets) for example in examples]),
        gold=padded([example.gold or [-1] * len(example.targets) for example in examples], -1),
    )
