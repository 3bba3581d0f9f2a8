"""A score: one number for each output position t and input position l of each example.

Attention, lexical probe, proxy, saliency, alignments: all have this shape, so any two compare, and
all come out as arrays, CSV or npz in the same way.
"""

from __future__ import annotations

import csv
import io
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.data.batch import Batch, by_row
from attnscope.errors import UsageError
from attnscope.figures.heatmap import heatmap
from attnscope.models.intervention import AttentionRule
from attnscope.models.trace import AttentionModel, Trace
from attnscope.runs.atomic import write_bytes
from attnscope.runs.spec import Spec


@runtime_checkable
class Words(Protocol):
    """Anything that spells ids: a vocabulary, or a tokeniser."""

    def decode(self, ids: Sequence[int], /) -> list[str]:
        """Return the words or pieces of ids."""
        ...


@dataclass(frozen=True)
class Score:
    """Values of one score on a batch; values outside the masks are 0 and mean nothing."""

    name: str
    values: Float[Tensor, "batch out inp"]
    input_mask: Bool[Tensor, "batch *row inp"]
    batch: Batch
    input_words: Words | None = None
    output_words: Words | None = None

    def __post_init__(self) -> None:
        shape = (*self.batch.targets.shape, self.batch.inputs.shape[1])
        if tuple(self.values.shape) != shape:
            raise UsageError(
                f"{self.name} has the shape {list(self.values.shape)}: a score of this batch is "
                f"[batch, out, inp], {list(shape)}."
            )

    def __repr__(self) -> str:
        count, outputs, inputs = self.values.shape
        return f"Score({self.name!r}, examples={count}, outputs={outputs}, inputs={inputs})"

    def _repr_html_(self) -> str | None:
        """Show the first example as a heat map in a notebook."""
        return heatmap(self)._repr_html_() if len(self.batch) else None

    @property
    def target_mask(self) -> Bool[Tensor, "batch out"]:
        """True at real output positions."""
        return self.batch.target_mask

    @property
    def mask(self) -> Bool[Tensor, "batch out inp"]:
        """True where a value means something."""
        return self.target_mask[:, :, None] & by_row(self.input_mask)

    def rows(self, chosen: slice) -> Score:
        """Return the score of some examples, without the padding that they share."""
        batch = self.batch.rows(chosen).trimmed()
        out, inp = batch.targets.shape[1], batch.inputs.shape[1]
        values, mask = self.values[chosen, :out, :inp], self.input_mask[chosen, ..., :inp]
        return replace(self, values=values, input_mask=mask, batch=batch)

    def array(self) -> np.ndarray:
        """Return the values as a NumPy array, NaN outside the masks."""
        return self.values.masked_fill(~self.mask, float("nan")).detach().cpu().numpy()

    def words(self, example: int) -> tuple[list[str], list[str]]:
        """Return input and output words of an example (their ids, where there is no vocabulary)."""
        batch = self.batch
        inputs = batch.inputs[example, : int(batch.input_lengths[example])]
        targets = batch.targets[example, : int(batch.target_lengths[example])]
        return _spell(inputs, self.input_words), _spell(targets, self.output_words)

    def to_npz(self, path: str | Path) -> None:
        """Write ids, values and masks, one array each."""
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            ids=self.batch.ids.cpu().numpy(),
            values=self.array(),
            inputs=self.batch.inputs.cpu().numpy(),
            targets=self.batch.targets.cpu().numpy(),
            input_mask=self.input_mask.cpu().numpy(),
            target_mask=self.target_mask.cpu().numpy(),
        )
        write_bytes(Path(path), buffer.getvalue())

    def to_csv(self, path: str | Path) -> None:
        """Write one line per value: example, output position and word, input position and word."""
        text = io.StringIO()
        # Words are always quoted: Python 3.11 leaves a lone carriage return bare.
        writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(["example", "t", "output", "l", "input", self.name])
        array = self.array()
        for row, example in enumerate(self.batch.ids.tolist()):
            inputs, outputs = self.words(row)
            for t, output in enumerate(outputs):
                for position, word in enumerate(inputs):
                    # A NumPy number is written with the digits that bring it back exactly.
                    writer.writerow([example, t, output, position, word, array[row, t, position]])
        write_bytes(Path(path), text.getvalue().encode())


def _spell(ids: Int[Tensor, " time"], words: Words | None) -> list[str]:
    return words.decode(ids.tolist()) if words else [str(index) for index in ids.tolist()]


class ScoreRule(Spec):
    """Root of the scores that a configuration can name."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name under which the score is stored."""

    def mask(self, trace: Trace) -> Bool[Tensor, "batch *row inp"]:
        """Return the input positions where the score means something."""
        return trace.batch.input_mask

    def trace(
        self,
        model: AttentionModel,
        batch: Batch,
        attention: Mapping[str, AttentionRule] | None = None,
    ) -> Trace:
        """Run the model as the score needs it: by default without a graph for gradients."""
        with torch.no_grad():
            return replace(model.trace(batch, attention), attention=attention or {})

    @abstractmethod
    def values(self, model: AttentionModel, trace: Trace) -> Float[Tensor, "batch out inp"]:
        """Read the score off a model and one of its traces."""

    def read(self, model: AttentionModel, trace: Trace) -> Score:
        """Return the score on the trace's batch, 0 outside the masks."""
        mask = self.mask(trace)
        real = trace.batch.target_mask[:, :, None] & by_row(mask)
        values = self.values(model, trace).masked_fill(~real, 0.0)
        return Score(self.name, values, mask, trace.batch)


def read_score(
    rule: ScoreRule,
    model: AttentionModel,
    batch: Batch,
    attention: Mapping[str, AttentionRule] | None = None,
) -> Score:
    """Run a model on a batch and read one score off it.

    Parameters
    ----------
    rule
        For example ``Attention()`` or ``LexicalProbe()``.
    attention
        Interventions by site, for example ``{"cross": Uniform()}``.
    """
    return read_scores([rule], model, batch, attention)[0]


def read_scores(
    rules: Sequence[ScoreRule],
    model: AttentionModel,
    batch: Batch,
    attention: Mapping[str, AttentionRule] | None = None,
    *,
    trace: Trace | None = None,
) -> list[Score]:
    """Read several scores off a model; those that need nothing special share one pass.

    Parameters
    ----------
    rules, attention
        As in `read_score`.
    trace
        That pass, where it has been made.
    """
    if not hasattr(model, "trace"):
        kind = type(model).__name__
        raise UsageError(f"{kind} cannot be traced: make it measurable with attnscope.adapt first.")
    scores: list[Score] = []
    for rule in rules:
        if type(rule).trace is not ScoreRule.trace:
            own = rule.trace(model, batch, attention)
        else:
            own = trace = trace or rule.trace(model, batch, attention)
        with torch.no_grad():
            scores.append(rule.read(model, own))
    return scores
