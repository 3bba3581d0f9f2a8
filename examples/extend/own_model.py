"""Your own model: a network with a trace and a readout, and a spec that builds it."""

from pathlib import Path
from typing import Literal

import torch
from torch import nn

import attnscope
from attnscope.data import KeywordTask, seeded
from attnscope.models import ModelSpec, Trace, attend
from attnscope.scores import Attention, LexicalProbe
from attnscope.training import Training, Unit, train_units


class WordAttention(nn.Module):
    def __init__(self, words, labels, size):
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        self.query = nn.Parameter(torch.randn(size))
        self.output = nn.Linear(size, labels)

    def trace(self, batch, attention=None, generator=None):
        states = self.embedding(batch.inputs)  # batch, inp, size
        logits = (states @ self.query)[:, None, None]  # batch, heads, out, inp
        site = attend(batch, logits, states[:, None], (attention or {}).get("cross"))
        query = states.new_zeros(len(batch), 1, 0)  # the readout needs the context alone
        output = self.readout(site.context, query)
        return Trace(batch, states, states, None, query, output, {"cross": site})

    def readout(self, context, query):
        return self.output(context.squeeze(-2))


class WordAttentionSpec(ModelSpec):
    kind: Literal["my-word-attention"] = "my-word-attention"
    size: int = 32

    def build(self, source, seed):
        with seeded("my-word-attention", seed):  # the seed alone decides the first weights
            return WordAttention(len(source.input_words), len(source.output_words), self.size)


if __name__ == "__main__":
    task, spec = KeywordTask(length=8), WordAttentionSpec(size=16)
    print(attnscope.check_model(spec.build(task, seed=0), task.evaluation_batch(8)))
    training = Training(
        steps=200, batch_size=16, evaluate_at=(), scores=(Attention(), LexicalProbe())
    )
    units = [Unit(source=task, model=spec, training=training, seed=seed) for seed in range(2)]
    for unit in train_units(units, Path("runs"), jobs=2):
        print(unit, unit.log[-1]["accuracy"])
