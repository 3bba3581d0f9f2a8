"""The command line under what a system may be like: each command works, or is one sentence.

The cases are data. Each is a command in a process of its own; only those about training run a
recipe, as importing torch is most of their cost.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from attnscope.runs.result import Measurement, Result
from cases import for_each

PATIENCE = 300  # seconds, for a machine under load
LONG = "x" * 255  # bytes of the longest name that a file system takes
NOBODY = 54321  # a user that no system knows
PROGRESS = re.compile(r"\w+: \d+(/\d+)? units")
SOURCES = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Case:
    """A command, what is unusual about its system, and what must come of it.

    Parameters
    ----------
    says
        A part of what is printed.
    works
        Whether it ends with exit code 0; otherwise with one sentence.
    flags
        Of the interpreter.
    environment
        Variables to set, or with None to remove; ``{here}`` is the case's folder.
    limits
        System limits of the process.
    prepare
        Called with the case's folder, in which the command runs.
    stdout
        A file to print to, ``pipe`` for a pipe that nobody reads, or ``closed``.
    nobody
        Whether to run as a user that the system does not know, which takes root.
    """

    command: tuple[str, ...]
    says: str = ""
    works: bool = True
    flags: tuple[str, ...] = ()
    environment: Mapping[str, str | None] = field(default_factory=dict)
    limits: Mapping[int, int] = field(default_factory=dict)
    prepare: Callable[[Path], object] = lambda here: None
    stdout: str = ""
    nobody: bool = False


def _secret(here: Path) -> None:
    """Make the workspace one of another user that nobody else may read."""
    (here / "runs").chmod(0o700)


def _secret_results(here: Path) -> None:
    (here / "runs" / "mine").chmod(0o700)


def _secret_unit(here: Path) -> None:
    (here / "runs" / "units" / "x").mkdir(parents=True, mode=0o700)


def _sticky(here: Path) -> None:
    """Make a folder such as /tmp, with another user's file in it."""
    (here / "shared").mkdir()
    (here / "shared" / "report.html").write_text("precious")
    (here / "shared").chmod(0o1777)


def _renamed(name: bytes | str) -> Callable[[Path], object]:
    return lambda here: (here / "runs").rename(os.path.join(here, os.fsdecode(name)))


def _long_folder(here: Path) -> None:
    (here / ("t" * 110)).mkdir()


_ASCII = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
_CLAIMS = ("claims", "runs")
_QUIET = {"HOME": None, "XDG_CACHE_HOME": None, "ATTNSCOPE_CACHE": None}
_FILES = {resource.RLIMIT_NOFILE: 16}

LIGHT = {
    "C locale": Case(_CLAIMS, "undecided", environment=_ASCII | {"LC_ALL": "C"}),
    "POSIX locale": Case(_CLAIMS, "undecided", environment=_ASCII | {"LC_ALL": "POSIX"}),
    "ASCII output": Case(_CLAIMS, "undecided", environment={"PYTHONIOENCODING": "ascii"}),
    "unread pipe": Case(_CLAIMS, works=False, stdout="pipe"),
    "full disk": Case(_CLAIMS, "No space left", works=False, stdout="/dev/full"),
    "closed output": Case(_CLAIMS, stdout="closed"),
    "python -OO": Case(("list",), "snell/fig3", flags=("-OO",)),
    "recipe under -OO": Case(("run", "snell/fig3"), "python -OO", works=False, flags=("-OO",)),
    "no HOME": Case(("data", "list"), environment=_QUIET),
    "unknown user": Case(("data", "list"), environment=_QUIET, nobody=True),
    "cache that is a file": Case(
        ("data", "fetch", "sst"),
        works=False,
        environment={"ATTNSCOPE_CACHE": "{here}/runs/mine/greek/result.json"},
    ),
    "another user's workspace": Case(
        _CLAIMS, "Permission denied", works=False, prepare=_secret, nobody=True
    ),
    "another user's results": Case(
        _CLAIMS, "Permission denied", works=False, prepare=_secret_results, nobody=True
    ),
    "another user's unit": Case(
        ("status", "runs"), "runs/units/x cannot be read", prepare=_secret_unit, nobody=True
    ),
    "another user's file": Case(
        ("report", "runs", "--out", "shared/report.html"),
        "Cannot write shared/report.html",
        works=False,
        prepare=_sticky,
        nobody=True,
    ),
    "name that is not UTF-8": Case(
        ("claims", os.fsdecode(b"caf\xe9")), "undecided", prepare=_renamed(b"caf\xe9")
    ),
    "name of 255 bytes": Case(("claims", LONG), "undecided", prepare=_renamed(LONG)),
    "output of 256 bytes": Case(
        ("report", "runs", "--out", f"{LONG[4:]}.html"), "File name too long", works=False
    ),
    "16 open files": Case(_CLAIMS, "undecided", limits=_FILES),
    "report of 255 bytes with 16 open files": Case(
        ("report", "runs", "--out", f"{LONG[5:]}.html"), limits=_FILES
    ),
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A result of a recipe that is not known here: deciding the claims imports no torch."""
    folder = tmp_path_factory.mktemp("system")
    row = Measurement(name="accuracy", dataset="β", value=0.5, n=1, axes={"role": "α → β"})
    settings: dict[str, Any] = {"config": {}, "environment": {}, "seconds": 1.0}
    result = Result(recipe="mine/greek", scale="full", measurements=(row,), **settings)
    result.write(folder / "runs" / "mine" / "greek")
    return folder


def ended(case: Case, here: Path) -> subprocess.CompletedProcess[str]:
    """Run a case in a folder."""
    case.prepare(here)
    variables = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(SOURCES)}
    for name, value in case.environment.items():
        variables.pop(name, None)
        if value is not None:
            variables[name] = value.replace("{here}", str(here))

    def limit() -> None:
        for which, most in case.limits.items():
            resource.setrlimit(which, (most, most))
        if case.stdout == "closed":
            os.close(1)

    reading, writing = os.pipe()
    os.close(reading)
    place = case.stdout if case.stdout.startswith("/") else os.devnull
    with open(place, "wb") as stream, os.fdopen(writing, "wb") as unread:
        outputs: dict[str, Any] = {"": subprocess.PIPE, "pipe": unread}
        return subprocess.run(
            [sys.executable, *case.flags, "-m", "attnscope", *case.command],
            cwd=here,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=outputs.get(case.stdout, stream),
            stderr=subprocess.PIPE,
            encoding="utf8",
            errors="replace",
            timeout=PATIENCE,
            preexec_fn=limit,
            check=False,
            **({"user": NOBODY, "group": NOBODY, "extra_groups": ()} if case.nobody else {}),
        )


def check(case: Case, here: Path) -> None:
    done = ended(case, here)
    printed = " ".join(f"{done.stdout or ''} {done.stderr}".split())
    assert "Traceback" not in printed, printed
    assert case.says in printed, printed
    assert (done.returncode == 0) is case.works, printed
    if not case.works and case.stdout != "pipe":
        said = [line for line in done.stderr.splitlines() if not PROGRESS.match(line)]
        assert len(said) == 1, printed
        assert said[0].startswith("attnscope: "), printed


def _is_readable_by_others(path: Path) -> bool:
    return all(place.stat().st_mode & 0o005 == 0o005 for place in (path, *path.parents))


# As another user it takes root, and an interpreter and sources that other users may read.
_OTHERS = os.geteuid() == 0 and all(
    _is_readable_by_others(Path(place).resolve()) for place in (sys.executable, SOURCES, sys.prefix)
)
_POSSIBLE = {name: case for name, case in LIGHT.items() if _OTHERS or not case.nobody}


@for_each("case", _POSSIBLE.values(), ids=list(_POSSIBLE))
def test_command_works_or_is_one_sentence(workspace, tmp_path, case):
    shutil.copytree(workspace, tmp_path, dirs_exist_ok=True)
    for place in (tmp_path, *tmp_path.parents[:4]) if case.nobody else ():
        if place.stat().st_uid == os.geteuid():
            place.chmod(place.stat().st_mode | 0o055)
    check(case, tmp_path)


@pytest.fixture
def recipe(fig3):
    """A command that runs a recipe with a number of processes."""
    settings = tuple(f"{name}={value}" for name, value in fig3.items())
    return lambda jobs: ("run", "snell/fig3", *settings, "--device", "cpu", "--jobs", f"{jobs}")


def test_run_with_16_open_files_is_one_sentence(recipe, tmp_path):
    check(Case(recipe(2), "open files and 16 are allowed", works=False, limits=_FILES), tmp_path)


def test_run_whose_folder_for_sockets_is_too_long_is_one_sentence(recipe, tmp_path):
    long = {"TMPDIR": f"{{here}}/{'t' * 110}"}
    case = Case(recipe(2), "set TMPDIR", works=False, environment=long, prepare=_long_folder)
    check(case, tmp_path)


def test_run_without_home_in_a_posix_locale_works(recipe, tmp_path):
    environment = _QUIET | _ASCII | {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"}
    environment |= {"TMPDIR": f"{{here}}/{'t' * 110}"}
    check(Case(recipe(1), "Result: runs", environment=environment, prepare=_long_folder), tmp_path)


def test_crash_of_vl_convert_costs_the_figure_and_nothing_else(recipe, tmp_path):
    # Enough address space for training and not for V8, which reserves its own and aborts.
    limits = {resource.RLIMIT_AS: 4 * 2**30}
    check(Case(recipe(1), "No picture could be drawn", limits=limits), tmp_path)
    assert len(list((tmp_path / "runs" / "snell").rglob("result.json"))) == 1
    assert not list(tmp_path.rglob("*.png"))
