"""What is promised of one GPU, in one go: every ratio beside its promise, in some five minutes.

Run ``python benchmarks/gpu.py`` (or ``make benchmarks-gpu``) on a GPU that does nothing else. Each
of ``COMMANDS`` is a process of its own with a time limit; what it printed is added to ``--out`` as
it ends, one JSON object a line, so that nothing is lost if the rest is cut off. It exits with 1 if
a promise is broken. ``--only heads kendall`` takes some of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
# Most seconds of each, and its command; the long one comes last.
COMMANDS = [
    (60, ["kendall.py", "--device", "cuda"]),
    (60, ["probe_rate.py", "--device", "cuda"]),
    (60, ["copying.py", "--device", "cuda", "--precision", "tf32"]),
    (60, ["copying.py", "--device", "cuda"]),
    (90, ["copying.py", "--device", "cuda", "--full"]),
    (60, ["copying.py", "--device", "cuda", "--full", "--precision", "tf32"]),
    (90, ["heads.py", "--device", "cuda"]),
    (150, ["translator_seeds.py", "--device", "cuda"]),
    (60, ["stacked.py", "--device", "cuda"]),
    (300, ["copying.py", "--device", "cuda", "--shares"]),
]


def demand_gpu(parser: argparse.ArgumentParser, device: str = "cuda") -> None:
    """End with one sentence if a GPU is asked for and there is none."""
    if device == "cuda" and not torch.cuda.is_available():
        parser.exit(2, f"{parser.prog} measures on a GPU, and PyTorch sees none.\n")


def measured(command: list[str], limit: float) -> dict[str, Any]:
    """Run a benchmark; return what it printed, its exit code and its seconds."""
    started = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, str(HERE / command[0]), *command[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit,
        )
        lines, code = done.stdout.splitlines(), done.returncode
    except subprocess.TimeoutExpired as error:
        printed = error.stdout or b""
        text = printed.decode(errors="replace") if isinstance(printed, bytes) else printed
        lines, code = [*text.splitlines(), f"{command[0]}: not done in {limit:.0f} s"], 124
    seconds = round(time.perf_counter() - started, 1)
    return {"command": command, "exit": code, "seconds": seconds, "lines": lines}


def main() -> int:
    """Run all, save and print what each found, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build", "gpu.jsonl"))
    parser.add_argument("--minutes", type=float, default=9.0, help="most of all together")
    parser.add_argument("--only", nargs="*", default=[], help="names of benchmarks, as in heads")
    options = parser.parse_args()
    demand_gpu(parser)
    chosen = [
        (limit, command)
        for limit, command in COMMANDS
        if not options.only or command[0].removesuffix(".py") in options.only
    ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    about = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    rows, end = [], time.perf_counter() + 60 * options.minutes
    for limit, command in chosen:
        row = about | measured(command, min(limit, max(1.0, end - time.perf_counter())))
        rows.append(row)
        with options.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{' '.join(command)}: {row['seconds']:.0f} s")
        print("\n".join(f"  {line}" for line in row["lines"]), flush=True)
    print(f"\n{about['gpu']}, torch {about['torch']}; all of it is in {options.out}")
    for row in rows:
        kept = {0: "kept   ", 1: "BROKEN "}.get(row["exit"], "FAILED ")
        print(kept + (row["lines"] or [" ".join(row["command"])])[-1])
    return 0 if rows and not any(row["exit"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
