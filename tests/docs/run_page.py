"""Run the Python and shell blocks of a page, in order, in the current folder.

    python run_page.py PAGE [--cells]

Python blocks share one namespace. ``--cells`` also runs the code cells of a notebook page, which
the build of the site runs otherwise. A block after ``<!-- not run: reason -->`` is left out.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

RUN = ("python", "sh")
SHOWN = ("", "text", "json", "toml", "yaml", "bibtex")
_NOT_RUN = re.compile(r"<!-- not run: (.+) -->")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, text and line, and why it is not run, if it is not."""

    language: str
    text: str
    line: int
    reason: str = ""


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page, and indented ones under the language 'indented'."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"\A---\n.*?\n---\n", _as_many_lines, text, flags=re.DOTALL)
    before = ""
    for token in MarkdownIt("commonmark").parse(text):
        line = token.map[0] + 1 if token.map else 0
        if token.type == "fence":
            found = _NOT_RUN.search(before)
            yield Block(token.info.strip(), token.content, line, found[1] if found else "")
        elif token.type == "code_block":
            yield Block("indented", token.content, line)
        before = token.content if token.type == "html_block" else ""


def _as_many_lines(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _python(block: Block, page: Path, names: dict[str, object]) -> None:
    # Without the options of a cell.
    text = re.sub(r"(?s)\A(?:---\n.*?\n---\n|(?::\w+:[^\n]*\n)+)", "", block.text)
    code = compile("\n" * block.line + text, str(page), "exec")
    exec(code, names)


def main(page: Path, cells: bool) -> None:
    """Run a page."""
    names: dict[str, object] = {"__name__": "__page__"}
    for block in blocks(page):
        if block.reason:
            continue
        language = (
            "python" if cells and block.language.startswith("{code-cell}") else block.language
        )
        if language == "python":
            _python(block, page, names)
        elif language == "sh":
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text])
            if done.returncode:
                sys.exit(f"{page}:{block.line}: exit code {done.returncode}:\n{block.text}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), "--cells" in sys.argv)
