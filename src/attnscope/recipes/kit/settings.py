"""Settings that recipes share: explained ones, lists from the command line, and corpora."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from attnscope.data.known import GENERATED, definition, definitions
from attnscope.data.text import piece_count, tokeniser_named
from attnscope.errors import AttnscopeError
from attnscope.runs.spec import Settings, fingerprint


def several(value: Any) -> Any:
    """Read ``a,b`` from the command line as two values, and a single number as one."""
    if isinstance(value, str):
        return tuple(value.split(","))
    return (value,) if isinstance(value, int | float) else value


def _once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if "" in values or len(set(values)) < len(values):
        raise ValueError("give each once, as in corpus=sst,imdb")
    return values


def _tokeniser(name: str) -> str:
    if name and not piece_count(name):
        tokeniser_named(name)
    return name


Several = BeforeValidator(several)
EachOnce = AfterValidator(_once)
Tokens = Annotated[str, AfterValidator(_tokeniser)]
"""How labelled texts are cut: empty as their corpus says, ``pieces`` for text without blanks."""
Names = Annotated[tuple[str, ...], Several, EachOnce]


def cut_by(tokens: str) -> dict[str, str]:
    """Return the setting of a labelled source that a recipe's ``tokens`` asks for, if any."""
    return {"tokens": tokens} if tokens else {}


class RecipeSettings(Settings, use_attribute_docstrings=True):
    """Settings of a recipe; the docstring below each one is its meaning and its reason."""


class CorporaSettings(RecipeSettings):
    """Settings of a recipe that reads corpora, known ones by name and a user's own by folder."""

    corpus: Names = Field(min_length=1)
    """Corpora, known ones by name and your own by folder."""

    @property
    def in_part(self) -> tuple[str, ...]:
        """Settings whose values `part` names."""
        return ("corpus",)

    @property
    def part(self) -> str:
        """The subfolder of the result; empty for the default settings."""
        return "+".join(self.parts)

    @property
    def parts(self) -> list[str]:
        """Names of the settings that give a run a subfolder: corpora that are not the default."""
        default = type(self).model_fields["corpus"].default
        return [] if self.corpus == default else [corpus_label(name) for name in self.corpus]


class LabelledSettings(CorporaSettings):
    """Settings of a recipe that reads labelled texts."""

    corpus: Names = Field(min_length=1)
    """Labelled corpora, known ones by name and your own by folder."""
    tokens: Tokens = ""
    """How texts are cut: empty as the corpus' definition says, which is by words; pieces, or
    pieces-2000 for as many, where words have no blanks between them."""

    @property
    def cut(self) -> dict[str, str]:
        """The setting of a labelled source that ``tokens`` asks for, if any."""
        return cut_by(self.tokens)


def corpus_label(corpus: str) -> str:
    """Return the name of a corpus in a result's folder.

    A known corpus has its own name; a user's folder has its name and a short hash of its path, so
    that two folders of one name keep their places.
    """
    if corpus in GENERATED or corpus in definitions():
        return corpus
    try:
        folder = Path(definition(corpus).folder).resolve()
    except AttnscopeError:  # Nothing can be read there; opening it says so.
        folder = Path(corpus).resolve()
    return f"{folder.name}-{fingerprint(str(folder), 4)}"
