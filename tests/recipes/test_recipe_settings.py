"""Settings of recipes: each has one explanation, its docstring in the recipe's class."""

from __future__ import annotations

from attnscope.recipes import entries
from attnscope.recipes.kit.settings import RecipeSettings
from attnscope.recipes.recipe import module_of
from cases import for_each


@for_each("entry", entries(), ids=lambda entry: entry.name)
def test_every_setting_is_explained_in_sentences(entry):
    fields = module_of(entry).Config.model_fields
    explained = {name: (field.description or "").strip() for name, field in fields.items()}
    assert [name for name, text in explained.items() if not text.endswith(".")] == []


@for_each("entry", entries(), ids=lambda entry: entry.name)
def test_quick_values_are_valid_settings(entry):
    module = module_of(entry)
    assert issubclass(module.Config, RecipeSettings)
    module.Config.model_validate(dict(module.QUICK))
