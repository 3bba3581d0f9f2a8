"""Recipes share units, measures and the kit, never each other's modules (`tools/sizes.py`)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from attnscope.claims.papers import PAPERS
from attnscope.recipes import entries
from cases import for_each

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sizes() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sizes", ROOT / "tools" / "sizes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@for_each("part", [*PAPERS, "extra"])
def test_no_recipe_imports_a_module_of_another(sizes: ModuleType, part: str) -> None:
    recipes = {entry.module for entry in entries()}
    crossed = sizes.cross_imports(sizes.imports(), recipes)
    assert [each for each in crossed if each.startswith(f"attnscope.recipes.{part}.")] == []


def test_an_import_of_another_recipe_is_found_but_not_one_of_its_own_parts(
    sizes: ModuleType,
) -> None:
    home = "attnscope.recipes.snell"
    graph = {
        f"{home}.fig3": {f"{home}.fig3_figures", f"{home}.units"},
        f"{home}.fig3_figures": {f"{home}.fig6_measure"},
        f"{home}.units": {f"{home}.fig3"},
    }
    assert sizes.cross_imports(graph, {f"{home}.fig3", f"{home}.fig6"}) == [
        f"{home}.fig3_figures imports {home}.fig6_measure",
        f"{home}.units imports {home}.fig3",
    ]


def test_a_closure_has_the_papers_modules_and_not_the_kit(sizes: ModuleType) -> None:
    home = "attnscope.recipes"
    graph = {
        f"{home}.snell.fig3": {f"{home}.snell.units", f"{home}.kit.sheet", f"{home}.recipe"},
        f"{home}.snell.units": {f"{home}.snell.fig3"},
    }
    found = sizes.closure(f"{home}.snell.fig3", graph)
    assert found == {f"{home}.snell.fig3", f"{home}.snell.units"}


def test_every_for_of_a_nest_of_comprehensions_counts(sizes: ModuleType, tmp_path: Path) -> None:
    source = "a = [x for x in y]\nb = [{k for k in v} for v in w for w in z]\n"
    (tmp_path / "code.py").write_text(source)
    assert list(sizes.nests(tmp_path / "code.py")) == [1, 3]
