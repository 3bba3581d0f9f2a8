"""The settings of a recipe as a user reads them: default, quick value, meaning and reason.

The meaning is the docstring of the setting in the recipe's ``Config``. A setting makes a run
smaller if its quick value is a smaller number, or a shorter list, than its default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnscope.recipes.recipe import RecipeModule


@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes
    ----------
    name
        As in ``name=value``.
    default
        Its value at full size.
    quick
        Its value with ``--quick``; the default where they are the same.
    meaning
        What it is, and why it has this default.
    size
        Whether the quick value makes the run smaller without other data.
    """

    name: str
    default: Any
    quick: Any
    meaning: str
    size: bool


def settings_of(module: RecipeModule) -> list[Setting]:
    """Return the settings of a recipe, in the order of its ``Config``."""
    fields = module.Config.model_fields
    required = {name for name, field in fields.items() if field.is_required()}
    full = module.Config.model_construct() if required else module.Config()
    quick = module.Config.model_validate(dict(module.QUICK)) if not required else full
    rows = []
    for name, field in fields.items():
        default, small = getattr(full, name, None), getattr(quick, name, None)
        meaning = " ".join((field.description or "").split())
        rows.append(Setting(name, default, small, meaning, _is_size(name, default, small)))
    return rows


def _is_size(name: str, default: Any, quick: Any) -> bool:
    if name == "corpus":
        return False
    if isinstance(default, int) and isinstance(quick, int):
        return quick < default
    return isinstance(default, tuple) and isinstance(quick, tuple) and len(quick) < len(default)
