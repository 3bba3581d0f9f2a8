"""The public names: each package lists them once, shows them all, and imports them on first use."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import attnscope
from cases import for_each

ROOT = Path(__file__).parents[1]
PACKAGES = [
    "attnscope",
    *(
        f"attnscope.{module.name}"
        for module in pkgutil.iter_modules(attnscope.__path__)
        if module.ispkg
    ),
]


@for_each("name", PACKAGES)
def test_every_name_that_a_package_lists_exists_and_has_a_docstring(name: str) -> None:
    package = import_module(name)
    assert dir(package) == package.__all__
    undocumented = [each for each in package.__all__ if not getattr(package, each).__doc__]
    assert undocumented == []


@for_each("name", PACKAGES)
def test_no_exported_name_is_also_a_module_of_its_package(name: str) -> None:
    # Importing the module would put it in the name's place.
    package = import_module(name)
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    clashing = [
        each
        for each in modules & set(package.__all__)
        if package.__getattr__(each) is not import_module(f"{name}.{each}")
    ]
    assert clashing == []


def test_dir_shows_the_verbs_and_the_folders() -> None:
    shown = set(dir(attnscope))
    assert {"load", "run", "compare", "heatmap", "read_score", "check_model"} <= shown
    assert {"scores", "models", "analysis", "data", "training"} <= shown


def test_subpackages_need_no_import_of_their_own_and_no_torch_before_a_name_is_used() -> None:
    code = (
        "import sys, attnscope\n"
        "packages = [attnscope.scores, attnscope.models, attnscope.analysis, attnscope.data,\n"
        "            attnscope.training, attnscope.theory, attnscope.runs, attnscope.claims]\n"
        "names = [name for package in packages for name in dir(package)]\n"
        "print(len(names) > 80, 'torch' in sys.modules)\n"
        "attnscope.scores.Attention()\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["True", "False", "True"]


def test_an_unknown_name_comes_with_the_nearest_one() -> None:
    with pytest.raises(AttributeError, match="no attribute 'scors'; did you mean 'scores'"):
        _ = attnscope.scors
    with pytest.raises(AttributeError, match="did you mean 'LexicalProbe'"):
        _ = attnscope.scores.LexicalProb


def guides() -> dict[str, str]:
    pages = [path for path in (ROOT / "docs").rglob("*.md") if "generated" not in path.parts]
    scripts = (ROOT / "examples").rglob("*.py")
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages, *scripts]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf8") for path in paths}


@for_each("name", guides())
def test_readme_guides_and_examples_need_no_module_deeper_than_one_folder(name: str) -> None:
    imports = re.findall(r"^ *(?:from|import) (attnscope[\w.]*)", guides()[name], re.MULTILINE)
    assert [module for module in imports if re.match(r"attnscope\.\w+\.", module)] == []
