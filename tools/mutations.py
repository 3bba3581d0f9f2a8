"""Mutation check: which of a fixed list of single-line mutations do the tests catch?

``draw`` lists mutations of lines that occur exactly once in a tree; ``keep`` leaves those whose
line occurs once in another tree too, so that one list applies before and after a restructuring.
``check`` applies each to a copy of a tree and runs the tests that may notice it: those of the
mutated module, of its folder, and those that import it. A mutation is caught when a test fails that
passes without it.

    python tools/mutations.py draw OLD > drawn.csv
    python tools/mutations.py keep drawn.csv NEW > tools/mutations.csv
    python tools/mutations.py check OLD tools/mutations.csv --jobs 2 > before.csv
    python tools/mutations.py check NEW tools/mutations.csv --jobs 2 > after.csv
    python tools/mutations.py compare before.csv after.csv
"""

from __future__ import annotations

import argparse
import ast
import csv
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Queue

import pytest

FIELDS = ["id", "folder", "line", "mutated"]
# Mutations per folder, before those are left out whose line a restructuring has changed.
QUOTA = {
    "runs": 20,
    "data": 30,
    "models": 30,
    "theory": 20,
    "scores": 20,
    "training": 30,
    "analysis": 32,
    "claims": 20,
    "figures": 12,
    "recipes": 60,
    "report": 24,
}
COMPUTING, WAITING = 120, 900  # seconds of CPU and of time for a test; one that takes longer hangs
PRELOADED = ["torch", "scipy.stats", "sklearn.linear_model", "altair", "hypothesis", "beartype"]
_COMPARE = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
}
_BINARY = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*")}
_WORDS = {"min": "max", "max": "min", "any": "all", "all": "any", "sum": "mean", "mean": "sum"}


def mutations_of(source: str) -> Iterator[tuple[str, str]]:
    """Yield (line, mutated line), both stripped, for every place that can be mutated."""
    lines = source.splitlines()
    tree = ast.parse(source)
    annotations = {
        inner
        for node in ast.walk(tree)
        for inner in ast.walk(getattr(node, "annotation", None) or ast.Pass())
    }
    for node in ast.walk(tree):
        if node in annotations:
            continue
        for line, start, end, new in _places(node, lines):
            text = lines[line]
            # Offsets of ast count bytes; a line with other letters is left out.
            if text.isascii():
                yield text.strip(), (text[:start] + new + text[end:]).strip()


def _places(node: ast.AST, lines: list[str]) -> Iterator[tuple[int, int, int, str]]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARE:
        yield from _between(node.left, node.comparators[0], _COMPARE[type(node.ops[0])], lines)
    elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY and not _is_text(node):
        yield from _between(node.left, node.right, _BINARY[type(node.op)], lines)
    elif isinstance(node, ast.BoolOp):
        word = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        yield from _between(node.values[0], node.values[1], word, lines)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _WORDS and node.func.end_lineno is not None:
            end = node.func.end_col_offset or 0
            start = end - len(node.func.attr)
            yield node.func.end_lineno - 1, start, end, _WORDS[node.func.attr]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.lineno - 1, node.col_offset, node.operand.col_offset, ""
    elif isinstance(node, ast.Constant) and type(node.value) is int and node.value in (0, 1, 2):
        yield node.lineno - 1, node.col_offset, node.end_col_offset or 0, str(node.value + 1)


def _is_text(node: ast.BinOp) -> bool:
    """Return whether an operation joins texts, lists or paths: mutated, it could but crash."""
    text = ast.unparse(node)
    return bool(re.search(r"""["'[]|path|folder|workspace|place""", text))


def _between(
    left: ast.expr, right: ast.expr, words: tuple[str, str], lines: list[str]
) -> Iterator[tuple[int, int, int, str]]:
    if left.end_lineno != right.lineno or left.end_col_offset is None:
        return
    gap = lines[right.lineno - 1][left.end_col_offset : right.col_offset]
    at = gap.find(words[0])
    if at >= 0:
        start = left.end_col_offset + at
        yield right.lineno - 1, start, start + len(words[0]), words[1]


def _modules(tree: Path) -> list[Path]:
    return sorted((tree / "src/attnscope").rglob("*.py"))


def _count_lines(tree: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for path in _modules(tree):
        found.update(line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return found


def draw(tree: Path) -> list[dict[str, str]]:
    """Return mutations of a tree, drawn with a fixed seed, at most one per line."""
    counts = _count_lines(tree)
    by_folder: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path in _modules(tree):
        folder = path.relative_to(tree / "src/attnscope").parts[0]
        for line, mutated in mutations_of(path.read_text(encoding="utf-8")):
            if counts[line] == 1 and mutated != line:
                by_folder[folder][line].append(mutated)
    rows: list[dict[str, str]] = []
    rng = random.Random(20260)
    for folder, wanted in QUOTA.items():
        lines = sorted(by_folder[folder])
        for line in sorted(rng.sample(lines, min(wanted, len(lines)))):
            mutated = rng.choice(by_folder[folder][line])
            rows.append({"folder": folder, "line": line, "mutated": mutated})
    rng.shuffle(rows)  # A check that is stopped early has seen every folder.
    return [{"id": str(number), **row} for number, row in enumerate(rows)]


def keep(rows: list[dict[str, str]], tree: Path) -> list[dict[str, str]]:
    """Return the mutations whose line occurs exactly once in a tree."""
    counts = _count_lines(tree)
    return [row for row in rows if counts[row["line"]] == 1]


# Tests of other folders that promise something about a folder.
_WIDER = {
    "recipes": ("test_every_recipe", "recipes"),
    "claims": ("recipes",),
    "models": ("contract",),
    "scores": ("contract",),
}


def tests_for(tree: Path, module: Path) -> list[str]:
    """Return the test files for a module: its own first, its folder's, those that import it."""
    inside = module.relative_to(tree / "src/attnscope")
    dotted = re.escape(".".join(["attnscope", *inside.with_suffix("").parts]))
    own = tree / "tests" / inside.parent / f"test_{inside.name}"
    tests = sorted((tree / "tests").rglob("test_*.py"))
    tests = [t for t in tests if not {"browser", "reliability"} & set(t.parts)]
    near = [t for t in tests if t.parent == own.parent]
    importing = [t for t in tests if re.search(rf"\b{dotted}\b", t.read_text(encoding="utf-8"))]
    wide = [t for t in tests if set(_WIDER.get(inside.parts[0], ())) & {t.stem, t.parent.name}]
    ordered = dict.fromkeys([*([own] if own.exists() else []), *near, *importing, *wide])
    return [str(path.relative_to(tree)) for path in ordered]


class FirstFailure:
    """A pytest plugin: keeps the first test that fails; a test that hangs fails."""

    def __init__(self) -> None:
        self.test = ""

    def pytest_sessionstart(self) -> None:
        """Let both clocks end the test that runs."""
        for moment in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(moment, self._stop)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Wind the clocks up: seconds of computation, and of waiting."""
        signal.setitimer(signal.ITIMER_PROF, COMPUTING)
        signal.setitimer(signal.ITIMER_REAL, WAITING)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a test that failed."""
        if report.failed:
            self.test = self.test or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep a file that cannot be imported."""
        if report.failed:
            self.test = self.test or report.nodeid

    @staticmethod
    def _stop(number: int, _: object) -> None:
        # pytest reports it; `except Exception` in the tested code does not catch it.
        raise BaseException("The test hangs.")


def run_tests(tree: Path, tests: list[str], found: Connection) -> None:
    """Run tests of a tree in this process until one fails, and send its name, or ""."""
    os.chdir(tree)
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    source = str(tree / "src")
    os.environ["PYTHONPATH"] = os.pathsep.join([source, *filter(None, [os.getenv("PYTHONPATH")])])
    os.environ["OMP_NUM_THREADS"] = "1"
    # Only the mutated module is compiled anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    sys.path.insert(0, source)
    first = FirstFailure()
    pytest.main(["-q", "-x", "-p", "no:cacheprovider", "--tb=no", *tests], plugins=[first])
    found.send(first.test)


class Tests:
    """Runs the tests of copies of one tree; those that fail without a mutation are left out.

    A process per mutation, forked from one that has imported what all tests need.
    """

    def __init__(self, pristine: Path) -> None:
        self.pristine = pristine
        self.passing: set[str] = set()
        self.failing: set[str] = set()
        self.processes = multiprocessing.get_context("forkserver")
        self.processes.set_forkserver_preload(PRELOADED)

    def catching(self, tree: Path, files: list[str]) -> str:
        """Return a test that fails in a tree and passes in the pristine one, or ""."""
        # The nearest file alone, then a few at a time: collecting tests costs more than most tests.
        for some in (files[:1], *(files[at : at + 8] for at in range(1, len(files), 8))):
            if caught := self._catching_among(tree, some):
                return caught
        return ""

    def _catching_among(self, tree: Path, files: list[str]) -> str:
        while True:
            left_out = [f"--deselect={test}" for test in self.failing]
            failed = self._first_failure(tree, [*left_out, *files])
            if not failed or failed.startswith("(") or failed in self.passing:
                return failed
            alone = self._first_failure(self.pristine, [failed])
            (self.failing if alone else self.passing).add(failed)

    def _first_failure(self, tree: Path, tests: list[str]) -> str:
        receiver, sender = self.processes.Pipe(duplex=False)
        process = self.processes.Process(target=run_tests, args=(tree, tests, sender))
        process.start()
        sender.close()
        try:
            return str(receiver.recv())
        except EOFError:
            return "(crashes)"
        finally:
            process.join()


def check(tree: Path, rows: list[dict[str, str]], jobs: int) -> Iterator[dict[str, str]]:
    """Yield for each mutation the test that catches it, or "" where none does."""
    copies: Queue[Path] = Queue()
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(jobs + 1):
            copies.put(_copy(tree, Path(scratch) / str(number)))
        tests = Tests(copies.get())

        def one(row: dict[str, str]) -> dict[str, str]:
            copy = copies.get()
            try:
                return {**row, "caught": _caught(copy, row, tests)}
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(jobs) as pool:
            # As they end: one that hangs does not hold back the others.
            for done in as_completed([pool.submit(one, row) for row in rows]):
                yield done.result()


def _copy(tree: Path, to: Path) -> Path:
    """Copy a tree; what is neither source nor test is linked."""
    to.mkdir()
    for path in tree.iterdir():
        if path.name in {"src", "tests"}:
            shutil.copytree(path, to / path.name)
        elif not path.name.startswith("."):
            (to / path.name).symlink_to(path)
    return to


def _caught(copy: Path, row: dict[str, str], tests: Tests) -> str:
    for module in _modules(copy):
        source = module.read_text(encoding="utf-8")
        stripped = [line.strip() for line in source.splitlines()]
        if row["line"] in stripped:
            break
    else:
        return "(line not found)"
    lines = source.splitlines(keepends=True)
    at = stripped.index(row["line"])
    lines[at] = lines[at].replace(row["line"], row["mutated"])
    files = tests_for(copy, module)
    module.write_text("".join(lines), encoding="utf-8")
    try:
        return tests.catching(copy, files)
    finally:
        module.write_text(source, encoding="utf-8")


def main() -> None:
    """Run one of the three commands."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw")
    drawing.add_argument("tree", type=Path)
    keeping = commands.add_parser("keep")
    keeping.add_argument("list", type=Path)
    keeping.add_argument("tree", type=Path)
    checking = commands.add_parser("check")
    checking.add_argument("tree", type=Path)
    checking.add_argument("list", type=Path)
    checking.add_argument("--jobs", type=int, default=2)
    checking.add_argument("--only", default="", help="ids, as 0-49 or 3,7")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "draw":
        _write(draw(given.tree), FIELDS)
    elif given.command == "keep":
        _write(keep(_read(given.list), given.tree), FIELDS)
    elif given.command == "check":
        rows = [row for row in _read(given.list) if _wanted(int(row["id"]), given.only)]
        _write(check(given.tree.resolve(), rows, given.jobs), [*FIELDS, "caught"])
    else:
        _compare(_read(given.before), _read(given.after))


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write(rows: Iterable[dict[str, str]], fields: list[str]) -> None:
    writer = csv.DictWriter(sys.stdout, fields, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(row)
        sys.stdout.flush()


def _wanted(number: int, only: str) -> bool:
    if not only:
        return True
    ranges = [part.partition("-") for part in only.split(",")]
    return any(int(low) <= number <= int(high or low) for low, _, high in ranges)


def _compare(before: list[dict[str, str]], after: list[dict[str, str]]) -> None:
    old, new = ({row["id"]: row for row in rows} for rows in (before, after))
    both = [key for key in old if key in new]
    lost = [key for key in both if old[key]["caught"] and not new[key]["caught"]]
    print(f"{len(both)} mutations in both")
    print(f"caught before: {sum(bool(old[key]['caught']) for key in both)}")
    print(f"caught after:  {sum(bool(new[key]['caught']) for key in both)}")
    for key in lost:
        print(f"lost {key} ({new[key]['folder']}): {new[key]['line']} -> {new[key]['mutated']}")
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()
