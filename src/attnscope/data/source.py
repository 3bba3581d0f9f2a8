"""A source of examples, as a recipe's configuration names it.

Training batches are a pure function of (seed, step); the evaluation examples are the same for
every seed, so that scores of different units can be compared example by example.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from attnscope.data.batch import Batch
from attnscope.data.vocabulary import Vocabulary
from attnscope.errors import UsageError
from attnscope.runs.spec import Spec

_LOOKED_AT = 64  # examples that show how wide a source's inputs are


class Source(Spec):
    """Root of all tasks and corpora."""

    @property
    @abstractmethod
    def dataset(self) -> str:
        """The name that measurements carry."""

    @property
    @abstractmethod
    def input_words(self) -> Vocabulary:
        """Input types."""

    @property
    @abstractmethod
    def output_words(self) -> Vocabulary:
        """Output types; for classification, the labels."""

    @property
    @abstractmethod
    def boundaries(self) -> tuple[int, int] | None:
        """The output ids that start and end a sequence; None for classification."""

    @abstractmethod
    def training_batch(self, seed: int, step: int, size: int) -> Batch:
        """Return the batch of a training step."""

    @property
    def widest_input(self) -> int:
        """The most input positions that an example to train on has, to plan memory by.

        By default those of some examples: a source that draws its lengths may have wider ones.
        """
        return self.training_batch(0, 0, _LOOKED_AT).inputs.shape[1]

    @abstractmethod
    def evaluation_batch(self, count: int, split: str = "val") -> Batch:
        """Return ``count`` examples of a split (fewer if there are fewer).

        ``val`` is held out; ``train`` is a fixed random part of the training examples.
        """

    def references(self, split: str, count: int) -> list[str]:
        """Return the outputs of `evaluation_batch` as text."""
        batch = self.evaluation_batch(count, split)
        rows = zip(batch.targets.tolist(), batch.target_lengths.tolist(), strict=True)
        return [self.sentence(row[:length]) for row, length in rows]

    def sentence(self, ids: Sequence[int]) -> str:
        """Return output ids as text, boundaries left out."""
        outside = self.boundaries or ()
        return " ".join(self.output_words.decode(index for index in ids if index not in outside))

    def encode(self, text: str) -> list[int]:
        """Return the input ids of a sentence, as the model was trained to read it."""
        raise UsageError(f"{self.dataset} is not text; give a batch instead of a sentence.")
