"""What do all gradient-flow terms of a corpus cost beside one forward and backward pass over it?

Run ``python benchmarks/gradient_flow.py``; it exits with 1 if a ratio rises above the promised one.
A made-up corpus of SST's size (6 920 texts of 2 to 35 words, 16 174 types with frequencies of one
over their rank) in batches of 100; the paper's classifiers with embeddings of 100 numbers. The
terms are those of every type, in double precision, with π, ρ and their sums by group; the pass is
in single precision, its gradients those of the mean loss. Both are taken in turns on one thread.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch

from attnscope.data.batch import Batch, Example, collate
from attnscope.models.attentions import Additive, DotProduct
from attnscope.models.classifier import Classifier, ClassifierSpec, Output
from attnscope.models.encoders import Affine, WordStates
from attnscope.theory.gradient_flow.classifier import classifier_flow
from attnscope.theory.gradient_flow.groups import group_row
from attnscope.training.objective import negative_log_likelihood

PROMISED = 3.0
ROUNDS = 5
TEXTS, SHORTEST, LONGEST, TYPES, BATCH, WIDTH = 6920, 2, 35, 16174, 100, 100
MODELS = {
    "DP": (WordStates(), DotProduct(scale=10.0)),
    "DP-A": (Affine(hidden=WIDTH), DotProduct(scale=10.0)),
    "AD": (WordStates(), Additive(hidden=WIDTH, activation="tanh", scale=10.0)),
}
GROUPS = {
    "positive": torch.arange(100, 512),
    "negative": torch.arange(600, 865),
    "neutral": torch.arange(1000, 2384),
}


def corpus() -> list[Batch]:
    """Draw the texts and their labels."""
    stream = torch.Generator().manual_seed(0)
    frequency = 1 / torch.arange(1, TYPES + 1, dtype=torch.float64)
    lengths = torch.randint(SHORTEST, LONGEST + 1, (TEXTS,), generator=stream).tolist()
    words = torch.multinomial(frequency, sum(lengths), replacement=True, generator=stream)
    texts = [text.numpy() for text in words.split(lengths)]
    examples = [Example(n, text, [0], [n % 2]) for n, text in enumerate(texts)]
    return [collate(examples[start : start + BATCH]) for start in range(0, TEXTS, BATCH)]


def forward_backward(model: Classifier, batches: list[Batch]) -> None:
    """Take the gradient of the mean loss."""
    model.zero_grad()
    for batch in batches:
        (negative_log_likelihood(model.trace(batch)).sum() / TEXTS).backward()


def terms(model: Classifier, batches: list[Batch]) -> None:
    """Take all terms and sum them up by group."""
    group_row(*classifier_flow(model, batches), GROUPS)


def seconds(work: Callable[[Classifier, list[Batch]], None], *given: object) -> float:
    """Return the time that one call takes."""
    start = time.perf_counter()
    work(*given)  # type: ignore[arg-type]
    return time.perf_counter() - start


def ratio_of(name: str, batches: list[Batch]) -> float:
    """Return the time of the terms over that of the pass."""
    encoder, attention = MODELS[name]
    spec = ClassifierSpec(
        embedding=WIDTH,
        encoder=encoder,
        attention=attention,
        output=Output(bias="off"),
    )
    torch.manual_seed(0)
    model = Classifier(spec, torch.nn.Embedding(TYPES, WIDTH), 2)
    spent: dict[str, list[float]] = {"pass": [], "terms": []}
    for _ in range(ROUNDS):
        spent["pass"].append(seconds(forward_backward, model, batches))
        spent["terms"].append(seconds(terms, model, batches))
    whole, taken = (statistics.median(spent[part][1:]) for part in ("pass", "terms"))
    print(f"{name}: pass {1000 * whole:.0f} ms, terms {1000 * taken:.0f} ms")
    return taken / whole


def main() -> int:
    """Print the ratios and return the exit code."""
    torch.set_num_threads(1)
    batches = corpus()
    worst = max(ratio_of(name, batches) for name in MODELS)
    print(f"gradient flow: {worst:.2f} of a forward and backward pass (at most {PROMISED})")
    return 0 if worst <= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
