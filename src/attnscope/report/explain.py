"""Every name that attnscope prints, explained: one source for the terminal, the page and the docs.

Explanations stand where the thing is declared: measures in ``<paper>/measures.csv``, scores and
symbols in `attnscope.claims`, claims in their catalogue, recipes in ``recipes.csv``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from attnscope.claims.catalogue import catalogue
from attnscope.claims.glossary import GLOSSARY
from attnscope.claims.papers import PAPERS
from attnscope.claims.symbols import (
    SCORES,
    in_letters,
    in_names,
    in_words,
    measure_words,
    score_symbol,
)
from attnscope.errors import UsageError
from attnscope.recipes.registry import entries, paper_measures
from attnscope.runs.measures import arguments_of, measure_of

_SHOWN = 6


@dataclass(frozen=True)
class Explanation:
    """A name as attnscope writes it, as people read it, where it belongs, and what it means."""

    name: str
    label: str
    of: str
    text: str


def explanations() -> list[Explanation]:
    """Return all explanations: scores, symbols and measures of each paper, claims, recipes."""
    return [*_scores(), *_of_papers(), *_claims(), *_recipes()]


def explain(name: str) -> list[Explanation]:
    """Return what a name means, in every paper that has it; or say which names are near.

    Parameters
    ----------
    name
        A measured name (``A(alpha,beta_uf)``, ``xi_star``), a symbol (``β``, ``MI(e; h)``), a score
        (``lexical_probe``), a claim (``snell.uniform-probe``) or a recipe (``snell/table5``).
    """
    known, wanted = explanations(), {_plain(name), _plain(in_letters(name))}
    found = [each for each in known if wanted & {_plain(part) for part in _spellings(each)}]
    found += [each for each in _members(in_names(name)) if each not in found]
    if found:
        return found
    raise UsageError(
        f"Nothing is called {name!r}; {_near(name, known)}`attnscope explain` lists all names."
    )


def _spellings(each: Explanation) -> list[str]:
    """Return a name, its label, and the parts of the label: words, and symbol."""
    return [part for part in (each.name, each.label, *each.label.split(", ")) if part]


def _near(name: str, known: list[Explanation]) -> str:
    wanted, by_plain = _plain(name), dict[str, str]()
    for each in known:
        by_plain |= {_plain(part): part for part in _spellings(each)}
    near = difflib.get_close_matches(wanted, by_plain, n=_SHOWN, cutoff=0.4)
    near += [each for each in by_plain if len(wanted) > 2 and wanted in each and each not in near]
    shown = ", ".join(by_plain[each] for each in near[:_SHOWN])
    return f"did you mean {shown}? " if shown else ""


def glossary_page() -> str:
    """Return the glossary as a page of Markdown."""
    parts = ["# Glossary", "", "Made by `attnscope explain --markdown`."]
    for of, group in groupby(explanations(), key=lambda each: each.of):
        parts += ["", f"## {of[0].upper()}{of[1:]}", "", "| name | in words | meaning |"]
        parts.append("|---|---|---|")
        for each in group:
            cells = (f"`{each.name}`", each.label, each.text)
            parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(parts) + "\n"


def _scores() -> Iterator[Explanation]:
    for name in SCORES:
        label, text = score_symbol(name)
        yield Explanation(name, label, "scores", text)


def _of_papers() -> Iterator[Explanation]:
    for paper in PAPERS:
        for symbol, text in GLOSSARY.get(paper, {}).items():
            yield Explanation(symbol, "", f"{paper}: symbols", text)
        measures = paper_measures(paper) or {}
        for name, measure in measures.items():
            text = measure.says.format("the first score", "the second score", "")
            words = measure.words.format("…", "…", "") if measure.of else in_words(name, measures)
            yield Explanation(name, words, f"{paper}: measures", text)


def _members(name: str) -> Iterator[Explanation]:
    """Yield a name with arguments, such as ``A(alpha,beta_uf)``, of every paper that has it."""
    for paper in PAPERS if arguments_of(name)[1] else ():
        measures = paper_measures(paper) or {}
        if measure_of(measures, name) is not None:
            text = measure_words(name, measures)[1]
            yield Explanation(name, in_words(name, measures), f"{paper}: measures", text)


def _claims() -> Iterator[Explanation]:
    for claim in catalogue():
        where = f"{in_letters(claim.statement)} ({claim.where})."
        yield Explanation(claim.id, "", "claims", f"{where} Decided by: {claim.decided_by}")


def _recipes() -> Iterator[Explanation]:
    for entry in entries():
        yield Explanation(entry.name, "", "recipes", f"{entry.title[0].upper()}{entry.title[1:]}.")


def _plain(name: str) -> str:
    return name.casefold().replace(" ", "").replace("_", "").replace("-", "")
