"""Where the result of a run lies: its part, and a variant where settings are not the defaults.

The place is a function of the command alone. Corpora, and what a recipe treats alike, are its part;
every other setting that is not the default goes into a short hash, so that results of different
settings stand next to each other and none replaces another; ``--name`` gives it a name instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from attnscope.claims.wording import plain_setting
from attnscope.errors import UsageError, WorkspaceError
from attnscope.recipes.recipe import RecipeModule
from attnscope.recipes.registry import argument_of
from attnscope.runs.result import Result, Scale, read_result
from attnscope.runs.spec import Settings, fingerprint, read_settings

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,59}")
_DIGITS = 6
# Variants that follow from the settings.
_HASHED = re.compile(r"[0-9a-f]{6}|quick|quick-[0-9a-f]{6}")


class Naming(NamedTuple):
    """Part, variant and scale of a run, and its settings that are not the defaults."""

    part: str
    variant: str
    scale: Scale
    changed: dict[str, Any]


def naming_of(
    config: Settings, quick: Mapping[str, Any] | None = None, name: str | None = None
) -> Naming:
    """Return how a run is called.

    Parameters
    ----------
    config
        Its settings.
    quick
        The settings of ``--quick``, for a quick run.
    name
        The user's name for it, in place of a hash.
    """
    if name is not None and not _NAME.fullmatch(name):
        raise UsageError(
            f"--name {name!r}: a name begins with a letter or a digit and has up to 60 letters, "
            "digits, '.', '_' and '-'."
        )
    in_part, part = getattr(config, "in_part", ()), getattr(config, "part", "")
    changed = {k: v for k, v in differing(config).items() if k not in in_part}
    if quick is None:
        own = changed | {k: v for k, v in required(config).items() if k not in in_part}
        hashed = fingerprint(own, _DIGITS) if own else ""
        return Naming(part, hashed if name is None else name, _scale(changed), changed)
    smaller = read_settings(type(config), dict(quick) | required(config), "--quick")
    own = {k: v for k, v in differing(config, smaller).items() if k not in in_part}
    hashed = f"quick-{fingerprint(own, _DIGITS)}" if own else "quick"
    return Naming(part, hashed if name is None else name, "quick", changed)


def _scale(changed: Mapping[str, Any]) -> Scale:
    return "changed" if changed else "full"


def differing(config: Settings, other: Settings | None = None) -> dict[str, Any]:
    """Return the settings, as JSON values, that differ from other ones; by default the defaults."""
    if other is None:
        fields = type(config).model_fields
        plain = {
            name: field.get_default(call_default_factory=True)
            for name, field in fields.items()
            if not field.is_required()
        }
        other = config.model_copy(update=plain)
    own, base = config.model_dump(mode="json"), other.model_dump(mode="json")
    return {name: value for name, value in own.items() if value != base[name]}


def required(config: Settings) -> dict[str, Any]:
    """Return the settings that have no default, as JSON values."""
    fields, own = type(config).model_fields, config.model_dump(mode="json")
    return {name: own[name] for name, field in fields.items() if field.is_required()}


def demand_free(folder: Path, config: Mapping[str, Any]) -> None:
    """Raise an error if a named place holds a result of other settings."""
    if not (folder / "result.json").is_file():
        return
    there: Result = read_result(folder / "result.json")
    if there.config != dict(config):
        raise WorkspaceError(
            f"{folder} holds a result of other settings; give this run another --name."
        )


def command_of(result: Result, module: RecipeModule | None) -> str:
    """Return the command that gives a result: the recipe and the settings that are not defaults.

    Of a recipe that this version does not know, or knows with other settings, the name alone.
    """
    quick = result.scale == "quick"
    try:
        smaller = dict(module.QUICK) if module is not None and quick else {}
        defaults = {} if module is None else module.Config(**smaller).model_dump(mode="json")
    except ValueError:
        defaults = {}
    given = {
        key: value
        for key, value in result.config.items()
        if defaults and (key not in defaults or value != defaults[key])
    }
    settings = [f"{key}={plain_setting(value)}" for key, value in given.items()]
    options = ["--quick"] if quick else []
    if result.variant and not _HASHED.fullmatch(result.variant):
        options += ["--name", result.variant]
    return " ".join(["attnscope run", argument_of(result.recipe), *settings, *options])
