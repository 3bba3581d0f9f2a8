"""The sentences about the user's corpora in a result, by the rule of its recipe.

Each paper's module has a table of rules, by the names of its recipes. A user's own recipe may
define one as ``ABOUT``. A rule reads measurements alone, so that every stored result has its
sentences.
"""

from __future__ import annotations

from dataclasses import replace

from attnscope.data.known import definitions
from attnscope.own_text import aitken, snell, sunlu, tutek
from attnscope.own_text.about import About, AboutRule, CorpusNumbers
from attnscope.recipes.recipe import module_of
from attnscope.recipes.registry import OWN, entries
from attnscope.runs.result import Result

RULES: dict[str, AboutRule] = {**snell.RULES, **sunlu.RULES, **tutek.RULES, **aitken.RULES}

_QUICK = (
    "This was a quick run, of small models and few steps; `--budget 10m` in place of `--quick` "
    "makes both as large as ten minutes allow."
)
# What a rule raises on a result that is partial, of another version, or was edited.
_UNFIT = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)


def about_corpora(result: Result) -> list[About]:
    """Return what a run says about each corpus that is not one of the papers' own."""
    rule = _rule(result.recipe)
    if rule is None:
        return []
    found = []
    for dataset in own_datasets(result):
        try:
            about = rule(CorpusNumbers(result, dataset))
        except _UNFIT:
            continue
        if about.found:
            first = (_QUICK,) if result.scale == "quick" else ()
            found.append(replace(about, next=(*first, *about.next)))
    return found


def own_datasets(result: Result) -> list[str]:
    """Return the data sets of a result that are not corpora of the papers."""
    names = dict.fromkeys(row.dataset for row in result.measurements)
    return [name for name in names if name not in definitions()]


def only_own(result: Result) -> bool:
    """Return whether a run is about corpora of the user's, and about nothing else.

    Tasks that are generated are not the user's: claims about them are decided.
    """
    datasets = {row.dataset for row in result.measurements}
    return bool(datasets) and datasets == {about.dataset for about in about_corpora(result)}


def _rule(recipe: str) -> AboutRule | None:
    named = [entry for entry in entries() if entry.name == recipe and recipe.startswith(OWN)]
    return getattr(module_of(named[0]), "ABOUT", None) if named else RULES.get(recipe)
