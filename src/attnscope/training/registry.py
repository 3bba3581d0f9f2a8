"""Stored configurations as units: the kinds of the package, and those that the user imported.

Importing a module is all it takes to make its kinds known (`attnscope.runs.spec`); which modules
the package has is read from its folders.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from attnscope.runs.spec import usage_errors
from attnscope.training.unit import Unit

_FOLDERS = ("data", "models", "scores", "training")


@cache
def import_kinds() -> None:
    """Import every module of the package that may define a kind."""
    for folder in _FOLDERS:
        package = import_module(f"attnscope.{folder}")
        for module in pkgutil.walk_packages(package.__path__, f"attnscope.{folder}."):
            import_module(module.name)


def read_unit(config: Mapping[str, Any], where: str = "The unit") -> Unit:
    """Return the unit of a stored configuration.

    Parameters
    ----------
    config
        As in a unit's ``config.json``.
    where
        Named in the error about a configuration that is not one of a unit.
    """
    import_kinds()
    with usage_errors(where):
        return Unit.model_validate(config)
