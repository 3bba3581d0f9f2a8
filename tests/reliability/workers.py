"""Trains two units in two processes, while a third one is idle, until a signal ends it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from attnscope.training.kinds import read_unit
from attnscope.training.progress import Silent
from attnscope.training.spread import Workers


class Held(Silent):
    """Says that training is under way, then holds this process until a signal comes."""

    def advance(self, steps: int) -> None:
        print("training", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    try:
        with Workers(Path(sys.argv[1]), 3) as three:
            three.train([read_unit(unit) for unit in json.loads(sys.argv[2])], Held())
    except KeyboardInterrupt:
        print("stopped")
        sys.exit(130)
