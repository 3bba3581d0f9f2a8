"""The code of every page runs as it stands: in order, in an empty folder, without a network."""

from __future__ import annotations

import doctest
import os
import pkgutil
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from run_page import RUN, SHOWN, blocks

import attnscope
from cases import for_each

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "generated" not in page.parts),
]
REVIEWS = [f"a {word} film number {n}\t{word}" for n in range(40) for word in ("good", "bad")]
# Files that a page supposes its reader to have.
GIVEN = {"README.md": {"reviews.tsv": "\n".join(REVIEWS)}}
RUNNING = [page for page in PAGES if any(b.language in RUN and not b.reason for b in blocks(page))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def offline(folder: Path) -> dict[str, str]:
    """Return an environment without a network, in which ``attnscope`` and ``python`` are these."""
    commands = folder / "bin"
    commands.mkdir()
    for name, call in {"attnscope": "-m attnscope", "python": ""}.items():
        (commands / name).write_text(f'#!/bin/sh\nexec {sys.executable} {call} "$@"\n')
        (commands / name).chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ATTNSCOPE_", "PYTEST_"))}
    paths = [HERE / "offline", ROOT / "src"]
    return kept | {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "ATTNSCOPE_CACHE": str(folder / "cache"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }


@pytest.mark.parametrize("page", RUNNING, ids=name_of)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for name, text in GIVEN.get(page.name, {}).items():
        (empty / name).write_text(text, encoding="utf8")
    done = subprocess.run(
        [sys.executable, str(HERE / "run_page.py"), str(page)],
        cwd=empty,
        env=offline(tmp_path),
        capture_output=True,
        text=True,
        timeout=500,
    )
    shutil.rmtree(empty)
    assert done.returncode == 0, f"{done.stdout[-1500:]}\n{done.stderr[-3000:]}"


def test_without_a_network_means_that_a_connection_is_refused(tmp_path: Path) -> None:
    code = "import urllib.request as r; r.urlopen('http://192.0.2.1/')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=offline(tmp_path), capture_output=True, text=True
    )
    assert "the documentation asked for a network" in done.stderr


@for_each("page", PAGES, ids=name_of)
def test_every_block_has_a_language_that_is_run_or_shown(page: Path) -> None:
    odd = [
        (block.line, block.language)
        for block in blocks(page)
        if block.language not in (*RUN, *SHOWN) and not block.language.startswith("{")
    ]
    assert odd == [], "an indented block, or a language that hides code from this test"


def modules_with_examples() -> list[str]:
    found = []
    for module in pkgutil.walk_packages(attnscope.__path__, "attnscope."):
        path = ROOT / "src" / f"{module.name.replace('.', '/')}.py"
        if path.exists() and ">>> " in path.read_text(encoding="utf8"):
            found.append(module.name)
    return found


@for_each("name", modules_with_examples())
def test_examples_in_docstrings_are_true(name: str) -> None:
    tried = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert tried.attempted > 0
    assert tried.failed == 0
