"""Attacks on every reader and on training, and the table of their outcomes.

``make attack`` is the long form: it prints the table as it grows, goes on where it was stopped, and
writes the table into ``docs/reliability.md``. CI runs a shorter one (``test_damaged_inputs.py``,
``test_edited_results.py``).
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from damage import KINDS, Case, cases, write_sound
from edits import edit_at_random
from table import Table, outcome_of

from attnscope.claims.wording import sentence
from attnscope.report.page import as_data, request_of
from attnscope.report.payload import payload
from attnscope.running.run import charts_of
from attnscope.running.verdicts import judge
from attnscope.runs.result import read_result

REPOSITORY = Path(__file__).parents[2]
RESULTS = REPOSITORY / "results"
_PAGE = REPOSITORY / "docs" / "reliability.md"
_BEGIN, _END = "<!-- attack: begin -->\n", "<!-- attack: end -->\n"


def attack_files(folder: Path, draws: int, table: Table) -> None:
    """Damage every file of every kind of input, and read it."""
    if not draws:
        return
    write_sound(folder)
    sound = {name: kind.read(folder / name) for name, kind in KINDS.items()}
    listed = list(cases(folder, draws))
    for number in table.left("files", len(listed)):
        case = listed[number]
        place = folder / "damaged"
        shutil.copytree(folder / case.kind, place)
        table.add(case.kind, *_outcome(case, place, sound[case.kind]))
        shutil.rmtree(place)


def _outcome(case: Case, place: Path, sound: Any) -> tuple[str, str]:
    kind, target = KINDS[case.kind], place / case.file
    before = target.read_bytes()
    case.apply(target, random.Random(f"{case}"))
    outcome, found = outcome_of(lambda: kind.read(place))
    if outcome == "accepted rightly" and not _is_same(target, before):
        changed = kind.checked and found != sound
        outcome = "wrong" if changed or case.must_refuse else outcome
    return outcome, f"{case.file} {case.damage} ({case.draw}): {str(found)[:300]}"


def _is_same(path: Path, before: bytes) -> bool:
    if path.is_symlink() or not path.is_file() or path.stat().st_size != len(before):
        return False
    return path.read_bytes() == before


_LARGE = 100_000  # bytes


def references() -> list[str]:
    """Return the reference results ten times over, the largest ones once: they take long."""
    texts = [path.read_text(encoding="utf8") for path in sorted(RESULTS.rglob("result.json"))]
    small = [text for text in texts if len(text) < _LARGE]
    large = [text for text in texts if len(text) >= _LARGE]
    return [*small * 10, *large]


def decide_all(folder: Path, path: Path) -> None:
    """Read a result, decide the claims on it, and format the verdicts."""
    judged = judge([read_result(path)])
    for claim in judged:
        if claim.setting:
            sentence(claim.evidence)
    json.dumps([claim.as_json() for claim in judged], allow_nan=False)


def draw_all(folder: Path, path: Path) -> None:
    """Make the figures' specifications and the report of a result."""
    as_data(payload(request_of(folder)))
    for chart in charts_of(read_result(path), [])[0].values():
        chart.to_dict()


READERS: dict[str, Callable[[Path, Path], None]] = {
    "edited results: claims": decide_all,
    "edited results: figures, report": draw_all,
}


def attack_results(folder: Path, count: int, table: Table, kind: str) -> None:
    """Edit reference results at random, and read them."""
    sound, read = references(), READERS[kind]
    path = folder / "edited" / "snell" / "fig3" / "result.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    for number in table.left(kind, count):
        result = json.loads(sound[number % len(sound)])
        place = f"{number}: {result['recipe']} {result.get('part', '')}"
        names = edit_at_random(result, random.Random(f"{kind} {number}"))
        path.write_text(json.dumps(result))
        outcome, found = outcome_of(lambda: read(folder / "edited", path))
        table.add(kind, outcome, f"{place}: {', '.join(names)}: {found or ''}")


def attack_runs(folder: Path, count: int, table: Table) -> None:
    """Kill a training run at a random moment, resume it, and compare every byte."""
    if not count:
        return
    from conftest import Server, _contents, _tiny

    unit = _tiny(steps=12, every=4)
    server = Server()
    with server.process:
        whole = server.run(folder / "undisturbed", unit=unit)
        expected = _contents(folder / "undisturbed")
        for number in table.left("kills", count):
            workspace = folder / "killed"
            workspace.mkdir()
            at = random.Random(f"kill {number}").randrange(len(whole.moments))
            server.run(workspace, kill_at=at, unit=unit)
            status = server.run(workspace, unit=unit).status
            same = status == 0 and _contents(workspace) == expected
            outcome = "accepted rightly" if same else "wrong"
            table.add("killed runs: the same bytes", outcome, f"at moment {at}")
            shutil.rmtree(workspace)
        assert server.process.stdin is not None
        server.process.stdin.close()


def attack(asked: argparse.Namespace, path: Path, process: int) -> None:
    """Try the cases of one process; its table is written to a file."""
    table = Table.read(path, process, asked.jobs)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        attack_files(folder, asked.draws, table)
        for kind, count in zip(READERS, (asked.results, asked.figures), strict=True):
            attack_results(folder, count, table, kind)
        attack_runs(folder, asked.kills, table)


def write_page(table: Table) -> None:
    """Put the table into the documentation, in the place of the one before."""
    text = _PAGE.read_text(encoding="utf8")
    before, _, rest = text.partition(_BEGIN)
    after = rest.partition(_END)[2]
    lines = "\n".join(table.lines())
    _PAGE.write_text(f"{before}{_BEGIN}{lines}\n{_END}{after}", encoding="utf8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run attacks, print their table, and return 1 if one found a defect."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    for name in ("draws", "results", "figures", "kills"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--table", type=Path, help="where the table is kept, to go on with it")
    parser.add_argument("--page", action="store_true", help="write docs/reliability.md")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    asked = parser.parse_args(arguments)
    table = Table()
    with tempfile.TemporaryDirectory() as place:
        path = asked.table or Path(place) / "table.json"
        paths = [path.with_suffix(f".{number}.json") for number in range(asked.jobs)]
        with ProcessPoolExecutor(asked.jobs, get_context("spawn")) as pool:
            list(pool.map(partial(attack, asked), paths, range(asked.jobs)))
        for path in paths:
            table.include(Table.read(path))
    print("\n".join([*table.lines(), *table.failures[:40]]))
    if asked.page:
        write_page(table)
    return int(bool(table.failures))


if __name__ == "__main__":
    sys.exit(main())
