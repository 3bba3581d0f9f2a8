"""How much time does the package's loop add to a bare step of sunlu's classifier?

Run ``python benchmarks/classifier.py``; it exits with 1 if the ratio rises above the promised one.
A made-up corpus of SST's size (6 920 texts of 2 to 33 words, 16 174 types with frequencies of one
over their rank); the paper's DP model with dropout, Adagrad, batches of 100. It is trained on one
thread by the package and, between its steps, by a bare loop of forward, backward and update of the
same model on the same batches, drawn beforehand. Evaluation is off.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import torch
from loop import ratio

from attnscope.data.batch import Example
from attnscope.data.corpus import Corpus
from attnscope.data.vocabulary import Vocabulary
from attnscope.recipes.sunlu.units import SunluConfig, Variant, unit_of
from attnscope.training.loop import build_model

PROMISED = 1.15
STEPS, WARM_UP = 80, 10
TEXTS, SHORTEST, LONGEST, TYPES = 6920, 2, 33, 16174


class MadeUp(Corpus):
    """Labelled texts of random words, as long and as many as SST's."""

    kind: Literal["made-up"] = "made-up"

    @property
    def dataset(self) -> str:
        """``made-up``."""
        return "made-up"

    @cached_property
    def input_words(self) -> Vocabulary:
        """As many types as SST has."""
        return Vocabulary(tuple(str(word) for word in range(TYPES)))

    @property
    def output_words(self) -> Vocabulary:
        """Two labels."""
        return Vocabulary(("negative", "positive"))

    @property
    def boundaries(self) -> tuple[int, int] | None:
        """None: the output is a label."""
        return None

    @cached_property
    def training_examples(self) -> Sequence[Example]:
        """Texts and labels at random."""
        stream = torch.Generator().manual_seed(0)
        frequency = 1 / torch.arange(1, TYPES + 1, dtype=torch.float64)
        lengths = torch.randint(SHORTEST, LONGEST + 1, (TEXTS,), generator=stream).tolist()
        words = torch.multinomial(frequency, sum(lengths), replacement=True, generator=stream)
        texts = [text.numpy() for text in words.split(lengths)]
        return [Example(n, text, [0], [n % 2]) for n, text in enumerate(texts)]

    @property
    def validation_examples(self) -> Sequence[Example]:
        """Some of them: evaluation is not timed."""
        return self.training_examples[:2]


CELL = unit_of(SunluConfig(), MadeUp(), Variant("DP", 10.0), 0)
_TRAINING = CELL.training.model_copy(update={"steps": STEPS, "evaluate_at": (), "examples": 1})
UNIT = CELL.model_copy(update={"training": _TRAINING})


class Bare:
    """The least that a training step can be."""

    def __init__(self) -> None:
        self.model = build_model(UNIT)
        self.optimizer = UNIT.training.optimizer.build(self.model.parameters())
        size = UNIT.training.batch_size
        self.batches = [UNIT.source.training_batch(0, step, size) for step in range(STEPS)]
        self.generator = torch.Generator().manual_seed(0)

    def step(self, step: int) -> None:
        """Make one update."""
        batch = self.batches[step]
        self.optimizer.zero_grad()
        logits = self.model.trace(batch, None, self.generator).logits  # type: ignore[operator]
        loss = torch.nn.functional.cross_entropy(logits[:, 0], batch.targets[:, 0])
        loss.backward()
        self.optimizer.step()


def keep_memory() -> None:
    """Keep freed memory in the process, for both sides alike.

    Two tables of six megabytes and their gradients come and go; glibc would give them back to the
    system now on one side's turn and now on the other's, which then pays for the page faults.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            library.mallopt(option, 2**30)


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of malloc.h


if __name__ == "__main__":
    keep_memory()
    sys.exit(ratio("classifier", UNIT, Bare(), WARM_UP, PROMISED))
