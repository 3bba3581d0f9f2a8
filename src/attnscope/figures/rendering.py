"""vl-convert in a child process, so that a crash of its engine costs a figure and not the run.

The child is started with the first figure and serves all of them. It ends when its standard input
does: with this process, however that ends.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO, Any

# This file is also the child's program, which runs it by its path and imports nothing else of it.


class Renderer:
    """A child process that answers calls of vl-convert's functions, one at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._turn = threading.Lock()

    def call(self, function: str, *values: Any, **named: Any) -> bytes:
        """Return the result of a function of vl-convert.

        Raises
        ------
        NotDrawn
            If the function failed, or the child ended: the next call starts another one.
        """
        with self._turn:
            try:
                answer, content = self._ask(json.dumps([function, values, named]))
            except OSError as error:
                raise _not_drawn(self._end_of_child() or f"{error.strerror}") from error
            if answer is None:
                raise _not_drawn(self._end_of_child() or "its process ended")
            if "error" in answer:
                raise _not_drawn(answer["error"])
            return content

    def _ask(self, request: str) -> tuple[dict[str, Any] | None, bytes]:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request.encode() + b"\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line.endswith(b"\n"):
            return None, b""
        answer = json.loads(line)
        content = process.stdout.read(answer.get("size", 0))
        return (answer if len(content) == answer.get("size", 0) else None), content

    def _running(self) -> subprocess.Popen[bytes]:
        # A forked process has its parent's pipes, which are not its own to use.
        if self._process is None or self._owner != os.getpid():
            self._owner = os.getpid()
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # An engine that aborts prints its own stack.
            )
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(sys.path).encode() + b"\n")
        return self._process

    def _end_of_child(self) -> str:
        """Wait for the end of a child that does not answer, and return how it ended."""
        process, self._process = self._process, None
        if process is None:
            return ""
        self._close(process)
        if process.returncode < 0:
            return f"vl-convert ended with {signal.Signals(-process.returncode).name}"
        return f"vl-convert ended with exit code {process.returncode}"

    def close(self) -> None:
        """End the child."""
        if self._process is not None and self._owner == os.getpid():
            self._close(self._process)
        self._process = None

    @staticmethod
    def _close(process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        process.wait()


def _not_drawn(reason: str) -> Exception:
    from attnscope.errors import NotDrawn

    short = " ".join(reason.split())[:200].removesuffix(".")
    return NotDrawn(f"No picture could be drawn ({short}); numbers do not depend on it.")


_shared = Renderer()
atexit.register(_shared.close)


def render(function: str, *values: Any, **named: Any) -> bytes:
    """Call a function of vl-convert in the child that all figures of this process share."""
    return _shared.call(function, *values, **named)


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until there are no more: the child's program."""
    sys.path[:] = json.loads(requests.readline())
    import vl_convert

    for line in requests:
        function, values, named = json.loads(line)
        try:
            found = getattr(vl_convert, function)(*values, **named)
        except Exception as error:
            answers.write(json.dumps({"error": str(error)}).encode() + b"\n")
        else:
            content = found.encode() if isinstance(found, str) else bytes(found)
            answers.write(json.dumps({"size": len(content)}).encode() + b"\n" + content)
        answers.flush()


if __name__ == "__main__":
    # Ctrl-C reaches every process of a terminal: the parent decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Whatever a library prints is not an answer.
    with os.fdopen(os.dup(1), "wb") as stream:
        os.dup2(2, 1)
        serve(sys.stdin.buffer, stream)
