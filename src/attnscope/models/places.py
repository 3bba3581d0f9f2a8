"""Places: the attention sites of a model before it is run, with their names.

A place is found in a first pass by where its softmax is called: module, line, and how often it was
called before. Names follow what is read and what asks: ``encoder.1.self``, ``decoder.1.self``,
``cross.1`` …; the last attention from outputs to inputs is also ``cross``, and the last one that
the output reads is also ``last``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

from attnscope.errors import UsageError, suggestion
from attnscope.models.intervention import AttentionRule
from attnscope.models.layout import Form
from attnscope.models.trace import Site

Kind = Literal["encoder", "decoder", "cross"]
# Which rows of a site the output reads.
Reads = Literal["first", "last", "own", "all", "none"]


@dataclass(frozen=True)
class Call:
    """Where a softmax is called: module, line of its source, and which call of that line it is."""

    module: str
    line: str
    number: int = 0


@dataclass(frozen=True)
class Place:
    """One attention site.

    Attributes
    ----------
    name
        For example ``encoder.2.self``.
    module
        The path of the module in whose forward pass it happens.
    heads
        How many there are.
    queries, keys
        Whose positions ask and are asked: ``source``, ``target`` or ``other``.
    causal
        Whether a position never attends to a later one.
    reads
        The rows that the output reads: the first, the last real one, each output its own, all, or
        none of them.
    product
        Whether its logits contain a product of queries and keys.
    mapped
        Whether a linear map of the joined heads follows.
    steps
        Whether it is called once per output word, in a loop.
    sinks
        How many columns of its softmax belong to no input.
    form
        How its softmax lies: heads or rows after the batch, or time first.
    call
        Where its softmax is.
    """

    name: str
    module: str
    heads: int
    queries: str
    keys: str
    causal: bool
    reads: Reads
    product: bool
    mapped: bool
    steps: bool
    sinks: int
    form: Form
    call: Call


@dataclass(frozen=True)
class LeftOut:
    """A softmax that looks like attention and cannot be measured, with the reason."""

    module: str
    reason: str


class Places(Sequence[Place]):
    """The places of a model, in the order in which they are reached."""

    def __init__(self, places: Iterable[Place], left_out: Iterable[LeftOut] = ()) -> None:
        self._places, self.left_out = tuple(places), tuple(left_out)
        self.aliases = _aliases(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> Place:  # type: ignore[override]
        return self._places[index]

    def __repr__(self) -> str:
        rows = [f"{p.name} ({p.module}, {p.heads} heads, output reads {p.reads})" for p in self]
        missing = [f"not seen: {each.module} ({each.reason})" for each in self.left_out]
        return "\n".join([*rows, *missing])

    @property
    def names(self) -> list[str]:
        """The names, without aliases."""
        return [place.name for place in self]

    def named(self, name: str) -> Place:
        """Return a place by its name or alias."""
        for place in self:
            if place.name == self.aliases.get(name, name):
                return place
        raise UsageError(f"The model has no site {name!r}; {suggestion(name, self.names)}")

    def matching(self, pattern: str) -> list[str]:
        """Return the names that a name, an alias or a pattern such as ``cross.*`` stands for."""
        pattern = self.aliases.get(pattern, pattern)
        found = [name for name in self.names if name == pattern or fnmatchcase(name, pattern)]
        if not found:
            raise UsageError(
                f"The model has no site {pattern!r}; {suggestion(pattern, self.names)}"
            )
        return found

    def rules(self, attention: Mapping[str, AttentionRule] | None) -> dict[str, AttentionRule]:
        """Return the rule of each site; an exact name has precedence over a pattern."""
        rules: dict[str, AttentionRule] = {}
        exact = set(self.names) | self.aliases.keys()
        for pattern in sorted(attention or {}, key=lambda each: each in exact):
            for name in self.matching(pattern):
                rules[name] = (attention or {})[pattern]
        return rules


class Sites(dict[str, Site]):
    """Sites by name, which also answer to their aliases."""

    def __init__(self, sites: Mapping[str, Site], aliases: Mapping[str, str]) -> None:
        super().__init__(sites)
        self._aliases = aliases

    def __missing__(self, name: str) -> Site:
        return self[self._aliases[name]]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or super().__contains__(self._aliases.get(str(name)))


def _aliases(places: Sequence[Place]) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for place in places:
        if place.name.startswith("cross"):
            aliases["cross"] = place.name
        if place.reads != "none" and place.keys == "source":
            aliases["last"] = place.name
    return {alias: name for alias, name in aliases.items() if alias != name}


@dataclass(frozen=True)
class Shape:
    """The lengths of a candidate in the first pass, and whether it never looks ahead."""

    out: int
    inp: int
    causal: bool


_CROSS = re.compile(r"cross|encoder_?att|enc_?dec|encdec|src_att|multihead_attn", re.IGNORECASE)


def kind_of(shape: Shape, module: str, source: int, target: int) -> Kind:
    """Return what attends to what, by lengths; by the module's name where these are equal."""
    if shape.out != shape.inp:
        return "cross"
    if shape.causal or (shape.out == target != source):
        return "decoder"
    # A decoder that reads a copy of its source has the same lengths everywhere.
    return "cross" if _CROSS.search(module) else "encoder"


def named(places: Sequence[tuple[Kind, Place]]) -> Iterator[Place]:
    """Number the places of each kind."""
    totals, seen = Counter(kind for kind, _ in places), Counter[str]()
    for kind, place in places:
        seen[kind] += 1
        single = kind == "cross" and totals[kind] == 1
        number = "" if single else f".{seen[kind]}"
        yield replace(place, name=f"{kind}{number}" + ("" if kind == "cross" else ".self"))


def loops(calls: Iterable[tuple[Call, int]], steps: int) -> set[tuple[str, str]]:
    """Return the lines that are called once per output word, each time for one row."""
    rows: dict[tuple[str, str], list[int]] = defaultdict(list)
    for call, out in calls:
        rows[call.module, call.line].append(out)
    return {line for line, outs in rows.items() if steps > 1 and outs == [1] * steps}
