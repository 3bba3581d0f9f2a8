"""Python commands, each in a process of its own, forked from one that has imported torch.

A fresh interpreter imports for seconds. A forked one has the package's modules, and nothing of what
the commands before it have imported.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

Done = subprocess.CompletedProcess[str]


def forked(commands: Mapping[str, Sequence[str]], cwd: Path) -> dict[str, Done]:
    """Run commands one after another, by name; each has the arguments that ``python`` takes."""
    ran = subprocess.run(
        [sys.executable, __file__, json.dumps(list(commands.values()))],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"},
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    ends = [json.loads(line) for line in ran.stdout.splitlines()]
    pairs = zip(commands.items(), ends, strict=True)
    return {name: Done(words, *end) for (name, words), end in pairs}


def _fork_each(commands: Sequence[Sequence[str]]) -> None:
    for words in commands:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                return _become(words)
            _, status = os.waitpid(child, 0)
            printed = [_text(file.fileno()) for file in (out, err)]
        print(json.dumps([os.waitstatus_to_exitcode(status), *printed]), flush=True)


def _text(file: int) -> str:
    return os.pread(file, os.fstat(file).st_size, 0).decode()


def _become(words: Sequence[str]) -> None:
    """Do what ``python`` does with these arguments."""
    sys.path[0] = os.getcwd()
    if words[0] == "-m":
        sys.argv = [*words[1:]]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.modules["__main__"] = ModuleType("__main__")
        exec(words[1], vars(sys.modules["__main__"]))
    else:
        sys.argv = [*words]
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    # An optimiser imports torch._dynamo, a figure altair; each takes a second or more.
    import altair  # noqa: F401
    import torch._dynamo  # noqa: F401

    import attnscope.cli  # noqa: F401
    from attnscope.training.registry import import_kinds

    import_kinds()
    _fork_each(json.loads(sys.argv[1]))
