"""How long does ``attnscope --help`` take, beside the import of torch that it does without?

Run ``python benchmarks/help.py``; it exits with 1 if the ratio rises above the promised one.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

PROMISED = 0.35
RUNS = 9


def seconds(*arguments: str) -> float:
    """Return the time that Python takes with these arguments."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> int:
    """Print the ratio and return the exit code."""
    pairs = [
        (seconds("-m", "attnscope", "--help"), seconds("-c", "import torch"))
        for _ in range(RUNS + 1)
    ]
    # The first of each reads its files from the disk.
    helped, imported = (statistics.median(times) for times in zip(*pairs[1:], strict=True))
    print(f"help {helped:.2f} s, import of torch {imported:.2f} s")
    print(f"help: {helped / imported:.2f} (at most {PROMISED})")
    return 0 if helped / imported <= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
