"""Units that a report could show, known by their configurations; the few that it follows; labels.

A workspace may hold hundreds of units: reading all of them would take long, and nobody looks at
all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.runs.atomic import read_json

# Of a scene: units that are followed, and those of each kind.
_MOST_FOLLOWED = 6
_OF_A_KIND = 3


@dataclass(frozen=True)
class Candidate:
    """A unit's folder and its configuration, not yet read as one."""

    path: Path
    config: Mapping[str, Any]

    @property
    def source(self) -> str:
        """The settings of its source, as text."""
        return json.dumps(self.config.get("source"), sort_keys=True)

    @property
    def kind(self) -> str:
        """The model and its training, which units of several seeds share."""
        rest = {key: self.config.get(key) for key in ("model", "training")}
        return json.dumps(rest, sort_keys=True)

    @property
    def is_proxy(self) -> bool:
        """Whether it is a bag of words, without attention."""
        return self.config["model"]["kind"] == "proxy"

    @property
    def learned(self) -> bool:
        """Whether its attention was learned."""
        return not self.config["training"]["attention"] and not self.is_proxy

    @property
    def uniform(self) -> bool:
        """Whether it was trained under uniform attention."""
        rules = self.config["training"]["attention"].values()
        return bool(rules) and all(rule["kind"] == "uniform" for rule in rules)

    @property
    def scores(self) -> list[str]:
        """The scores that are kept at every step."""
        return [each["kind"] for each in self.config["training"]["scores"]]

    @property
    def richness(self) -> int:
        """How many scores are kept, those after training included."""
        return len(self.scores) + len(self.config["training"]["final_scores"])

    @cached_property
    def keeps_scores(self) -> bool:
        """Whether there is something to show of it."""
        return self.is_proxy or (
            bool(self.scores)
            and (self.path / "scores" / "examples.safetensors").is_file()
            and any((self.path / "scores").glob("step-*.safetensors"))
        )


def read_candidate(path: Path, notices: list[str]) -> Candidate | None:
    """Return a unit that keeps scores, or None; a configuration that cannot be read is a notice."""
    try:
        candidate = Candidate(path, read_json(path / "config.json"))
        # Everything used later: a foreign configuration is refused here.
        used = (candidate.learned, candidate.uniform, candidate.richness, candidate.config["seed"])
        return candidate if candidate.keeps_scores and None not in used else None
    except (AttnscopeError, LookupError, TypeError, AttributeError):
        notices.append(f"{path} is not a unit of this version: it is left out.")
        return None


def chosen(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the units to follow: those with most scores first, then a few seeds of each kind."""
    kinds: dict[str, list[Candidate]] = {}
    order = sorted(candidates, key=lambda c: (-c.richness, c.kind, c.config["seed"], c.path.name))
    for candidate in order:
        kinds.setdefault(candidate.kind, []).append(candidate)
    most = _OF_A_KIND if len(kinds) > 1 else _MOST_FOLLOWED
    ranks = [(rank, each) for kind in kinds.values() for rank, each in enumerate(kind[:most])]
    first = sorted(ranks, key=lambda pair: pair[0])[:_MOST_FOLLOWED]
    return [each for each in order if any(each is other for _, other in first)]


_HIDDEN = ("seed", "device", "source", "training.scores", "training.final", "training.metrics")


def role(config: Mapping[str, Any]) -> str:
    """Return what a unit's model is: a proxy, a model under fixed attention, or a plain model."""
    if config["model"]["kind"] == "proxy":
        return "bag-of-words proxy"
    rules = [rule["kind"] for rule in config["training"]["attention"].values()]
    frozen = ["frozen states"] if config["training"].get("frozen") else []
    parts = [f"{kind} attention" for kind in dict.fromkeys(rules)] + frozen
    return "model with " + " and ".join(parts) if parts else "model"


def labels(candidates: Sequence[Candidate]) -> list[str]:
    """Return the shortest labels of units: what they are, few of their settings, and the seed."""
    settings = [
        {key: value for key, value in flat(each.config) if not key.startswith(_HIDDEN)}
        for each in candidates
    ]
    roles = [role(each.config) for each in candidates]
    seeds = [f"seed {each.config['seed']}" for each in candidates]
    known = [" ".join(pair) for pair in zip(roles, seeds, strict=True)]
    named = [
        ", ".join([what, *own])
        for what, own in zip(roles, distinguishing(settings, known), strict=True)
    ]
    alone = {name for name in named if named.count(name) == 1}
    return [
        name if name in alone else f"{name}, {seed}"
        for name, seed in zip(named, seeds, strict=True)
    ]


def distinguishing(settings: Sequence[Mapping[str, Any]], known: Sequence[str]) -> list[list[str]]:
    """Return for each of several units the settings that distinguish it from the others.

    ``known`` is what the reader sees anyway. Kinds come first; a setting that distinguishes no
    further units is left out.
    """
    keys = sorted({key for one in settings for key in one}, key=lambda k: (_rank(k), k))
    named: list[list[str]] = [[] for _ in settings]
    for key in keys:
        more = [
            [*own, _setting(key, one.get(key))] for own, one in zip(named, settings, strict=True)
        ]
        if _distinct(more, known) > _distinct(named, known):
            named = more
    return [[part for part in own if part] for own in named]


def _distinct(named: Sequence[Sequence[str]], known: Sequence[str]) -> int:
    return len({(*own, name) for own, name in zip(named, known, strict=True)})


def _rank(key: str) -> int:
    return 0 if key.endswith("kind") else 1


def _setting(key: str, value: Any) -> str:
    """Return a setting as text, empty where the unit does not have it."""
    parts = [part for part in key.split(".") if not part.isdigit()]
    name = parts[-2] if parts[-1] == "kind" and len(parts) > 1 else parts[-1]
    return "" if value is None else f"{name.replace('_', ' ')} {value}"


def flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every single setting with the path to it."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from flat(part, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from flat(part, f"{prefix}.{place}")
    else:
        yield prefix, value
