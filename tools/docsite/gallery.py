"""The gallery: a card for every recipe with its figure, verdicts, time, and a report to open."""

from __future__ import annotations

import json
import os
from collections import Counter
from itertools import groupby
from pathlib import Path

from attnscope.claims.papers import PAPERS
from attnscope.recipes.registry import Entry, entries
from attnscope.report import write_report
from docsite.markdown import Pages, minutes

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
PAGE = ROOT / "docs" / "generated"
REPORT = ROOT / "src" / "attnscope" / "report"
REPORTS = ROOT / "build" / "reports" / "reports"


def pages() -> Pages:
    """Return the page."""
    verdicts = _verdicts()
    sections = []
    for paper, group in groupby(entries(), key=lambda entry: entry.name.partition("/")[0]):
        cards = "\n".join(_card(entry, verdicts.get(entry.name, Counter())) for entry in group)
        sections.append(
            f"## {paper}: {PAPERS.get(paper, paper)}\n\n"
            f'<a href="../reports/{paper}.html">Open the report of all {paper} recipes</a>\n\n'
            f":::::{{grid}} 1 2 2 3\n:gutter: 2\n:class-container: gallery\n\n{cards}\n:::::\n"
        )
    intro = (
        "# Gallery\n\nOne card for every recipe, made from the committed results. A card opens the "
        "recipe in the report of its paper: one file that needs no network, with every number, "
        "figure and matrix. Times are those of a full run on two CPU cores and on one GPU; every "
        "recipe is quicker, and smaller, with `--quick`.\n\n"
    )
    return {"gallery.md": intro + "\n".join(sections)}


def _card(entry: Entry, verdicts: Counter[str]) -> str:
    paper = entry.name.partition("/")[0]
    picture = next(iter(figures_of(entry.name)), None)
    image = (
        f":img-top: {os.path.relpath(picture, PAGE)}\n:img-alt: {entry.title}\n" if picture else ""
    )
    counts = "".join(
        f" · {count} {word if count == 1 else _PLURAL[word]}"
        for word, count in sorted(verdicts.items())
    )
    tags = "no download" if entry.needs == "nothing" else "needs corpora"
    return (
        f"::::{{grid-item-card}} {entry.name}\n{image}:link: {report_of(entry.name)}\n"
        f":link-type: url\n:link-alt: the report of {entry.name}\n\n"
        f"{entry.title[:1].upper()}{entry.title[1:]}.\n\n:::{{card-footer}}\n{tags} · "
        f"{_times(entry)}{counts} · "
        f"[settings](recipes/{paper}.md#{entry.name.replace('/', '')})\n:::\n::::\n"
    )


def _times(entry: Entry) -> str:
    on_gpu = "" if entry.gpu_minutes is None else f", GPU {minutes(entry.gpu_minutes)}"
    return f"CPU {minutes(entry.cpu_minutes)}{on_gpu}"


_PLURAL = {"holds": "hold", "fails": "fail", "undecided": "undecided"}


def report_of(recipe: str) -> str:
    """Return the address of a recipe in its paper's report, from the gallery."""
    return f"../reports/{recipe.partition('/')[0]}.html#recipe-{recipe.replace('/', '-')}"


def figures_of(recipe: str) -> list[Path]:
    """Return the figures of a recipe, those of its own name before others."""
    drawn = sorted((RESULTS / recipe).rglob("figures/*.svg"))
    return sorted(drawn, key=lambda path: path.stem != recipe.partition("/")[2])


def _verdicts() -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for claim in json.loads((RESULTS / "claims.json").read_text(encoding="utf-8")):
        for recipe in claim["recipes"]:
            found.setdefault(recipe, Counter())[claim["verdict"]] += 1
    return found


def write_reports() -> None:
    """Write a report for each paper, where its results or the report's code have changed since."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    for paper in PAPERS:
        folders = sorted(path.parent for path in (RESULTS / paper).rglob("result.json"))
        page = REPORTS / f"{paper}.html"
        read = (*(RESULTS / paper).rglob("*"), *REPORT.rglob("*.*"))
        newest = max(path.stat().st_mtime for path in read)
        if not page.exists() or page.stat().st_mtime < newest:
            write_report(folders, page)
