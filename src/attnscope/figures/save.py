"""Writing figures as SVG and PNG, each file absent or complete.

The SVG is for reading and printing, the PNG for pages that show no SVG. Where altair or vl-convert
is not installed there is a notice instead of a figure: numbers never depend on figures.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

from attnscope.figures.rendering import render
from attnscope.runs.atomic import write_bytes

_NEEDED = {"altair": "altair", "vl_convert": "vl-convert-python"}


def figures_available() -> str | None:
    """Say in one sentence why no figure can be drawn here, or None where figures can be drawn.

    Answers without importing altair.
    """
    missing = [name for module, name in _NEEDED.items() if importlib.util.find_spec(module) is None]
    if not missing:
        return None
    names = " and ".join(missing)
    return f"No figure is drawn because {names} is not installed; pip install {' '.join(missing)}."


def save(chart: Any, folder: Path, name: str) -> list[Path]:
    """Write a chart as ``name.svg`` and ``name.png`` (at twice the size) and return the two paths.

    Parameters
    ----------
    chart : altair chart
        The chart. It gets the project's theme unless it has a configuration of its own. (Its
        type is not named, so that this module loads where altair is missing.)
    folder : Path
        Where to; made if it does not exist.
    name : str
        File name without extension.
    """
    drawing = svg(chart)
    picture = render("svg_to_png", drawing.decode(), scale=2)  # Vega's layout is done once
    contents = {folder / f"{name}.svg": drawing, folder / f"{name}.png": picture}
    for path, content in contents.items():
        write_bytes(path, content)
    return list(contents)


def svg(chart: Any) -> bytes:
    """Return a chart as SVG: shapes and escaped text, no script, nothing from a network."""
    drawing = render("vegalite_to_svg", _specification(chart), vl_version=_version())
    return _renumbered(drawing.decode()).encode()


def _specification(chart: Any) -> dict[str, Any]:
    import altair as alt

    from attnscope.figures.charts import themed

    figure = themed(chart) if chart.config is alt.Undefined else chart
    with alt.data_transformers.enable("default"), alt.data_transformers.disable_max_rows():
        spec: dict[str, Any] = figure.to_dict(context={"pre_transform": False})
    return spec


def _version() -> str:
    """Return the Vega-Lite version that altair writes, in vl-convert's spelling."""
    import altair as alt

    return str(alt.SCHEMA_VERSION.rpartition(".")[0])


def _renumbered(text: str) -> str:
    """Count clips and gradients from 0, so that the same chart always gives the same bytes.

    Vega counts them over the life of a process.
    """
    numbers: dict[str, str] = {}

    def renumber(name: re.Match[str]) -> str:
        return name[1] + numbers.setdefault(name[2], f"{name[3]}{len(numbers)}")

    # Only inside tags: a token that looks like an identifier is text.
    names = re.compile(r'( id="|url\(#)((clip|gradient_)\d+)')
    return re.sub(r"<[^>]+>", lambda tag: names.sub(renumber, tag[0]), text)
