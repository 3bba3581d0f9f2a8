"""A run killed with SIGKILL at any moment leaves complete files, and goes on to the same bytes.

A moment is a place in the run's own stream of events (see ``warm.py``), not a time.
"""

from __future__ import annotations

import random
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from attnscope.runs.atomic import ASIDE


@dataclass(frozen=True)
class Work:
    """Something to run, with the moments and the files of a run that nothing disturbs."""

    server: Any
    request: dict[str, Any]
    moments: list[str]
    files: dict[str, Any]

    def kill(self, workspace: Path, at: int) -> None:
        ended = self.server.run(workspace, kill_at=at, **self.request)
        assert ended.status == -signal.SIGKILL
        assert ended.moments == self.moments[:at]

    def finish(self, workspace: Path) -> list[str]:
        ended = self.server.run(workspace, **self.request)
        assert ended.status == 0
        return ended.moments


@pytest.fixture(scope="module")
def undisturbed(server, contents, tmp_path_factory):
    def run(**request: Any) -> Work:
        workspace = tmp_path_factory.mktemp("undisturbed")
        ended = server.run(workspace, **request)
        assert ended.status == 0
        return Work(server, request, ended.moments, contents(workspace))

    return run


@pytest.fixture(scope="module")
def small(undisturbed, tiny):
    return undisturbed(unit=tiny(steps=3, every=2))


@pytest.fixture(scope="module")
def longer(undisturbed, tiny):
    return undisturbed(unit=tiny(steps=12, every=4))


@pytest.fixture(scope="module")
def recipe(undisturbed, fig3):
    return undisturbed(recipe="snell/fig3", settings=fig3)


def test_every_kind_of_change_to_a_file_is_among_the_moments(small):
    kinds = {"open", "half-written", "fsync", "os.rename", "os.remove", "update"}
    assert set(small.moments) == kinds
    # Whatever is there was written aside, and came to its name by a rename.
    counts = {name: small.moments.count(name) for name in kinds}
    assert counts["half-written"] == counts["os.rename"] >= len(small.files)
    # The content before its name, the folder after it, and each new folder.
    assert counts["fsync"] >= 2 * counts["os.rename"]
    # The lock, and its trial by a second descriptor.
    assert counts["open"] == counts["os.rename"] + 2


# A part of the moments each, so that they can be spread over processes.
@pytest.mark.parametrize("part", range(4))
def test_kill_at_every_write_leaves_complete_files_and_a_run_that_goes_on(
    small, contents, tmp_path, part
):
    # What the next sync would bring to the disk is there already for those who are left.
    writes = [at for at, name in enumerate(small.moments) if name != "fsync"]
    for at in writes[part::4]:
        workspace = tmp_path / str(at)
        workspace.mkdir()
        small.kill(workspace, at)
        contents(workspace)
        small.finish(workspace)
        place = f"killed at moment {at}, before {small.moments[at]}"
        assert contents(workspace) == small.files, place
        assert not list(workspace.rglob(f"{ASIDE}*")), place


@pytest.mark.parametrize("draw", range(8))
def test_run_killed_at_a_random_moment_resumes_to_the_same_bytes(longer, contents, tmp_path, draw):
    longer.kill(tmp_path, random.Random(0).sample(range(len(longer.moments)), 8)[draw])
    contents(tmp_path)
    longer.finish(tmp_path)
    assert contents(tmp_path) == longer.files


def test_run_killed_again_and_again_ends_with_the_same_bytes(longer, server, contents, tmp_path):
    rng = random.Random(1)
    statuses = []
    while not statuses or (statuses[-1] and len(statuses) < 30):
        at = rng.randrange(len(longer.moments) // 2)
        statuses.append(server.run(tmp_path, kill_at=at, **longer.request).status)
        contents(tmp_path)
    assert len(statuses) > 2
    assert statuses == [-signal.SIGKILL] * (len(statuses) - 1) + [0]
    assert contents(tmp_path) == longer.files


def test_killed_run_loses_no_more_than_the_work_since_its_last_checkpoint(longer, tmp_path):
    updates = [at for at, name in enumerate(longer.moments) if name == "update"]
    longer.kill(tmp_path, updates[-1])
    # All earlier updates come back in one with the checkpoint; the last one is made again.
    assert longer.finish(tmp_path).count("update") == 2


@pytest.mark.parametrize("draw", range(2))
def test_killed_recipe_gives_the_same_measurements_when_it_is_run_again(
    recipe, contents, tmp_path, draw
):
    recipe.kill(tmp_path, random.Random(2).sample(range(len(recipe.moments)), 2)[draw])
    contents(tmp_path)
    recipe.finish(tmp_path)
    again = contents(tmp_path)
    (name,) = [name for name in recipe.files if name.endswith("result.json")]
    assert len(again[name]["measurements"]) > 8
    assert again[name] == recipe.files[name]
    assert again == recipe.files


@pytest.mark.parametrize("last", [3, 1], ids=["result.json", "the last figure"])
def test_recipe_killed_while_it_writes_what_it_found_is_complete_afterwards(
    recipe, contents, tmp_path, last
):
    writes = [at for at, name in enumerate(recipe.moments) if name == "half-written"]
    recipe.kill(tmp_path, writes[-last])
    assert len(contents(tmp_path)) == len(recipe.files) - last
    recipe.finish(tmp_path)
    assert contents(tmp_path) == recipe.files
