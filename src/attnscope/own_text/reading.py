"""What each family of recipes leaves out of a corpus, and the setting that decides it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from attnscope.data.corpus import Corpus
from attnscope.data.known import definition
from attnscope.data.reading import left_out
from attnscope.errors import AttnscopeError


@dataclass(frozen=True)
class RecipeReading:
    """How a family of recipes reads a corpus.

    Attributes
    ----------
    recipes
        Their names.
    setting
        The setting that limits the length of a text, with its default.
    left_out
        Examples left out, by split and reason.
    error
        Why these recipes cannot read the corpus; empty where they can.
    """

    recipes: str
    setting: str
    left_out: dict[str, int]
    error: str = ""


def readings(corpus: str | Path) -> list[RecipeReading]:
    """Return how the recipes that take a corpus read it at their default settings."""
    task = definition(corpus).task
    found = []
    for recipes, setting, tasks, open_corpus in _families():
        if task in tasks:
            try:
                found.append(RecipeReading(recipes, setting, left_out(open_corpus(str(corpus)))))
            except AttnscopeError as error:
                found.append(RecipeReading(recipes, setting, {}, str(error)))
    return found


Family = tuple[str, str, tuple[str, ...], Callable[[str], Corpus]]


def _families() -> Iterator[Family]:
    from attnscope.recipes.aitken.translation import TranslationConfig
    from attnscope.recipes.snell import units as snell
    from attnscope.recipes.sunlu import units as sunlu
    from attnscope.recipes.tutek import units as tutek

    labels, both = ("classification",), ("classification", "translation")
    text, words = snell.TextConfig(), sunlu.SunluConfig()
    # Vectors decide which words are known, not which texts are read.
    states = tutek.TutekConfig(vectors="")
    yield (
        "snell/table5, table10, table11, optimal-attention",
        f"max_length={text.max_length}",
        both,
        lambda corpus: snell.open_corpus(text, corpus),
    )
    yield (
        "sunlu/table2, scores, weights",
        f"max_length={words.max_length}",
        labels,
        lambda corpus: sunlu.open_corpus(words, corpus),
    )
    yield (
        "tutek",
        f"longest={states.longest}",
        labels,
        lambda corpus: tutek.open_corpus(states, corpus),
    )
    longest = TranslationConfig.model_fields["longest"].default
    yield (
        "aitken/fig4, fig5",
        f"longest={longest}",
        ("translation",),
        lambda corpus: TranslationConfig(corpus=corpus).source,
    )
