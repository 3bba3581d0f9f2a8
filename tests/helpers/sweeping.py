"""Sweeps of small units, the bytes that they must have, and sizes: short, or long if asked for.

``ATTNSCOPE_LONG=1 make test-cluster`` runs the long form.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from attnscope.data.sequence_tasks import OneToOne
from attnscope.data.tasks import PermutationCopy
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.runs.atomic import read_rows
from attnscope.runs.lock import holder_of
from attnscope.training.progress import Silent
from attnscope.training.unit import Training, Unit

LONG = bool(os.environ.get("ATTNSCOPE_LONG"))
SETTINGS = {"batch_size": 4, "evaluate_at": (), "examples": 4, "stored": 2}


def singles(count: int, steps: int = 3) -> list[Unit]:
    """Return units that train one by one."""
    model, training = Seq2SeqSpec(embedding=4, hidden=4), Training(steps=steps, **SETTINGS)
    return [
        Unit(source=PermutationCopy(length=3), model=model, training=training, seed=seed)
        for seed in range(count)
    ]


def grouped(count: int, steps: int = 3) -> list[Unit]:
    """Return units that train in groups of five."""
    model, training = EncoderDecoderSpec(hidden=4), Training(steps=steps, **SETTINGS)
    return [
        Unit(source=OneToOne(shortest=2, longest=3), model=model, training=training, seed=seed)
        for seed in range(count)
    ]


def numbers(folder: Path) -> dict[str, Any]:
    """Return all that training decides in a unit's folder; a log's seconds differ."""
    files: dict[str, Any] = {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.safetensors")
    }
    rows = read_rows(folder / "log.jsonl")
    log = [{key: value for key, value in row.items() if key != "seconds"} for row in rows]
    return files | {"log": log}


class Watching(Silent):
    """Counts what is reported, and does something at each report."""

    def __init__(self, at_report=lambda count: None):
        self.at_report, self.reports = at_report, 0
        self.done: list[str] = []
        self.notes: list[str] = []

    def _count(self) -> None:
        self.reports += 1
        self.at_report(self.reports)

    def advance(self, steps):
        self._count()

    def finished(self, unit):
        self.done.append(unit)
        self._count()

    def note(self, sentence):
        self.notes.append(sentence)


def assert_no_group_is_split(trainer) -> None:
    """Assert that the members of each group are held by one process, at this moment.

    A killed process leaves its name in the lock files until the next one has taken each of them.
    """
    for names in trainer.groups:
        holders = [holder_of(trainer.workspace / "units" / name / "lock") for name in names]
        held = {one["pid"] for one in holders if one is not None and lives(one["pid"])}
        assert len(held) <= 1, names


def lives(pid: int) -> bool:
    """Tell whether a process of this host runs; one that was killed and not waited for does not."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return "\nState:\tZ" not in status
