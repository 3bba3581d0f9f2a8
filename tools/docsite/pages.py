"""Every generated page of the site, by its path under ``docs/generated``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docsite import api, command_line, gallery, papers, reference, settings
from docsite.markdown import Pages

FOLDER = Path(__file__).parents[2] / "docs" / "generated"


def all_pages() -> Pages:
    """Return the text of every generated page by its path."""
    return {
        **api.pages(),
        **command_line.pages(),
        **settings.pages(),
        **reference.pages(),
        **gallery.pages(),
        **papers.pages(),
        "contributing.md": _contributing(),
    }


def remove_old_pages(app: Any, exception: Exception | None) -> None:
    """Delete pages of an earlier build whose sources are no more."""
    if exception is not None:
        return
    site = Path(app.outdir)
    kept = {"genindex", "search", "py-modindex", *app.env.all_docs}
    for path in site.rglob("*.html"):
        page = path.relative_to(site).with_suffix("").as_posix()
        if page not in kept and page.partition("/")[0] not in ("source", "reports", "_static"):
            path.unlink()


def _contributing() -> str:
    """Return CONTRIBUTING.md with its links as they are from here."""
    text = (FOLDER.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    text = text.replace("](examples/extend)", "](../howto/extend.md)")
    return re.sub(r"\]\((?!https?:|#|\.\./)", "](../../", text).replace("](../../docs/", "](../")


def write_all(app: Any = None) -> None:
    """Write what has changed, so that Sphinx reads no page twice, and remove what is no more."""
    made = all_pages()
    for path in FOLDER.rglob("*.md"):
        if path.relative_to(FOLDER).as_posix() not in made:
            path.unlink()
    for name, text in made.items():
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    gallery.write_reports()
