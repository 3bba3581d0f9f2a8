"""Workers of a shared folder, as real processes: kills cost time and nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress

import pytest

from attnscope.runs.queue import live_workers
from attnscope.training.engine.queued import QueuedWorkers
from sweeping import LONG, Watching, assert_no_group_is_split, grouped, singles

UNITS, KILLS = (200, 40) if LONG else (60, 10)
STARTS = 50 if LONG else 12


class Killing(QueuedWorkers):
    """Waits for a sweep, and looks at its locks each time it looks for dead workers."""

    def keep_workers(self, sweep, device, progress):
        super().keep_workers(sweep, device, progress)
        assert_no_group_is_split(self)


def kill_a_worker(workspace, number):
    """Kill one of the processes that train, if there is any; return whether there was."""
    pids = sorted(worker.pid for worker in live_workers(workspace) if worker.group)
    for pid in pids[number % max(len(pids), 1) :]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return True
    return False


@pytest.mark.parametrize("jobs", [2, 4])
def test_killed_workers_leave_the_bytes_of_a_run_here(tmp_path, expect, jobs):
    units = [*grouped(UNITS // 2), *singles(UNITS // 2)]
    kills = []

    def kill(count):
        if len(kills) < KILLS and count % 3 == 0 and kill_a_worker(tmp_path, count):
            kills.append(count)

    progress = Watching(kill)
    with Killing(tmp_path, here=jobs) as trainer:
        trained = trainer.train(units, progress)
        expect(trained, units)
    assert kills
    assert sorted(progress.done) == sorted(unit.folder.name for unit in trained)


def test_groups_are_never_split_however_often_workers_start(tmp_path, expect):
    """Workers are killed as soon as they have a group, three times over each group at most."""
    killed: Counter[str] = Counter()

    class Starting(Killing):
        def keep_workers(self, sweep, device, progress):
            super().keep_workers(sweep, device, progress)
            for worker in live_workers(self.workspace, sweep.path.name):
                if killed[worker.group] < 3 and killed.total() < STARTS:
                    with suppress(ProcessLookupError):
                        os.kill(worker.pid, signal.SIGKILL)
                        killed[worker.group] += 1

    units = grouped(5 * STARTS // 3, steps=40)
    with Starting(tmp_path, here=2) as trainer:
        while killed.total() < STARTS:
            expect(trainer.train(units), units)
            units = [unit.model_copy(update={"seed": unit.seed + len(units)}) for unit in units]
    assert killed.total() == STARTS


def command(*arguments):
    return [sys.executable, "-m", "attnscope", *map(str, arguments)]


def test_worker_on_the_command_line_trains_what_a_recipe_queues(tmp_path):
    settings = ["length=5", "control_types=7", "hidden=8", "steps=4", "--seeds", "2", "--quick"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "ATTNSCOPE_HOST": "node-9"}
    work = command("work", tmp_path / "shared", "--device", "cpu", "--jobs", 2)
    with subprocess.Popen(work, env=environment) as worker:
        run = command("run", "snell/fig3", *settings, "--on", "workers", "--json")
        shared = subprocess.run(
            [*run, "--out", str(tmp_path / "shared")], check=True, capture_output=True
        )
        worker.terminate()
    assert worker.returncode == 0
    run = command("run", "snell/fig3", *settings, "--jobs", 1, "--json")
    here = subprocess.run([*run, "--out", str(tmp_path / "here")], check=True, capture_output=True)
    one, other = (json.loads(done.stdout)["result"] for done in (shared, here))
    for key in ("measurements", "pictures", "units", "groups"):
        assert one[key] == other[key]
