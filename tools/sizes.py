"""Sizes of the code base as a Markdown page: files, lines, closures of recipes, cross imports.

``python tools/sizes.py [--tests]``, with the package importable. A recipe's closure is the set of
files that one reads to understand it: its module and everything that this imports from the papers'
packages; ``kit`` and the modules of ``recipes`` itself are the common vocabulary and are counted
apart. ``--tests`` collects the tests, which takes a minute.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import attnscope
from attnscope.recipes import entries

PACKAGE = Path(attnscope.__file__).parent
ROOT = PACKAGE.parents[1]
RECIPES = "attnscope.recipes."
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def module_name(path: Path) -> str:
    """Return the dotted name of a file of the package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def line_count(path: Path) -> int:
    """Return the number of lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def imports() -> dict[str, set[str]]:
    """Return the modules of the package that each of its modules imports, wherever it does so."""
    files = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
    found = {}
    for name, path in files.items():
        asked = set(_imported(ast.parse(path.read_text(encoding="utf-8"))))
        # ``from package import name`` is an import of a module, or of a name in the package.
        known = {each if each in files else each.rpartition(".")[0] for each in asked}
        found[name] = (known & files.keys()) - {name}
    return found


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_part_of_a_paper(module: str) -> bool:
    """Return whether a module is in a paper's package (or among the extras), not in the kit."""
    inside = module.removeprefix(RECIPES).split(".")
    return module.startswith(RECIPES) and len(inside) > 1 and inside[0] != "kit"


def closure(module: str, graph: dict[str, set[str]]) -> set[str]:
    """Return a recipe's module and all that it needs from the papers' packages."""
    seen, waiting = {module}, [module]
    while waiting:
        for other in graph[waiting.pop()]:
            if is_part_of_a_paper(other) and other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


def recipe_of(module: str, recipes: set[str]) -> str | None:
    """Return the recipe that a module belongs to: ``fig2_figures`` is a part of ``fig2``."""
    owners = [name for name in recipes if module == name or module.startswith(f"{name}_")]
    return max(owners, key=len, default=None)


def cross_imports(graph: dict[str, set[str]], recipes: set[str]) -> list[str]:
    """Return the imports of one recipe's modules by those of another, or by shared ones."""
    found = []
    for module, others in graph.items():
        if not is_part_of_a_paper(module):
            continue
        for other in sorted(others):
            owner = recipe_of(other, recipes)
            if owner is not None and owner != recipe_of(module, recipes):
                found.append(f"{module} imports {other}")
    return found


def nests(path: Path) -> Iterator[int]:
    """Yield the number of ``for`` in each comprehension of a file, those inside it included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inner = set()
    for node in ast.walk(tree):
        if isinstance(node, COMPREHENSIONS) and node not in inner:
            parts = [part for part in ast.walk(node) if isinstance(part, COMPREHENSIONS)]
            inner.update(parts)
            yield sum(len(part.generators) for part in parts)


def folders() -> dict[str, list[Path]]:
    """Return the files of each folder of the package, of each part of recipes, and of tests."""
    found: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE).parts
        found.setdefault(inside[0] if len(inside) > 1 else "(top)", []).append(path)
        if inside[0] == "recipes":
            part = inside[1] if len(inside) > 2 else "(top)"
            found.setdefault(f"recipes/{part}", []).append(path)
    return found | {"tests": sorted((ROOT / "tests").rglob("*.py"))}


def main(tests: bool) -> None:
    """Print the page."""
    print("| folder | files | lines |\n|---|---|---|")
    for name, paths in folders().items():
        print(f"| {name} | {len(paths)} | {sum(map(line_count, paths))} |")

    graph = imports()
    lines = {module_name(path): line_count(path) for path in PACKAGE.rglob("*.py")}
    print("\n| recipe | files | lines |\n|---|---|---|")
    sizes = []
    for entry in entries():
        needed = closure(entry.module, graph)
        sizes.append((len(needed), sum(lines[module] for module in needed)))
        print(f"| {entry.name} | {sizes[-1][0]} | {sizes[-1][1]} |")
    files, length = (median(column) for column in zip(*sizes, strict=True))
    print(f"| median | {files:g} | {length:g} |")

    crossed = cross_imports(graph, {entry.module for entry in entries()})
    print(f"\nImports of one recipe's modules by another's: {len(crossed)}.")
    print("".join(f"- {each}\n" for each in crossed))
    for name in ("recipes", "."):
        counts = [count for path in (PACKAGE / name).rglob("*.py") for count in nests(path)]
        deep = sum(count > 2 for count in counts)
        print(f"Comprehensions below {name}: {len(counts)}, {deep} of three or more `for`.")
    if tests:
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", str(ROOT / "tests")]
        collected = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        print(f"Tests: {collected.stdout.strip().splitlines()[-1]}.")


if __name__ == "__main__":
    main("--tests" in sys.argv[1:])
