"""The parts of the documentation site that are made from the code: a small Sphinx extension.

`pages` writes every generated page into ``docs/generated`` before Sphinx reads its sources, so a
generated page is always current; `source_pages` shows the package's source and turns links to files
of the repository into links to it; `mathml` renders formulas while the site is built, so that no
page needs a script for them.
"""

from __future__ import annotations

from typing import Any

from docsite import mathml, pages, source_pages


def setup(app: Any) -> dict[str, Any]:
    """Connect all parts to Sphinx."""
    mathml.setup(app)
    source_pages.setup(app)
    app.connect("builder-inited", pages.write_all)
    app.connect("build-finished", pages.remove_old_pages)
    app.connect("autodoc-process-docstring", _escape_bars)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def _escape_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep |x| an absolute value: reStructuredText reads it as a substitution."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith(">>>"):
            lines[number] = line.replace("|", "\\|")
