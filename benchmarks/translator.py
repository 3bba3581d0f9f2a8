"""How many tokens a second does the package train the translator on, beside a bare loop?

Run ``python benchmarks/translator.py``; it exits with 1 if the ratio falls below the promised one.
The paper's translator (8 000 types, batch 16, made-up sentences of 10 to 20 words) is trained on
one thread by the package and, between its steps, by a bare loop over PyTorch's own two-layer LSTMs
with their own dropout, on the same batches, drawn beforehand. Evaluation is off.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Literal

import torch
from loop import Interleaved
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnscope.data.batch import Batch, Example, collate
from attnscope.data.randomness import generator
from attnscope.data.source import Source
from attnscope.data.vocabulary import Vocabulary
from attnscope.models.base import parameter_count
from attnscope.models.seq2seq import TRANSLATOR
from attnscope.training.loop import train_unit
from attnscope.training.unit import Training, Unit

PROMISED = 0.9
STEPS, WARM_UP = 40, 5
TYPES, SHORTEST, LONGEST = 8000, 10, 20
PAD, BOS, EOS = 0, 1, 2


class MadeUp(Source):
    """Sentence pairs of random ids."""

    kind: Literal["made-up"] = "made-up"

    @property
    def dataset(self) -> str:
        """``made-up``."""
        return "made-up"

    @cached_property
    def input_words(self) -> Vocabulary:
        """As many types as the paper's."""
        return Vocabulary(tuple(str(word) for word in range(TYPES)))

    @property
    def output_words(self) -> Vocabulary:
        """The same."""
        return self.input_words

    @property
    def boundaries(self) -> tuple[int, int] | None:
        """Start and end."""
        return BOS, EOS

    @property
    def widest_input(self) -> int:
        """The longest sentence and its end."""
        return LONGEST + 1

    def training_batch(self, seed: int, step: int, size: int) -> Batch:
        """Draw pairs of sentences whose lengths differ."""
        stream = generator("made up", seed, step)
        lengths = torch.randint(SHORTEST, LONGEST + 1, (size, 2), generator=stream).tolist()
        words = torch.randint(3, TYPES, (size, 2, LONGEST), generator=stream).tolist()
        return collate(
            [
                Example(row, [*read[:inp], EOS], [BOS, *said[:out]], [*said[:out], EOS])
                for row, ((inp, out), (read, said)) in enumerate(zip(lengths, words, strict=True))
            ],
            PAD,
        )

    def evaluation_batch(self, count: int, split: str = "val") -> Batch:
        """Draw as many more."""
        return self.training_batch(-1, 0, count)


UNIT = Unit(
    source=MadeUp(),
    model=TRANSLATOR,
    training=Training(steps=STEPS, batch_size=16, evaluate_at=(), examples=1, stored=1),
)


class Translator(nn.Module):
    """The same shapes, from PyTorch's own parts."""

    def __init__(self, types: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(types, size)
        self.encoder = nn.LSTM(size, size, 2, batch_first=True, dropout=0.5, bidirectional=True)
        self.decoder = nn.LSTM(size, size, 2, batch_first=True, dropout=0.5)
        self.query = nn.Linear(size, 2 * size)
        self.project = nn.Linear(2 * size, size)
        self.hidden = nn.Linear(2 * size, size)
        self.output = nn.Linear(size, types)

    def forward(self, batch: Batch) -> Tensor:
        """Return the logits."""
        packed = pack_padded_sequence(
            self.embedding(batch.inputs),
            batch.input_lengths,
            batch_first=True,
            enforce_sorted=False,
        )
        states, last = self.encoder(packed)
        states, _ = pad_packed_sequence(states, batch_first=True)
        start = tuple(part.unflatten(0, (2, 2)).mean(1) for part in last)
        # A decoder of one direction needs no packing: padding comes after all that counts.
        decoded, _ = self.decoder(self.embedding(batch.decoder_inputs), start)
        logits = self.query(decoded) @ states.transpose(1, 2)
        weights = logits.masked_fill(~batch.input_mask[:, None], float("-inf")).softmax(-1)
        joined = torch.cat([decoded, self.project(weights @ states)], -1)
        return self.output(torch.relu(self.hidden(joined)))


class Bare:
    """The least that a training step can be."""

    def __init__(self) -> None:
        self.model = Translator(TYPES, TRANSLATOR.hidden)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        source, size = UNIT.source, UNIT.training.batch_size
        self.batches = [source.training_batch(UNIT.seed, step, size) for step in range(STEPS)]

    def step(self, step: int) -> None:
        """Make one update."""
        batch = self.batches[step]
        self.optimizer.zero_grad()
        logits = self.model(batch)
        targets = batch.targets.masked_fill(~batch.target_mask, -100)
        cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
        self.optimizer.step()


def main() -> int:
    """Print the ratio and return the exit code."""
    torch.set_num_threads(1)
    bare_steps = Bare()
    steps = Interleaved(bare_steps)
    assert parameter_count(bare_steps.model) == parameter_count(TRANSLATOR.build(UNIT.source, 0))
    with tempfile.TemporaryDirectory() as workspace:
        train_unit(UNIT, Path(workspace), steps, checkpoint_seconds=float("inf"))
    tokens = statistics.mean(
        int(batch.input_lengths.sum() + batch.target_lengths.sum()) for batch in bare_steps.batches
    )
    package, bare = (
        tokens / statistics.median(seconds[WARM_UP:])
        for seconds in (steps.package_seconds, steps.bare_seconds)
    )
    print(f"package {package:.0f} tokens a second, bare {bare:.0f}")
    print(f"translator: {package / bare:.2f} (at least {PROMISED:.2f})")
    return 0 if package / bare >= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
