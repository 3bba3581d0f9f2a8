"""Evaluate the members of a group together: one vmapped forward pass for all that share a source.

The numbers are those of `attnscope.training.evaluation`, up to rounding. Metrics, and scores that
run the model in a way of their own, are read member by member.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from attnscope.data.batch import Batch
from attnscope.models.base import AttentionModule
from attnscope.models.intervention import AttentionRule
from attnscope.models.trace import Site, Trace
from attnscope.scores.score import Score, read_scores
from attnscope.training.engine.vmapped import Stack, StackedModels
from attnscope.training.evaluation import (
    POSITIONS,
    Evaluated,
    chunk_rows,
    measured_row,
    right_words,
    without_padding,
)
from attnscope.training.objective import negative_log_likelihood
from attnscope.training.unit import Unit

# Input positions that all members read at once: about 2 GB of states.
_GROUP_POSITIONS = 2**20
_TENSORS = ("embeddings", "encoder_states", "decoder_states", "query", "logits")


class _Traced(nn.Module):
    """A model's trace as tensors by name, as vmap returns them."""

    def __init__(self, model: AttentionModule, attention: Mapping[str, AttentionRule]) -> None:
        super().__init__()
        self.model, self.attention = model, attention

    def forward(self, batch: Batch) -> Stack:
        trace = self.model.trace(batch, self.attention)
        found = {name: getattr(trace, name) for name in _TENSORS}
        # Without teacher forcing a model reads its own words.
        found["decoder_inputs"] = trace.batch.decoder_inputs
        found["loss"] = negative_log_likelihood(trace).double().sum()
        found["accuracy"] = right_words(trace).sum()
        for site, attended in trace.sites.items():
            for part in fields(Site):
                found[f"{site}/{part.name}"] = getattr(attended, part.name)
        self.teacher_forced, self.noted = trace.teacher_forced, trace.attention
        return {name: tensor for name, tensor in found.items() if tensor is not None}

    def trace_of(self, found: Stack, member: int, batch: Batch) -> Trace:
        """Return one member's trace from those of all."""
        own = {name: tensor[member] for name, tensor in found.items()}
        sites: dict[str, dict[str, Tensor]] = {}
        for name, tensor in own.items():
            site, slash, part = name.rpartition("/")
            if slash:
                sites.setdefault(site, {})[part] = tensor
        parts: dict[str, Any] = {name: own.get(name) for name in _TENSORS}
        return Trace(
            replace(batch, decoder_inputs=own["decoder_inputs"]),
            **parts,
            sites={site: Site(**each) for site, each in sites.items()},
            teacher_forced=self.teacher_forced,
            attention=self.noted,
        )


@torch.no_grad()
def evaluate_group(
    models: StackedModels,
    members: Sequence[int],
    own: Sequence[AttentionModule],
    units: Sequence[Unit],
    batch: Batch,
    split: str,
) -> list[Evaluated]:
    """Return loss, accuracy, metrics and scores of members of a group that share a source.

    Parameters
    ----------
    members
        Their places in the stack.
    own, units
        Their modules, with the stack's parameters written back, and their units.
    batch
        The source's examples.
    """
    source, training = units[0].source, units[0].training
    traced = _Traced(models.model, training.attention)
    index = torch.tensor(members, device=models.reads.device)
    state = {
        f"model.{name}": tensor.index_select(0, index)
        for name, tensor in (models.parameters | models.buffers).items()
    }
    room = chunk_rows(source, min(POSITIONS, _GROUP_POSITIONS // len(members)))

    def run(chunk: Batch) -> Stack:
        return vmap(lambda parameters: functional_call(traced, parameters, (chunk,)))(state)

    sums = torch.zeros(2, len(members), dtype=torch.float64, device=index.device)
    kept: list[list[tuple[Tensor, list[Score]]]] = [[] for _ in members]

    def keep(rows: Tensor, chunk: Batch, found: Stack) -> None:
        for number, model in enumerate(own):
            trace = traced.trace_of(found, number, chunk)
            scores = read_scores(training.scores, model, chunk, training.attention, trace=trace)
            kept[number].append((rows, scores))

    keeps_all = training.stored >= len(batch)  # scores of all examples share the pass with the loss
    for rows, chunk in batch.by_length(room):
        found = run(chunk)
        sums += torch.stack([found["loss"], found["accuracy"]])
        if keeps_all:
            keep(rows, chunk, found)
    if training.scores and not keeps_all:
        for rows, chunk in batch.rows(slice(training.stored)).by_length(room):
            keep(rows, chunk, run(chunk))
    evaluated = []
    for model, sum_of, scored in zip(own, sums.T.tolist(), kept, strict=True):
        model.eval()
        loss, right = sum_of
        row = measured_row(loss, right, model, batch, source, training, split)
        evaluated.append((row, without_padding(scored)))
        model.train()
    return evaluated
