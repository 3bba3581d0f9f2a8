"""The page: one HTML file with its scripts, its style and its data inside, and no way to a network.

Its Content-Security-Policy lets nothing run but the scripts that were written here, known by their
hashes. All data is one JSON block, in which no character can end the block; the scripts show it as
text and never as markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from attnscope.errors import WorkspaceError
from attnscope.figures.rendering import render
from attnscope.figures.save import figures_available
from attnscope.report.payload import Request, payload
from attnscope.runs.atomic import write_bytes
from attnscope.training.progress import Progress

# In the order of their imports: a later module uses only earlier ones.
MODULES = (
    "dom.js",
    "text.js",
    "bytes.js",
    "colour.js",
    "table.js",
    "charts.js",
    "heatmap.js",
    "strip.js",
    "overview.js",
    "words.js",
    "frames.js",
    "pictures.js",
    "curves.js",
    "attention.js",
    "trajectories.js",
    "audit.js",
    "live.js",
    "main.js",
)
_IMPORT = re.compile(r"^import\s[^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|class|let)", re.MULTILINE)
VEGA_LITE = "6.1"


def write_report(
    folders: Sequence[str | Path] | str | Path = ("runs",),
    out: str | Path = "report.html",
    *,
    examples: Sequence[int] = (),
    count: int | None = None,
    sentences: Sequence[str] = (),
    progress: Progress | None = None,
) -> Path:
    """Write a report: one HTML file that opens from disk, offline, in any current browser.

    Parameters
    ----------
    folders
        Workspaces (as given to ``--out``), or folders of single results or units.
    out
        The file.
    examples
        Ids of the stored examples to show; by default those that the recipe names, or the first
        ones of a readable length.
    count
        How many of the first readable examples of each source, where no ids are given.
    sentences
        The user's sentences, read by the trained models; they need units trained on text.
    progress
        Counts the sources whose units are read.

    Returns
    -------
    Path
        The file.
    """
    path, request = Path(out), request_of(folders, examples, count, sentences)
    shown = payload(request, progress=progress)
    if not shown["runs"] and not shown["scenes"]:
        raise WorkspaceError(" ".join(shown["notices"]))
    write_bytes(path, html(shown).encode())
    return path


def request_of(
    folders: Sequence[str | Path] | str | Path,
    examples: Sequence[int] = (),
    count: int | None = None,
    sentences: Sequence[str] = (),
) -> Request:
    """Return the request that the arguments describe."""
    several = [folders] if isinstance(folders, (str, Path)) else list(folders)
    return Request(tuple(map(Path, several)), tuple(examples), count, tuple(sentences))


def html(value: Any, *, live: bool = False) -> str:
    """Return the page that shows a payload; a live one asks its server for news."""
    template = Environment(autoescape=True).from_string(_static("page.html.j2"))
    style, script, vega = _static("style.css"), bundle(), _vega()
    return template.render(
        policy=policy(live=live),
        style=Markup(style),
        script=Markup(script),
        vega=Markup(vega),
        data=Markup(as_data(value)),
        live=live,
    )


def policy(*, live: bool = False) -> str:
    """Return the Content-Security-Policy: the page's own scripts and style, nothing else."""
    scripts = " ".join(_hash(text) for text in (bundle(), _vega()) if text)
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {scripts}",
            f"style-src {_hash(_static('style.css'))}",
            "img-src data: blob:",
            f"connect-src {chr(39)}self{chr(39)}" if live else "connect-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def as_data(value: Any) -> str:
    """Return JSON that is safe inside a script element and in every JavaScript engine.

    Characters that could end the element or a line are written as escapes; so is everything that
    is not ASCII, lone surrogates included, so that no encoding matters.
    """
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def bundle() -> str:
    """Return the page's modules as one: imports between them fall away."""
    parts = [_EXPORT.sub("", _IMPORT.sub("", _static(name))) for name in MODULES]
    return "\n" + "\n".join(parts)


@cache
def _vega() -> str:
    """Return Vega-Lite's scripts as one module: a file of the built package, or vl-convert's.

    Nothing in a checkout that was not installed, where vl-convert is missing too.
    """
    try:
        text = _static("vega.js")
    except FileNotFoundError:
        if figures_available() is not None:
            return ""
        text = render("javascript_bundle", vl_version=VEGA_LITE).decode()
    # The only way out of a script element, and of an HTML comment's double escape.
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


@cache
def _static(name: str) -> str:
    return files("attnscope.report").joinpath("static", name).read_text(encoding="utf8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
