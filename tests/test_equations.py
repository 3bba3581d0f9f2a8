"""docs/equations.md is current and misses none of the papers' equations that are implemented."""

from __future__ import annotations

from pathlib import Path

from cases import for_each
from tool import load_tool

ROOT = Path(__file__).parents[1]


TOOL = load_tool("equations")
# Every numbered equation of the papers' texts, and of sunlu's supplement those that are used; but
# tutek Eq. 10, the Transformer's attention, which the paper quotes and does not use.
IMPLEMENTED = {
    ("snell", "Eq"): range(1, 59),
    ("snell", "Table"): range(2, 12),
    ("snell", "Fig"): range(1, 9),
    ("sunlu", "Eq"): [*range(1, 29), 44, *range(59, 69), 82, 83],
    ("sunlu", "Table"): [2],
    ("sunlu", "Fig"): range(2, 6),
    ("tutek", "Eq"): [*range(1, 10), 11],
    ("tutek", "Table"): [1, 2, 3, 6],
    ("tutek", "Fig"): [1, 2],
    ("aitken", "Eq"): range(1, 4),
    ("aitken", "Fig"): range(2, 7),
}


@for_each(("paper", "kind"), IMPLEMENTED)
def test_the_index_has_every_equation_table_and_figure(paper: str, kind: str) -> None:
    indexed = {
        each.number for each in TOOL.references() if (each.paper, each.kind) == (paper, kind)
    }
    assert sorted(set(IMPLEMENTED[paper, kind]) - indexed) == []


def test_the_page_is_what_the_command_writes() -> None:
    assert TOOL.INDEX.read_text(encoding="utf-8") == TOOL.index(), "run python tools/equations.py"


@for_each(
    ("text", "found"),
    [
        ("β (snell Eq. 4, 6, 9)", [("snell", "Eq", 4), ("snell", "Eq", 6), ("snell", "Eq", 9)]),
        (
            "IBM Model 1 (Eq. 17–19)",
            [("tutek", "Eq", 17), ("tutek", "Eq", 18), ("tutek", "Eq", 19)],
        ),
        ("snell's Eq. 7 and sunlu Eq. 1", [("snell", "Eq", 7), ("sunlu", "Eq", 1)]),
        (
            "Figure 5a and Tables 2 and 3",
            [("tutek", "Fig", 5), ("tutek", "Table", 2), ("tutek", "Table", 3)],
        ),
        ("figures of merit, a table of words", []),
    ],
)
def test_references_are_read_from_text(text: str, found: list[tuple[str, str, int]]) -> None:
    assert list(TOOL._of_text(text, "tutek")) == found


def test_a_reference_names_the_innermost_function() -> None:
    places = {(each.path, each.name) for each in TOOL.references() if each.paper == "tutek"}
    assert ("theory/divergence.py", "total_variation") in places
    assert ("training/tying.py", "Tying") in places
