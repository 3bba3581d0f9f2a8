"""One paper's page: question, answer, claims with their evidence, figures, printed numbers.

A page is short: evidence of many data sets is shown as ranges, and all of it is in
``results/<paper>/evidence.csv`` (`attnscope.report.number_tables`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnscope.claims.fidelity import ComparedCell
from attnscope.claims.papers import ABSTRACTS, PAPERS
from attnscope.claims.printed_cells import queries
from attnscope.claims.readings import RULE_FIXED, WORDS_FIXED, Reading
from attnscope.claims.symbols import in_letters
from attnscope.claims.verdicts import Judged, deciding
from attnscope.data.known import definitions
from attnscope.recipes import find
from attnscope.recipes.recipe import module_of
from attnscope.recipes.registry import Entry, entries, measures_of
from attnscope.report.fidelity import by_metric, by_table, farthest_cells
from attnscope.report.ranges import ranges
from attnscope.running.naming import command_of
from attnscope.running.verdicts import judge
from attnscope.runs.result import Result
from attnscope.runs.workspace import read_results


@dataclass(frozen=True)
class PaperPage:
    """A page and what it is made from.

    Attributes
    ----------
    paper
        The paper's name.
    found, judged, cells
        Results, decided claims and compared cells of this paper.
    results
        The workspace that the results are in.
    folder
        The folder that the page will be in: links start there.
    """

    paper: str
    found: Sequence[Result]
    judged: Sequence[Judged]
    cells: Sequence[ComparedCell]
    results: Path
    folder: Path

    def text(self) -> str:
        """Return the page as Markdown."""
        sections = (
            self._question(),
            self._answer(),
            self._recipes(),
            self._fidelity(),
            self._departures(),
            self._variants(),
        )
        return "\n".join(line for section in sections for line in section)

    def _question(self) -> Iterator[str]:
        about = ABSTRACTS[self.paper]
        yield f"# {self.paper}: {PAPERS[self.paper]}\n"
        yield (
            f"{about.authors}. **Question.** {about.question} **The paper's answer.** "
            f"{about.answer}\n"
        )

    def _answer(self) -> Iterator[str]:
        yield "## What holds, and what does not\n"
        yield (
            f"{len(self.judged)} claims, by the paper's own words: {_counts(self.judged)}. Below "
            "are the recipes' titles, with the claims that each decides.\n"
        )
        for entry, _, claims in self._groups():
            if claims:
                title = f"{entry.title[:1].upper()}{entry.title[1:]}"
                yield f"- {title}: **{_counts(claims)}** ([{entry.name}](#{anchor(entry.name)}))"
        yield ""
        for verdict in ("fails", "undecided"):
            own = [claim for claim in self.judged if claim.verdict == verdict]
            if own:
                yield f"**{verdict.capitalize()}:** {'; '.join(map(_statement, own))}.\n"
        other = [claim for claim in self.judged if _stricter_fails(claim)]
        if other:
            names = ", ".join(f"[{claim.id}](#{anchor(claim.id)})" for claim in other)
            yield f"**Holds by the paper's words, fails by a stricter rule:** {names}.\n"
        numbers, evidence = (
            self._link(self.results / self.paper / name)
            for name in ("measurements.csv", "evidence.csv")
        )
        yield (
            f"Made by `make reproduction`. [Measured numbers]({numbers}), [all evidence of every "
            f"claim]({evidence}), [what we make of it](../findings.md#{self.paper}).\n"
        )

    def _groups(self) -> list[tuple[Entry, list[Result], list[Judged]]]:
        """Return the recipes that were run, in the order of the list, with what they decide."""
        measured = {result.recipe for result in self.found}
        homes = {c.id: next((r for r in c.recipes if r in measured), "") for c in self.judged}
        groups = []
        for entry in entries():
            runs = [result for result in self.found if result.recipe == entry.name]
            runs.sort(key=lambda result: result.variant != "")  # runs at the defaults first
            if runs:
                own = [claim for claim in self.judged if homes[claim.id] == entry.name]
                groups.append((entry, runs, own))
        return groups

    def _recipes(self) -> Iterator[str]:
        yield "## Claims, figures and printed numbers\n"
        yield (
            f"(a) is the paper's own words, {WORDS_FIXED}; (b) is a stricter rule, {RULE_FIXED}. A "
            "claim with one reading is decided by a rule that was fixed before any run. Times are "
            "those of a full run.\n"
        )
        decided = set()
        for entry, runs, claims in self._groups():
            yield from self._recipe(entry, runs, claims)
            decided |= {claim.id for claim in claims}
        waiting = [f"`{claim.id}`" for claim in self.judged if claim.id not in decided]
        if waiting:
            yield f"No full run yet: {', '.join(waiting)}.\n"

    def _recipe(
        self, entry: Entry, found: Sequence[Result], claims: Sequence[Judged]
    ) -> Iterator[str]:
        yield f"### {entry.name}"
        yield f"{entry.title[:1].upper()}{entry.title[1:]}. {_made_by(entry, found)}\n"
        for claim in claims:
            yield from _claim(claim)
        decide = {result.place for result in deciding(found)}
        figures = [
            figure
            for result in sorted(found, key=lambda result: result.place not in decide)
            for figure in sorted((self.results / result.place / "figures").glob("*.svg"))
        ]
        own = entry.name.partition("/")[2]
        figures.sort(key=lambda figure: (figure.stem != own, not figure.stem.startswith(own)))
        if figures:
            yield f"![{entry.name}, {figures[0].stem}]({self._link(figures[0])})"
            if len(figures) > 1:
                yield f"*{figures[0].stem}; all {len(figures)} are in `results/{entry.name}`.*"
            yield ""
        asked = [cell for cell in self.cells if _asks(cell, entry.name)]
        yield from by_metric(asked, measures_of(entry.name) or {})

    def _fidelity(self) -> Iterator[str]:
        yield "## Printed numbers that are met\n"
        yield from by_table(self.cells)
        yield from farthest_cells(self.cells)

    def _departures(self) -> Iterator[str]:
        corpora, others = _departures(self.judged)
        if not corpora and not others:
            return
        yield "## Departures from the paper\n"
        yield from (f"- {_prose(text)}." for text in (*corpora, *others))
        yield ""

    def _variants(self) -> Iterator[str]:
        lines: list[str] = []
        folders = sorted((self.results / "variants").glob("*/"))
        for folder in folders:
            found = [r for r in read_results(folder) if r.recipe.startswith(f"{self.paper}/")]
            if found:
                lines += _variant(folder.name, found)
        if lines:
            yield "## Variants\n"
            yield "The same recipes with other settings, in `results/variants`; none decides.\n"
            yield from lines
            yield ""

    def _link(self, path: Path) -> str:
        return os.path.relpath(path, self.folder)


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as Markdown renderers make it."""
    return heading.replace(".", "").replace("/", "")


def _counts(claims: Sequence[Judged]) -> str:
    """Return how many claims hold, fail and are undecided, as in "2 hold, 1 fails"."""
    verdicts = [str(claim.verdict) for claim in claims]
    held, failed, left = (verdicts.count(word) for word in ("holds", "fails", "undecided"))
    parts = [f"{held} hold{'s' * (held == 1)}"] * (held > 0)
    parts += [f"{failed} fail{'s' * (failed == 1)}"] * (failed > 0)
    return ", ".join([*parts, *[f"{left} undecided"] * (left > 0)])


def _statement(claim: Judged) -> str:
    """Return a claim's statement with its name, as a link where it was decided on runs."""
    name = f"[{claim.id}](#{anchor(claim.id)})" if claim.setting else claim.id
    return f"{_prose(claim.statement)} ({name})"


def _stricter_fails(claim: Judged) -> bool:
    return bool(claim.readings) and (str(claim.verdict), str(claim.readings[1].verdict)) == (
        "holds",
        "fails",
    )


def _made_by(entry: Entry, found: Sequence[Result]) -> str:
    """Return the command and the times; of several runs the first one's and how they differ."""
    commands = [command_of(result, module_of(entry)) for result in found]
    others = [result.part or result.variant or "the defaults" for result in found[1:]]
    more = f", likewise {', '.join(others)}" if others else ""
    times = f"about {_time(entry.cpu_minutes)} on two CPU cores"
    if entry.gpu_minutes is not None:
        times += f", {_time(entry.gpu_minutes)} on one GPU"
    devices = {"cuda": "a GPU", "cpu": "a CPU"}
    on = sorted({devices[result.environment["device"]] for result in found})
    return f"`{commands[0]}`{more}; made on {' and '.join(on)}; {times}."


def _prose(text: str) -> str:
    """Return text with its symbols as they are printed; a star does not start emphasis."""
    return in_letters(text).replace("*", "\\*")


def _found(evidence: Mapping[str, Any]) -> str:
    return ranges(evidence).removesuffix(".").replace("*", "\\*")


def _time(minutes: float | None) -> str:
    if minutes is None:
        return "an unknown time"
    return f"{minutes:g} min" if minutes < 120 else f"{minutes / 60:.0f} h"


def _asks(cell: ComparedCell, recipe: str) -> bool:
    return any(asked.recipe == recipe for asked in queries(cell.paper, cell.row))


def _claim(claim: Judged) -> Iterator[str]:
    yield f"#### {claim.id}"
    words, *stricter = claim.readings or (None,)
    evidence = f" Evidence: {_found(claim.evidence)}." if claim.evidence else ""
    note = f" {_prose(claim.note[:1].upper() + claim.note[1:])}" if claim.note else ""
    shown = "" if words else evidence + note
    yield f"**{claim.verdict}** — {_prose(claim.statement)} ({claim.where}).{shown}"
    if words:
        because = words.fixed.removeprefix(f"{WORDS_FIXED}: ")
        yield f"- (a) **{words.verdict}**: {_prose(words.says)} ({because}).{evidence}{note}"
    for reading in stricter:
        yield f"- (b) {_stricter(reading, claim)}"
    yield ""


def _stricter(reading: Reading, claim: Judged) -> str:
    """Return the second reading; evidence that is that of the first is not repeated."""
    same = dict(reading.evidence) == claim.evidence
    found = "" if same or not reading.evidence else f" Evidence: {_found(reading.evidence)}."
    note = f" {_prose(reading.note[:1].upper() + reading.note[1:])}." if reading.note else ""
    return f"**{reading.verdict}**: {_prose(reading.says)}.{found}{note}"


def _departures(judged: Iterable[Judged]) -> tuple[list[str], list[str]]:
    """Return how corpora differ from the paper's, and all other departures, each once."""
    known = definitions()
    of_corpora = {
        name: f"{name}: {corpus.deviation.removesuffix('.')}"
        for name, corpus in known.items()
        if corpus.deviation
    }
    corpora: dict[str, None] = {}
    others: dict[str, None] = {}
    for claim in judged:
        rest = claim.deviation
        for text in of_corpora.values():
            if text in rest:
                corpora[text] = None
                rest = rest.replace(text, "").replace("; ; ", "; ")
        others |= dict.fromkeys(filter(None, rest.strip("; ").split("; ")))
    return sorted(corpora), list(others)


def _variant(name: str, found: Sequence[Result]) -> Iterator[str]:
    commands = [command_of(result, module_of(find(result.recipe))) for result in found]
    parts = ", ".join(dict.fromkeys(result.part for result in found if result.part))
    more = f" and {len(commands) - 1} more{f' ({parts})' if parts else ''}" if commands[1:] else ""
    yield f"- **{name}**: `{commands[0]}`{more}"
    for claim in judge(found):
        readings: Sequence[Judged | Reading] = claim.readings or (claim,)
        for letter, shown in zip("ab", readings, strict=False):
            # The evidence of the first reading is the claim's.
            evidence = shown.evidence or (claim.evidence if letter == "a" else {})
            if claim.setting and evidence and shown.verdict != "undecided":
                by = f" by ({letter})" if claim.readings else ""
                yield f"  - `{claim.id}` **{shown.verdict}**{by}: {_found(evidence)}."
