"""A unit's folder: configuration, log, checkpoints, weights, stored scores, and whether it is done.

The folder's name carries a hash of the configuration, so a changed setting is another unit. A unit
is finished when ``done.json`` lists every file with its checksum and they all match.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from attnscope.errors import DamagedFile, UsageError, WorkspaceError, suggestion
from attnscope.runs.atomic import ASIDE, read_json, read_rows, write_json, write_rows
from attnscope.runs.lock import locked
from attnscope.runs.spec import fingerprint
from attnscope.runs.tensors import Arrays, load_arrays, save_arrays

# Raised whenever a change of attnscope's code changes the numbers, or the form of the files, of an
# unchanged configuration.
NUMBERS_VERSION = 3
_KEPT_CHECKPOINTS = 2


class UnitFolder:
    """The files of one unit."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, workspace: Path, name: str, config: dict[str, Any]) -> UnitFolder:
        """Return the folder that this configuration has in a workspace, existing or not."""
        digest = fingerprint({"config": config, "numbers": NUMBERS_VERSION})
        return cls(workspace / "units" / f"{name}-{digest}")

    @property
    def name(self) -> str:
        """The unit's name with its hash."""
        return self.path.name

    def lock(self, *, wait: bool = False) -> AbstractContextManager[None]:
        """Hold this unit; see `attnscope.runs.lock.locked`."""
        return locked(self.path / "lock", wait=wait)

    def begin(self, config: dict[str, Any], environment: dict[str, Any]) -> None:
        """Write the configuration and the environment; start over if the versions have changed."""
        for left_behind in self.path.rglob(f"{ASIDE}*"):
            left_behind.unlink()
        known = self.path / "environment.json"
        if known.exists() and read_json(known) != environment:
            self.clear()
        write_json(self.path / "config.json", config)
        write_json(known, environment)

    def clear(self) -> None:
        """Forget all progress."""
        (self.path / "done.json").unlink(missing_ok=True)
        for file in [*self._checkpoints(), *self._files()]:
            file.unlink()

    @property
    def config(self) -> dict[str, Any]:
        """The configuration as written."""
        return read_json(self.path / "config.json")

    @property
    def log(self) -> list[dict[str, Any]]:
        """One row per evaluation."""
        return read_rows(self.path / "log.jsonl")

    def write_log(self, rows: list[dict[str, Any]]) -> None:
        """Replace the log by a longer one."""
        write_rows(self.path / "log.jsonl", rows)

    def save_checkpoint(self, step: int, state: Arrays) -> None:
        """Keep the whole training state at a step, and the one before it."""
        save_arrays(self.path / f"checkpoint-{step:08d}.safetensors", state, {"step": str(step)})
        for old in self._checkpoints()[_KEPT_CHECKPOINTS:]:
            old.unlink()

    def load_checkpoint(self) -> tuple[int, Arrays | None, list[str]]:
        """Return step and state of the newest sound checkpoint, and a sentence per damaged one."""
        damaged = []
        for path in self._checkpoints():
            try:
                state, facts = load_arrays(path)
            except DamagedFile as error:
                damaged.append(f"{error}")
                path.unlink()
                continue
            step = int(facts["step"])
            return (
                step,
                state,
                [f"{each} The checkpoint of step {step} is used." for each in damaged],
            )
        return 0, None, [f"{each} The unit is trained from the start." for each in damaged]

    def drop_checkpoints(self) -> None:
        """Remove what only an unfinished unit needs."""
        for checkpoint in self._checkpoints():
            checkpoint.unlink()

    def _checkpoints(self) -> list[Path]:
        return sorted(self.path.glob("checkpoint-*.safetensors"), reverse=True)

    def save_weights(self, which: str, step: int, weights: Arrays) -> None:
        """Keep the weights of the ``last`` or the ``best`` step."""
        save_arrays(self.path / f"{which}.safetensors", weights, {"step": str(step)})

    def load_weights(self, which: str = "last") -> tuple[int, Arrays]:
        """Return step and weights of the ``last`` or the ``best`` step."""
        path = self.path / f"{which}.safetensors"
        if not path.exists():
            raise WorkspaceError(f"{self.name} has no {which} weights; train it first.")
        weights, facts = load_arrays(path)
        return int(facts["step"]), weights

    def save_scores(self, name: str, arrays: Arrays) -> None:
        """Keep arrays of the evaluation examples: ``examples``, or ``step-N`` for scores."""
        save_arrays(self.path / "scores" / f"{name}.safetensors", arrays, {})

    def load_scores(self, name: str) -> Arrays:
        """Return what `save_scores` kept."""
        path = self.path / "scores" / f"{name}.safetensors"
        if not path.exists():
            kept = [file.stem for file in (self.path / "scores").glob("*.safetensors")]
            raise UsageError(f"{self.name} stores no {name!r}; {suggestion(name, kept)}")
        return load_arrays(path)[0]

    @property
    def score_steps(self) -> list[int]:
        """The steps whose scores are stored."""
        files = (self.path / "scores").glob("step-*.safetensors")
        return sorted(int(re.sub(r"\D", "", file.stem)) for file in files)

    def finish(self) -> None:
        """Mark the unit as finished: list every file with its checksum, then drop checkpoints."""
        sums = {str(file.relative_to(self.path)): _sha256(file) for file in self._files()}
        write_json(self.path / "done.json", {"files": sums})
        self.drop_checkpoints()

    def finished(self) -> tuple[bool, list[str]]:
        """Return whether the unit is finished and sound, and a sentence per damaged file."""
        done = self.path / "done.json"
        if not done.exists():
            return False, []
        try:
            sums = dict(read_json(done)["files"])
        except (WorkspaceError, LookupError, TypeError, ValueError):
            return False, [f"{done} was altered; the unit is trained again."]
        damaged = [
            f"{self.path / name} is missing or was altered; the unit is trained again."
            for name, digest in sums.items()
            if not (self.path / name).exists() or _sha256(self.path / name) != digest
        ]
        return not damaged, damaged

    def _files(self) -> list[Path]:
        """Every file that a finished unit keeps."""
        names = ("config.json", "environment.json", "log.jsonl", "*.safetensors")
        found = [file for name in (*names, "scores/*.safetensors") for file in self.path.glob(name)]
        return sorted(file for file in found if not file.name.startswith((ASIDE, "checkpoint-")))


def _sha256(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
