"""Write docs/equations.md: where each equation, table and figure of the papers is implemented.

The index is read from the docstrings of src/attnscope: "snell Eq. 4, 6", "tutek Table 1". Where a
docstring names no paper, the reference belongs to the paper that its module names first, or to the
paper's folder. Run ``python tools/equations.py`` after changing a reference.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "attnscope"
INDEX = ROOT / "docs" / "equations.md"
PAPERS = {
    "snell": "Approximating How Single Head Attention Learns (Snell et al. 2021)",
    "sunlu": "Understanding Attention for Text Classification (Sun & Lu 2020)",
    "tutek": "Staying True to Your Word (Tutek & Šnajder 2020)",
    "aitken": "Understanding How Encoder-Decoder Architectures Attend (Aitken et al. 2021)",
}
KINDS = {"Eq": "Eq.", "Table": "Table", "Fig": "Fig."}

_PAPER = re.compile(rf"\b({'|'.join(PAPERS)})\b")
_NUMBER = r"\d+[a-z]?(?:[–-]\d+)?"
_REFERENCE = re.compile(
    rf"\b(Eq|Table|Fig)(?:s|\.|ures?)?\s+({_NUMBER}(?:(?:,|,? and| or)\s+{_NUMBER}\b)*)",
    re.IGNORECASE,
)


@dataclass(frozen=True, order=True)
class Reference:
    """An equation, table or figure of a paper, and a function, class or module that has it."""

    paper: str
    kind: str
    number: int
    path: str
    name: str


def references() -> list[Reference]:
    """Return every reference of the package's docstrings, in order."""
    found = {each for path in sorted(PACKAGE.rglob("*.py")) for each in _of_file(path)}
    return sorted(found, key=lambda each: (_rank(each), each))


def _rank(each: Reference) -> tuple[int, int]:
    return list(PAPERS).index(each.paper), list(KINDS).index(each.kind)


def _of_file(path: Path) -> Iterator[Reference]:
    relative = path.relative_to(PACKAGE)
    module = ast.parse(path.read_text(encoding="utf-8"))
    folders = [part for part in relative.parts[:-1] if part in PAPERS]
    named = [*folders, *_PAPER.findall(ast.get_docstring(module) or "")]
    for name, text in _docstrings(module, ""):
        for paper, kind, number in _of_text(text, named[0] if named else ""):
            yield Reference(paper, kind, number, relative.as_posix(), name)


def _docstrings(node: ast.AST, outer: str) -> Iterator[tuple[str, str]]:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    if isinstance(node, documented):
        yield outer, ast.get_docstring(node) or ""
        for child in node.body:
            name = getattr(child, "name", "")
            yield from _docstrings(child, f"{outer}.{name}".strip("."))


def _of_text(text: str, default: str) -> Iterator[tuple[str, str, int]]:
    for match in _REFERENCE.finditer(text):
        named = _PAPER.findall(text[: match.start()])
        paper = named[-1] if named else default
        if paper:
            for number in _numbers(match[2]):
                yield paper, match[1].capitalize(), number


def _numbers(text: str) -> Iterator[int]:
    for part in re.findall(_NUMBER, text):
        first, *last = (int(number) for number in re.findall(r"\d+", part))
        yield from range(first, last[0] + 1 if last else first + 1)


def index() -> str:
    """Return the page."""
    lines = [
        "# Where the papers' equations, tables and figures are",
        "",
        "Made from the docstrings by `python tools/equations.py`; not edited by hand. A row",
        "without a function or class is about the whole file.",
    ]
    found = references()
    for paper, title in PAPERS.items():
        lines += ["", f"## {paper}: {title}", "", "| | file | function or class |", "|---|---|---|"]
        lines += [_row(each) for each in found if each.paper == paper]
    return "\n".join([*lines, ""])


def _row(each: Reference) -> str:
    link = f"[{each.path}](../src/attnscope/{each.path})"
    name = f"`{each.name}`" if each.name else ""
    return f"| {KINDS[each.kind]} {each.number} | {link} | {name} |"


if __name__ == "__main__":
    INDEX.write_text(index(), encoding="utf-8")
    print(f"{INDEX.relative_to(ROOT)}: {len(references())} references")
