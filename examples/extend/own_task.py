"""Your own task: which of two letters occurs more often, among others."""

from pathlib import Path
from typing import Literal

import torch
from pydantic import Field

from attnscope.data import Batch, GeneratedTask, Vocabulary
from attnscope.models import ClassifierSpec
from attnscope.training import Training, Unit, train_units


class Majority(GeneratedTask):
    """Label 1 where ``b`` (id 1) is more frequent than ``a`` (id 0); ties are label 0."""

    kind: Literal["my-majority"] = "my-majority"
    length: int = Field(9, ge=1)
    types: int = Field(6, ge=2)

    @property
    def dataset(self):
        return f"majority-{self.length}"  # how measurements name it

    @property
    def input_words(self):
        return Vocabulary(tuple("abcdefghijklmnopqrstuvwxyz"[: self.types]))

    @property
    def output_words(self):
        return Vocabulary(("a", "b"))

    @property
    def boundaries(self):
        return None  # a label is not a sequence: nothing starts or ends it

    def draw(self, stream, ids):  # all randomness comes from the stream
        size = len(ids)
        inputs = torch.randint(self.types, (size, self.length), generator=stream)
        label = ((inputs == 1).sum(1) > (inputs == 0).sum(1)).long()[:, None]
        return Batch(
            ids=ids,
            inputs=inputs,
            input_lengths=torch.full((size,), self.length),
            decoder_inputs=torch.zeros_like(label),  # a classifier ignores them
            targets=label,
            target_lengths=torch.ones(size, dtype=torch.long),
            gold=torch.full((size, 1), -1),  # no single input position is the right one
        )


if __name__ == "__main__":
    training = Training(steps=30, batch_size=16, evaluate_at=(10, 20))
    units = [
        Unit(source=Majority(), model=ClassifierSpec(), training=training, seed=s) for s in (0, 1)
    ]
    for unit in train_units(units, Path("runs")):
        print(unit, [round(row["accuracy"], 2) for row in unit.log])
