"""Ctrl-C, or the death of the command, leaves no process behind and a workspace that goes on.

A process is gone when the pipe that it inherited as its standard output has no writer left: reading
to the end waits for exactly that.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

WORKERS = Path(__file__).with_name("workers.py")
PATIENCE = 120  # seconds, for a machine under load: what is waited for takes one or two


@pytest.fixture
def units(tiny):
    return [tiny(steps=60, every=20, seed=seed) for seed in range(2)]


@pytest.fixture
def training(start, units, tmp_path):
    """A command whose two workers train while a third one is idle."""
    process = start(str(WORKERS), str(tmp_path / "runs"), json.dumps(units))
    assert process.stdout.readline() == "training\n"
    return process


@pytest.fixture
def goes_on(server, units, contents, tmp_path):
    """Whether the units, trained further, are those that nothing ever stopped."""

    def check() -> bool:
        contents(tmp_path / "runs")
        for unit in units:
            for place in ("runs", "undisturbed"):
                assert server.run(tmp_path / place, unit=unit).status == 0
        return contents(tmp_path / "runs") == contents(tmp_path / "undisturbed")

    return check


def test_interrupt_ends_every_process_quietly_and_the_work_goes_on_later(training, goes_on):
    os.killpg(training.pid, signal.SIGINT)
    words, _ = training.communicate(timeout=PATIENCE)
    assert (training.returncode, words) == (130, "stopped\n")
    assert goes_on()


def test_interrupt_while_processes_start_is_as_quiet(start, units, goes_on, tmp_path):
    process = start(str(WORKERS), str(tmp_path / "runs"), json.dumps(units), "interrupt")
    words, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, words) == (130, "stopped\n")
    assert goes_on()


def test_killed_command_leaves_no_worker_behind_and_the_work_goes_on_later(training, goes_on):
    training.kill()
    words, _ = training.communicate(timeout=PATIENCE)
    assert "Traceback" not in words
    assert goes_on()


def test_interrupted_command_line_says_how_to_go_on_and_does(
    start, server, fig3, contents, tmp_path
):
    settings = [f"{key}={value}" for key, value in fig3.items()]
    options = ["--jobs", "2", "--device", "cpu", "--out", str(tmp_path / "runs")]
    command = ["-m", "attnscope", "run", "snell/fig3", *settings, *options]
    process = start(*command)
    assert "units" in process.stdout.readline()  # Training begins: its processes are starting.
    os.killpg(process.pid, signal.SIGINT)
    words, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Run the same command again" in words
    assert "Traceback" not in words

    again = start(*command)
    words, _ = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, words
    alone = server.run(tmp_path / "alone", recipe="snell/fig3", settings=fig3)
    assert alone.status == 0
    assert contents(tmp_path / "runs") == contents(tmp_path / "alone")
