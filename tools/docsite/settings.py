"""Every recipe's settings: type, default, quick value, and the sentence that explains it."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from pydantic_core import PydanticUndefined

from attnscope.claims.catalogue import catalogue
from attnscope.claims.papers import PAPERS
from attnscope.recipes.recipe import module_of
from attnscope.recipes.registry import Entry, entries
from docsite.markdown import Pages, code, minutes, prose, table, type_name


def pages() -> Pages:
    """Return a page for each paper."""
    made = {}
    for paper, group in groupby(entries(), key=lambda entry: entry.name.partition("/")[0]):
        sections = [_recipe(entry) for entry in group]
        made[f"recipes/{paper}.md"] = (
            f"# Recipes of {paper}\n\n*{PAPERS.get(paper, paper)}.* Times are those of a full "
            f"run on "
            "two CPU cores and on one data-centre GPU. `--quick` sets the values of its column "
            "instead; any setting is given as `key=value`.\n\n" + "\n".join(sections)
        )
    return made


def _recipe(entry: Entry) -> str:
    module = module_of(entry)
    source = entry.module.replace(".", "/")
    claims = [claim.id for claim in catalogue() if entry.name in claim.recipes]
    decided = ", ".join(code(name) for name in claims) or "no claim of the paper"
    rows = [
        [
            code(name),
            code(type_name(field)),
            code(_default(field)),
            code(module.QUICK[name]) if name in module.QUICK else "",
            prose(field.description or ""),
        ]
        for name, field in module.Config.model_fields.items()
    ]
    head = ["setting", "type", "default", "quick", "why"]
    return (
        f"## {entry.name}\n\n{entry.title[:1].upper()}{entry.title[1:]}. Needs {entry.needs}; "
        f"{minutes(entry.cpu_minutes)} on two CPU cores, {minutes(entry.gpu_minutes)} on a GPU. "
        f"Decides {decided}. [Source](../../../src/{source}.py).\n\n{table(head, rows)}\n"
    )


def _default(field: Any) -> str:
    if field.default_factory is not None:
        return str(field.default_factory())
    return "" if field.default is PydanticUndefined else str(field.default)
