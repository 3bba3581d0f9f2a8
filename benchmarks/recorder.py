"""What does `attnscope.Recorder` cost? CPU time of recording over that of the training around it.

Run ``python benchmarks/recorder.py``; it exits with 1 if the ratio rises above the promised one. A
two-layer BERT trains on batches of 64 texts of 16 words; attention and lexical probe of 16 texts
are recorded at steps 1, 2, 5, 10, …, 2000. Recorded steps become rarer, so a longer training pays
less and a shorter one more. Needs transformers.
"""

from __future__ import annotations

import sys
import tempfile
import time

import torch
import transformers

from attnscope.audits.recorder import Recorder
from attnscope.models.adapter import adapt

PROMISED = 0.05
STEPS, WORDS, TYPES, BATCH, FOLLOWED = 2000, 16, 1000, 64, 16


def model_of(width: int = 64) -> transformers.BertForSequenceClassification:
    """Return a small BERT."""
    config = transformers.BertConfig(
        vocab_size=TYPES,
        hidden_size=width,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=2 * width,
        max_position_embeddings=WORDS,
    )
    return transformers.BertForSequenceClassification(config)


def ids_of(text: str) -> list[int]:
    """Return the ids of a text whose words are numbers."""
    return [int(word) for word in text.split()]


def main() -> int:
    """Print the ratio and return the exit code."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module = model_of()
    drawn = torch.randint(1, TYPES, (BATCH, WORDS))
    labels = drawn[:, 0] % 2
    texts = [" ".join(map(str, row)) for row in drawn[:FOLLOWED].tolist()]
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    recording = 0.0
    with tempfile.TemporaryDirectory() as folder:
        adapted = adapt(module, tokenizer=ids_of)
        recorder = Recorder(adapted, texts, labels[:FOLLOWED].tolist(), out=folder)
        module.train()
        start = time.process_time()
        for step in range(1, STEPS + 1):
            loss = module(input_ids=drawn, labels=labels).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            before = time.process_time()
            recorder.step(step)
            recording += time.process_time() - before
        training = time.process_time() - start - recording
    ratio = recording / training
    print(f"recorder: {ratio:.3f} of the training's time (at most {PROMISED})")
    return 0 if ratio <= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
