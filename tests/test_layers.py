"""A folder of the package imports only from those above it, and what must be quick loads no torch.

Imports are read from the source, those inside functions and for type checking alone included.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attnscope
from cases import for_each

PACKAGE = Path(attnscope.__file__).parent
LAYERS = [
    "runs",
    "figures",
    "data",
    "models",
    "theory",
    "scores",
    "training",
    "analysis",
    "claims",
    "recipes",
    "running",
    "own_text",
    "audits",
    "report",
]
# Usable by every folder; uses no folder itself.
FREE = {"attnscope.errors", "attnscope.lazy", "attnscope.__version__"}
FILES = sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(source: str, module: str, is_package: bool) -> Iterator[str]:
    """Yield the full name of everything that a module imports, names in ``from`` included."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def imports_of(path: Path) -> list[str]:
    source = path.read_text(encoding="utf-8")
    return list(imported(source, module_name(path), path.name == "__init__.py"))


def layer(name: str) -> str:
    """Return the folder of a full name, or what it is called at the top of the package."""
    return name.split(".")[1] if "." in name else ""


def violations(module: str, names: list[str]) -> list[str]:
    """Return the imports of a module from folders that come after its own."""
    allowed = LAYERS[: LAYERS.index(layer(module)) + 1]
    own = [name for name in names if name.split(".")[0] == "attnscope"]
    return [
        f"{module} imports {name}"
        for name in own
        if layer(name) not in allowed and not any(f"{name}.".startswith(f"{f}.") for f in FREE)
    ]


def in_folders() -> list[Path]:
    return [path for path in FILES if path.parent != PACKAGE]


def test_every_folder_has_its_place_in_the_order():
    assert {layer(module_name(path)) for path in in_folders()} <= set(LAYERS)


def test_no_module_imports_from_a_folder_below_its_own():
    found = [
        wrong for path in in_folders() for wrong in violations(module_name(path), imports_of(path))
    ]
    assert found == []


def test_errors_import_nothing_of_the_package():
    assert [n for n in imports_of(PACKAGE / "errors.py") if n.startswith("attnscope")] == []


@for_each(
    ("source", "found"),
    [
        ("from attnscope.models.trace import Trace", []),
        ("from attnscope.errors import UsageError", []),
        ("from attnscope import __version__", []),
        ("import torch, numpy.random", []),
        ("from . import score", []),
        ("from ..models import trace", []),
        ("from attnscope.training.unit import Unit", ["attnscope.training.unit.Unit"]),
        ("def f():\n    from attnscope import recipes", ["attnscope.recipes"]),
        ("import attnscope.analysis.kendall as k", ["attnscope.analysis.kendall"]),
        ("from ..training import unit", ["attnscope.training.unit"]),
        ("from attnscope import load", ["attnscope.load"]),
        ("from attnscope.terminal import Bars", ["attnscope.terminal.Bars"]),
        (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import attnscope.claims",
            ["attnscope.claims"],
        ),
    ],
)
def test_a_wrong_import_is_found_however_it_is_written(source, found):
    names = list(imported(source, "attnscope.scores.lexical_probe", is_package=False))
    expected = [f"attnscope.scores.lexical_probe imports {name}" for name in found]
    assert violations("attnscope.scores.lexical_probe", names) == expected


def test_nothing_in_runs_imports_torch():
    paths = [path for path in in_folders() if layer(module_name(path)) == "runs"]
    assert paths
    assert not [
        (module_name(path), name)
        for path in paths
        for name in imports_of(path)
        if name.split(".")[0] in {"torch", "jaxtyping"}
    ]


# Imports modules; one that brings torch along is an error. Prints what the table of recipes names.
WITHOUT_TORCH = """
import sys
from importlib import import_module
for module in sys.argv[1:]:
    import_module(module)
    if "torch" in sys.modules:
        sys.exit(module)
from attnscope.recipes import entries
print(*(entry.module for entry in entries()), "torch" in sys.modules)
"""
QUICK = [
    "attnscope",
    "attnscope.recipes",
    "attnscope.cli",
    *(f"attnscope.claims.{name}" for name in ("catalogue", "table", "verdicts", "published")),
    "attnscope.analysis.intervals",
    *(module_name(path) for path in sorted((PACKAGE / "runs").glob("*.py"))),
]


def test_what_must_answer_at_once_loads_no_torch_and_names_recipes_that_exist():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *QUICK], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    *recipes, has_torch = done.stdout.split()
    files = [PACKAGE.parent / f"{name.replace('.', '/')}.py" for name in recipes]
    assert recipes
    assert [file for file in files if not file.is_file()] == []
    assert has_torch == "False"
