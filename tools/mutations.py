"""Mutation check: which of a fixed list of single-line mutations do the tests catch?

``draw`` lists mutations of lines that occur exactly once in a tree; ``keep`` leaves those whose
line occurs once in another tree too, so that one list applies before and after a restructuring.
``check`` applies each to a copy of a tree and runs the tests that may notice it: those of the
mutated module, those that import it and those of its folder, the ones that name the mutated
function first. A mutation is caught when a test fails that passes without it. A mutation's tests
compute for at most MOST seconds; tests that have not run by then have not caught it.

    python tools/mutations.py draw OLD > drawn.csv
    python tools/mutations.py keep drawn.csv NEW > tools/mutations.csv
    python tools/mutations.py check OLD tools/mutations.csv > before.csv
    python tools/mutations.py check NEW tools/mutations.csv > after.csv
    python tools/mutations.py compare before.csv after.csv
"""

from __future__ import annotations

import argparse
import ast
import csv
import gc
import importlib
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.abc import SourceLoader
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import cast

import pytest

Report = Callable[[dict[str, str], str], None]

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
MOST = 10  # seconds of CPU for the tests of a mutation
COMPUTING, WAITING = 40, 300  # seconds of CPU and of time for a test; one that takes longer hangs
TOO_LONG, CRASHES, NOT_FOUND = "(not within the time)", "(crashes)", "(line not found)"
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


# Tests that `make test` does not run.
ELSEWHERE = {"browser", "reliability", "cluster", "docs"}


def tests_for(tree: Path, module: Path, function: str) -> list[str]:
    """Return the test files for a function of a module.

    The module's own first, then those that import it, then its folder's and those of _WIDER; of
    each kind the ones first that name the function or its class.
    """
    inside = module.relative_to(tree / "src/attnscope")
    dotted = re.escape(".".join(["attnscope", *inside.with_suffix("").parts]))
    own = tree / "tests" / inside.parent / f"test_{inside.name}"
    tests = sorted((tree / "tests").rglob("test_*.py"))
    tests = [test for test in tests if not ELSEWHERE & set(test.parts)]
    texts = {test: test.read_text(encoding="utf-8") for test in tests}
    near = [test for test in tests if test.parent == own.parent]
    importing = [test for test in tests if re.search(rf"\b{dotted}\b", texts[test])]
    wide = [
        test
        for test in tests
        if set(_WIDER.get(inside.parts[0], ())) & {test.stem, test.parent.name}
    ]
    ordered = list(dict.fromkeys([*near, *importing, *wide]))
    names = [name for name in function.split(".") if name and not name.startswith("__")]
    named = re.compile(rf"\b({'|'.join(names)})\b" if names else "$^")
    ordered.sort(key=lambda t: (t != own, t not in importing, not named.search(texts[t])))
    return [str(test.relative_to(tree)) for test in ordered]


class Clocks:
    """A pytest plugin: a test that hangs fails."""

    def pytest_sessionstart(self) -> None:
        """Let both clocks end the test that runs."""
        for moment in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(moment, self._stop)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Wind the clocks up: seconds of computation, and of waiting."""
        signal.setitimer(signal.ITIMER_PROF, COMPUTING)
        signal.setitimer(signal.ITIMER_REAL, WAITING)

    @staticmethod
    def _stop(number: int, _: object) -> None:
        # pytest reports it; `except Exception` in the tested code does not catch it.
        raise BaseException("The test hangs.")


class Failures:
    """A pytest plugin: keeps the tests that failed, and files that cannot be imported."""

    def __init__(self) -> None:
        self.tests: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a test that failed."""
        if report.failed:
            self.tests.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep a file that cannot be imported."""
        if report.failed:
            self.tests.append(report.nodeid)


class Calls:
    """Which functions run while tests are collected: what they made is not made anew later."""

    def __init__(self) -> None:
        self.seen: set[CodeType] = set()

    def __enter__(self) -> Calls:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            self.seen.add(frame.f_code)


@dataclass
class Mutation:
    """A row of the list, and its place in a copy of a tree."""

    row: dict[str, str]
    module: Path
    function: str  # the outermost one whose body has the line, as "Class.name", or ""
    tests: list[str]

    @classmethod
    def find(cls, row: dict[str, str], tree: Path) -> Mutation | None:
        """Return the mutation of a row in a tree; None if its line is not there once."""
        found = [
            module
            for module in _modules(tree)
            for line in module.read_text(encoding="utf-8").splitlines()
            if line.strip() == row["line"]
        ]
        if len(found) != 1:
            return None
        source = found[0].read_text(encoding="utf-8")
        at = [line.strip() for line in source.splitlines()].index(row["line"]) + 1
        function = _function_at(ast.parse(source).body, at)
        return cls(row, found[0], function, tests_for(tree, found[0], function))

    @contextmanager
    def applied(self) -> Iterator[str]:
        """Mutate the module's file; yield its text."""
        source, times = self.module.read_text(encoding="utf-8"), self.module.stat()
        lines = source.splitlines(keepends=True)
        at = [line.strip() for line in lines].index(self.row["line"])
        lines[at] = lines[at].replace(self.row["line"], self.row["mutated"])
        mutated = "".join(lines)
        try:
            self.module.write_text(mutated, encoding="utf-8")
            # Bytecode is recognised by size and time: each mutation has a time of its own.
            os.utime(self.module, (0, 10**6 + int(self.row["id"])))
            yield mutated
        finally:
            self.module.write_text(source, encoding="utf-8")
            os.utime(self.module, ns=(times.st_atime_ns, times.st_mtime_ns))


def _function_at(statements: list[ast.stmt], line: int) -> str:
    for node in statements:
        if not node.lineno <= line <= (node.end_lineno or 0):
            continue
        if isinstance(node, ast.ClassDef):
            inner = _function_at(node.body, line)
            return inner and f"{node.name}.{inner}"
        if isinstance(node, ast.FunctionDef) and line >= node.body[0].lineno:
            return node.name
    return ""


class Mutants:
    """A pytest plugin: runs the tests once per mutation, in a fork with mutated functions.

    The tests are collected once. A mutation outside of functions, or in one that ran while tests
    were collected, needs modules that are imported anew: ``left`` has those.
    """

    def __init__(self, mutations: list[Mutation], calls: Calls, report: Report) -> None:
        self.mutations, self.calls, self.report = mutations, calls, report
        self.left: list[Mutation] = []
        self.failing: set[str] = set()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of pytest's loop over the tests."""
        self.calls.__exit__()
        ran = {(code.co_filename, code.co_qualname) for code in self.calls.seen}
        self.calls.seen.clear()
        functions: dict[tuple[str, str], list[FunctionType]] = defaultdict(list)
        gc.unfreeze()  # A tree's own conftest may have frozen what is to be found.
        for found in gc.get_objects():
            if isinstance(found, FunctionType):
                functions[found.__code__.co_filename, found.__code__.co_qualname].append(found)
        imported = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        gc.freeze()
        gc.enable()
        by_file: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in session.items:
            by_file[item.nodeid.partition("::")[0]].append(item)
        for mutation in self.mutations:
            key = (str(mutation.module), mutation.function)
            is_imported = str(mutation.module) in imported
            if not key[1] or key in ran or (is_imported and key not in functions):
                self.left.append(mutation)
                continue
            items = [item for file in mutation.tests for item in by_file[file]]
            with mutation.applied() as source:
                self.report(mutation.row, self._caught(source, functions.get(key, []), items))
        return True

    def _caught(self, source: str, functions: list[FunctionType], items: list[pytest.Item]) -> str:
        while True:
            wanted = [item for item in items if item.nodeid not in self.failing]
            caught = _in_fork(partial(self._first_failure, source, functions, wanted))
            if not caught or caught.startswith("("):
                return caught
            alone = [item for item in items if item.nodeid == caught]
            if not _in_fork(partial(self._first_failure, "", functions, alone)):
                return caught
            self.failing.add(caught)

    @staticmethod
    def _first_failure(source: str, functions: list[FunctionType], items: list[pytest.Item]) -> str:
        if source and functions:
            _mutate(functions, source)
        failures = Failures()
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.pluginmanager.register(failures)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item.config.pluginmanager.unregister(failures)
            if failures.tests:
                return item.nodeid
            if _computed() > MOST:
                return TOO_LONG
        return ""


def _mutate(functions: list[FunctionType], source: str) -> None:
    """Give functions the code that they have in a mutated source."""
    module = sys.modules[functions[0].__module__]
    loader = cast(SourceLoader, module.__spec__.loader if module.__spec__ else None)
    path = functions[0].__code__.co_filename
    waiting = [loader.source_to_code(source.encode(), path)]
    while waiting:
        code = waiting.pop()
        for function in functions:
            old = function.__code__
            places = (old.co_qualname, old.co_firstlineno), (code.co_qualname, code.co_firstlineno)
            if places[0] == places[1]:
                function.__code__ = code
        waiting += [inner for inner in code.co_consts if isinstance(inner, CodeType)]


def _computed() -> float:
    """Return the seconds of CPU of this process and of the processes it started."""
    return sum(os.times()[:4])


def _in_fork(compute: Callable[[], str]) -> str:
    """Return what a function returns in a fork of this process, with temporary files of its own."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(dir=_memory(), ignore_cleanup_errors=True) as scratch:
        child = os.fork()
        if not child:
            os.environ["TMPDIR"] = tempfile.tempdir = scratch
            sender.send(compute())
            os._exit(0)
        sender.close()
        try:
            return str(receiver.recv())
        except EOFError:
            return CRASHES
        finally:
            os.waitpid(child, 0)


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _start(tree: Path) -> None:
    """Let this process run the tests of a tree."""
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


OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--capture=sys", "--tb=no"]


def _check_functions(tree: Path, mutations: list[Mutation], report: Report) -> str:
    """Check the mutations of functions, in forks of this process; return the ids of the others."""
    _start(tree)
    files = dict.fromkeys(file for mutation in mutations for file in mutation.tests)
    gc.disable()  # What is collected stays.
    with Calls() as calls:
        mutants = Mutants(mutations, calls, report)
        pytest.main(
            [*OPTIONS, "--continue-on-collection-errors", *files], plugins=[Clocks(), mutants]
        )
    return ",".join(mutation.row["id"] for mutation in mutants.left)


class Limit:
    """A pytest plugin: ends the run once the tests have computed for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.is_reached = seconds, False

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Look at the clock after each test."""
        if _computed() > self.seconds:
            self.is_reached = True
            pytest.exit("The tests take longer than they may.")


def _check_anew(tree: Path, tests: list[str], seconds: float) -> str:
    """Run tests in this process, which has not yet imported the package, until one fails."""
    _start(tree)
    failures, limit = Failures(), Limit(seconds)
    pytest.main([*OPTIONS, "-x", *tests], plugins=[Clocks(), failures, limit])
    return failures.tests[0] if failures.tests else TOO_LONG if limit.is_reached else ""


def _caught_anew(tree: Path, mutation: Mutation, failing: set[str]) -> str:
    files = mutation.tests
    # The nearest file alone, then a few at a time: collecting tests costs more than most tests.
    some = [files[:1], *(files[at : at + 8] for at in range(1, len(files), 8))]
    end = _computed() + MOST
    while some:
        tests = [*(f"--deselect={test}" for test in failing), *some[0]]
        with mutation.applied():
            caught = _in_fork(partial(_check_anew, tree, tests, end - _computed()))
        if caught.startswith("("):
            return caught
        if not caught:
            some.pop(0)
            continue
        # A file that cannot be imported is looked at without its tests.
        alone = [caught] if "::" in caught else ["--collect-only", caught]
        if not _in_fork(partial(_check_anew, tree, alone, COMPUTING)):
            return caught
        failing.add(caught)
    return ""


def check(tree: Path, rows: list[dict[str, str]], report: Report) -> None:
    """Report for each mutation the test that catches it, or "" where none does."""
    for library in PRELOADED:
        importlib.import_module(library)
    with tempfile.TemporaryDirectory(dir=_memory()) as scratch:
        copy = _copy(tree, Path(scratch) / "tree")
        found = {row["id"]: Mutation.find(row, copy) for row in rows}
        for row in rows:
            if found[row["id"]] is None:
                report(row, NOT_FOUND)
        mutations = [mutation for mutation in found.values() if mutation]
        left = _in_fork(partial(_check_functions, copy, mutations, report))
        if left == CRASHES:
            raise RuntimeError("The tests cannot be collected.")
        failing: set[str] = set()
        for mutation in mutations:
            if mutation.row["id"] in left.split(","):
                report(mutation.row, _caught_anew(copy, mutation, failing))


def _copy(tree: Path, to: Path) -> Path:
    """Copy a tree; what is neither source nor test is linked."""
    to.mkdir()
    for path in tree.iterdir():
        if path.name in {"src", "tests"}:
            shutil.copytree(path, to / path.name)
        elif not path.name.startswith("."):
            (to / path.name).symlink_to(path)
    return to


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
        _check(given.tree.resolve(), rows)
    else:
        _compare(_read(given.before), _read(given.after))


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _check(tree: Path, rows: list[dict[str, str]]) -> None:
    # The tests' process has another standard output.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*FIELDS, "caught"], lineterminator="\n")
        writer.writeheader()
        file.flush()

        def report(row: dict[str, str], caught: str) -> None:
            writer.writerow({**row, "caught": caught})
            file.flush()

        check(tree, rows, report)


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


def _is_caught(row: dict[str, str]) -> bool:
    return row["caught"] not in ("", TOO_LONG, NOT_FOUND)


def _compare(before: list[dict[str, str]], after: list[dict[str, str]]) -> None:
    """Print what is caught by folder, then what is not caught after; fail if some is lost."""
    old, new = ({row["id"]: row for row in rows} for rows in (before, after))
    both = sorted((key for key in old if key in new), key=int)
    print("| folder | mutations | caught before | caught after |\n|---|--:|--:|--:|")
    folders = sorted({new[key]["folder"] for key in both})
    for folder in (*folders, ""):
        keys = [key for key in both if folder in ("", new[key]["folder"])]
        counts = [sum(_is_caught(rows[key]) for key in keys) for rows in (old, new)]
        print(f"| {folder or 'all'} | {len(keys)} | {counts[0]} | {counts[1]} |")
    print("\nNot caught after:\n")
    left = [key for key in both if not _is_caught(new[key])]
    lost = [key for key in left if _is_caught(old[key])]
    for key in left:
        note = f" (before: {old[key]['caught']})" if key in lost else ""
        row = new[key]
        print(f"- {key}, {row['folder']}: `{row['line']}` → `{row['mutated']}`{note}")
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()
