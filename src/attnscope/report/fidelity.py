"""The count of printed results that were met, as lines of Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from attnscope.claims.fidelity import (
    OWN,
    PART,
    STAND_IN,
    ComparedCell,
    Tally,
    farthest,
    reason,
    sentence,
)
from attnscope.claims.papers import PAPERS
from attnscope.claims.printed_cells import queries
from attnscope.claims.symbols import in_letters, in_words
from attnscope.claims.wording import number, ranged
from attnscope.runs.measures import Measures

_CORPORA = {OWN: "own corpora", PART: "a part of the corpus", STAND_IN: "a stand-in"}
_FARTHEST = 5


def introduction(cells: Sequence[ComparedCell], by_code: Sequence[ComparedCell]) -> Iterator[str]:
    """Yield what is counted, and the totals by the text's procedure and by that of the code."""
    yield f"{sentence(cells)}\n"
    text, code = (
        Tally.of([c for c in each if c.paper == "snell" and not c.statistic])
        for each in (cells, by_code)
    )
    yield (
        f"Numbers are by the papers' texts. Where snell's text and its authors' code differ, the "
        f"printed numbers are the code's: by the text's way {text.within} of {text.comparable} of "
        f"its cells ({text.share}) are within tolerance, by the code's {code.within} of "
        f"{code.comparable} ({code.share}).\n"
    )
    yield (
        "Within tolerance is within three points (three percent of counts, lengths and nats) or "
        "inside the measured 95 % interval; where the number of each seed is kept, that is the "
        "interval in which the paper's own runs are expected. `results/fidelity.csv` has every "
        "cell.\n"
    )
    yield (
        "A corpus is the paper's own where its texts, its split and its lengths are the paper's. "
        "Some of the texts, another split or other lengths make it a part: snell's SST, whose "
        "printed split matches none that is known; tutek's IMDB and 20 Newsgroups under a limit of "
        "400 and 500 words, as long as they are not measured without it (the printed mean lengths "
        "are those of whole texts); eSCAN at the text's lengths, not at those of the recorded "
        "runs. The texts of more than 1,000 words that snell's and most of sunlu's runs leave out "
        "(3 % of 20 Newsgroups, fewer elsewhere) do not make one.\n"
    )


def papers_table(cells: Sequence[ComparedCell]) -> Iterator[str]:
    """Yield a table by paper, and by how its corpora relate to the paper's."""
    yield from _head("paper")
    for paper in PAPERS:
        own = [cell for cell in cells if cell.paper == paper and not cell.statistic]
        yield _line(f"[{paper}](papers/{paper}.md)", own)
        for kind, words in _CORPORA.items():
            part = [cell for cell in own if cell.corpus == kind and cell.measured is not None]
            if part and len(part) < len(own):
                yield _line(f"– {words}", part)
    yield ""


def by_table(cells: Sequence[ComparedCell]) -> Iterator[str]:
    """Yield a table by the paper's tables; sizes of corpora and models are the last lines."""
    yield from _head("printed in")
    results = [cell for cell in cells if not cell.statistic]
    sizes = [cell for cell in cells if cell.statistic]
    for part, suffix in ((results, ""), (sizes, " (sizes)")):
        for table in dict.fromkeys(cell.row.table for cell in part):
            yield _line(f"{table}{suffix}", [cell for cell in part if cell.row.table == table])
    yield ""


def by_metric(cells: Sequence[ComparedCell], measures: Measures) -> Iterator[str]:
    """Yield printed and measured means by metric, or by data set where there is one metric.

    Both are in the unit of the measurement: a loss is printed as a negative change in one paper.
    """
    found = [cell for cell in cells if cell.measured is not None and not cell.statistic]
    if not found:
        return
    groups = _groups(found, lambda cell: in_words(_measured_name(cell), measures))
    of = "mean of the cells"
    if len(groups) == 1:
        of = next(iter(groups))
        groups = _groups(found, lambda cell: cell.row.dataset or "–")
    yield _row(of, "cells", "printed", "measured", "apart by", "within tolerance")
    yield "|---|---|---|---|---|---|"
    for name, own in groups.items():
        measured = [cell.measured.value / _factor(cell) for cell in own if cell.measured]
        printed = [cell.row.value / _factor(cell) for cell in own]
        apart = [abs(cell.off / _factor(cell)) for cell in own]
        means = (number(float(fmean(column))) for column in (printed, measured, apart))
        yield _row(name, str(len(own)), *means, str(Tally.of(own).within))
    yield ""


def _groups(
    cells: Sequence[ComparedCell], key: Callable[[ComparedCell], str]
) -> dict[str, list[ComparedCell]]:
    groups: dict[str, list[ComparedCell]] = {}
    for cell in cells:
        groups.setdefault(key(cell), []).append(cell)
    return groups


def _factor(cell: ComparedCell) -> float:
    return next((asked.factor for asked in queries(cell.paper, cell.row)), 1.0)


def _measured_name(cell: ComparedCell) -> str:
    return next((asked.name for asked in queries(cell.paper, cell.row)), cell.row.metric)


def farthest_cells(cells: Sequence[ComparedCell]) -> Iterator[str]:
    """Yield the cells that are off by most, each with the reason as far as it is known."""
    found = farthest(cells, _FARTHEST)
    if not found:
        return
    yield "The farthest cells:\n"
    yield "| printed in | of | printed | measured | corpus | reason |"
    yield "|---|---|---|---|---|---|"
    for cell in found:
        assert cell.measured is not None
        variant = ", ".join(f"{key}={value}" for key, value in cell.row.variant)
        of = " ".join(filter(None, (in_letters(cell.row.metric), cell.row.dataset, variant)))
        parts = (cell.row.table, of, number(cell.row.value), ranged(cell.measured))
        yield _row(*parts, cell.corpus, reason(cell))
    yield ""


def _head(first: str) -> Iterator[str]:
    yield f"| {first} | cells | comparable | within tolerance | inside the interval |"
    yield "|---|---|---|---|---|"


def _line(label: str, cells: Sequence[ComparedCell]) -> str:
    tally = Tally.of(cells)
    within = f"{tally.within} ({tally.share})"
    return _row(label, str(tally.cells), str(tally.comparable), within, str(tally.inside))


def _row(*cells: str) -> str:
    """Return a line of a table; a bar inside a cell would end it, a star start emphasis."""
    escaped = (cell.replace("|", "&#124;").replace("*", "\\*") for cell in cells)
    return f"| {' | '.join(escaped)} |"
