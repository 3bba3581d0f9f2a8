"""Every recipe's settings: what it takes, default, quick value, and the sentence that explains it.

Values are written as the command line takes them.
"""

from __future__ import annotations

from itertools import groupby
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from attnscope.claims.catalogue import catalogue
from attnscope.claims.papers import PAPERS
from attnscope.cli_show import value_text
from attnscope.recipes.recipe import module_of
from attnscope.recipes.registry import Entry, entries
from attnscope.running.settings_list import settings_of
from docsite.markdown import Pages, code, minutes, prose, table


def pages() -> Pages:
    """Return a page for each paper."""
    made = {}
    for paper, group in groupby(entries(), key=lambda entry: entry.name.partition("/")[0]):
        sections = [_recipe(entry) for entry in group]
        made[f"recipes/{paper}.md"] = (
            f"# Recipes of {paper}\n\n*{PAPERS.get(paper, paper)}*\n\nTimes are those of a full "
            "run on two CPU cores and on one data-centre GPU. A setting is given as `name=value`, "
            "a list with commas and without blanks. `--quick` sets the values of its column. "
            "`attnscope show RECIPE` prints the same, and times the run on your machine.\n\n"
            + "\n".join(sections)
        )
    return made


def _recipe(entry: Entry) -> str:
    module = module_of(entry)
    source = entry.module.replace(".", "/")
    claims = [claim.id for claim in catalogue() if entry.name in claim.recipes]
    decided = ", ".join(code(name) for name in claims) or "no claim of the paper"
    fields = module.Config.model_fields
    rows = [
        [
            code(each.name),
            _takes(fields[each.name].annotation),
            code(value_text(each.default)) or "empty",
            "" if each.quick == each.default else code(value_text(each.quick)),
            prose(each.meaning),
        ]
        for each in settings_of(module)
    ]
    head = ["setting", "takes", "default", "quick", "meaning and reason"]
    return (
        f"## {entry.name}\n\n{entry.title[:1].upper()}{entry.title[1:]}. Needs {entry.needs}; "
        f"{minutes(entry.cpu_minutes)} on two CPU cores, {minutes(entry.gpu_minutes)} on a GPU. "
        f"Decides {decided}. [Source](../../../src/{source}.py).\n\n{table(head, rows)}\n"
    )


_ONE = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
_MANY = {int: "whole numbers", float: "numbers", str: "names"}


def _takes(annotation: Any) -> str:
    """Return in words what a setting takes."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _takes(parts[0])
    if origin is Literal:
        return " or ".join(map(code, parts))
    if origin in (Union, UnionType):
        return " or ".join("`None`" if each is NoneType else _takes(each) for each in parts)
    return _list_of(parts[0]) if origin is tuple else _ONE[annotation]


def _list_of(part: Any) -> str:
    origin, parts = get_origin(part), get_args(part)
    if origin is Annotated:
        return _list_of(parts[0])
    if origin is tuple:
        return "a list of pairs `a=b`"
    return f"a list of {', '.join(map(code, parts)) if origin is Literal else _MANY[part]}"
