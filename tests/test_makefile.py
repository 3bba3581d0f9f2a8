"""``make demo`` repairs an environment whose making was interrupted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(
    shutil.which("make") is None or not (ROOT / "Makefile").exists(), reason="needs make"
)


def planned(folder: Path) -> str:
    command = ["make", "-n", "demo", f"PYTHON={sys.executable}"]
    # Under `make test` an inner make would print its folder and inherit flags.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        command, cwd=folder, env=clean, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture
def folder(tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_environment_without_pip_is_made_again_and_filled(folder):
    venv.create(folder / ".venv", with_pip=False)
    (folder / ".venv" / ".installed").touch()
    assert "-m venv --clear .venv" in planned(folder)


def test_sound_environment_is_left_alone(folder):
    (folder / ".venv" / "bin").mkdir(parents=True)
    python = folder / ".venv" / "bin" / "python"
    python.write_text("#!/bin/sh\nexit 0\n")
    python.chmod(0o755)
    (folder / ".venv" / ".installed").touch()
    assert planned(folder).strip() == ".venv/bin/attnscope run snell/fig3 --quick"
