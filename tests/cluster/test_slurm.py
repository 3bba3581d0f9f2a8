"""An array of workers by submitit's local executor: killed and timed-out jobs are replaced."""

from __future__ import annotations

import operator
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from attnscope.errors import AttnscopeError, UsageError
from attnscope.runs.queue import live_workers
from attnscope.training.engine import slurm
from attnscope.training.engine.slurm import SlurmWorkers
from sweeping import Watching, grouped, singles

submitit = pytest.importorskip("submitit")


def task_of(job):
    """Return the process that a job's controller started."""
    [task] = Path(f"/proc/{job}/task/{job}/children").read_text().split()
    return task


class Local(SlurmWorkers):
    """Runs jobs as processes of this host, and does something each time it looks for them."""

    def __init__(self, *args, **options):
        super().__init__(*args, cluster="local", **options)
        self.at_look, self.submitted = (lambda trainer: None), []

    def keep_workers(self, sweep, device, progress):
        before = list(self._jobs)
        super().keep_workers(sweep, device, progress)
        self.submitted += [job for job in self._jobs if job not in before]
        self.at_look(self)


def test_killed_jobs_are_replaced_and_change_no_byte(tmp_path, expect):
    units = [*grouped(10, steps=30), *singles(6, steps=30)]
    killed = []

    def kill(trainer):
        # Each job once, as soon as its process trains.
        job = trainer._jobs[0].job_id if trainer._jobs else ""
        for worker in live_workers(tmp_path):
            # One of the job before may not have noticed yet that it was killed.
            if worker.group and worker.job == job and len(killed) < 2 and job not in killed:
                for pid in (task_of(job), job, worker.pid):
                    with suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                killed.append(job)

    progress = Watching()
    with Local(tmp_path, workers=1, parameters={"timeout_min": 5}) as trainer:
        trainer.at_look = kill
        expect(trainer.train(units, progress), units)
        assert len(killed) == 2
        assert len(trainer.submitted) == 3
    assert sum("another is submitted" in note for note in progress.notes) == 2


# submitit takes a signal early in a job for a preemption, and late in it for the end of its time,
# which for jobs of less than ten minutes is always.
@pytest.mark.parametrize("minutes", [60, 5], ids=["preempted", "timed out"])
def test_preempted_and_timed_out_jobs_are_requeued_by_submitit(tmp_path, expect, minutes):
    units = singles(4, steps=30)
    sent = []

    def preempt(trainer):
        # submitit's signal, to the process that submitit started for the job.
        for worker in live_workers(tmp_path):
            if worker.group and not sent:
                sent.append(worker.pid)
                trainer.preempt()

    class Preempted(Local):
        def preempt(self):
            [job] = self._jobs
            os.kill(int(task_of(job.job_id)), signal.SIGUSR2)

    with Preempted(tmp_path, workers=1, parameters={"timeout_min": minutes}) as trainer:
        trainer.at_look = preempt
        expect(trainer.train(units), units)
        assert sent
        assert len(trainer.submitted) == 1  # submitit has started the same job again


def test_jobs_that_do_nothing_end_the_wait_with_their_last_words(tmp_path, monkeypatch):
    monkeypatch.setattr(slurm, "_MOST_FRUITLESS", 1)

    class Broken(Local):
        def _submit(self, count, device):
            executor = self._executor = self._executor or self._make_executor(device)
            return [executor.submit(operator.truediv, 1, 0) for _ in range(count)]

    with (
        Broken(tmp_path, workers=1, parameters={"timeout_min": 5}) as trainer,
        pytest.raises(AttnscopeError, match=r"2 .* trained nothing; .*ZeroDivisionError"),
    ):
        trainer.train(singles(1))


def test_no_more_jobs_than_groups_are_submitted(tmp_path):
    asked = []

    class Counting(Local):
        def _submit(self, count, device):
            asked.append(count)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Counting(tmp_path, workers=16) as trainer:
        trainer.train([*grouped(10), *singles(2)])
    assert asked == [4]  # two groups of five, two units by themselves


def test_host_without_slurm_and_unknown_parameters_are_one_sentence(tmp_path):
    with pytest.raises(UsageError, match="cannot be submitted from here"):
        SlurmWorkers(tmp_path, workers=1).train(singles(1))
    with pytest.raises(UsageError, match="nonsense"):
        Local(tmp_path, workers=1, parameters={"nonsense": 1}).train(singles(1))


def test_absence_of_submitit_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(AttnscopeError, match=r"pip install 'attnscope\[slurm\]'"):
        SlurmWorkers(tmp_path)
