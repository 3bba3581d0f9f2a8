"""Lazy exports of a package: names are imported on first use, so that importing stays fast.

A package lists its public names once, as imports for type checkers:

    if TYPE_CHECKING:
        from attnscope.scores.score import Score as Score
    else:
        __all__, __getattr__, __dir__ = exports(__name__)

Type checkers and editors read these imports as they are; at run time `exports` reads the same lines
from the package's source. A subpackage is listed as ``from attnscope import scores as scores``.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from attnscope.errors import suggestion

Exports = tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]


def exports(package: str) -> Exports:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package
        Its ``__name__``.
    """
    module = sys.modules[package]
    homes = dict(_imports_for_typing(_source(module)))
    names = sorted([*homes, *({"__version__"} & set(vars(module)))])

    def get(name: str) -> Any:
        if name not in homes:
            hint = "" if name.startswith("_") else f"; {suggestion(name, names)}"
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        if homes[name] == package:
            return import_module(f"{package}.{name}")
        return getattr(import_module(homes[name]), name)

    return names, get, names.copy


def _source(module: Any) -> str:
    text: str = module.__spec__.loader.get_source(module.__name__)
    return text


def _imports_for_typing(source: str) -> Iterator[tuple[str, str]]:
    """Yield each name imported under ``if TYPE_CHECKING`` with the module that defines it."""
    for block in ast.parse(source).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for node in block.body:
                if isinstance(node, ast.ImportFrom) and node.module:
                    yield from ((alias.name, node.module) for alias in node.names)
