"""Many units: in one process or several they are the same, and one that fails stops no other."""

from __future__ import annotations

import fcntl
import multiprocessing
import subprocess
import sys
from typing import Literal

import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.training.engine import workers
from attnscope.training.engine.workers import Workers, train_units
from attnscope.training.loop import train_unit
from attnscope.training.objective import Likelihood
from attnscope.training.optimizer import Adam
from counted import Counted


def test_units_of_two_processes_are_those_of_one_byte_for_byte(tiny, tmp_path, numbers):
    units = [tiny(seed=seed, steps=12) for seed in range(2)]
    one = train_units(units, tmp_path / "one", 1)
    two = train_units(units, tmp_path / "two", 2)
    assert [unit.unit for unit in one] == [unit.unit for unit in two] == units
    for alone, together in zip(one, two, strict=True):
        assert numbers(alone.folder.path) == numbers(together.folder.path)
    assert numbers(one[0].folder.path) != numbers(one[1].folder.path)


def test_progress_of_several_processes_adds_up_to_exactly_all_steps(tiny, tmp_path):
    units = [tiny(seed=seed, steps=steps) for seed, steps in ((0, 3), (1, 25), (2, 10))]
    with Workers(tmp_path, 2) as workers:
        for _ in ("trained", "reused"):
            progress = Counted()
            workers.train(units, progress, "copying")
            assert progress.told == [("copying", 3, 38, 11), "end"]
            assert (progress.steps, progress.evaluations) == (38, 11)
            assert sorted(progress.done) == sorted(u.folder(tmp_path).name for u in units)


def test_progress_in_one_process_adds_up_when_units_go_on_repeat_or_are_finished(tiny, tmp_path):
    finished, begun, new = (tiny(seed=seed) for seed in range(3))
    train_unit(finished, tmp_path)

    def stop_after_three(steps):
        progress.steps += steps
        if progress.steps == 3:
            raise KeyboardInterrupt

    progress = Counted()
    with pytest.raises(KeyboardInterrupt):
        train_unit(begun, tmp_path, stop_after_three, checkpoint_seconds=0)
    progress = Counted()
    train_units([finished, begun, new, new], tmp_path, 1, progress)
    assert progress.told == [("training", 3, 18, 12), "end"]
    assert (progress.steps, progress.evaluations) == (18, 12)


def test_progress_ends_when_work_is_interrupted(tiny, tmp_path):
    class Interrupting(Counted):
        def advance(self, steps):
            raise KeyboardInterrupt

    progress = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        train_units([tiny()], tmp_path, 1, progress)
    assert progress.told[-1] == "end"


def test_unit_asked_for_twice_is_trained_once_and_returned_twice(tiny, tmp_path):
    unit = tiny()
    progress = Counted()
    trained = train_units([unit, unit], tmp_path, 1, progress)
    assert len(trained) == 2
    assert len(progress.done) == 1


@pytest.fixture
def hold(tmp_path, monkeypatch):
    """Hold a unit, as another command would, until it is waited for."""

    def take(unit):
        lock, flock = unit.folder(tmp_path).lock(), fcntl.flock
        lock.__enter__()

        def leave_once_waited_for(stream, how):
            if not how & fcntl.LOCK_NB:
                lock.__exit__(None, None, None)
            flock(stream, how)

        monkeypatch.setattr(fcntl, "flock", leave_once_waited_for)

    return take


def test_unit_held_elsewhere_is_waited_for_after_all_others(tiny, tmp_path, hold):
    held, free = tiny(seed=0), tiny(seed=1)
    names = [unit.folder(tmp_path).name for unit in (held, free)]
    hold(held)
    progress = Counted()
    train_units([held, free], tmp_path, 1, progress)
    assert [names[0] in note for note in progress.notes] == [True]
    assert progress.done == names[::-1]
    assert progress.steps == 12


def test_unit_that_fails_after_the_wait_is_told_like_any_other(tiny, tmp_path, hold):
    held, bad = (tiny(seed=seed, optimizer=Adam(lr=1e30)) for seed in range(2))
    hold(held)
    with pytest.raises(AttnscopeError, match="2 of 3 units failed"):
        train_units([held, bad, tiny(seed=2)], tmp_path)


def test_notes_of_other_processes_arrive(tiny, tmp_path):
    units = [tiny(seed=seed) for seed in range(2)]
    train_units(units, tmp_path, 1)
    damaged = units[1].folder(tmp_path).path / "last.safetensors"
    damaged.write_bytes(b"")
    progress = Counted()
    train_units(units, tmp_path, 2, progress)
    assert [str(damaged) in note for note in progress.notes] == [True]


def test_killed_process_is_one_sentence_that_says_what_to_do(tiny, tmp_path):
    workers = Workers(tmp_path, 2)

    class Killing(Counted):
        def advance(self, steps):
            for process in workers._processes:
                process.kill()

    units = [tiny(seed=seed, steps=500) for seed in range(2)]
    with workers, pytest.raises(AttnscopeError, match=r"process died \(exit code -9\).*again"):
        workers.train(units, Killing())


def test_processes_end_with_their_block(tiny, tmp_path):
    with Workers(tmp_path, 2) as workers:
        workers.train([tiny(seed=seed) for seed in range(2)])
        processes = list(workers._processes)
        assert all(process.is_alive() for process in processes)
    assert not any(process.is_alive() for process in processes)


SCRIPT = """
from pathlib import Path
import sys
from attnscope.data.tasks import PermutationCopy
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.training.engine.workers import train_units
from attnscope.training.unit import Training, Unit

print("the script runs")
task = PermutationCopy(length=5)
"""
TRAIN = """
model = Seq2SeqSpec(embedding=8, hidden=8)
training = Training(steps=3, batch_size=4, evaluate_at=())
units = [Unit(source=task, model=model, training=training, seed=seed) for seed in range(2)]
print(len(train_units(units, Path(sys.argv[1]), 2)))
"""
OWN_TASK = """
class OwnTask(PermutationCopy):
    kind: str = "own"

task = OwnTask(length=5)
if __name__ == "__main__":
"""


def run_script(tmp_path, text):
    (tmp_path / "script.py").write_text(text)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "runs")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_script_that_does_not_ask_whether_it_is_the_main_one_is_not_run_again(tmp_path):
    assert run_script(tmp_path, SCRIPT + TRAIN) == "the script runs\n2\n"


def test_what_a_script_defines_can_be_trained_side_by_side(tmp_path):
    guarded = TRAIN.replace("\n", "\n    ")
    lines = run_script(tmp_path, SCRIPT + OWN_TASK + guarded).splitlines()
    assert lines[-1] == "2"
    assert len(list((tmp_path / "runs" / "units").iterdir())) == 2


class Hungry(Likelihood):
    """Finds a GPU full: always, or only beside other processes."""

    kind: Literal["hungry"] = "hungry"
    always: bool = False

    def __call__(self, model, batch, trace, generator):
        if self.always or multiprocessing.parent_process() is not None:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 MiB. Much more.")
        return super().__call__(model, batch, trace, generator)


def test_units_that_find_no_memory_beside_others_are_trained_after_them(tiny, tmp_path):
    units = [tiny(seed=0), tiny(seed=1, objective=(Hungry(),)), tiny(seed=2)]
    progress = Counted()
    trained = train_units(units, tmp_path, 2, progress)
    assert all(unit.folder.finished()[0] for unit in trained)
    assert ["1 units did not fit" in note for note in progress.notes] == [True]
    assert progress.done[-1] == units[1].folder(tmp_path).name


def test_units_that_find_no_memory_are_tried_in_half_as_many_processes(tiny, tmp_path):
    units = [tiny(seed=0, objective=(Hungry(),), steps=steps) for steps in (1, 2, 3, 4)]
    progress = Counted()
    trained = train_units(units, tmp_path, 4, progress)
    assert all(unit.folder.finished()[0] for unit in trained)
    assert [note.partition("again, ")[2][:1] for note in progress.notes] == ["2", "1"]
    assert len(progress.done) == 4


def test_memory_of_a_gpu_is_given_back_before_the_next_group(tiny, tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: done.append("given back"))
    monkeypatch.setattr(workers, "train_unit", lambda unit, *_, **__: done.append(unit.seed))
    train_units([tiny(seed=seed) for seed in range(2)], tmp_path)
    assert done == [0, "given back", 1, "given back"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_unit_that_never_finds_memory_fails_in_one_sentence(tiny, tmp_path, jobs):
    units = [tiny(seed=0, objective=(Hungry(always=True),)), tiny(seed=1)]
    with pytest.raises(AttnscopeError, match=r"1 of 2.*memory was full: CUDA out of memory\.$"):
        train_units(units, tmp_path, jobs)
    assert units[1].folder(tmp_path).finished()[0]
