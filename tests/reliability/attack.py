"""Attacks on every reader, and the table of what came of them.

``python tests/reliability/attack.py`` is the long form (`make attack`): it prints the table and
writes ``docs/reliability.md``. CI runs a shorter one, in ``test_attack.py``.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import shutil
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from damage import KINDS, cases

from attnscope.claims.wording import sentence
from attnscope.errors import AttnscopeError
from attnscope.recipes.verdicts import judge
from attnscope.runs.result import read_result

RESULTS = Path(__file__).parents[2] / "results"
OUTCOMES = ("sentence", "accepted rightly", "traceback", "hang", "wrong")
PATIENCE = 60  # seconds; what is waited for takes milliseconds


@dataclass
class Table:
    """How many attacks of each kind ended how, and the first ones that should not have."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, kind: str, outcome: str, what: str) -> None:
        self.counts.setdefault(kind, Counter())[outcome] += 1
        if outcome in OUTCOMES[2:]:
            self.failures.append(f"{kind}: {what}: {outcome}")

    def lines(self) -> list[str]:
        rows = ["| | tried | " + " | ".join(OUTCOMES) + " |", "|---|" + "---:|" * 6]
        total: Counter[str] = Counter()
        for kind, counts in self.counts.items():
            total.update(counts)
            rows.append(_line(kind, counts))
        return [*rows, _line("**all**", total)]


def _line(name: str, counts: Counter[str]) -> str:
    numbers = [counts.total(), *(counts[outcome] for outcome in OUTCOMES)]
    return f"| {name} | " + " | ".join(f"{number:,}" for number in numbers) + " |"


class Hang(BaseException):
    """An attack took longer than anybody waits."""


@contextmanager
def alarm() -> Iterator[None]:
    def ring(number: int, frame: Any) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome_of(read: Callable[[], Any]) -> tuple[str, Any]:
    """Return how reading ended, and what was read or said."""
    try:
        with alarm(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "accepted rightly", read()
    except AttnscopeError as error:
        said = str(error)
        return ("sentence", said) if "\n" not in said and said else ("wrong", said)
    except Hang:
        return "hang", ""
    except Exception as error:
        return "traceback", f"{type(error).__name__}: {error}"


def attack_files(folder: Path, draws: int, table: Table, every: int = 1) -> None:
    """Damage every file of every kind of input, and read it."""
    sound: dict[str, Any] = {}
    for number, case in enumerate(list(cases(folder, draws))):
        kind, original = KINDS[case.kind], folder / case.kind.replace(" ", "-")
        if case.kind not in sound:
            sound[case.kind] = kind.read(original)
        if number % every:
            continue
        place = folder / "damaged"
        shutil.copytree(original, place)
        rng = random.Random(f"{case}")
        before = (place / case.file).read_bytes()
        case.apply(place / case.file, rng)
        outcome, found = outcome_of(lambda: kind.read(place))  # noqa: B023
        target = place / case.file
        same = target.is_file() and not target.is_symlink() and _read(target) == before
        if outcome == "accepted rightly" and not same:
            changed = kind.checked and found != sound[case.kind]
            outcome = "wrong" if changed or case.must_refuse else outcome
        what = f"{case.file} {case.damage} ({case.draw}): {str(found)[:300]}"
        table.add(case.kind, outcome, what)
        shutil.rmtree(place)


def _read(path: Path) -> bytes:
    return b"" if path.stat().st_size > 2**30 else path.read_bytes()


# Edits of a result: rows dropped, renamed, doubled, emptied; numbers null, huge, negative; axes and
# settings missing.

_NUMBERS = (None, 0, -1, 1e300, -1e300, 1e-300, 5e-324, 2**60)
_TEXTS = ("", "x", "constructor", "\x1b[31m", "\ud800", "nul\x00", "a" * 3000, "NaN")


def _rows(result: dict[str, Any], rng: random.Random) -> list[dict[str, Any]]:
    rows = result["measurements"]
    if not rows:
        return []
    name = rng.choice(rows)["name"]
    return [row for row in rows if row["name"] == name or rng.random() < 0.1]


def _each(change: Callable[[dict[str, Any], random.Random], object]) -> Callable[..., None]:
    def edit(result: dict[str, Any], rng: random.Random) -> None:
        for row in _rows(result, rng):
            change(row, rng)

    return edit


def _drop_names(result: dict[str, Any], rng: random.Random) -> None:
    names = sorted({row["name"] for row in result["measurements"]})
    gone = set(rng.sample(names, rng.randint(1, len(names)))) if names else set()
    result["measurements"] = [row for row in result["measurements"] if row["name"] not in gone]


def _keep_some(result: dict[str, Any], rng: random.Random) -> None:
    share = rng.random()
    result["measurements"] = [row for row in result["measurements"] if rng.random() < share]


def _drop_axes(row: dict[str, Any], rng: random.Random) -> None:
    axes = row.get("axes") or {}
    for name in list(axes):
        if rng.random() < 0.5:
            del axes[name]


def _other_axes(row: dict[str, Any], rng: random.Random) -> None:
    for name in row.get("axes") or {}:
        row["axes"][name] = rng.choice((*_TEXTS[:4], 3, 0.5, -7))


def _ends(row: dict[str, Any], rng: random.Random) -> None:
    row["low"], row["high"] = rng.choice(_NUMBERS), rng.choice(_NUMBERS)


EDITS: dict[str, Callable[[dict[str, Any], random.Random], object]] = {
    "config {}": lambda result, rng: result.update(config={}),
    "config of other things": lambda result, rng: result.update(
        config={key: rng.choice(_TEXTS[:6]) for key in result["config"]}
    ),
    "config values null": lambda result, rng: result.update(config=dict.fromkeys(result["config"])),
    "config keys dropped": lambda result, rng: result.update(
        config={key: value for key, value in result["config"].items() if rng.random() < 0.5}
    ),
    "environment {}": lambda result, rng: result.update(environment={}),
    "no rows": lambda result, rng: result.update(measurements=[]),
    "rows dropped": _keep_some,
    "names dropped": _drop_names,
    "rows doubled": lambda result, rng: result["measurements"].extend(
        copy.deepcopy(_rows(result, rng))
    ),
    "rows in another order": lambda result, rng: rng.shuffle(result["measurements"]),
    "names other": _each(lambda row, rng: row.update(name=rng.choice(_TEXTS))),
    "data sets other": _each(lambda row, rng: row.update(dataset=rng.choice(_TEXTS))),
    "data sets alike": lambda result, rng: [
        row.update(dataset="d") for row in result["measurements"]
    ],
    "values other": _each(lambda row, rng: row.update(value=rng.choice(_NUMBERS))),
    "values null": _each(lambda row, rng: row.update(value=None)),
    "ends other": _each(_ends),
    "n other": _each(lambda row, rng: row.update(n=rng.choice((0, -1, 1, 2**60)))),
    "seeds other": _each(lambda row, rng: row.update(seeds=rng.choice(([], [0], [-1, -1])))),
    "axes dropped": _each(_drop_axes),
    "axes other": _each(_other_axes),
    "found dropped": _each(lambda row, rng: row.pop("found", None)),
    "published other": _each(lambda row, rng: row.update(published=rng.choice(_NUMBERS))),
    "no pictures": lambda result, rng: result.update(pictures=[]),
    "other scale": lambda result, rng: result.update(scale="quick"),
    "other recipe": lambda result, rng: result.update(recipe=rng.choice(_TEXTS)),
    "a key dropped": lambda result, rng: result.pop(rng.choice(sorted(result))),
    "a key null": lambda result, rng: result.update({rng.choice(sorted(result)): None}),
}


_LARGE = 100_000  # bytes


def references() -> list[dict[str, Any]]:
    """Return the reference results ten times over, the largest ones once: they take long."""
    paths = sorted(RESULTS.rglob("result.json"))
    found = {path: json.loads(path.read_text(encoding="utf8")) for path in paths}
    small = [result for path, result in found.items() if path.stat().st_size < _LARGE]
    large = [result for path, result in found.items() if path.stat().st_size >= _LARGE]
    return [*small * 10, *large]


def read_all(folder: Path, path: Path) -> Any:
    """Read a result, decide the claims on it, and put the verdicts into words."""
    judged = judge([read_result(path)])
    told = [sentence(claim.evidence) + claim.note for claim in judged if claim.setting]
    json.dumps([claim.as_json() for claim in judged], allow_nan=False)
    return told


def draw_all(folder: Path, path: Path) -> Any:
    """Make the figures' specifications and the report of a result."""
    from attnscope.recipes.running import charts_of
    from attnscope.report.page import as_data, request_of
    from attnscope.report.payload import payload

    as_data(payload(request_of(folder)))
    return [chart.to_dict() for chart in charts_of(read_result(path), [])[0].values()]


def attack_results(
    folder: Path,
    count: int,
    table: Table,
    read: Callable[[Path, Path], Any] = read_all,
    kind: str = "edited results: claims",
) -> None:
    """Edit reference results at random, and decide the claims on them."""
    rng = random.Random(0)
    sound = references()
    path = folder / "fuzzed" / "snell" / "fig3" / "result.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        result = copy.deepcopy(sound[number % len(sound)])
        names = rng.sample(sorted(EDITS), rng.choice((1, 1, 2, 3)))
        names.sort(key=lambda name: name.startswith("a key"))  # Others need the keys.
        place = f"{result['recipe']} {result.get('part', '')}"
        for name in names:
            EDITS[name](result, rng)
        path.write_text(json.dumps(result))
        outcome, found = outcome_of(lambda: read(folder / "fuzzed", path))
        told = "" if outcome == "accepted rightly" else found
        table.add(kind, outcome, f"{place}: {', '.join(names)}: {told}")


def attack_runs(folder: Path, count: int, table: Table) -> None:
    """Kill a training run at a moment of its own, resume it, and compare every byte."""
    from conftest import Server, _contents, _tiny

    unit = _tiny(steps=12, every=4)
    server = Server()
    with server.process:
        whole = server.run(folder / "undisturbed", unit=unit)
        expected = _contents(folder / "undisturbed")
        rng = random.Random(0)
        for number in range(count):
            workspace = folder / f"killed-{number}"
            workspace.mkdir()
            at = rng.randrange(len(whole.moments))
            server.run(workspace, kill_at=at, unit=unit)
            status = server.run(workspace, unit=unit).status
            same = status == 0 and _contents(workspace) == expected
            outcome = "accepted rightly" if same else "wrong"
            table.add("killed runs: the same bytes", outcome, f"at moment {at}")
            shutil.rmtree(workspace)
        assert server.process.stdin is not None
        server.process.stdin.close()


PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
_HEAD = """# Reliability

Every input that somebody else may have written is damaged in every way that
`tests/reliability/damage.py` lists, reference results are edited at random, and training is killed.
What must come of it: one sentence that names the file, or the input is still sound and is accepted
rightly. A traceback, a hang, or something read that is not what was written (wrong) is a defect.

`make attack` tries 8 draws of each damage, 50,000 edited results and 1,000 kills; CI one draw of
each (972 damaged inputs) and 5,000 edited results.

"""


def main() -> int:
    """Run the long form, print its table and write it to ``docs/reliability.md``."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    for name, count in (("draws", 8), ("results", 50_000), ("figures", 500), ("kills", 1000)):
        parser.add_argument(f"--{name}", type=int, default=count)
    asked = parser.parse_args()
    table = Table()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        attack_files(folder, asked.draws, table)
        attack_results(folder, asked.results, table)
        attack_results(folder, asked.figures, table, draw_all, "edited results: figures, report")
        attack_runs(folder, asked.kills, table)
    print("\n".join([*table.lines(), *table.failures[:40]]))
    options = " ".join(f"--{name} {value}" for name, value in vars(asked).items())
    made = f"The table below is that of `python tests/reliability/attack.py {options}`.\n\n"
    PAGE.write_text(_HEAD + made + "\n".join(table.lines()) + "\n", encoding="utf8")
    return int(bool(table.failures))


if __name__ == "__main__":
    sys.exit(main())
