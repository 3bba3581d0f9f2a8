"""A scene: some examples, and every score of theirs at every stored step, on the same axes.

Values are kept as bytes, 255 for "no value", between the two ends of each map; all bytes of a scene
are compressed together. An error of 1/254 of a map's range cannot be seen, and a page of a full run
stays small.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# Positions that are shown, input and output, and characters of a word: more is cut with a notice.
MOST_INPUTS = 512
MOST_OUTPUTS = 96
_MOST_CHARACTERS = 400
_LEVELS = 254
_NOTHING = 255


@dataclass(frozen=True)
class Shown:
    """An example: its words, which of them make a word together, gold positions, why it is shown.

    ``answer`` is the model's own output in words: a label with its probability, or a translation.
    Groups number the words that pieces belong to (-1 for none); without pieces they are None.
    """

    key: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    input_groups: Sequence[int] | None = None
    output_groups: Sequence[int] | None = None
    gold: Sequence[int] = ()
    why: str = ""
    answer: str = ""

    @property
    def shape(self) -> tuple[int, int]:
        """Output and input positions that are shown."""
        return min(len(self.outputs), MOST_OUTPUTS), min(len(self.inputs), MOST_INPUTS)

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON values, cut to what is shown."""
        outputs, inputs = self.shape
        written: dict[str, Any] = {
            "key": self.key,
            "inputs": [cut(word) for word in self.inputs[:inputs]],
            "outputs": [cut(word) for word in self.outputs[:outputs]],
        }
        if self.input_groups is not None and self.output_groups is not None:
            written["inputGroups"] = list(self.input_groups[:inputs])
            written["outputGroups"] = list(self.output_groups[:outputs])
        if any(place >= 0 for place in self.gold):
            written["gold"] = [place if place < inputs else -1 for place in self.gold[:outputs]]
        if self.why:
            written["why"] = self.why
        if self.answer:
            written["answer"] = cut(self.answer)
        left = len(self.inputs) - inputs, len(self.outputs) - outputs
        if any(left):
            written["cut"] = (
                f"{left[0]} input and {left[1]} output words at the end are left out here."
            )
        return written


@dataclass
class Map:
    """One score of one unit: values of every example (rows) at every step (columns).

    ``steps`` are training steps, or None alone for a score that was read after training. ``merge``
    says what becomes of the pieces of a word. ``unit`` is the place of the unit among the scene's,
    or -1 for what belongs to all of them. ``label`` and ``meaning`` are those of a score that
    `attnscope.claims.symbols` does not know.
    """

    score: str
    unit: int
    steps: Sequence[int | None]
    values: list[list[np.ndarray | None]]
    note: str = ""
    merge: str = "max"
    label: str = ""
    meaning: str = ""


@dataclass
class Follower:
    """A unit of a scene: what it is called, and its curves over training."""

    name: str
    label: str
    running: bool = False
    stopped: bool = False
    curves: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    labels: dict[str, float] = field(default_factory=dict)


@dataclass
class Scene:
    """Examples and their maps."""

    key: str
    title: str
    note: str
    examples: list[Shown]
    units: list[Follower]
    maps: list[Map]

    @property
    def classification(self) -> bool:
        """Whether every example has one output."""
        return all(len(example.outputs) == 1 for example in self.examples)

    def keep(self, examples: int) -> None:
        """Keep only the first examples."""
        self.examples = self.examples[:examples]
        for each in self.maps:
            each.values = each.values[:examples]

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON values; the bytes as one compressed string."""
        blocks: list[bytes] = []
        maps = [self._map(each, blocks) for each in self.maps]
        return {
            "key": self.key,
            "title": self.title,
            "note": self.note,
            "classification": self.classification,
            "examples": [example.as_json() for example in self.examples],
            "units": [
                {
                    "name": cut(unit.name),
                    "label": cut(unit.label),
                    "running": unit.running,
                    "stopped": unit.stopped,
                    "curves": unit.curves,
                }
                for unit in self.units
            ],
            "maps": maps,
            "data": packed(b"".join(blocks)),
        }

    def _map(self, each: Map, blocks: list[bytes]) -> dict[str, Any]:
        """Return a map's header; its blocks are in the order of examples, then steps."""
        start = sum(map(len, blocks))
        ends: list[list[float] | None] = []
        for example, row in zip(self.examples, each.values, strict=True):
            outputs, inputs = example.shape
            for values in row:
                if values is None:
                    ends.append(None)
                    continue
                quantised, low, high = quantise(values[:outputs, :inputs])
                blocks.append(quantised.tobytes())
                ends.append([low, high])
        return {
            "score": each.score,
            "unit": each.unit,
            "steps": list(each.steps),
            "note": each.note,
            "merge": each.merge,
            "start": start,
            "ends": ends,
        }


def quantise(values: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return bytes from 0 (the low end) to 254 (the high end), and both ends; 255 for NaN.

    The low end is 0 unless something is negative, so that nothing looks like nothing.
    """
    real = np.isfinite(values)
    low = min(0.0, float(values[real].min())) if real.any() else 0.0
    high = max(0.0, float(values[real].max())) if real.any() else 0.0
    low, high = (float(f"{end:.6g}") for end in (low, high))
    span = (high - low) or 1.0
    scaled = np.where(real, (np.where(real, values, 0.0) - low) / span * _LEVELS, 0.0)
    levels = np.clip(np.rint(scaled), 0, _LEVELS).astype(np.uint8)
    return np.where(real, levels, np.uint8(_NOTHING)), low, high


def packed(content: bytes) -> str:
    """Return bytes compressed, as text; the same bytes give the same text."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def cut(word: str) -> str:
    """Return a word that a page can hold: very long ones end in an ellipsis."""
    return word if len(word) <= _MOST_CHARACTERS else f"{word[:_MOST_CHARACTERS]}…"
