"""``python -m attnscope.report.reproduction results`` rewrites what the repository says it found.

From the reference results it makes ``results/claims.json``, tables of numbers next to the results
(``results/fidelity.csv``, ``results/<paper>/measurements.csv`` and ``evidence.csv``),
``docs/reproduction.md`` and one page per paper. Nothing in them is written by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from attnscope.claims.fidelity import compare
from attnscope.claims.papers import PAPERS
from attnscope.claims.verdicts import Judged
from attnscope.report.fidelity import introduction, papers_table
from attnscope.report.number_tables import evidence_csv, fidelity_csv, measurements_csv
from attnscope.report.paper_page import PaperPage, anchor
from attnscope.running.verdicts import judge
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
    lines = [
        _INTRODUCTION,
        *introduction(cells, compare(found, "code")),
        *papers_table(cells),
        _intervals(found),
    ]
    lines += _summary(judged)
    write_bytes(page, "\n".join(lines).encode())
    for paper in PAPERS:
        own = [result for result in found if result.recipe.startswith(f"{paper}/")]
        claims = [claim for claim in judged if claim.id.startswith(f"{paper}.")]
        printed = [cell for cell in cells if cell.paper == paper]
        write_bytes(results / paper / "measurements.csv", measurements_csv(own).encode())
        write_bytes(results / paper / "evidence.csv", evidence_csv(claims).encode())
        target = page.parent / "papers" / f"{paper}.md"
        target.parent.mkdir(exist_ok=True)
        made = PaperPage(paper, own, claims, printed, results, target.parent)
        write_bytes(target, made.text().encode())


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
        paper = claim.id.partition(".")[0]
        stricter = claim.readings[1].verdict if claim.readings else ""
        link = f"[{claim.id}](papers/{paper}.md#{anchor(claim.id)})" if claim.setting else claim.id
        yield f"| {link} | **{claim.verdict}** | {stricter} | {claim.where} |"
    yield ""


if __name__ == "__main__":
    write_reproduction(Path(sys.argv[1]), Path("docs/reproduction.md"))
