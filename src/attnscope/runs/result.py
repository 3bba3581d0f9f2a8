"""``result.json``: the measurements and pictures of a finished run, with its settings.

Schema 2 keeps matrices, planes and curves as `attnscope.runs.pictures`. Schema 1, which kept them
as many measurements, is still read, with a warning; `attnscope.runs.convert` rewrites it.
"""

from __future__ import annotations

import warnings
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from attnscope.errors import UsageError, WorkspaceError
from attnscope.runs.atomic import read_json, write_json
from attnscope.runs.html_table import html_table
from attnscope.runs.measurement import Measurement, headline, measured, select
from attnscope.runs.pictures import Curve, Matrix, Picture, Plane, Point, Record
from attnscope.runs.schema1 import with_pictures

__all__ = [
    "Curve",
    "Matrix",
    "Measurement",
    "Picture",
    "Plane",
    "Point",
    "Record",
    "Result",
    "headline",
    "measured",
    "place_of",
    "read_result",
    "select",
]

P = TypeVar("P", Matrix, Plane, Curve)
Scale = Literal["full", "changed", "quick"]
"""``full`` at the defaults, ``changed`` with other settings, ``quick`` with ``--quick``."""


class Result(BaseModel):
    """A finished run of a recipe."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_: Literal[2] = Field(default=2, alias="schema")
    recipe: str
    part: str = Field("", description="which of several runs of the recipe, say on which corpus")
    variant: str = Field(
        "", description="its name, or a short hash of its settings where they are not the defaults"
    )
    scale: Scale
    changed: dict[str, Any] = Field(
        default_factory=dict,
        description="settings that are not the defaults, apart from those that `part` names",
    )
    config: dict[str, Any]
    environment: dict[str, Any]
    intervals: Literal["bootstrap", "student"] = Field(
        "student",
        description="how intervals over seeds were made; a file without this field has percentile "
        "bootstraps, which are too narrow for few seeds",
    )
    seconds: float
    measurements: tuple[Measurement, ...]
    pictures: tuple[Picture, ...] = ()
    units: tuple[str, ...] = ()
    groups: tuple[tuple[int, ...], ...] = Field(
        (), description="units trained as one vmapped model, by their places in `units`"
    )

    def __repr__(self) -> str:
        counts = f"measurements={len(self.measurements)}, pictures={len(self.pictures)}"
        return f"Result({self.place!r}, scale={self.scale!r}, {counts})"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """Show the measurements as a table in a notebook."""
        return html_table(f"{self.place} ({self.scale})", self.measurements)

    @model_validator(mode="after")
    def _each_picture_once(self) -> Result:
        keys = Counter(map(_key, self.pictures))
        twice = [key for key, count in keys.items() if count > 1]
        if twice:
            raise ValueError(f"there are two pictures {twice[0][0]!r} of {twice[0][1]!r}")
        return self

    def model_copy(self, **changes: Any) -> Result:
        """Return a copy with some fields changed, and nothing remembered of the old ones."""
        copy = super().model_copy(**changes)
        copy.__dict__.pop("numbers", None)
        return copy

    @cached_property
    def numbers(self) -> tuple[Measurement, ...]:
        """The measurements, and the points of all curves."""
        curves = [picture for picture in self.pictures if isinstance(picture, Curve)]
        points = [point for curve in curves for point in curve.measurements()]
        return (*self.measurements, *points)

    def select(self, name: str, dataset: str | None = None, **axes: Any) -> list[Measurement]:
        """Return the numbers of a name whose data set and axes are as given.

        The points of a curve are among them, with x as one of their axes.
        """
        return select(self.numbers, name, dataset, **axes)

    def select_pictures(
        self, kind: type[P], name: str, dataset: str | None = None, /, **axes: Any
    ) -> list[P]:
        """Return the pictures of a kind and a name whose data set and axes are as given."""
        own = [picture for picture in self.pictures if isinstance(picture, kind)]
        return select(own, name, dataset, **axes)

    def picture(self, kind: type[P], name: str, dataset: str | None = None, /, **axes: Any) -> P:
        """Return the one picture of a kind and a name whose data set and axes are as given."""
        found = self.select_pictures(kind, name, dataset, **axes)
        if len(found) != 1:
            asked = ", ".join(f"{key}={value}" for key, value in axes.items())
            at = f" with {asked}" if asked else ""
            what = f"{kind.__name__.lower()} {name!r} of {dataset or 'any data set'}{at}"
            raise UsageError(f"{self.place} has {len(found) or 'no'} {what}; one is needed.")
        return found[0]

    @property
    def label(self) -> str:
        """Part and variant, which distinguish the runs of a recipe; empty for the default one."""
        return "+".join(filter(None, (self.part, self.variant)))

    @property
    def place(self) -> str:
        """The folder of the result inside a workspace."""
        return place_of(self.recipe, self.part, self.variant)

    def write(self, folder: Path) -> None:
        """Write ``result.json`` into a folder."""
        content = self.model_dump(mode="json", by_alias=True)
        write_json(folder / "result.json", content, width=_WIDTH)


def place_of(recipe: str, part: str, variant: str) -> str:
    """Return the folder of a result inside a workspace."""
    label = "+".join(filter(None, (part, variant)))
    return f"{recipe}/{label}" if label else recipe


# A measurement is one line of the file, and so is a row of a matrix.
_WIDTH = 600


def _key(picture: Matrix | Plane | Curve) -> tuple[Any, ...]:
    axes = tuple(sorted(picture.axes.items(), key=str))
    return picture.name, picture.dataset, picture.split, axes, picture.seeds


def read_result(path: Path) -> Result:
    """Read a ``result.json``, or raise an error that names the first thing wrong with it."""
    content = read_json(path)
    if isinstance(content, dict):
        content.setdefault("intervals", "bootstrap")
    old = isinstance(content, dict) and content.get("schema") == 1
    try:
        result = Result.model_validate({**content, "schema": 2} if old else content)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(str(part) for part in first["loc"])
        reason = first["msg"].removeprefix("Value error, ")
        raise WorkspaceError(
            f"{path} is not a result of attnscope: {at + ': ' if at else ''}{reason}."
        ) from error
    return _converted(result, path) if old else result


def _converted(result: Result, path: Path) -> Result:
    warnings.warn(
        f"{path} has the old schema 1, which the next version does not read; "
        f"`python -m attnscope.runs.convert {path.parent}` rewrites it.",
        FutureWarning,
        stacklevel=3,
    )
    try:
        samples = int(result.config.get("samples", 1))
        numbers, pictures = with_pictures(result.recipe, result.measurements, samples)
    except (LookupError, TypeError, ValueError) as error:
        raise WorkspaceError(
            f"{path} has schema 1 and a picture that cannot be read ({error!r}); run its recipe "
            "again."
        ) from error
    return result.model_copy(update={"measurements": numbers, "pictures": pictures})
