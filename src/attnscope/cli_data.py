"""The verbs about corpora: ``data list``, ``data check``, ``data fetch``.

They are `attnscope.data.listing`, `attnscope.data.check` and `attnscope.data.fetch` in Python.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli_options import Json
from attnscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attnscope.data.profile import Profile
    from attnscope.data.selection import Count

data_app = typer.Typer(no_args_is_help=True, help="Corpora: list, check, fetch.")

_Folder = Annotated[
    Path | None, typer.Option("--data", help="Folder of corpora (default: $ATTNSCOPE_DATA).")
]

_LISTED = 10
"""Classes that are counted one by one; of more their range is printed."""


def use_data(folder: Path | None) -> None:
    """Make ``folder`` the data folder of this process and its children."""
    if folder is None:
        return
    if not folder.is_dir():
        raise UsageError(f"--data {folder} is not a folder.")
    os.environ["ATTNSCOPE_DATA"] = str(folder.resolve())


@data_app.command("list")
def list_(data: _Folder = None, as_json: Json = False) -> None:
    """List the corpora: title, location, number of examples."""
    use_data(data)
    from attnscope.data.known import listing

    rows = listing()
    if as_json:
        from dataclasses import asdict

        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from attnscope.terminal import CleanConsole

    table = Table(title="Corpora", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("corpus", no_wrap=True)
    table.add_column("what it is")
    table.add_column("where")
    for column in ("train", "val"):
        table.add_column(column, justify="right")
    for row in rows:
        sizes = ("" if size is None else f"{size:,}" for size in (row.train, row.val))
        table.add_row(row.name, row.title, row.where, *sizes)
    CleanConsole().print(table)


@data_app.command()
def check(
    corpus: Annotated[str, typer.Argument(help="A known name, or a folder.")],
    data: _Folder = None,
    as_json: Json = False,
) -> None:
    """Read a whole corpus: splits, classes, lengths, words, duplicates, what is left out."""
    use_data(data)
    from attnscope.data.profile import profile
    from attnscope.data.selection import check as check_corpus

    checked = check_corpus(corpus)
    described = None if checked.task == "alignment" else profile(corpus)
    if as_json:
        from dataclasses import asdict

        own = {} if described is None else {"profile": asdict(described)}
        print(json.dumps(asdict(checked) | own, indent=1))
        return
    print(f"{checked.name}: {checked.task}, {checked.path}")
    print("In the files")
    _print_counts(checked.splits)
    if checked.selected == checked.splits:
        print("Used: all of them")
    else:
        print("Used")
        _print_counts(checked.selected)
    if checked.dropped:
        print("Left out")
        for reason, count in checked.dropped.items():
            print(f"  {reason}: {count:,}")
    if described is not None:
        _print_profile(described)
        _print_readings(corpus)
    else:
        print(
            "Gold alignments are measured, not trained on: "
            f"attnscope run snell/alignment gold={corpus} training=PARALLEL_CORPUS"
        )
    if checked.digest:
        print(f"Digest: {checked.digest}")
    if checked.deviation:
        print(f"Deviation: {checked.deviation}")


@data_app.command()
def fetch(
    corpus: Annotated[str, typer.Argument(help="A known name, for example multi30k-de-en.")],
) -> None:
    """Fetch a corpus into the cache: pinned files, or from the hub (extra hub)."""
    from attnscope.data.known import fetch as fetch_corpus

    for path in fetch_corpus(corpus):
        print(f"Corpus: {path}")
        differs = json.loads((path / "meta.json").read_text(encoding="utf8")).get("differs")
        if differs:
            print(differs)


def _print_profile(profile: Profile) -> None:
    print("Words of a text: median, 95 % have at most, longest")
    for split, lengths in profile.lengths.items():
        print(f"  {split}: {lengths.median:g}, {lengths.most:g}, {lengths.longest:,}")
    print(
        f"Vocabulary: {profile.types:,} word types to train on, {profile.known:,} of them three "
        f"times or more; {100 * profile.unknown:.1f} % of the validation words are not among these"
    )
    for where, count in profile.duplicates.items():
        print(f"Duplicates: {count:,} {where}")
    if profile.majority is not None:
        print(f"Largest class: {100 * profile.majority:.1f} % of the training texts")
    for warning in profile.warnings:
        print(f"Warning: {warning}")


def _print_readings(corpus: str) -> None:
    from attnscope.own_text.reading import readings

    print("What recipes leave out at their defaults")
    for each in readings(corpus):
        left = ", ".join(f"{reason}: {count:,}" for reason, count in each.left_out.items())
        print(f"  {each.recipes} ({each.setting}): {each.error or left or 'nothing'}")


def _print_counts(counts: Mapping[str, Count]) -> None:
    for split, count in counts.items():
        of = _few(count.of) if len(count.of) <= _LISTED else _many(count.of)
        print(f"  {split}: {count.n:,}{f' ({of})' if of else ''}")


def _few(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in counts.items())


def _many(counts: Mapping[str, int]) -> str:
    """Return the smallest, median and largest of many classes, and how many are empty."""
    found = {name: number for name, number in counts.items() if number}
    least, most = min(found, key=found.__getitem__), max(found, key=found.__getitem__)
    absent = len(counts) - len(found)
    return (
        f"{len(counts)} classes, {least} {found[least]:,} to {most} {found[most]:,}, "
        f"median {median(found.values()):g}{f'; {absent} without a text' if absent else ''}"
    )
