"""Annotations enforced at run time, shapes included, at a fraction of what jaxtyping's own
decorator takes: that checks every argument twice and prepares each function when it is imported.

Here a function is prepared when it is first called, and each call is checked once.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jaxtyping
from beartype import BeartypeConf, beartype

# With PEP 484's numeric tower, as in mypy: an int is accepted where a float is asked for.
_check = beartype(conf=BeartypeConf(is_pep484_tower=True, violation_type=jaxtyping.TypeCheckError))
# Dimension names bind to one size each within a scope: a call of a function.
_scope = jaxtyping.jaxtyped("context")


def enforced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that raises TypeCheckError when an annotation of it is violated."""
    checked: Callable[..., Any] | None = None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked
        if checked is None:
            function.__annotations__ = _resolved(function)
            checked = _check(function)
        with _scope:
            return checked(*args, **kwargs)

    return call


def _resolved(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function without those that only a type checker can name."""
    found = {}
    for name, annotation in function.__annotations__.items():
        # A name imported under TYPE_CHECKING, or a class that only type stubs subscript.
        with suppress(NameError, TypeError):
            is_text = isinstance(annotation, str)
            found[name] = eval(annotation, function.__globals__) if is_text else annotation
    return found


def _decorator(decorated: Any) -> Any:
    """Enforce a function, or what the arguments of a data class are."""
    if not isinstance(decorated, type):
        return enforced(decorated) if decorated.__annotations__ else decorated
    if dataclasses.is_dataclass(decorated) and "__init__" in vars(decorated):
        decorated.__init__ = enforced(decorated.__init__)  # type: ignore[misc]
    return decorated


def install(package: str) -> None:
    """Enforce the annotations of every function and data class of a package imported from now on.

    jaxtyping's import hook decorates them with ``jaxtyping.jaxtyped``, looked up by that name.
    """
    jaxtyping.jaxtyped = lambda typechecker: _decorator
    jaxtyping.install_import_hook(package, "beartype.beartype")
