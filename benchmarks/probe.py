"""How much memory and time does the lexical probe take beside one that stores all its logits?

Run ``python benchmarks/probe.py``; it exits with 1 if a ratio is above the promised one. β is read
for 1014 sentence pairs of 8 to 25 words (as many as Multi30k's validation set has) off a translator
with 8000 output words (snell Eq. 4), in batches of 32. The plain way reads all pairs of positions
of a batch at once. Each way runs in processes of its own, and what a process needs that
only makes the states is taken off its peak.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import torch
from decomposition import peak
from torch import Tensor, nn

from attnscope.data.batch import Batch, Example, collate
from attnscope.models.trace import Trace, attend
from attnscope.scores.lexical_probe import LexicalProbe, log_odds

MEMORY, TIME = 0.1, 1.0
PAIRS, BATCH, SHORTEST, LONGEST = 1014, 32, 8, 25
TYPES, STATE, HIDDEN = 8000, 512, 256


class Translator(nn.Module):
    """The translator's readout on random states: what comes before does not matter here."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(STATE, HIDDEN)
        self.hidden = nn.Linear(2 * HIDDEN, HIDDEN)
        self.output = nn.Linear(HIDDEN, TYPES)

    def trace(
        self, batch: Batch, attention: object = None, generator: torch.Generator | None = None
    ) -> Trace:
        """Return random states under uniform attention."""
        states = torch.randn(*batch.inputs.shape, STATE)
        query = torch.randn(*batch.targets.shape, HIDDEN)
        flat = torch.zeros(len(batch), 1, batch.targets.shape[1], batch.inputs.shape[1])
        site = attend(batch, flat, states[:, None])
        logits = self.readout(site.context, query)
        return Trace(batch, states, states, query, query, logits, {"cross": site})

    def readout(self, context: Tensor, query: Tensor) -> Tensor:
        """Return W_o ReLU(W_1 [s ; P c + b_P] + b_1) + b_o."""
        joined = torch.cat([query, self.project(context.squeeze(-2))], -1)
        return self.output(torch.relu(self.hidden(joined)))


def batches() -> list[Batch]:
    """Return made-up sentence pairs."""
    stream = torch.Generator().manual_seed(0)

    def words(length: int) -> list[int]:
        return torch.randint(TYPES, (length,), generator=stream).tolist()

    lengths = torch.randint(SHORTEST, LONGEST + 1, (PAIRS, 2), generator=stream).tolist()
    pairs = [Example(n, words(inp), [0] * out, words(out)) for n, (inp, out) in enumerate(lengths)]
    return [collate(pairs[start : start + BATCH]) for start in range(0, PAIRS, BATCH)]


def nothing(model: Translator, trace: Trace) -> Tensor:
    """Read no probe."""
    return trace.batch.ids


def plain(model: Translator, trace: Trace) -> Tensor:
    """Read all pairs of positions at once."""
    batch, (rows, out), inp = trace.batch, trace.batch.targets.shape, trace.batch.inputs.shape[1]
    context = trace.sites["cross"].values.transpose(1, 2)[:, None].expand(rows, out, -1, -1, -1)
    query = trace.query[:, :, None].expand(rows, out, inp, -1)
    logits = model.readout(context, query)
    return log_odds(logits, batch.targets[:, :, None].expand(rows, out, inp))


def package(model: Translator, trace: Trace) -> Tensor:
    """Read them as the package does."""
    return LexicalProbe().read(model, trace).values


WAYS: dict[str, Callable[[Translator, Trace], Tensor]] = {
    "nothing": nothing,
    "plain": plain,
    "package": package,
}


@torch.no_grad()
def probe(way: str) -> None:
    """Print the seconds that all probes of a way take and the process's peak in MiB."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, seconds = Translator(), 0.0
    for batch in batches():
        trace = model.trace(batch)
        start = time.perf_counter()
        WAYS[way](model, trace)
        seconds += time.perf_counter() - start
    print(seconds, peak())


def measured(way: str) -> tuple[float, float]:
    """Return what a process of its own prints."""
    command = [sys.executable, __file__, way]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, most = done.stdout.split()
    return float(seconds), float(most)


def main() -> int:
    """Print both ratios and return the exit code."""
    _, base = measured("nothing")
    (slow, large), (quick, small) = measured("plain"), measured("package")
    for way, seconds, most in (("plain", slow, large), ("package", quick, small)):
        print(f"{way}: {seconds:.1f} s, {most - base:.0f} MiB over {base:.0f}")
    memory, time_taken = (small - base) / (large - base), quick / slow
    print(f"probe: {memory:.3f} of the memory (at most {MEMORY})")
    print(f"probe: {time_taken:.2f} of the time (at most {TIME})")
    return 0 if memory <= MEMORY and time_taken <= TIME else 1


if __name__ == "__main__":
    sys.exit(probe(sys.argv[1]) if len(sys.argv) > 1 else main())
