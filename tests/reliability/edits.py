"""Random edits of a result.

Rows are dropped, renamed, doubled and emptied; numbers are null, huge and negative; axes and
settings are missing.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

_NUMBERS = (None, 0, -1, 1e300, -1e300, 1e-300, 5e-324, 2**60)
_TEXTS = ("", "x", "constructor", "\x1b[31m", "\ud800", "nul\x00", "a" * 3000, "NaN")


def _rows(result: dict[str, Any], rng: random.Random) -> list[dict[str, Any]]:
    rows = result["measurements"]
    if not rows:
        return []
    name = rng.choice(rows)["name"]
    return [row for row in rows if row["name"] == name or rng.random() < 0.1]


def _each(change: Callable[[dict[str, Any], random.Random], object]) -> Callable[..., None]:
    def edit(result: dict[str, Any], rng: random.Random) -> None:
        for row in _rows(result, rng):
            change(row, rng)

    return edit


def _drop_names(result: dict[str, Any], rng: random.Random) -> None:
    names = sorted({row["name"] for row in result["measurements"]})
    gone = set(rng.sample(names, rng.randint(1, len(names)))) if names else set()
    result["measurements"] = [row for row in result["measurements"] if row["name"] not in gone]


def _keep_some(result: dict[str, Any], rng: random.Random) -> None:
    share = rng.random()
    result["measurements"] = [row for row in result["measurements"] if rng.random() < share]


def _drop_axes(row: dict[str, Any], rng: random.Random) -> None:
    axes = row.get("axes") or {}
    for name in list(axes):
        if rng.random() < 0.5:
            del axes[name]


def _other_axes(row: dict[str, Any], rng: random.Random) -> None:
    for name in row.get("axes") or {}:
        row["axes"][name] = rng.choice((*_TEXTS[:4], 3, 0.5, -7))


def _ends(row: dict[str, Any], rng: random.Random) -> None:
    row["low"], row["high"] = rng.choice(_NUMBERS), rng.choice(_NUMBERS)


EDITS: dict[str, Callable[[dict[str, Any], random.Random], object]] = {
    "config {}": lambda result, rng: result.update(config={}),
    "config of other things": lambda result, rng: result.update(
        config={key: rng.choice(_TEXTS[:6]) for key in result["config"]}
    ),
    "config values null": lambda result, rng: result.update(config=dict.fromkeys(result["config"])),
    "config keys dropped": lambda result, rng: result.update(
        config={key: value for key, value in result["config"].items() if rng.random() < 0.5}
    ),
    "environment {}": lambda result, rng: result.update(environment={}),
    "no rows": lambda result, rng: result.update(measurements=[]),
    "rows dropped": _keep_some,
    "names dropped": _drop_names,
    "rows doubled": lambda result, rng: result["measurements"].extend(
        copy.deepcopy(_rows(result, rng))
    ),
    "rows in another order": lambda result, rng: rng.shuffle(result["measurements"]),
    "names other": _each(lambda row, rng: row.update(name=rng.choice(_TEXTS))),
    "data sets other": _each(lambda row, rng: row.update(dataset=rng.choice(_TEXTS))),
    "data sets alike": lambda result, rng: [
        row.update(dataset="d") for row in result["measurements"]
    ],
    "values other": _each(lambda row, rng: row.update(value=rng.choice(_NUMBERS))),
    "values null": _each(lambda row, rng: row.update(value=None)),
    "ends other": _each(_ends),
    "n other": _each(lambda row, rng: row.update(n=rng.choice((0, -1, 1, 2**60)))),
    "seeds other": _each(lambda row, rng: row.update(seeds=rng.choice(([], [0], [-1, -1])))),
    "axes dropped": _each(_drop_axes),
    "axes other": _each(_other_axes),
    "found dropped": _each(lambda row, rng: row.pop("found", None)),
    "published other": _each(lambda row, rng: row.update(published=rng.choice(_NUMBERS))),
    "no pictures": lambda result, rng: result.update(pictures=[]),
    "other scale": lambda result, rng: result.update(scale="quick"),
    "other recipe": lambda result, rng: result.update(recipe=rng.choice(_TEXTS)),
    "a key dropped": lambda result, rng: result.pop(rng.choice(sorted(result))),
    "a key null": lambda result, rng: result.update({rng.choice(sorted(result)): None}),
}


def edit_at_random(result: dict[str, Any], rng: random.Random) -> list[str]:
    """Make one to three edits in place and return their names."""
    names = rng.sample(sorted(EDITS), rng.choice((1, 1, 2, 3)))
    names.sort(key=lambda name: name.startswith("a key"))  # Others need the keys.
    for name in names:
        EDITS[name](result, rng)
    return names
