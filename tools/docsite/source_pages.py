"""The package's source as pages of the site, and links to files of the repository.

A link from a page to a file outside ``docs`` (``../src/attnscope/models/trace.py``) leads to that
file's page here, so that the pages read the same in the repository and on the site, and the site
needs no other host. Every function and class has an anchor: its name.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import guess_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes

ROOT = Path(__file__).parents[2]
SHOWN = ("src/attnscope", "examples", "tools", "benchmarks")
_SUFFIXES = {".py", ".csv", ".json", ".sh"}


def setup(app: Any) -> None:
    """Write the pages and rewrite links to them."""
    app.connect("html-collect-pages", _pages)
    # Before Sphinx collects files to download.
    app.connect("doctree-read", _rewrite, priority=100)


def page_of(path: Path) -> str:
    """Return the page of a file, relative to the site."""
    return f"source/{path.relative_to(ROOT).as_posix()}.html"


def shown_files() -> Iterator[Path]:
    """Yield the files that have pages."""
    for folder in SHOWN:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in _SUFFIXES and path.stat().st_size < 100_000:
                yield path
    yield from (ROOT / name for name in ("LICENSE", "Makefile", "constraints.txt", "CITATION.cff"))


def linkcode_resolve(domain: str, info: Mapping[str, str]) -> str | None:
    """Return the link from a page of ``docs/generated/api`` to the source of an object."""
    from importlib import import_module

    if domain != "py" or not info["module"]:
        return None
    found: Any = import_module(info["module"])
    for part in info["fullname"].split("."):
        found = getattr(found, part, None)
    try:
        path = inspect.getsourcefile(inspect.unwrap(found))
    except TypeError:
        return None
    # An environment inside the checkout has files of other packages below the same folder.
    if not path or Path(path).resolve() not in _known():
        return None
    return f"../../{page_of(Path(path).resolve())}#{getattr(found, '__qualname__', '')}"


def _rewrite(app: Any, doctree: nodes.document) -> None:
    here = Path(app.env.docname)
    up = "../" * (len(here.parts) - 1)
    folder = (Path(app.srcdir) / here).parent
    for node in list(doctree.findall(addnodes.download_reference)):
        path, _, anchor = node.get("reftarget", "").partition("#")
        target = (folder / path).resolve()
        if target in _known():
            uri = f"{up}{page_of(target)}" + (f"#{anchor}" if anchor else "")
            node.replace_self(nodes.reference("", "", *node.children, refuri=uri, internal=True))


_files: set[Path] = set()


def _known() -> set[Path]:
    if not _files:
        _files.update(shown_files())
    return _files


def _pages(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Write the pages with a template of their own, which is faster than the theme's."""
    folder = Path(app.outdir)
    style = HtmlFormatter(style="friendly").get_style_defs(".highlight")
    for path in shown_files():
        page = folder / page_of(path)
        if page.exists() and page.stat().st_mtime > path.stat().st_mtime:
            continue
        page.parent.mkdir(parents=True, exist_ok=True)
        up = "../" * len(path.relative_to(ROOT).parts)
        page.write_text(_html(path, up, style), encoding="utf-8")
    yield from ()


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{name}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{style}
body{{margin:1rem auto;max-width:60rem;padding:0 1rem;font-family:sans-serif;color:#222}}
pre{{font-size:.85rem;line-height:1.35;overflow-x:auto}}
:target{{background:#ffef9e}} a{{color:#0a58ca}}</style></head>
<body><p><a href="{up}index.html">attnscope</a> / {name}</p>
{code}</body></html>
"""


def _html(path: Path, up: str, style: str) -> str:
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix()
    try:
        lexer = guess_lexer_for_filename(path.name, text[:1000])
        lines = highlight(text, lexer, HtmlFormatter(nowrap=True)).splitlines()
    except ClassNotFound:
        lines = escape(text).splitlines()
    anchors = _definitions(text) if path.suffix == ".py" else {}
    # Pygments leaves out blank lines at the top, of which these files have none.
    for number, anchor in anchors.items():
        lines[number - 1] = f'<span id="{escape(anchor)}">{lines[number - 1]}</span>'
    code = '<div class="highlight"><pre>' + "\n".join(lines) + "</pre></div>"
    return _PAGE.format(name=escape(name), style=style, up=up, code=code)


def _definitions(text: str) -> dict[int, str]:
    """Return the name of the function or class that begins on a line, by line."""
    found: dict[int, str] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[node.lineno] = prefix + node.name
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")

    visit(ast.parse(text).body, "")
    return found
