"""The command line as a test runs it: in this process, or in one of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

Done = subprocess.CompletedProcess[str]


def attnscope(*arguments: str, cwd: Path | None = None, encoding: str = "utf8") -> Done:
    """Run a command with `attnscope.cli.main`, in this process: torch is imported already."""
    # Imported late: nothing of the package is imported before its types are enforced.
    from attnscope.cli import main

    streams = {name: _Stream(encoding) for name in ("stdout", "stderr")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "200")
        patch.setattr(sys, "argv", ["attnscope", *arguments])
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        if cwd is not None:
            patch.chdir(cwd)
        code: Any = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        except Exception:
            code = 1
            traceback.print_exc(file=streams["stderr"])
    return Done(arguments, code, *(stream.text() for stream in streams.values()))


class _Stream(io.TextIOWrapper):
    """Standard output in an encoding, kept in memory."""

    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding=encoding, write_through=True)

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)  # type: ignore[attr-defined]


def python(*arguments: str, cwd: Path | None = None, **environment: str) -> Done:
    """Run Python in a process of its own, with one thread."""
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"} | environment,
        timeout=300,
        check=False,
    )


# Runs commands given as JSON, one after another, and exits with 9 where one has imported torch.
_WITHOUT_TORCH = """
import json, sys, attnscope.cli as cli
for words in json.loads(sys.argv[1]):
    sys.argv = ["attnscope", *words]
    try:
        cli.main()
    except SystemExit as end:
        assert not end.code, words
    if "torch" in sys.modules:
        sys.exit(9)
"""


def answers_without_torch(*commands: list[str]) -> bool:
    """Return whether commands succeed in a process that has not imported torch."""
    return python("-c", _WITHOUT_TORCH, json.dumps(commands)).returncode == 0
