"""A unit's folder: configuration, log, checkpoints, weights, stored scores, and whether it is done.

The folder's name carries a hash of the configuration, so a changed setting is another unit. A unit
is finished when ``done.json`` lists every file with its checksum and they all match; what is read
of a finished unit is compared with that list. No file is reached through a symbolic link.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnscope.errors import (
    DamagedFile,
    UnreadableFile,
    UsageError,
    WorkspaceError,
    suggestion,
)
from attnscope.runs.atomic import (
    ASIDE,
    read_json,
    read_rows,
    write_bytes,
    write_json,
    write_rows,
)
from attnscope.runs.environment import differences
from attnscope.runs.files import read_file, refuse_links, unpacked_chunks
from attnscope.runs.lock import Held, locked
from attnscope.runs.spec import fingerprint
from attnscope.runs.tensors import Arrays, load_arrays, load_checked, save_arrays

# Raised whenever a change of attnscope's code changes the numbers, or the form of the files, of an
# unchanged configuration.
NUMBERS_VERSION = 3
_KEPT_CHECKPOINTS = 2
_WORDS = ("words.json", "pieces.model")  # of units that read text; older ones have none
_ALWAYS_KEPT = {
    "config.json",
    "environment.json",
    "log.jsonl",
    "last.safetensors",
    "best.safetensors",
}


class UnitFolder:
    """The files of one unit.

    Parameters
    ----------
    path
        The folder.
    root
        The folder that it was reached from, a workspace for example: no link below it is followed.
    """

    def __init__(self, path: Path, root: Path | None = None) -> None:
        self.path = path
        self._root = path if root is None else root
        self._held: Held | None = None

    @classmethod
    def of(cls, workspace: Path, name: str, config: dict[str, Any]) -> UnitFolder:
        """Return the folder that this configuration has in a workspace, existing or not."""
        digest = fingerprint({"config": config, "numbers": NUMBERS_VERSION})
        return cls(workspace / "units" / f"{name}-{digest}", workspace)

    def _own(self, name: str) -> Path:
        """Return the path of one of the unit's files, which no link leads to."""
        path = self.path / name
        refuse_links(path, self._root)
        return path

    def _target(self, name: str) -> Path:
        """Return the path of a file to write; raise if another process took the unit meanwhile."""
        if self._held is not None:
            self._held.demand()
        return self._own(name)

    @property
    def name(self) -> str:
        """The unit's name with its hash."""
        return self.path.name

    @contextmanager
    def lock(self, *, wait: bool = False) -> Iterator[None]:
        """Hold this unit; see `attnscope.runs.lock.locked`."""
        with locked(self._own("lock"), wait=wait) as self._held:
            try:
                yield
            finally:
                self._held = None

    def begin(
        self,
        config: dict[str, Any],
        environment: dict[str, Any],
        note: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """Write the configuration and the environment; start over if the versions have changed.

        ``note`` is called with a sentence that says so.
        """
        for folder in (self.path, self._own("scores")):
            for left_behind in folder.glob(f"{ASIDE}*"):
                left_behind.unlink()
        target = self._target("environment.json")
        if target.exists():
            known = self.environment
            changed = ["a damaged environment.json"] if known is None else []
            changed = changed or differences(known or {}, environment)
            if changed:
                note(
                    f"{self.name} was begun under other versions ({'; '.join(changed)}) and is "
                    "trained from the start."
                )
                self.clear()
        write_json(self._target("config.json"), config)
        write_json(target, environment)

    @property
    def environment(self) -> dict[str, Any] | None:
        """The environment as written; None where it is missing or damaged."""
        try:
            found = read_json(self._own("environment.json"))
        except WorkspaceError:  # Damaged: whatever was made under it is made again.
            return None
        return found if isinstance(found, dict) else None

    def clear(self) -> None:
        """Forget all progress."""
        self._target("done.json").unlink(missing_ok=True)
        for file in [*self._checkpoints(), *self._files()]:
            file.unlink()

    @property
    def config(self) -> dict[str, Any]:
        """The configuration as written."""
        path = self._own("config.json")
        config = read_json(path, plain=True)
        self._compare("config.json", _sha256(path))
        if not isinstance(config, dict):
            raise WorkspaceError(f"{path} is not the configuration of a unit.")
        return config

    @property
    def log(self) -> list[dict[str, Any]]:
        """One row per evaluation."""
        path = self._own("log.jsonl")
        rows = read_rows(path)
        if rows:
            self._compare("log.jsonl", _sha256(path))
        if not all(isinstance(row.get("step"), int) for row in rows):
            raise DamagedFile(f"{path} is altered (a row has no step).")
        return rows

    def write_log(self, rows: list[dict[str, Any]]) -> None:
        """Replace the log by a longer one."""
        write_rows(self._target("log.jsonl"), rows)

    def save_checkpoint(self, step: int, state: Arrays) -> None:
        """Keep the whole training state at a step, and the one before it."""
        path = self._target(_checkpoint_name(step))
        save_arrays(path, state, {"step": str(step)})
        for old in self._checkpoints()[_KEPT_CHECKPOINTS:]:
            self._target(old.name).unlink()

    def load_checkpoint(self) -> tuple[int, Arrays | None, list[str]]:
        """Return step and state of the newest sound checkpoint, and a sentence per damaged one."""
        damaged: list[str] = []
        for step, state in self.sound_checkpoints(damaged.append):
            notes = [f"{each} The checkpoint of step {step} is used." for each in damaged]
            return step, state, notes
        return 0, None, [f"{each} The unit is trained from the start." for each in damaged]

    def sound_checkpoints(self, note: Callable[[str], None]) -> Iterator[tuple[int, Arrays]]:
        """Yield step and state of the sound checkpoints, newest first; remove damaged ones."""
        for path in self._checkpoints():
            try:
                state, facts = load_arrays(path)
                step = _step(path, facts)
                if path.name != _checkpoint_name(step):
                    raise DamagedFile(f"{path} is the checkpoint of step {step}.")
            except DamagedFile as error:
                note(f"{error}")
                self._target(path.name).unlink()
            else:
                yield step, state

    def drop_checkpoints_after(self, step: int) -> None:
        """Remove the checkpoints of later steps."""
        for path in self._checkpoints():
            if path.name > _checkpoint_name(step):
                self._target(path.name).unlink()

    def drop_checkpoints(self) -> None:
        """Remove what only an unfinished unit needs."""
        for checkpoint in self._checkpoints():
            self._target(checkpoint.name).unlink()

    def _checkpoints(self) -> list[Path]:
        found = sorted(self.path.glob("checkpoint-*.safetensors"), reverse=True)
        return [self._own(file.name) for file in found]

    def save_weights(self, which: str, step: int, weights: Arrays) -> None:
        """Keep the weights of the ``last`` or the ``best`` step."""
        save_arrays(self._target(f"{which}.safetensors"), weights, {"step": str(step)})

    def load_weights(self, which: str = "last") -> tuple[int, Arrays]:
        """Return step and weights of the ``last`` or the ``best`` step."""
        path = self._own(f"{which}.safetensors")
        if not path.exists():
            raise WorkspaceError(f"{self.name} has no {which} weights; train it first.")
        weights, facts, digest = load_checked(path)
        self._compare(path.name, digest)
        return _step(path, facts), weights

    def save_scores(self, name: str, arrays: Arrays) -> None:
        """Keep arrays of the evaluation examples: ``examples``, or ``step-N`` for scores."""
        save_arrays(self._target(f"scores/{name}.safetensors"), arrays, {})

    def load_scores(self, name: str) -> Arrays:
        """Return what `save_scores` kept."""
        path = self._own(f"scores/{name}.safetensors")
        if not path.exists():
            kept = [file.stem for file in path.parent.glob("*.safetensors")]
            raise UsageError(f"{self.name} stores no {name!r}; {suggestion(name, kept)}")
        arrays, _, digest = load_checked(path)
        self._compare(f"scores/{path.name}", digest)
        return arrays

    def save_words(self, words: dict[str, Any], pieces: bytes) -> None:
        """Keep the unit's vocabulary, and the model that cuts text into pieces, if it has one."""
        write_json(self._target("words.json"), words)
        if pieces:
            write_bytes(self._target("pieces.model"), pieces)

    def load_words(self) -> tuple[dict[str, Any], bytes] | None:
        """Return what `save_words` kept; None for a unit that was stored without words."""
        path, model = self._own("words.json"), self._own("pieces.model")
        if not path.exists():
            return None
        words = read_json(path, plain=True)
        self._compare(path.name, _sha256(path))
        if not isinstance(words, dict):
            raise DamagedFile(f"{path} is not the vocabulary of a unit.")
        if not model.exists():
            return words, b""
        self._compare(model.name, _sha256(model))
        return words, read_file(model)

    @property
    def score_steps(self) -> list[int]:
        """The steps whose scores are stored."""
        found = [_STEP.fullmatch(file.name) for file in self._own("scores").glob("step-*")]
        return sorted(int(match[1]) for match in found if match)

    def finish(self) -> None:
        """Mark the unit as finished: list every file with its checksum, then drop checkpoints."""
        sums = {str(file.relative_to(self.path)): _sha256(file) for file in self._files()}
        write_json(self._target("done.json"), {"files": sums})
        self.drop_checkpoints()

    def finished(self) -> tuple[bool, list[str]]:
        """Return whether the unit is finished and sound, and a sentence per damaged file."""
        done = self._own("done.json")
        if not done.exists():
            return False, []
        try:
            listed = self._listed()
        except WorkspaceError:
            listed = {}
        found = {str(file.relative_to(self.path)): file for file in self._files()}
        if not listed.keys() >= _ALWAYS_KEPT | found.keys():
            return False, [f"{done} was altered; the unit is trained again."]
        damaged = [
            f"{self.path / name} is missing or was altered; the unit is trained again."
            for name, digest in listed.items()
            if name not in found or _sha256(found[name]) != digest
        ]
        return not damaged, damaged

    def _listed(self) -> dict[str, str]:
        """Return the checksums of a finished unit's files; a unit in training has none."""
        path = self._own("done.json")
        if not path.exists():
            return {}
        done = read_json(path)
        files = done.get("files") if isinstance(done, dict) else None
        if not isinstance(files, dict) or not all(isinstance(each, str) for each in files.values()):
            raise WorkspaceError(f"{path} was altered; run the unit's recipe again.")
        return files

    def _compare(self, name: str, digest: str) -> None:
        """Raise if a finished unit had another file of this name when it was finished."""
        if not self._own("done.json").exists():
            return
        if self._listed().get(name) != digest:
            raise DamagedFile(
                f"{self.path / name} is not the file that the unit was finished with (done.json); "
                "run the unit's recipe again."
            )

    def _files(self) -> list[Path]:
        """Every file that a finished unit keeps."""
        names = ("config.json", "environment.json", "log.jsonl", "*.safetensors", *_WORDS)
        self._own("scores")
        found = [file for name in (*names, "scores/*.safetensors") for file in self.path.glob(name)]
        kept = [file for file in found if not file.name.startswith((ASIDE, "checkpoint-"))]
        return sorted(self._own(str(file.relative_to(self.path))) for file in kept)


_STEP = re.compile(r"step-(\d{8,12})\.safetensors", re.ASCII)


def _checkpoint_name(step: int) -> str:
    return f"checkpoint-{step:08d}.safetensors"


def _step(path: Path, facts: dict[str, str]) -> int:
    step = facts.get("step", "")
    if not (step.isascii() and step.isdecimal() and len(step) <= 12):
        raise DamagedFile(f"{path} does not say of which step it is.")
    return int(step)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        for chunk in unpacked_chunks(path):
            digest.update(chunk)
        return digest.hexdigest()
    except UnreadableFile as error:
        raise DamagedFile(f"{error}") from error
