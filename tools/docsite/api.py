"""The API reference: a page for the package and for each folder with every public name.

Public is what a package's ``__all__`` lists. A name that the top level exports is described there,
and the folder's page links to it.
"""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from types import ModuleType
from typing import Any

import attnscope
from docsite.markdown import Pages, first_sentence, table


def packages() -> list[str]:
    """Return the top level and its folders."""
    folders = (module.name for module in pkgutil.iter_modules(attnscope.__path__) if module.ispkg)
    return ["attnscope", *(f"attnscope.{name}" for name in folders)]


def public_names(package: str) -> dict[str, Any]:
    """Return the public objects of a package by name; folders and the version are not among "
    "them.
    """
    module = import_module(package)
    named = {name: getattr(module, name) for name in module.__all__ if name != "__version__"}
    return {name: each for name, each in named.items() if not isinstance(each, ModuleType)}


def pages() -> Pages:
    """Return the reference's pages."""
    listed = packages()
    rows = [
        [f"[`{name}`]({name}.md)", first_sentence(import_module(name).__doc__)] for name in listed
    ]
    contents = "\n".join(listed)
    index = (
        "# Python\n\nEvery public name, made from the code. Everything else is private.\n\n"
        f"{table(['package', 'contents'], rows)}\n"
        f"```{{toctree}}\n:hidden:\n\n{contents}\nattnscope.errors\n```\n"
    )
    made = {"api/index.md": index, "api/attnscope.errors.md": _errors()}
    return made | {f"api/{name}.md": _package(name) for name in listed}


def _package(package: str) -> str:
    objects = public_names(package)
    rows = [
        [f"{{py:obj}}`{name} <{_home(package, name, each)}>`", first_sentence(each.__doc__)]
        for name, each in objects.items()
    ]
    own = [
        _directive(package, name, each)
        for name, each in objects.items()
        if _home(package, name, each) == f"{package}.{name}"
    ]
    about = first_sentence(import_module(package).__doc__)
    return f"# `{package}`\n\n{about}\n\n{table(['name', 'what it is'], rows)}\n" + "\n".join(own)


def _home(package: str, name: str, each: Any) -> str:
    """Return the path under which an object is described: the top level's where that exports it."""
    top = import_module("attnscope")
    shared = package != "attnscope" and name in top.__all__ and getattr(top, name) is each
    return f"attnscope.{name}" if shared else f"{package}.{name}"


def _directive(package: str, name: str, each: Any) -> str:
    kind = "autoclass" if inspect.isclass(each) else "autofunction"
    if not callable(each):
        kind = "autodata"
    members = "\n   :members:" if kind == "autoclass" else ""
    return f"## {name}\n\n```{{eval-rst}}\n.. {kind}:: {package}.{name}{members}\n```\n"


def _errors() -> str:
    return (
        "# `attnscope.errors`\n\nEvery error that a user can act on; "
        "[Troubleshooting](../../troubleshooting.md) says what to do about each.\n\n"
        "```{eval-rst}\n.. automodule:: attnscope.errors\n   :members:\n   :exclude-members: "
        "suggestion\n```\n"
    )
