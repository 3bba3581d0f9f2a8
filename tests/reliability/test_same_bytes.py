"""The same units give the same bytes, whatever the number of processes and commands.

Units that train as one vmapped model agree with units trained alone up to rounding only, so which
units form a group follows from the units alone.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnscope.data.sequence_tasks import OneToOne
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.scores.attention import Attention
from attnscope.training.engine.grouping import groups
from attnscope.training.engine.workers import train_units
from attnscope.training.unit import Training, Unit

WORKERS = Path(__file__).with_name("workers.py")
PATIENCE = 120  # seconds, for a machine under load


def grouped(hidden: int) -> list[Unit]:
    """Return units of three seeds that form a group."""
    training = Training(
        steps=6, batch_size=4, evaluate_at=(2, 4), examples=4, stored=2, scores=(Attention(),)
    )
    model, source = EncoderDecoderSpec(hidden=hidden), OneToOne(shortest=2, longest=4)
    return [Unit(source=source, model=model, training=training, seed=seed) for seed in range(3)]


@pytest.fixture(scope="module")
def units():
    return [*grouped(4), *grouped(5)]


@pytest.fixture(scope="module")
def alone(units, contents, tmp_path_factory):
    """The files of one command with one process."""
    workspace = tmp_path_factory.mktemp("alone")
    train_units(units, workspace, jobs=1)
    return contents(workspace)


def test_two_processes_give_the_bytes_of_one(units, alone, contents, tmp_path):
    assert [len(group) for group in groups(units)] == [3, 3]
    train_units(units, tmp_path, jobs=2)
    assert contents(tmp_path) == alone


def test_two_commands_give_the_bytes_of_one_though_one_is_killed_inside_a_group(
    units, alone, start, contents, tmp_path
):
    def command(asked: list[Unit], *more: str) -> tuple[str, ...]:
        configs = json.dumps([unit.config() for unit in asked])
        return (str(WORKERS), str(tmp_path), configs, *more)

    first = start(*command(units[:3]))  # One group: trained, and held, in the process itself.
    assert first.stdout.readline() == "training\n"
    second = start(*command(units, "finish"))
    assert "is being trained by another process; waiting" in second.stdout.readline()
    first.kill()
    said, _ = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, said
    assert contents(tmp_path) == alone
