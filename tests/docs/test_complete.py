"""Everything that a user can name has its place in the documentation."""

from __future__ import annotations

import pkgutil
import re
import tomllib
from importlib import import_module
from pathlib import Path

from docsite import api, command_line, pages

import attnscope
from attnscope.claims.catalogue import catalogue
from attnscope.recipes import entries
from cases import for_each

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def read(site: Path, page: str) -> str:
    return (site / page).read_text(encoding="utf8")


def test_generated_pages_are_current(site: Path) -> None:
    written = {
        path.relative_to(pages.FOLDER).as_posix(): path.read_text(encoding="utf8")
        for path in pages.FOLDER.rglob("*.md")
    }
    assert written == pages.all_pages(), "run make docs"


@for_each("package", api.packages())
def test_every_public_name_is_described(package: str, site: Path) -> None:
    top = read(site, "generated/api/attnscope.html")
    own = read(site, f"generated/api/{package}.html")
    missing = [
        name
        for name in api.public_names(package)
        if f'id="{package}.{name}"' not in own and f'id="attnscope.{name}"' not in top
    ]
    assert missing == []


def test_every_command_is_described(site: Path) -> None:
    page = read(site, "generated/command-line.html")
    assert [name for name, _ in command_line.commands() if f"{name}<" not in page] == []


def test_every_recipe_is_in_the_gallery_and_has_its_settings(site: Path) -> None:
    gallery = read(site, "generated/gallery.html")
    for entry in entries():
        paper = entry.name.partition("/")[0]
        assert entry.name in gallery
        assert f"{entry.name}<" in read(site, f"generated/recipes/{paper}.html")


def test_every_claim_is_listed(site: Path) -> None:
    page = read(site, "generated/claims.html")
    assert [claim.id for claim in catalogue() if claim.id not in page] == []


def exceptions() -> set[str]:
    found = set()
    for module in pkgutil.walk_packages(attnscope.__path__, "attnscope."):
        if not module.name.endswith("__main__"):
            for name, each in vars(import_module(module.name)).items():
                own = isinstance(each, type) and each.__module__ == module.name
                if own and issubclass(each, Exception) and not name.startswith("_"):
                    found.add(name)
    return found


def test_every_error_has_a_row_in_troubleshooting() -> None:
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf8")
    rows = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert exceptions() <= rows


def test_every_extra_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    page = (DOCS / "start" / "install.md").read_text(encoding="utf8")
    extras = set(project["optional-dependencies"]) - {"dev", "release"}
    assert [name for name in extras if f"`attnscope[{name}]`" not in page] == []


def test_every_environment_variable_is_explained() -> None:
    page = (DOCS / "reference" / "environment.md").read_text(encoding="utf8")
    source = "\n".join(
        path.read_text(encoding="utf8") for path in (ROOT / "src" / "attnscope").rglob("*.py")
    )
    used = set(re.findall(r"\bATTNSCOPE_[A-Z_]+", source))
    assert used <= set(re.findall(r"`(\w+)`", page))
