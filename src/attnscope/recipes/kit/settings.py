"""Settings that recipes share: explained ones, lists from the command line, and corpora."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from attnscope.runs.spec import Settings


def several(value: Any) -> Any:
    """Read ``a,b`` from the command line as two values, and a single number as one."""
    if isinstance(value, str):
        return tuple(value.split(","))
    return (value,) if isinstance(value, int | float) else value


def _once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if "" in values or len(set(values)) < len(values):
        raise ValueError("give each once, as in corpus=sst,imdb")
    return values


Several = BeforeValidator(several)
EachOnce = AfterValidator(_once)
Names = Annotated[tuple[str, ...], Several, EachOnce]


class RecipeSettings(Settings, use_attribute_docstrings=True):
    """Settings of a recipe; the docstring below each one is its meaning and its reason."""


class CorporaSettings(RecipeSettings):
    """Settings of a recipe that reads corpora, known ones by name and a user's own by folder."""

    corpus: Names = Field(min_length=1)
    """Corpora, known ones by name and your own by folder."""

    @property
    def part(self) -> str:
        """The subfolder of the result; empty for the default settings."""
        return "+".join(self.parts)

    @property
    def parts(self) -> list[str]:
        """Names of the settings that give a run a subfolder: corpora that are not the default."""
        default = type(self).model_fields["corpus"].default
        return [] if self.corpus == default else [Path(name).resolve().name for name in self.corpus]
