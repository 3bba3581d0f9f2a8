"""Runs and claims for the overview: titles, verdicts, and all numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from attnscope.claims.catalogue import catalogue
from attnscope.claims.fidelity import compare, sentence as totals
from attnscope.claims.symbols import in_letters, measure_words
from attnscope.claims.verdicts import Judged
from attnscope.claims.wording import axis_text, formatted, number, plain_setting, sentence
from attnscope.errors import UnreadableFile
from attnscope.own_text.about import REPORT
from attnscope.own_text.corpora import about_corpora, only_own
from attnscope.recipes.recipe import RecipeModule, module_of
from attnscope.recipes.registry import entries, measures_of, notes_on_missing, paper_measures
from attnscope.report.folders import FoundResult, inside
from attnscope.report.scenes import cut, packed
from attnscope.running.naming import command_of
from attnscope.running.verdicts import judge
from attnscope.runs.files import read_file
from attnscope.runs.measures import Measures, measure_of
from attnscope.runs.result import Measurement, Result, headline

# Rows of one run that the page holds; more are cut with a notice.
_MOST_ROWS = 2500
_MOST_FIGURE = 4_000_000  # bytes of an SVG


def paper_titles(papers: Iterable[str]) -> dict[str, str]:
    """Return title and authors of papers, as the package of their recipes has them."""
    known = {entry.module.rpartition(".")[0] for entry in entries()}
    homes = {home.rpartition(".")[2]: home for home in known}
    return {
        paper: (import_module(homes[paper]).__doc__ or paper).splitlines()[0].rstrip(".")
        for paper in papers
        if paper in homes
    }


def run_json(found: FoundResult, key: str, notices: list[str]) -> dict[str, Any]:
    """Return one run as plain JSON values, figures left to `figures_of`."""
    result, module = found.result, known_module(found.result.recipe)
    titles = {entry.name: entry.title for entry in entries()}
    first = _headline(result, module)
    rows, cut_off = _rows(result, first)
    if cut_off:
        notices.append(
            f"{result.place}: {cut_off} of {len(result.numbers)} measurements are left out "
            "of the page; result.json has all of them."
        )
    return {
        "key": key,
        "recipe": result.recipe,
        "title": titles.get(result.recipe, ""),
        "part": result.label,
        "workspace": found.workspace,
        "place": result.place,
        "scale": result.scale,
        "changed": [f"{key}={cut(plain_setting(value))}" for key, value in result.changed.items()],
        "own": only_own(result),
        "seconds": result.seconds,
        "device": str(result.environment.get("device", "")),
        "command": cut(_command(result, module)),
        "config": _pairs(result.config),
        "environment": _pairs(result.environment),
        "units": len(result.units),
        "headline": len(first),
        "hidden": [f"{key} {value}" for key, value in getattr(module, "SHOWN", {}).items()],
        "rows": rows,
    }


def _command(result: Result, module: RecipeModule | None) -> str:
    """Return the command that gives a result; an audit's has its model and data."""
    if result.recipe != "audit":
        return command_of(result, module)
    model, data, examples = (result.config.get(key, "") for key in ("model", "data", "examples"))
    return f"attnscope audit {model} {data} --examples {examples}"


def about_json(found: FoundResult, key: str) -> list[dict[str, Any]]:
    """Return what a run says about the user's corpora, for the top of the page."""
    result, blocks = found.result, []
    for about in about_corpora(result):
        steps = [_VIEW if step == REPORT else step.replace(*_HERE) for step in about.next]
        own = {"run": key, "recipe": result.recipe, "label": result.label, "next": steps}
        blocks.append(about.as_json() | own)
    return blocks


# On the page itself there is no need to be sent there.
_HERE = (" of `attnscope report`", "")
_VIEW = REPORT.replace("`attnscope report`", "The Attention view")


def known_module(recipe: str) -> RecipeModule | None:
    """Return the module of a recipe, or None for one that this version does not know."""
    entry = next((each for each in entries() if each.name == recipe), None)
    return None if entry is None else module_of(entry)


def known_measures(recipe: str) -> Measures:
    """Return the measured names that a recipe declares; none of a recipe that is not known."""
    return measures_of(recipe, known_module(recipe)) or {}


def _headline(result: Result, module: RecipeModule | None) -> list[Measurement]:
    if module is None:
        return list(result.numbers[:40])
    shown = getattr(module, "SHOWN", {})
    return headline(result.numbers, module.HEADLINE, shown)


def _rows(result: Result, first: Sequence[Measurement]) -> tuple[list[list[Any]], int]:
    """Return measurements as lists, the recipe's own choice first."""
    chosen = {id(row) for row in first}
    rest = [row for row in result.numbers if id(row) not in chosen]
    rows = [*first, *rest]
    return [_row(row) for row in rows[:_MOST_ROWS]], max(0, len(rows) - _MOST_ROWS)


def _row(row: Measurement) -> list[Any]:
    split = {} if row.split == "val" else {"split": row.split}
    axes, found = (
        cut(", ".join(axis_text(key, value) for key, value in each.items()))
        for each in (split | row.axes, row.found)
    )
    numbers = [_digits(value) for value in (row.value, row.low, row.high, row.published)]
    return [row.name, row.dataset, axes, *numbers, row.n, len(row.seeds), found]


def _digits(value: float | None) -> float | None:
    """Return six digits, or all of them where the page would round these otherwise."""
    if value is None:
        return None
    short = float(f"{value:.6g}")
    return short if number(short) == number(float(value)) else value


def _pairs(values: Mapping[str, Any]) -> list[list[str]]:
    return [
        [cut(str(key)), cut(value if isinstance(value, str) else json.dumps(value, default=str))]
        for key, value in values.items()
    ]


def figures_of(found: FoundResult, notices: list[str]) -> list[dict[str, Any]]:
    """Return the drawings of a run, compressed, with the room that they take."""
    figures = []
    for path in sorted((found.folder / "figures").glob("*.svg")):
        if not inside(path, found.folder):
            notices.append(f"{path} is outside {found.folder} and left out.")
            continue
        try:
            drawing = read_file(path, _MOST_FIGURE)
        except UnreadableFile as error:
            notices.append(f"{error} The figure is left out.")
        else:
            figures.append({"name": path.stem, "svg": packed(drawing), "size": size_of(drawing)})
    return figures


def size_of(drawing: bytes) -> tuple[float, float]:
    """Return width and height of an SVG, as its first tag says; some size where it says none."""
    tag = drawing[:2000].partition(b">")[0]
    found = [re.search(rb'\s%b="([0-9.]+)"' % name, tag) for name in (b"width", b"height")]
    width, height = (float(match[1]) if match else 300.0 for match in found)
    return width, height


def claims_json(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """Return every claim with its verdict, and its evidence in a sentence."""
    rules = {entry.id: entry.decided_by for entry in catalogue()}
    return [
        {
            "id": claim.id,
            "paper": claim.id.partition(".")[0],
            "verdict": str(claim.verdict),
            "quick": None if claim.quick is None else str(claim.quick),
            "statement": in_letters(claim.statement),
            "where": claim.where,
            "decided": in_letters(rules.get(claim.id, "")),
            "evidence": [
                [_evidence_name(claim.id, key), in_letters(formatted(value))]
                for key, value in claim.evidence.items()
            ],
            "published": list(dict.fromkeys(claim.published)),
            "deviation": claim.deviation,
            "note": claim.note,
            "readings": [
                {
                    "says": in_letters(reading.says),
                    "fixed": reading.fixed,
                    "verdict": str(reading.verdict),
                    "evidence": in_letters(sentence(reading.evidence)),
                    "note": reading.note,
                }
                for reading in claim.readings
            ],
            "recipes": list(claim.recipes),
            "measured": bool(claim.setting),
        }
        for claim in judged
    ]


def _evidence_name(claim: str, name: str) -> str:
    """Return the label of evidence that is a measured name of the claim's paper, else the text."""
    measures = paper_measures(claim.partition(".")[0]) or {}
    known = measure_of(measures, name) is not None
    return measure_words(name, measures)[0] if known else in_letters(name)


def judged_results(results: Sequence[Result], notices: list[str]) -> list[Judged]:
    """Decide the claims; where results lack what a rule needs, it is undecided and says so."""
    notices += notes_on_missing(result.recipe for result in results)
    return judge(results)


def fidelity_sentence(found: Sequence[FoundResult]) -> str:
    """Return how many printed results the measured numbers meet; empty where none is measured."""
    cells = compare(each.result for each in found)
    return totals(cells) if any(cell.measured for cell in cells) else ""
