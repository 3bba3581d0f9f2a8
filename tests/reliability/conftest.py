"""Starts the processes that are killed, and reads what they leave behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from attnscope.data.tasks import PermutationCopy
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.runs.atomic import ASIDE
from attnscope.runs.tensors import load_arrays
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.training.unit import Training, Unit

sys.path.insert(0, str(Path(__file__).parent))

WARM = Path(__file__).with_name("warm.py")

# A recipe that runs in a moment.
_FIG3 = {
    "seeds": 1,
    "steps": 3,
    "batch_size": 2,
    "length": 3,
    "control_types": 5,
    "hidden": 4,
    "examples": 4,
    "proxy_dimension": 4,
    "proxy_seeds": 1,
}


def _tiny(steps: int, every: int, seed: int = 0) -> dict[str, Any]:
    training = Training(
        steps=steps,
        batch_size=4,
        evaluate_at=tuple(range(0, steps, every)),
        examples=6,
        stored=2,
        scores=(Attention(), LexicalProbe()),
    )
    model = Seq2SeqSpec(embedding=8, hidden=8)
    unit = Unit(source=PermutationCopy(length=5), model=model, training=training, seed=seed)
    return unit.config()


@pytest.fixture(scope="session")
def tiny():
    """Return the configuration of a unit that trains in a moment."""
    return _tiny


@pytest.fixture(scope="session")
def fig3():
    """Return settings of ``snell/fig3`` that run in a moment."""
    return _FIG3


@dataclass(frozen=True)
class Ended:
    """How a run ended, and the moments it came to."""

    status: int
    moments: list[str]


class Server:
    """The warm interpreter of ``warm.py``."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WARM), json.dumps(_tiny(steps=2, every=1))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )

    def run(self, workspace: Path, kill_at: int | None = None, **work: Any) -> Ended:
        """Run a unit or a recipe in a process of its own, killed at a moment if one is given."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"workspace": str(workspace), "kill_at": kill_at, **work}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return Ended(**json.loads(self.process.stdout.readline()))


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    server = Server()
    with server.process:
        yield server
        assert server.process.stdin is not None
        server.process.stdin.close()


def _read(path: Path) -> Any:
    """Read a file to its end as what its name says it is, or fail."""
    match path.suffix:
        case ".json":
            return json.loads(path.read_text())
        case ".jsonl":
            text = path.read_text()
            assert text.endswith("\n"), path
            return [json.loads(line) for line in text.splitlines()]
        case ".safetensors":
            load_arrays(path)
        case ".svg":
            assert path.read_bytes().rstrip().endswith(b"</svg>"), path
        case ".png":
            assert path.read_bytes().endswith(b"IEND\xaeB`\x82"), path
        case _:
            raise AssertionError(f"{path} is of no known kind")
    return path.read_bytes()


def _contents(workspace: Path) -> dict[str, Any]:
    """Read every file to its end; what differs from run to run (times) is left out."""
    files = {}
    for path in sorted(workspace.rglob("*")):
        if path.is_dir() or path.name == "lock" or path.name.startswith(ASIDE):
            continue
        content = _read(path)
        if path.name == "log.jsonl":
            content = [{k: v for k, v in row.items() if k != "seconds"} for row in content]
        elif path.name == "done.json":
            content["files"].pop("log.jsonl")
        elif path.name == "result.json":
            content.pop("seconds")
        files[str(path.relative_to(workspace))] = content
    return files


@pytest.fixture(scope="session")
def contents():
    """Read all files of a workspace, each of which must be complete."""
    return _contents


@pytest.fixture
def start():
    """Start commands in sessions of their own, as a shell does; end with the test what is left."""
    processes = []

    def run(*command: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # A shell's background job ignores Ctrl-C, and so would all that it starts.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        with process, suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def attacked(tmp_path):
    """Run ``attack.py`` in a process of its own, without the tests' checks of types.

    They take most of the time, and are not there for users either.
    """
    from table import Table

    def run(*counts: str) -> Table:
        path = tmp_path / "table.json"
        command = [sys.executable, str(Path(__file__).with_name("attack.py")), *counts]
        ended = subprocess.run([*command, "--table", str(path)], capture_output=True, text=True)
        made = path.with_suffix(".0.json")  # of its one process
        assert made.exists(), ended.stderr
        return Table.read(made)

    return run
