"""What does a whole audit cost? Its CPU time over that of a bare pass over the same texts.

Run ``python benchmarks/audit.py``; it exits with 1 if the ratio rises above the promised one. A
Transformer of the size of DistilBERT (6 layers, width 768, 12 heads; ``--layers 12`` is that of
BERT-base) with random weights is audited on 200 texts of 5 to 40 words. Needs transformers.
``--device cuda`` measures on a GPU, ``--threads`` the CPU's threads.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time

import torch
import transformers
from gpu import demand_gpu

from attnscope.audits import Texts
from attnscope.audits.prepare import subject_of
from attnscope.audits.running import audit
from attnscope.models.adapted import Adapted
from attnscope.models.adapter import adapt

PROMISED = 120
TYPES, WORDS = 30522, (5, 40)


def model_of(layers: int, width: int) -> Adapted:
    """Return a classifier with random weights whose words are numbers."""
    config = transformers.BertConfig(
        vocab_size=TYPES,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
        max_position_embeddings=64,
        initializer_range=0.05,
    )
    torch.manual_seed(0)
    module = transformers.BertForSequenceClassification(config).eval()
    return adapt(module, tokenizer=lambda text: [int(word) for word in text.split()])


def texts_of(count: int) -> Texts:
    """Return random texts with random labels."""
    stream = torch.Generator().manual_seed(0)
    lengths = torch.randint(WORDS[0], WORDS[1] + 1, (count,), generator=stream)
    rows = [torch.randint(5, TYPES, (int(n),), generator=stream).tolist() for n in lengths]
    labels = torch.randint(2, (count,), generator=stream).tolist()
    return Texts("random", "all", tuple(" ".join(map(str, r)) for r in rows), labels=tuple(labels))


def seconds_bare(model: Adapted, texts: Texts, device: torch.device) -> float:
    """Return the median time of the model's own passes, in the batches of an audit."""
    subject = subject_of(model, texts.sample(len(texts.texts), 0), 0, device)
    parts = [part for _, part in subject.parts]
    times = []
    for _ in range(4):
        start = now(device)
        with torch.no_grad():
            for part in parts:
                model.call(model.module, part)
        times.append(now(device) - start)
    return statistics.median(times[1:])


def now(device: torch.device) -> float:
    """Return the CPU time; on a GPU the time after all that it was asked to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        return time.perf_counter()
    return time.process_time()


def main() -> int:
    """Print the ratio and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    for name, default in {"layers": 6, "width": 768, "examples": 200, "threads": 2}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    demand_gpu(parser, given.device)
    device = torch.device(given.device)
    model, texts = model_of(given.layers, given.width), texts_of(given.examples)
    model.to(device)
    before = seconds_bare(model, texts, device)
    start, started = now(device), time.perf_counter()
    asked: list[tuple[str, float]] = []
    with tempfile.TemporaryDirectory() as out:
        audit(
            model,
            texts,
            examples=given.examples,
            device=given.device,
            out=out,
            progress=lambda question: asked.append((question, now(device))),
        )
    end, wall = now(device), time.perf_counter() - started
    bare = statistics.mean((before, seconds_bare(model, texts, device)))
    for (name, first), (_, last) in zip(asked, [*asked[1:], ("", end)], strict=True):
        print(f"{name}: {(last - first) / bare:.1f} bare passes")
    ratio = (end - start) / bare
    print(f"whole audit: {wall:.0f} s on {device}, a bare pass {bare * wall / (end - start):.2f} s")
    print(f"audit: {ratio:.0f} bare passes (at most {PROMISED})")
    return 0 if ratio <= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
