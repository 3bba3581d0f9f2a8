"""Recipes: which units are trained, what is measured on them, which figure is drawn."""

from typing import TYPE_CHECKING

from attnscope.lazy import exports

if TYPE_CHECKING:
    from attnscope.recipes.kit.lab import Lab as Lab, Logged as Logged
    from attnscope.recipes.kit.settings import RecipeSettings as RecipeSettings
    from attnscope.recipes.recipe import Charts as Charts
    from attnscope.recipes.registry import (
        Entry as Entry,
        add as add,
        entries as entries,
        find as find,
    )
else:
    __all__, __getattr__, __dir__ = exports(__name__)
