"""Training by Slurm: an array of workers, not a job per unit, started with `submitit`.

A job is a worker of the workspace's queue (`attnscope.training.engine.queue_worker`). One that is
preempted or runs out of time is requeued by submitit; one that dies otherwise is replaced. What
submitit stores (its own pickles and the logs of jobs) is in ``DIR/slurm``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from attnscope.errors import AttnscopeError, UsageError
from attnscope.runs.queue import Sweep
from attnscope.training.engine.crew import Crew
from attnscope.training.engine.queued import QueuedWorkers, require
from attnscope.training.progress import Progress

_TIMEOUTS = 1000  # A worker may be requeued so often; submitit's default is three.
_MOST_FRUITLESS = 5  # jobs in a row, per worker, that may end while nothing leaves the queue
_IDLE_SECONDS = 600.0
_MINUTES = 240


class WorkerJob:
    """A worker as submitit runs it: called once per job, and again when the job is requeued."""

    def __init__(
        self,
        workspace: Path,
        device: Literal["cpu", "cuda"],
        jobs: int,
        imports: Sequence[str],
        import_one: Callable[[str], Any],
    ) -> None:
        self.settings = (workspace.resolve(), device, jobs)
        self.imports, self.import_one = list(imports), import_one

    def __call__(self, number: int) -> int:
        """Work until nothing came for ten minutes."""
        crew = Crew(
            *self.settings,
            until_idle=_IDLE_SECONDS,
            imports=self.imports,
            import_one=self.import_one,
            note=print,
        )
        try:
            while crew.check(timeout=None):
                pass
        finally:
            crew.close()
        return number

    def checkpoint(self, number: int) -> Any:
        """Return what a requeued job does: the same; the queue knows what is left."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, number)


class SlurmWorkers(QueuedWorkers):
    """Trains by Slurm jobs that share the workspace.

    Parameters
    ----------
    workers
        Number of jobs, at most.
    parameters
        Of the jobs, as `submitit` names them: ``slurm_partition``, ``timeout_min``,
        ``cpus_per_task`` (that many processes train on a CPU), ``gpus_per_node``, …
    cluster
        ``local`` runs the jobs as processes of this host.
    """

    def __init__(
        self,
        workspace: Path,
        jobs: int = 1,
        *,
        workers: int = 1,
        parameters: Mapping[str, Any] | None = None,
        cluster: Literal["slurm", "local"] = "slurm",
        mixed: bool = False,
        imports: Sequence[str] = (),
        import_one: Callable[[str], Any] = import_module,
    ) -> None:
        super().__init__(workspace, jobs, mixed=mixed, imports=imports, import_one=import_one)
        self.workers, self.cluster = workers, cluster
        self._parameters = dict(parameters or {})
        self._executor: Any = None
        self._submitit = require("slurm", "submitit")
        self._jobs: list[Any] = []
        self._fruitless, self._waiting = 0, -1

    def close(self) -> None:
        """Cancel the jobs."""
        for job in self._jobs:
            job.cancel(check=False)
        self._jobs = []

    def _advice(self, device: str) -> str:
        return f"Jobs write their logs into {self.workspace / 'slurm'}."

    def keep_workers(self, sweep: Sweep, device: str, progress: Progress) -> None:
        """Submit an array of jobs, and a new job in the place of each that ended too soon."""
        ended = [job for job in self._jobs if job.done()]
        self._jobs = [job for job in self._jobs if job not in ended]
        waiting = len(sweep.waiting())
        missing = min(self.workers, waiting) - len(self._jobs)
        if missing <= 0:
            return
        for job in ended:
            progress.note(f"The Slurm job {job.job_id} ended ({job.state}); another is submitted.")
        self._demand_progress(ended, waiting)
        self._jobs += self._submit(missing, device)

    def _demand_progress(self, ended: Sequence[Any], waiting: int) -> None:
        """Raise if jobs end one after the other and nothing leaves the queue."""
        if waiting != self._waiting:
            self._fruitless, self._waiting = 0, waiting
        self._fruitless += len(ended)
        if self._fruitless > _MOST_FRUITLESS * self.workers:
            log = (ended[-1].stderr() or "").strip().splitlines()
            raise AttnscopeError(
                f"{self._fruitless} Slurm jobs ended one after the other and trained nothing; the "
                f"last one wrote: {log[-1] if log else '(nothing)'} (logs: "
                f"{self.workspace / 'slurm'})"
            )

    def _submit(self, count: int, device: str) -> list[Any]:
        processes = 1 if device == "cuda" else int(self._parameters.get("cpus_per_task", 1))
        worker = WorkerJob(
            self.workspace,
            device,  # type: ignore[arg-type]
            processes,
            self.imports,
            self.import_one,
        )
        executor = self._executor or self._make_executor(device)
        self._executor = executor
        return list(executor.map_array(worker, range(count)))

    def _make_executor(self, device: str) -> Any:
        gpu = {"gpus_per_node": 1} if device == "cuda" else {}
        # A job of another command may still write there.
        logs = self.workspace / "slurm"
        array = {} if self.cluster == "local" else {"slurm_array_parallelism": self.workers}
        given = {"name": "attnscope", "timeout_min": _MINUTES} | gpu | array | self._parameters
        timeouts = {f"{self.cluster}_max_num_timeout": _TIMEOUTS}
        try:
            executor = self._submitit.AutoExecutor(logs, cluster=self.cluster, **timeouts)
            executor.update_parameters(**given)
        except Exception as error:
            reason = " ".join(str(error).split())
            raise UsageError(f"Slurm jobs cannot be submitted from here: {reason}") from error
        return executor
