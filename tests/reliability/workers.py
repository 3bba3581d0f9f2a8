"""Trains units in at most three processes until a signal ends it.

With ``interrupt`` as its third argument, Ctrl-C comes while the server that its workers are forked
from is importing what they need. With ``finish``, nothing holds it: it trains to the end and prints
its notes.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from attnscope.training.engine import workers as spread
from attnscope.training.progress import Silent
from attnscope.training.registry import read_unit


class Held(Silent):
    """Says that training is under way, then holds this process until a signal comes."""

    def advance(self, steps: int) -> None:
        print("training", flush=True)
        sys.stdin.read()


class Noted(Silent):
    """Prints notes."""

    def note(self, sentence: str) -> None:
        print(sentence, flush=True)


if __name__ == "__main__":
    if sys.argv[3:] == ["interrupt"]:
        paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        spread.PRELOADED.append("ctrl_c")
    try:
        with spread.Workers(Path(sys.argv[1]), 3) as three:
            progress = Noted() if sys.argv[3:] == ["finish"] else Held()
            three.train([read_unit(unit) for unit in json.loads(sys.argv[2])], progress)
    except KeyboardInterrupt:
        print("stopped")
        sys.exit(130)
