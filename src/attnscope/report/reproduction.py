"""``python -m attnscope.report.reproduction results`` rewrites what the repository says it found.

From the reference results it makes ``results/claims.json`` and ``docs/reproduction.md``: every
claim with its verdict, evidence and deviations, and every figure. Nothing in them is written by
hand.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from attnscope.claims.papers import PAPERS
from attnscope.claims.verdicts import Judged
from attnscope.claims.wording import number, sentence
from attnscope.recipes import find
from attnscope.recipes.recipe import command_of, module_of
from attnscope.recipes.verdicts import judge
from attnscope.runs.atomic import write_bytes, write_json
from attnscope.runs.result import Measurement, Result, headline
from attnscope.runs.workspace import read_results

_BAR = r"\|"
_INTRODUCTION = """\
# What was reproduced

Made from `results/` by `make reproduction`; [findings.md](findings.md) says what we make of it.
A claim **holds**, **fails** or is **undecided**, by rules that were fixed before any run
(`attnscope.claims.decide`).
"""


def write_reproduction(results: Path, page: Path) -> None:
    """Write ``claims.json`` beside the results, and the page about them.

    Parameters
    ----------
    results
        A workspace (units may be missing); those in its ``variants`` folder are shown beside.
    page
        The Markdown file to write.
    """
    found = read_results(results)
    judged = judge(found)
    write_json(results / "claims.json", [claim.as_json() for claim in judged])
    lines = [_INTRODUCTION, *_summary(judged)]
    for paper, title in PAPERS.items():
        own = [claim for claim in judged if claim.id.startswith(f"{paper}.")]
        lines += [f"## {paper} — {title}", ""]
        by_recipe = groupby(found, key=lambda result: result.recipe)
        for recipe, group in by_recipe:
            if recipe.startswith(f"{paper}/"):
                lines += _recipe(recipe, list(group), own, results, page.parent)
        waiting = [claim.id for claim in own if not claim.setting]
        if waiting:
            lines += [f"No full run yet: {', '.join(f'`{name}`' for name in waiting)}.", ""]
    lines += _variants(results / "variants", page.parent)
    write_bytes(page, "\n".join(lines).encode())


def _summary(judged: Sequence[Judged]) -> Iterator[str]:
    yield "| claim | verdict | where in the paper |"
    yield "|---|---|---|"
    for claim in judged:
        if claim.setting:
            anchor = claim.id.replace(".", "")  # as Markdown renderers make it from the heading
            yield f"| [{claim.id}](#{anchor}) | **{claim.verdict}** | {claim.where} |"
    count = {
        word: sum(c.verdict == word for c in judged) for word in ("holds", "fails", "undecided")
    }
    yield (
        f"\nOf {len(judged)} claims {count['holds']} hold, {count['fails']} fail and "
        f"{count['undecided']} are undecided.\n"
    )


def _recipe(
    recipe: str, found: Sequence[Result], judged: Sequence[Judged], results: Path, page: Path
) -> Iterator[str]:
    entry = find(recipe)
    yield f"### {recipe}\n\n{entry.title[:1].upper()}{entry.title[1:]}.\n"
    for result in found:
        device = {"cuda": "one GPU", "cpu": "CPU"}[result.environment["device"]]
        command = command_of(result, module_of(entry))
        yield f"`{command}` ({result.scale}, on {device})\n"
        for figure in sorted((results / result.place / "figures").glob("*.svg")):
            path = os.path.relpath(figure, page)
            yield f"![{result.place}, {figure.stem}]({path})\n"
    for claim in judged:
        if recipe in claim.recipes:
            yield from _claim(claim)
    for result in found:
        rows = headline(result.numbers, module_of(entry).HEADLINE)
        settings = ", ".join(f"{key}={value}" for key, value in result.config.items())
        of = f" on {result.part}" if result.part else ""
        yield f"<details><summary>Measurements and settings{of}</summary>\n"
        yield from _table(rows)
        yield f"\nSettings: {settings}.\n\n</details>\n"


def _claim(claim: Judged) -> Iterator[str]:
    yield f"#### {claim.id}\n"
    yield f"**{claim.verdict}** — {claim.statement} ({claim.where}).\n"
    if claim.evidence:
        yield f"Evidence: {sentence(claim.evidence)}.\n"
    if claim.published:
        yield f"Printed in the paper: {'; '.join(dict.fromkeys(claim.published))}.\n"
    if claim.deviation:
        yield f"Deviation: {claim.deviation}.\n"
    if claim.note:
        yield f"Note: {claim.note}\n"


def _table(rows: Sequence[Measurement]) -> Iterator[str]:
    yield "| measured | data set | of | value | 95 % interval | n | paper |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        split = {} if row.split == "val" else {"split": row.split}
        known = split | row.axes | row.found
        axes = ", ".join(f"{key}={number(value)}" for key, value in known.items())
        ends = "" if row.low is None else f"{number(row.low)} … {number(row.high)}"
        paper = "" if row.published is None else number(row.published)
        cells = (row.name, row.dataset, axes, number(row.value), ends, str(row.n), paper)
        # A BLEU signature has bars of its own.
        yield f"| {' | '.join(cell.replace('|', _BAR) for cell in cells)} |"


def _variants(folder: Path, page: Path) -> Iterator[str]:
    workspaces = sorted(path for path in folder.glob("*") if path.is_dir())
    if workspaces:
        yield "## Variants\n\nThe same recipes with other settings; they decide nothing above.\n"
    for workspace in workspaces:
        found = read_results(workspace)
        yield f"### {workspace.name}\n"
        for result in found:
            yield f"`{command_of(result, module_of(find(result.recipe)))}`\n"
            for figure in sorted((workspace / result.place / "figures").glob("*.svg")):
                yield f"![{workspace.name}, {figure.stem}]({os.path.relpath(figure, page)})\n"
        for claim in judge(found):
            if claim.setting and (said := sentence(claim.evidence) or claim.note):
                yield f"- `{claim.id}`: **{claim.verdict}** — {said.removesuffix('.')}."
        yield ""


if __name__ == "__main__":
    write_reproduction(Path(sys.argv[1]), Path("docs/reproduction.md"))
