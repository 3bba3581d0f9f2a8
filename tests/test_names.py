"""No two public classes of the library have one name and mean different things."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import attnscope

PACKAGE = Path(attnscope.__file__).parent
CONTRACT = {"Config"}  # a class that every recipe has


def classes_by_name() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                if node.name in CONTRACT:
                    continue
                found[node.name].append(str(path.relative_to(PACKAGE)))
    return found


def test_a_public_class_has_a_name_of_its_own() -> None:
    clashes = {name: paths for name, paths in classes_by_name().items() if len(paths) > 1}
    assert clashes == {}
