"""``python -m attnscope.report.reproduction results`` rewrites what the repository says it found.

From the reference results it makes ``results/claims.json``, tables of numbers next to the results
(``results/fidelity.csv``, ``results/<paper>/measurements.csv``), ``docs/reproduction.md`` and one
page per paper. Nothing in them is written by hand.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from attnscope.claims.fidelity import ComparedCell, compare
from attnscope.claims.papers import PAPERS
from attnscope.claims.readings import Reading
from attnscope.claims.verdicts import Judged
from attnscope.claims.wording import sentence
from attnscope.recipes import find
from attnscope.recipes.recipe import command_of, module_of
from attnscope.recipes.verdicts import judge
from attnscope.report.fidelity import by_table, farthest_cells, introduction, papers_table
from attnscope.report.number_tables import fidelity_csv, measurements_csv
from attnscope.runs.atomic import write_bytes, write_json
from attnscope.runs.result import Result
from attnscope.runs.workspace import read_results

_INTRODUCTION = """\
# What was reproduced

Made from `results/` by `make reproduction`; [findings.md](findings.md) says what we make of it.
"""
_RULES = """\
A claim **holds**, **fails** or is **undecided** (`attnscope.claims.decide`). Where a rule that was
fixed before any run is stricter than the paper's words, or asks for another setting, a claim has
two readings: (a) the paper's own words in the paper's or the authors' recorded setting, which give
the verdict, and (b) the stricter rule, which is shown next to it.
"""


def write_reproduction(results: Path, page: Path) -> None:
    """Write ``claims.json`` and tables into the results' folder, and the pages about them.

    Parameters
    ----------
    results
        A workspace (units may be missing); those in its ``variants`` folder decide nothing.
    page
        The Markdown file to write; those of the papers go into the folder ``papers`` next to it.
    """
    found = read_results(results)
    judged = judge(found)
    cells = compare(found)
    write_json(results / "claims.json", [claim.as_json() for claim in judged])
    write_bytes(results / "fidelity.csv", fidelity_csv(cells).encode())
    lines = [_INTRODUCTION, *introduction(cells), *papers_table(cells), _intervals(found)]
    lines += _summary(judged)
    write_bytes(page, "\n".join(lines).encode())
    for paper in PAPERS:
        own = [result for result in found if result.recipe.startswith(f"{paper}/")]
        write_bytes(results / paper / "measurements.csv", measurements_csv(own).encode())
        target = page.parent / "papers" / f"{paper}.md"
        target.parent.mkdir(exist_ok=True)
        text = "\n".join(_paper(paper, own, judged, cells, results, target.parent))
        write_bytes(target, text.encode())


def _intervals(found: Sequence[Result]) -> str:
    old = sum(result.intervals == "bootstrap" for result in found)
    return (
        f"Intervals are of 95 %. Over seeds they are Student's; {old} of {len(found)} results were "
        "made before that and have percentile bootstraps, which are too narrow for few seeds (they "
        "cover 72 % with three, 84 % with five, 90 % with ten). A result says which it has "
        "(`intervals`; without the field, bootstraps); running its recipe again renews it.\n"
    )


def _summary(judged: Sequence[Judged]) -> Iterator[str]:
    verdicts = [str(claim.verdict) for claim in judged]
    held, failed = verdicts.count("holds"), verdicts.count("fails")
    left = verdicts.count("undecided")
    yield "## Claims\n"
    yield f"Of {len(judged)} claims {held} hold, {failed} fail and {left} are undecided.\n"
    yield _RULES
    yield "| claim | verdict | stricter rule | where in the paper |"
    yield "|---|---|---|---|"
    for claim in judged:
        anchor = claim.id.replace(".", "")  # as Markdown renderers make it from the heading
        paper = claim.id.partition(".")[0]
        stricter = claim.readings[1].verdict if claim.readings else ""
        link = f"[{claim.id}](papers/{paper}.md#{anchor})" if claim.setting else claim.id
        yield f"| {link} | **{claim.verdict}** | {stricter} | {claim.where} |"
    yield ""


def _paper(
    paper: str,
    found: Sequence[Result],
    judged: Sequence[Judged],
    cells: Sequence[ComparedCell],
    results: Path,
    page: Path,
) -> Iterator[str]:
    own = [cell for cell in cells if cell.paper == paper]
    numbers = os.path.relpath(results / paper / "measurements.csv", page)
    yield f"# {paper}: {PAPERS[paper]}\n"
    yield f"Made by `make reproduction`. [All measured numbers]({numbers}).\n"
    yield "## Printed numbers\n"
    yield from by_table(own)
    yield from farthest_cells(own)
    measured = {result.recipe for result in found}
    homes = {c.id: next((r for r in c.recipes if r in measured), "") for c in judged}
    for recipe, group in groupby(found, key=lambda result: result.recipe):
        claims = [claim for claim in judged if recipe in claim.recipes]
        here = [claim for claim in claims if homes[claim.id] == recipe]
        elsewhere = [claim.id for claim in claims if claim not in here]
        yield from _recipe(recipe, list(group), here, elsewhere, results, page)
    waiting = [f"`{c.id}`" for c in judged if c.id.startswith(f"{paper}.") and not homes[c.id]]
    if waiting:
        yield f"No full run yet: {', '.join(waiting)}.\n"
    yield from _variants(results / "variants", page, paper)


def _recipe(
    recipe: str,
    found: Sequence[Result],
    claims: Sequence[Judged],
    others: Sequence[str],
    results: Path,
    page: Path,
) -> Iterator[str]:
    entry = find(recipe)
    yield f"## {recipe}\n\n{entry.title[:1].upper()}{entry.title[1:]}.\n"
    for claim in claims:
        yield from _claim(claim)
    if others:
        links = ", ".join(f"[{name}](#{name.replace('.', '')})" for name in others)
        yield f"It also decides {links}.\n"
    yield "<details><summary>Commands and figures</summary>\n"
    for result in found:
        device = {"cuda": "one GPU", "cpu": "CPU"}[result.environment["device"]]
        yield f"`{command_of(result, module_of(entry))}` ({result.scale}, on {device})\n"
        for figure in sorted((results / result.place / "figures").glob("*.svg")):
            yield f"![{result.place}, {figure.stem}]({os.path.relpath(figure, page)})\n"
    yield "</details>\n"


def _claim(claim: Judged) -> Iterator[str]:
    yield f"### {claim.id}\n"
    yield f"**{claim.verdict}** — {claim.statement} ({claim.where}).\n"
    words, *stricter = claim.readings or (None,)
    if words:
        yield f"(a) The paper's words: {words.says} ({words.fixed}).\n"
    if claim.evidence:
        yield f"Evidence: {sentence(claim.evidence)}.\n"
    for reading in stricter:
        yield _stricter(reading, claim)
    if claim.published:
        yield f"Printed in the paper: {'; '.join(dict.fromkeys(claim.published))}.\n"
    if claim.deviation:
        yield f"Deviation: {claim.deviation}.\n"
    if claim.note:
        yield f"Note: {claim.note}\n"


def _stricter(reading: Reading, claim: Judged) -> str:
    """Return the second reading; evidence that is that of the first is not repeated."""
    same = dict(reading.evidence) == claim.evidence
    found = "" if same or not reading.evidence else f" Evidence: {sentence(reading.evidence)}."
    note = f" {reading.note}." if reading.note else ""
    says = f"(b) The stricter rule **{reading.verdict}**: {reading.says} ({reading.fixed})."
    return f"{says}{found}{note}\n"


def _variants(folder: Path, page: Path, paper: str) -> Iterator[str]:
    titled = False
    for workspace in sorted(path for path in folder.glob("*") if path.is_dir()):
        found = [r for r in read_results(workspace) if r.recipe.startswith(f"{paper}/")]
        if not found:
            continue
        if not titled:
            yield "## Variants\n\nThe same recipes with other settings; these decide nothing.\n"
            titled = True
        yield from _variant(workspace, found, page)


def _variant(workspace: Path, found: Sequence[Result], page: Path) -> Iterator[str]:
    yield f"### {workspace.name}\n"
    for result in found:
        yield f"`{command_of(result, module_of(find(result.recipe)))}`\n"
        for figure in sorted((workspace / result.place / "figures").glob("*.svg")):
            yield f"![{workspace.name}, {figure.stem}]({os.path.relpath(figure, page)})\n"
    for claim in judge(found):
        shown = claim.readings[1] if claim.readings else claim
        if claim.setting and (said := sentence(shown.evidence) or shown.note):
            yield f"- `{claim.id}`: **{shown.verdict}** — {said.removesuffix('.')}."
    yield ""


if __name__ == "__main__":
    write_reproduction(Path(sys.argv[1]), Path("docs/reproduction.md"))
