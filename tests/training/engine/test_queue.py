"""A queue of groups and its workers: the bytes of a run here, whole groups, and no lost sweep."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from contextlib import ExitStack

import pytest

from attnscope.errors import AttnscopeError, UsageError
from attnscope.runs import queue
from attnscope.runs.host import host, this_process
from attnscope.runs.lock import locked
from attnscope.runs.queue import Sweep, WorkerFile, sweeps
from attnscope.runs.status import status
from attnscope.training.engine import crew, queue_worker, queued
from attnscope.training.engine.grouping import groups
from attnscope.training.engine.queue_worker import QueueWorker
from attnscope.training.engine.queued import QueuedWorkers
from attnscope.training.engine.workers import train_units
from attnscope.training.objective import Likelihood
from attnscope.training.optimizer import Adam
from counted import Counted


class WithWorker(QueuedWorkers):
    """Waits for the queue, and lets a worker take one group each time it looks."""

    worker: QueueWorker

    def keep_workers(self, sweep, device, progress):
        self.sweep = sweep
        self.worker.take()


@pytest.fixture
def trainer(tmp_path, monkeypatch):
    """Give what trains by a queue in one process, and does not sleep."""
    monkeypatch.setattr(queued, "_POLL_SECONDS", 0.0)
    trainer = WithWorker(tmp_path / "shared")
    trainer.worker = QueueWorker(tmp_path / "shared", "cpu")
    return trainer


@pytest.fixture
def units(tiny, seeds):
    """Give a group of three and two units by themselves."""
    return [*seeds(), tiny(seed=0), tiny(seed=1)]


@pytest.fixture
def singles(tiny):
    """Give three units by themselves."""
    return [tiny(seed=seed) for seed in range(3)]


def test_queue_gives_the_bytes_of_a_run_here_and_shows_all_steps(trainer, units, tmp_path, numbers):
    progress = Counted()
    shared = trainer.train(units, progress)
    here = train_units(units, tmp_path / "here")
    for one, other in zip(shared, here, strict=True):
        assert numbers(one.folder.path) == numbers(other.folder.path)
    assert progress.steps == sum(unit.training.steps for unit in units)
    assert progress.evaluations == sum(len(unit.training.schedule) for unit in units)
    assert sorted(progress.done) == sorted(unit.folder.name for unit in shared)
    assert trainer.groups == [
        tuple(unit.folder(tmp_path).name for unit in group) for group in groups(units)
    ]
    assert [len(names) for names in trainer.groups] == [3, 1, 1]
    assert sweeps(trainer.workspace) == []


def test_finished_units_are_not_queued_again(trainer, singles):
    first = trainer.train(singles)
    times = [(unit.folder.path / "done.json").stat().st_mtime_ns for unit in first]
    progress = Counted()
    trainer.worker = None  # Nobody would train.
    again = trainer.train(singles, progress)
    assert [(unit.folder.path / "done.json").stat().st_mtime_ns for unit in again] == times
    assert len(progress.done) == 3
    assert progress.steps == sum(unit.training.steps for unit in singles)


def test_queue_holds_json_and_no_pickles(trainer, singles):
    def look(sweep, *_):
        files = [path for path in sweep.path.rglob("*") if path.is_file()]
        for path in files:
            json.loads(path.read_text())
        raise KeyboardInterrupt(str(len(files)))

    trainer.keep_workers = look
    with pytest.raises(KeyboardInterrupt, match="4"):  # three groups, and what the sweep is
        trainer.train(singles)
    # Whoever starts the command again, or another worker, finds the same sweep.
    [sweep] = sweeps(trainer.workspace)
    assert len(sweep.waiting()) == 3
    del trainer.keep_workers
    trainer.train(singles)
    assert trainer.sweep.path == sweep.path


def test_group_is_trained_by_one_worker_while_others_take_what_is_left(trainer, singles, tmp_path):
    taken = []

    def take_all(*_):
        with ExitStack() as held:
            for sweep in sweeps(trainer.workspace):
                for key in sweep.waiting():
                    held.enter_context(locked(sweep.lock_of(key), wait=False))
            taken.append(trainer.worker.take())
        taken.append(trainer.worker.take())

    trainer.keep_workers = take_all
    trainer.train(singles)
    assert taken == [False, True] * 3


def test_unit_that_fails_is_recorded_with_its_host_and_stops_no_other(trainer, tiny):
    bad, good = tiny(seed=0, optimizer=Adam(lr=1e30)), tiny(seed=1)
    with pytest.raises(AttnscopeError, match=rf"1 of 2 units failed\. {host()}: .*loss was"):
        trainer.train([bad, good])
    assert good.folder(trainer.workspace).finished()[0]
    found = status(trainer.workspace)
    assert found.done == 1
    assert found.waiting == 0
    assert list(found.failed) == [bad.folder(trainer.workspace).name]
    # The command asks for it again, and it is tried again.
    with pytest.raises(AttnscopeError, match="1 of 2"):
        trainer.train([bad, good])


def test_error_of_no_kind_that_was_foreseen_fails_its_group_only(trainer, tiny, monkeypatch):
    bad, good = tiny(seed=0), tiny(seed=1)
    attempt = queue_worker.attempt

    def breaking(units, *rest):
        if units == [bad]:
            raise ZeroDivisionError("by chance")
        return attempt(units, *rest)

    monkeypatch.setattr(queue_worker, "attempt", breaking)
    with pytest.raises(AttnscopeError, match=r"1 of 2 .*ZeroDivisionError: by chance"):
        trainer.train([bad, good])


def test_group_whose_workers_die_again_and_again_fails(trainer, tiny):
    unit = tiny()
    deaths = []

    def die(*_):
        [sweep] = sweeps(trainer.workspace)
        [key] = sweep.waiting()
        path = sweep.lock_of(key)
        if len(deaths) < queue_worker.MOST_DEATHS:
            with locked(path, wait=False) as held:
                deaths.append(held.deaths)
                held._release = lambda: None  # as a process that is killed
        else:
            trainer.worker.take()

    trainer.keep_workers = die
    with pytest.raises(AttnscopeError, match="5 processes in a row died"):
        trainer.train([unit])
    assert deaths == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("file", ["sweep.json", "environment.json", "waiting/{key}.json"])
def test_damaged_file_of_a_sweep_is_told_and_keeps_no_worker_from_others(
    trainer, singles, file, tmp_path
):
    said = []

    def damage_one_sweep(sweep, *_):
        if not said:
            other = tmp_path / "shared" / "queue" / "damaged"
            shutil.copytree(sweep.path, other)
            [key, *others] = sorted(sweep.waiting())
            for each in others:
                (other / "waiting" / f"{each}.json").unlink()
            (other / file.format(key=key)).write_text("{")
            os.utime(other / "sweep.json", (0, 0))  # the oldest, which is looked at first
        trainer.worker.take()
        said.extend(status(trainer.workspace).notes or ["nothing"])

    trainer.keep_workers = damage_one_sweep
    notes = []
    trainer.worker = QueueWorker(trainer.workspace, "cpu", notes.append)
    assert len(trainer.train(singles)) == 3
    assert len(notes) == 1
    name = file.format(key="").partition("/")[0]
    assert f"damaged/{name}" in notes[0]
    if file != "environment.json":  # Those who look on do not read it.
        assert all(f"damaged/{name}" in note for note in said)


def test_queued_unit_that_names_a_folder_without_its_digest_is_left_to_others(trainer, tiny):
    notes = []
    trainer.worker = QueueWorker(trainer.workspace, "cpu", notes.append)

    def name_a_folder(sweep, *_):
        [key] = sweep.waiting()
        path = sweep.path / "waiting" / f"{key}.json"
        group = json.loads(path.read_text())
        source = {"kind": "labelled-text", "corpus": str(trainer.workspace), "min_count": 1}
        group["units"][0]["config"]["source"] = source
        path.write_text(json.dumps(group))
        assert not trainer.worker.take()
        raise KeyboardInterrupt

    trainer.keep_workers = name_a_folder
    with pytest.raises(KeyboardInterrupt):
        trainer.train([tiny()])
    assert "without the digest of its text" in notes[0]


def test_host_that_lacks_a_corpus_says_so_and_leaves_the_unit_to_others(trainer, tiny, monkeypatch):
    lacking, complete = trainer.worker, QueueWorker(trainer.workspace, "cpu")
    monkeypatch.setenv("ATTNSCOPE_HOST", "node-7")
    read = queue_worker.read_unit

    def reading(config, where):
        if now[0] is lacking:
            raise UsageError("The corpus sst is not here: set ATTNSCOPE_DATA.")
        return read(config, where)

    now = [None]
    monkeypatch.setattr(queue_worker, "read_unit", reading)

    def both(*_):
        for now[0] in (lacking, complete):
            now[0].take()

    trainer.keep_workers = both
    progress = Counted()
    [trained] = trainer.train([tiny()], progress)
    assert trained.folder.finished()[0]
    assert progress.notes[-1] == (
        f"node-7 cannot train {trained.folder.name}: The corpus sst is not here: set "
        "ATTNSCOPE_DATA."
    )


def test_sweep_refuses_a_mixture_of_versions_unless_it_is_asked_for(trainer, tiny, monkeypatch):
    trainer.worker._environment = trainer.worker._environment | {"gpu": "NVIDIA A100"}
    other = QueueWorker(trainer.workspace, "cpu")
    other._environment = other._environment | {"gpu": "NVIDIA H200"}
    counts = []

    def take_turns(*_):
        counts.append(trainer.worker.take() + 10 * other.take())

    trainer.keep_workers = take_turns
    units = [tiny(seed=seed) for seed in range(4)]
    progress = Counted()
    trainer.train(units[:2], progress)
    assert counts == [1, 1]
    assert "gpu NVIDIA A100 and NVIDIA H200" in progress.notes[-1]
    trainer.mixed = True
    trainer.train(units[2:])
    assert counts == [1, 1, 11]


def test_finished_units_of_two_versions_are_refused_in_one_sweep(trainer, tiny, monkeypatch):
    one, other = (tiny(seed=seed) for seed in range(2))
    trainer.train([one])
    environment = queue_worker.environment
    train_units([other], trainer.workspace)
    path = other.folder(trainer.workspace).path
    changed = environment("cpu") | {"torch": "2.12.0"}
    (path / "environment.json").write_text(json.dumps(changed))
    folder = other.folder(trainer.workspace)
    folder.finish()
    with pytest.raises(UsageError, match=r"different versions \(torch .*2\.12\.0\).*--mixed"):
        trainer.train([one, other])
    trainer.mixed = True
    trainer.train([one, other])


def test_worker_takes_units_of_its_device_only(trainer, tiny, tmp_path):
    worker = QueueWorker(trainer.workspace, "cuda")
    taken = []
    trainer.keep_workers = lambda *_: taken.append(worker.take()) or trainer.worker.take()
    trainer.train([tiny()])
    assert taken == [False]


class Hungry(Likelihood):
    """Finds a GPU full."""

    kind: str = "hungry-in-a-queue"

    def __call__(self, model, batch, trace, generator):
        import torch

        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 MiB.")


def test_group_that_fits_next_to_no_other_waits_until_one_ends_and_fails_alone(
    trainer, tiny, monkeypatch
):
    other = WorkerFile(trainer.workspace, this_process() | {"token": "other"})
    tried = []
    attempt = queue_worker.attempt
    monkeypatch.setattr(queue_worker, "attempt", lambda *given: tried.append(1) or attempt(*given))
    looks = iter(
        [
            # What the other one does, and how often the group was tried when the worker has looked.
            (lambda: other.write(state="trains", group="a"), 1),
            (lambda: other.write(state="trains", group="a", done=5), 1),
            (lambda: other.write(state="trains", group="b"), 2),
            (lambda: other.write(state="idle"), 3),
        ]
    )
    seen = []

    def look(sweep, *_):
        if sweep.waiting():
            does, expected = next(looks)
            does()
            assert not trainer.worker.take() or not sweep.waiting()
            seen.append((len(tried), expected))

    trainer.keep_workers = look
    with pytest.raises(AttnscopeError, match="memory was full"):
        trainer.train([tiny(objective=(Hungry(),))])
    assert seen == [(1, 1), (1, 1), (2, 2), (3, 3)]


def test_processes_that_break_as_they_start_end_their_crew_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(crew, "_MOST_BROKEN", 2)
    notes = []
    made = crew.Crew(tmp_path, "cpu", 1, imports=["no_such_module"], note=notes.append)
    with pytest.raises(AttnscopeError, match=r"^2 worker processes in a row ended with an error"):
        list(iter(lambda: made.check(timeout=None), False))
    assert notes == ["A worker process died (exit code 1); another starts."]


def test_status_names_where_and_at_which_step_a_unit_runs(trainer, units, monkeypatch):
    trainer.worker = QueueWorker(trainer.workspace, "cpu")
    seen = []
    attempt = queue_worker.attempt

    def look(group, workspace, report, note):
        def reporting(steps):
            report(steps)
            if not seen:
                trainer.worker._public.write(
                    group="x", units=len(group), done=5 * len(group), steps=8, rate=2.0
                )
                seen.append(status(trainer.workspace))

        return attempt(group, workspace, reporting, note)

    monkeypatch.setattr(queue_worker, "attempt", look)
    trainer.train(units)
    [found] = seen
    assert found.workers == 1
    assert len(found.running) + found.waiting == len(units)
    for running in found.running:
        assert host() in running.where
        assert running.step == 5
        assert running.steps in (6, 8)
    assert found.seconds_left == pytest.approx(
        (sum(unit.training.steps for unit in units) - 5 * len(found.running)) / 2.0
    )
    assert status(trainer.workspace).done == len(units)


def test_damaged_group_hides_no_other_from_the_status(trainer, singles):
    seen = []

    def damage(sweep, *_):
        keys = sorted(sweep.waiting())
        for key in keys:
            path = sweep.path / "waiting" / f"{key}.json"
            sound = path.read_text()
            path.write_text("{")
            seen.append(status(trainer.workspace))
            path.write_text(sound)
        trainer.keep_workers = lambda *_: trainer.worker.take()

    trainer.keep_workers = damage
    trainer.train(singles)
    assert [found.waiting for found in seen] == [2, 2, 2]


def test_speed_of_a_worker_is_that_of_its_own_steps(trainer, tiny, monkeypatch):
    facts = []
    monkeypatch.setattr(trainer.worker._public, "write", lambda **each: facts.append(each))
    monkeypatch.setattr(queue_worker, "_PUBLISH_SECONDS", 0.01)

    def resume(units, workspace, report, note):
        report(1_000_000)  # steps until the last checkpoint
        for _ in range(3):
            report(1)
        time.sleep(0.2)
        return [("failed", "enough")]

    monkeypatch.setattr(queue_worker, "attempt", resume)
    with pytest.raises(AttnscopeError, match="enough"):
        trainer.train([tiny()])
    last = [each for each in facts if each.get("done")][-1]
    assert last["done"] == 1_000_003
    assert 0 < last["rate"] < 3 / 0.1


def test_holder_that_is_not_heard_of_is_named_to_those_who_wait(trainer, singles, monkeypatch):
    monkeypatch.setattr(queued, "_LOOK_SECONDS", 0.0)
    seen, progress = [], Counted()

    def stop_one(sweep, *_):
        if seen:
            trainer.worker.take()
            return
        key = min(sweep.waiting())
        path = sweep.lock_of(key)
        for name, pid in (("node-7", 12), (host(), 2**22 + 1)):  # the second has ended
            with locked(path, wait=False):
                signature = {"host": name, "job": "", "pid": pid, "token": "x", "deaths": 0}
                path.write_text(json.dumps(signature))
                for age in (0, 61, 200):
                    os.utime(path, (time.time() - age,) * 2)
                    seen.append(status(trainer.workspace).notes)
                queued._Waiting(trainer, sweep, {}, progress)._show_workers()
            path.write_text("")

    trainer.keep_workers = stop_one
    trainer.train(singles)
    assert [len(notes) for notes in seen] == [0, 1, 1, 0, 0, 0]
    assert "was taken by process 12 on node-7, which was not heard of for more than" in seen[1][0]
    assert progress.notes == list(seen[1])


def test_status_of_a_run_here_is_read_from_locks_and_logs(tiny, tmp_path):
    unit = tiny(steps=6)
    seen = []

    class Looking(Counted):
        def advance(self, steps):
            super().advance(steps)
            if self.steps == 5:
                seen.append(status(tmp_path))

    train_units([unit], tmp_path, progress=Looking())
    [running] = seen[0].running
    assert (running.step, running.steps) == (4, 6)  # evaluated at 2 and 4
    assert f"process {os.getpid()} on" in running.where


def test_worker_ends_when_idle_or_when_asked(tmp_path, monkeypatch):
    slept = []
    monkeypatch.setattr(queue_worker.time, "sleep", slept.append)
    worker = QueueWorker(tmp_path, "cpu")
    assert worker.run(until_idle=0.0) == 0
    assert slept == []
    assert worker.run(stop=lambda: len(slept) == 3) == 0
    assert slept == sorted(slept)
    assert not list((tmp_path / "queue" / "workers").iterdir())


def test_two_workers_never_share_a_group(tiny, tmp_path):
    """Both start at the same moment, 20 times; units are counted by who trained them."""
    sweep_units = [tiny(seed=seed, steps=0) for seed in range(20)]
    trainer = QueuedWorkers(tmp_path)
    together = threading.Barrier(2)

    def work(worker):
        for _ in range(20):
            together.wait()
            worker.take()

    def start(sweep, device, progress):
        if not threads:
            workers = [QueueWorker(tmp_path, "cpu") for _ in range(2)]
            threads.extend(threading.Thread(target=work, args=(worker,)) for worker in workers)
            for thread in threads:
                thread.start()

    threads = []
    trainer.keep_workers = start
    trained = trainer.train(sweep_units)
    for thread in threads:
        thread.join()
    assert all(unit.folder.finished() == (True, []) for unit in trained)


def test_sweep_of_one_name_has_one_folder(tmp_path, tiny):
    groups = [queued._queued([tiny(seed=seed)], tmp_path) for seed in range(2)]
    made = [Sweep.create(tmp_path, groups, "title", "cpu").path for _ in range(2)]
    assert made[0] == made[1]
    assert Sweep.create(tmp_path, groups[:1], "title", "cpu").path != made[0]


def test_command_that_is_started_again_finds_its_queue(trainer, singles):
    found = []

    def train_one(sweep, *_):
        found.append(sweep.path)
        trainer.worker.take()
        raise KeyboardInterrupt

    for _ in range(2):
        trainer.keep_workers = train_one
        with pytest.raises(KeyboardInterrupt):
            trainer.train(singles)
    assert [sweep.path for sweep in sweeps(trainer.workspace)] == [found[0]]
    assert status(trainer.workspace).waiting == 1
    trainer.keep_workers = lambda *_: trainer.worker.take()
    assert len(trainer.train(singles)) == 3
    assert sweeps(trainer.workspace) == []


def test_links_in_a_queue_are_not_followed(tmp_path, tiny):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "queue").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AttnscopeError, match="link"):
        queue.make_queue(tmp_path / "shared")
    with pytest.raises(AttnscopeError, match="link"):
        QueueWorker(tmp_path / "shared", "cpu")
