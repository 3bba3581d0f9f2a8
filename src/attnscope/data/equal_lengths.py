"""Sequences of eSCAN without 'and', where input and output have one length (aitken Fig. 6b).

So few of eSCAN's own sequences are of this kind that they are drawn for themselves, with its
lengths.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from attnscope.data.batch import Batch, Example, collate
from attnscope.data.escan import ExtendedScan, Phrase
from attnscope.data.randomness import generator


def equal_length_batch(task: ExtendedScan, count: int) -> Batch:
    """Return sequences of phrases without 'and'."""
    clauses = [phrase for phrase in task.phrases if "and" not in phrase.inputs]
    # Twice as many as are needed, since a phrase that would be too long is passed over.
    shape = count, 2 * task.shortest_output
    stream = generator("evaluation", f"{task.dataset}, T = S")
    drawn = torch.randint(len(clauses), shape, generator=stream)
    rows = [_joined(task, [clauses[index] for index in row]) for row in drawn.tolist()]
    return collate([_example(task, place, row) for place, row in enumerate(rows)])


def twice_steps(batch: Batch) -> Bool[Tensor, "batch out"]:
    """Return the output positions of eSCAN that come from 'twice'."""
    twice = ExtendedScan().input_words.id("twice")
    return (batch.inputs.gather(1, batch.gold.clamp(min=0)) == twice) & (batch.gold >= 0)


def _joined(task: ExtendedScan, clauses: Sequence[Phrase]) -> Phrase:
    whole = Phrase((), (), ())
    for clause in clauses:
        size = len(whole.outputs)
        if size < task.shortest_output and size + len(clause.outputs) < task.longest_output:
            whole = whole.then(clause)
    return whole


def _example(task: ExtendedScan, place: int, row: Phrase) -> Example:
    outputs = task.output_words.encode((*row.outputs, "<eos>"))
    return Example(
        id=place,
        inputs=task.input_words.encode((*row.inputs, "<eos>")),
        decoder_inputs=[task.output_words.id("<sos>"), *outputs[:-1]],
        targets=outputs,
        gold=(*row.gold, len(row.inputs)),
    )
