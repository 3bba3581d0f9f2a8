"""A model's own output: the label it predicts, or the words it writes, greedily or by beam search.

Words are written through a *stepper*, which a model may offer (``stepper(attention)``); for any
other model the words written so far are traced anew for each word. As in the authors' code a
hypothesis is scored by the sum of its words' log-probabilities, not divided by its length, and
every word may be written, boundaries and padding included; the end word ends it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.data.batch import Batch, Example, collate
from attnscope.models.intervention import AttentionRule
from attnscope.models.trace import AttentionModel

Attention = Mapping[str, AttentionRule]


@runtime_checkable
class Stepper(Protocol):
    """Writes the outputs of a batch word by word; its state is its own affair."""

    def begin(self, batch: Batch) -> Any:
        """Return the state before the first word; the batch's outputs are not looked at."""
        ...

    def step(
        self, words: Int[Tensor, " row"], state: Any
    ) -> tuple[Float[Tensor, "row output_type"], Any]:
        """Read one more word of every output, the start word first; return the next's logits."""
        ...

    def reorder(self, state: Any, rows: Int[Tensor, " row2"]) -> Any:
        """Return the state of some of the outputs, in another order or repeated."""
        ...


@runtime_checkable
class Incremental(Protocol):
    """A model that decodes word by word without reading earlier words again."""

    def stepper(self, attention: Attention) -> Stepper:
        """Return the stepper under some interventions."""
        ...


@dataclass(frozen=True)
class TraceStepper:
    """The stepper of any model: its state is a batch whose outputs are the words so far."""

    model: AttentionModel
    attention: Attention

    def begin(self, batch: Batch) -> Batch:
        """Return the batch without outputs."""
        nothing = batch.ids.new_empty(len(batch), 0)
        return _with_outputs(batch, nothing)

    def step(
        self, words: Int[Tensor, " row"], state: Batch
    ) -> tuple[Float[Tensor, "row output_type"], Batch]:
        """Trace the words so far."""
        state = _with_outputs(state, torch.cat([state.decoder_inputs, words[:, None]], 1))
        return self.model.trace(state, self.attention).logits[:, -1], state

    def reorder(self, state: Batch, rows: Int[Tensor, " row2"]) -> Batch:
        """Return some rows of the batch."""
        # Lengths are on the CPU, where a GPU's numbers choose nothing; the other way round works.
        return state.rows(rows.cpu())


def _with_outputs(batch: Batch, words: Int[Tensor, "row out"]) -> Batch:
    lengths = torch.full((len(batch),), words.shape[1])
    return replace(
        batch, decoder_inputs=words, targets=words, target_lengths=lengths, gold=words * 0 - 1
    )


def stepper(model: AttentionModel, attention: Attention | None = None) -> Stepper:
    """Return the model's own stepper, or one through its trace."""
    if isinstance(model, Incremental):
        return model.stepper(attention or {})
    return TraceStepper(model, attention or {})


class Written(NamedTuple):
    """The outputs of a batch, boundaries left out, and their log-probabilities."""

    words: list[list[int]]
    scores: list[float]


def greedy(
    model: AttentionModel,
    batch: Batch,
    boundaries: tuple[int, int],
    limit: int = 100,
    attention: Attention | None = None,
) -> Written:
    """Write the most probable next word until it is the end word: a beam of width 1."""
    return beam_search(model, batch, boundaries, 1, limit, attention)


@torch.no_grad()
def beam_search(
    model: AttentionModel,
    batch: Batch,
    boundaries: tuple[int, int],
    width: int = 5,
    limit: int = 100,
    attention: Attention | None = None,
) -> Written:
    """Write the outputs of a batch, keeping the best ``width`` hypotheses of each at every step.

    A finished hypothesis keeps its score and its place among them. An example is done when the
    best of its hypotheses is finished: the others can only lose.

    Parameters
    ----------
    boundaries
        Ids that start and end an output.
    limit
        Most words to write, the end word among them; what is unfinished then stands as it is.
    attention
        The rules of the weights at named sites, as in ``trace``.
    """
    start, end = boundaries
    writer, device = stepper(model, attention), batch.inputs.device
    beam = _Beam.start(len(batch), width, start, device)
    state = writer.reorder(
        writer.begin(batch), torch.arange(len(batch), device=device).repeat_interleave(width)
    )
    words: list[list[int]] = [[] for _ in range(len(batch))]
    scores = [0.0] * len(batch)
    examples = list(range(len(batch)))
    for step in range(limit):
        logits, state = writer.step(beam.words[:, :, -1].flatten(), state)
        beam, parents = beam.extended(logits, end)
        over = (beam.finished[:, 0] | (step + 1 == limit)).tolist()
        for row in (row for row, done in enumerate(over) if done):
            # After the end word, a finished hypothesis repeats it.
            words[examples[row]] = [word for word in beam.words[row, 0, 1:].tolist() if word != end]
            scores[examples[row]] = float(beam.scores[row, 0])
        if all(over):
            break
        going = [row for row, done in enumerate(over) if not done]
        examples = [examples[row] for row in going]
        rows = torch.tensor(going, device=device)
        beam = _Beam(beam.words[rows], beam.scores[rows], beam.finished[rows])
        state = writer.reorder(state, (rows[:, None] * width + parents[rows]).flatten())
    return Written(words, scores)


@dataclass(frozen=True)
class _Beam:
    """The best hypotheses of every example, best first; places not yet taken have the score -∞."""

    words: Int[Tensor, "batch width word"]
    scores: Float[Tensor, "batch width"]
    finished: Bool[Tensor, "batch width"]

    @classmethod
    def start(cls, count: int, width: int, start: int, device: torch.device) -> _Beam:
        words = torch.full((count, width, 1), start, device=device)
        finished = torch.zeros(count, width, dtype=torch.bool, device=device)
        return cls(words, _first_alone(width, device).expand(count, -1), finished)

    def extended(
        self, logits: Float[Tensor, "row output_type"], end: int
    ) -> tuple[_Beam, Int[Tensor, "batch width"]]:
        """Add a word to every hypothesis; also return the hypothesis that each one extends."""
        count, width = self.scores.shape
        logits = logits.unflatten(0, (count, width))
        # The best of all are among the best of each; log-probabilities are needed of these alone.
        best, words = logits.topk(min(width, logits.shape[-1]))
        gains = best.double() - logits.logsumexp(-1, keepdim=True).double()
        over = self.finished[:, :, None]
        gains = torch.where(over, _first_alone(gains.shape[-1], gains.device), gains)
        words = words.masked_fill(over, end)
        scores, places = (self.scores[:, :, None] + gains).flatten(1).topk(width)
        parents = places // gains.shape[-1]
        added = words.flatten(1).gather(1, places)
        before = self.words.gather(1, parents[:, :, None].expand(-1, -1, self.words.shape[-1]))
        finished = self.finished.gather(1, parents) | (added == end)
        return _Beam(torch.cat([before, added[:, :, None]], -1), scores, finished), parents


def _first_alone(count: int, device: torch.device) -> Float[Tensor, " count"]:
    """Return 0, -∞, -∞, …: a single continuation."""
    alone = torch.full((count,), float("-inf"), dtype=torch.float64, device=device)
    alone[0] = 0
    return alone


def respond(
    model: AttentionModel,
    inputs: Sequence[int],
    boundaries: tuple[int, int] | None,
    limit: int = 50,
    attention: Attention | None = None,
) -> Batch:
    """Return a batch of one example whose target is the model's most probable output, greedily.

    Parameters
    ----------
    boundaries
        Ids that start and end an output sequence; None if the output is one label.
    limit
        Most words to write.
    attention
        The rules of the weights at named sites, as in ``trace``.
    """
    asked = collate([Example(0, inputs, [0], [0])])
    if boundaries is None:
        with torch.no_grad():
            label = int(model.trace(asked, attention).logits.argmax())
        return collate([Example(0, inputs, [0], [label])])
    start, end = boundaries
    output = greedy(model, asked, boundaries, limit, attention).words[0]
    if len(output) < limit:
        output.append(end)
    return collate([Example(0, inputs, [start, *output[:-1]], output)])
