"""Train an LSTM classifier with hand-written additive attention on SST, with plain PyTorch:

python examples/audit/lstm_sst.py DATA/sst_binary models/lstm

It keeps weights.safetensors and words.json; lstm_audit.py audits them.
"""

import gzip
import json
import sys
from collections import Counter
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn


def read(folder, split):
    with gzip.open(Path(folder) / f"{split}.jsonl.gz", "rt", encoding="utf8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row["text"].lower() for row in rows], [row["label"] for row in rows]


def cutter(known):
    """Return the function from a text to ids; 0 is padding, 1 an unknown word."""
    return lambda text: [known.get(word, 1) for word in text.lower().split()]


class Classifier(nn.Module):
    def __init__(self, types, width=100):
        super().__init__()
        self.embedding = nn.Embedding(types, width, padding_idx=0)
        self.lstm = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)
        self.hidden, self.score = nn.Linear(width, width), nn.Linear(width, 1)
        self.output = nn.Linear(width, 2)

    def forward(self, ids):
        real = ids > 0
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(ids), real.sum(1).cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = self.lstm(packed)
        states, _ = nn.utils.rnn.pad_packed_sequence(
            states, batch_first=True, total_length=ids.shape[1]
        )
        logits = self.score(torch.tanh(self.hidden(states))).squeeze(-1)
        weights = logits.masked_fill(~real, -1e9).softmax(-1)
        return self.output((weights.unsqueeze(-1) * states).sum(1))


def main(data, out, seed=0, epochs=4):
    torch.manual_seed(seed)
    texts, labels = read(data, "train")
    counts = Counter(word for text in texts for word in text.split())
    known = {word: n + 2 for n, word in enumerate(sorted(w for w, c in counts.items() if c > 1))}
    cut = cutter(known)
    model = Classifier(len(known) + 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    rows, gold = [torch.tensor(cut(text)) for text in texts], torch.tensor(labels)
    for epoch in range(epochs):
        for chosen in torch.randperm(len(rows)).split(64):
            ids = nn.utils.rnn.pad_sequence([rows[n] for n in chosen], batch_first=True)
            loss = nn.functional.cross_entropy(model(ids), gold[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")
    Path(out).mkdir(parents=True, exist_ok=True)
    save_file(model.state_dict(), Path(out) / "weights.safetensors")
    (Path(out) / "words.json").write_text(json.dumps(known))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
