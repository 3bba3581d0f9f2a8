"""Your own attention model: let it give traces, check it, probe it."""

import torch
from torch import nn

import attnscope
from attnscope.data import KeywordTask
from attnscope.models import Trace, attend
from attnscope.scores import LexicalProbe


class MyClassifier(nn.Module):  # any network will do
    def __init__(self, words: int, size: int = 32):
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        self.query = nn.Parameter(torch.randn(size))
        self.output = nn.Linear(size, 2)

    def trace(self, batch, attention=None, generator=None):
        states = self.embedding(batch.inputs)  # batch, inp, size
        logits = (states @ self.query)[:, None, None]  # batch, heads, out, inp
        site = attend(batch, logits, states[:, None], (attention or {}).get("cross"))
        query = states.new_zeros(len(batch), 1, 0)  # the readout needs the context alone
        output = self.readout(site.context, query)
        return Trace(batch, states, states, None, query, output, {"cross": site})

    def readout(self, context, query):
        return self.output(context.squeeze(-2))


task = KeywordTask(length=10, types=20)
model = MyClassifier(words=20)
batch = task.evaluation_batch(8)
print(attnscope.check_model(model, batch))
score = attnscope.read_score(LexicalProbe(), model, batch)
print(score.array()[0].round(2))
score.to_csv("own_model.csv")
