"""Benchmarks of a GPU say where there is none, and keep what they measure where there is one."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest
import torch

from cases import for_each

FOLDER = Path(__file__).parents[1] / "benchmarks"
OF_A_GPU = ("copying", "heads", "translator_seeds", "kendall", "probe_rate", "stacked", "gpu")

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="needs the repository")


@pytest.fixture
def script(monkeypatch):
    """Import scripts, which import each other by name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    names = {path.stem for path in FOLDER.glob("*.py")}
    before = {name: sys.modules.pop(name) for name in names & set(sys.modules)}
    yield importlib.import_module
    for name in names & set(sys.modules):
        del sys.modules[name]
    sys.modules.update(before)


@for_each("name", OF_A_GPU)
def test_without_a_gpu_it_is_said_in_one_sentence(script, monkeypatch, capsys, name):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    device = [] if name == "gpu" else ["--device", "cuda"]
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *device])
    with pytest.raises(SystemExit) as end:
        script(name).main()
    assert end.value.code == 2
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", f"{name}.py measures on a GPU, and PyTorch sees none.\n")


@pytest.fixture
def gpu(script, monkeypatch, tmp_path):
    """Give the script that runs all of them, with three others in their place."""
    found = script("gpu")
    for name, work in {
        "kept": "print('kept: 2x (at least 1)')",
        "broken": "print('broken: 1x (at least 2)'); raise SystemExit(1)",
        "endless": "print('begun', flush=True); import time; time.sleep(60)",
    }.items():
        (tmp_path / f"{name}.py").write_text(work)
    monkeypatch.setattr(found, "HERE", tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")

    def run(*names):
        commands = [(1.0 if name == "endless" else 60.0, [f"{name}.py"]) for name in names]
        monkeypatch.setattr(found, "COMMANDS", commands)
        monkeypatch.setattr(sys, "argv", ["gpu.py", "--out", str(tmp_path / "new" / "gpu.jsonl")])
        return found.main()

    return run


def test_all_ratios_of_a_gpu_are_saved_and_a_broken_promise_ends_with_1(gpu, tmp_path, capsys):
    assert gpu("endless", "broken", "kept") == 1
    rows = [json.loads(line) for line in (tmp_path / "new" / "gpu.jsonl").read_text().splitlines()]
    assert [row["exit"] for row in rows] == [124, 1, 0]
    assert [row["lines"][0] for row in rows] == [
        "begun",
        "broken: 1x (at least 2)",
        "kept: 2x (at least 1)",
    ]
    assert {row["gpu"] for row in rows} == {"a GPU"}
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "FAILED endless.py: not done in 1 s",
        "BROKEN broken: 1x (at least 2)",
        "kept   kept: 2x (at least 1)",
    ]
    assert gpu("kept") == 0


def test_a_gpu_is_waited_for_every_ten_steps_so_that_batches_are_drawn_meanwhile(
    script, monkeypatch
):
    waits = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waits.append(0))
    clock = script("copying").Clock("cuda")
    for _ in range(60):
        clock(80)
    assert len(waits) == len(clock.seconds) == 6
    clock.seconds = [90.0, 80.0, 0.1, 0.3, 0.2, 0.2]
    assert clock.milliseconds() == pytest.approx(200)
    assert clock.milliseconds(20) == pytest.approx(200)
