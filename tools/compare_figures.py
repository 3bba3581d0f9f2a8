"""Draw the figures of committed results anew and list how they differ from the committed ones.

    python tools/compare_figures.py results [--keep FOLDER] [--write]

Each SVG is drawn from its ``result.json`` alone, compared byte by byte, and where bytes differ,
pixel by pixel. Figures that need the logs of units, which ``results/`` does not have, are named.
``--keep`` writes both pictures of every figure that differs, to be looked at; ``--write`` replaces
the committed ones, without comparing pixels.
"""

from __future__ import annotations

import argparse
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import vl_convert

from attnscope.figures.save import svg
from attnscope.recipes.recipe import module_of
from attnscope.recipes.registry import entries, find
from attnscope.runs.result import read_result


class LogsNeeded(Exception):
    """A figure asks for the logs of units."""


class NoLogs(Sequence[Any]):
    """In place of the logs of units: asking for one is an error."""

    def __getitem__(self, place: Any) -> Any:
        """Refuse."""
        raise LogsNeeded

    def __len__(self) -> int:
        """Refuse."""
        raise LogsNeeded

    def __iter__(self) -> Iterator[Any]:
        """Refuse."""
        raise LogsNeeded


def pixels(drawing: bytes) -> np.ndarray:
    """Return an SVG as an array of height, width and four channels."""
    return decoded(vl_convert.svg_to_png(drawing.decode(), scale=1))


def decoded(png: bytes) -> np.ndarray:
    """Return the pixels of a PNG with eight bits for each of four channels, without interlacing."""
    place, content, size = 8, b"", (0, 0)
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        body = png[place + 8 : place + 8 + length]
        if kind == b"IHDR":
            size = struct.unpack(">II", body[:8])
            assert tuple(body[8:]) == (8, 6, 0, 0, 0), "not an RGBA picture of eight bits"
        if kind == b"IDAT":
            content += body
        place += 12 + length
    width, height = size
    lines = np.frombuffer(zlib.decompress(content), np.uint8).reshape(height, 1 + 4 * width)
    image = np.zeros((height + 1, 4 * (width + 1)), np.uint8)
    for row, line in enumerate(lines):
        _unfilter(int(line[0]), line[1:], image[row], image[row + 1])
    return image[1:, 4:].reshape(height, width, 4)


def _unfilter(kind: int, line: np.ndarray, above: np.ndarray, out: np.ndarray) -> None:
    """Undo a row's filter (PNG specification, section 9); rows have an empty pixel in front."""
    if kind in (0, 2):
        out[4:] = line + (above[4:] if kind == 2 else 0)
        return
    for place in range(4, len(out)):
        left, up, corner = int(out[place - 4]), int(above[place]), int(above[place - 4])
        guess = left if kind == 1 else (left + up) // 2 if kind == 3 else _paeth(left, up, corner)
        out[place] = (int(line[place - 4]) + guess) % 256


def _paeth(left: int, up: int, corner: int) -> int:
    base = left + up - corner
    return min((left, up, corner), key=lambda each: abs(base - each))


def difference(before: bytes, after: bytes) -> str:
    """Return how two drawings differ, empty if no pixel does."""
    first, second = pixels(before), pixels(after)
    if first.shape != second.shape:
        sizes = [f"{shape[1]} × {shape[0]}" for shape in (first.shape, second.shape)]
        return f"size {sizes[0]} → {sizes[1]}"
    apart = np.abs(first.astype(int) - second.astype(int)).max(-1)
    if not apart.any():
        return ""
    share = np.count_nonzero(apart) / apart.size
    return f"{np.count_nonzero(apart)} pixels ({share:.2%}), by at most {apart.max()} of 255"


def compare(folder: Path, keep: Path | None, write: bool) -> dict[str, list[str]]:
    """Return names of figures by outcome."""
    outcomes: dict[str, list[str]] = {}

    def note(outcome: str, text: str) -> None:
        outcomes.setdefault(outcome, []).append(text)

    for path in sorted(folder.rglob("result.json")):
        result, place = read_result(path), path.parent.relative_to(folder)
        if result.recipe not in {entry.name for entry in entries()}:
            continue  # an audit, which has no figures
        known = {each.stem: each.read_bytes() for each in path.parent.glob("figures/*.svg")}
        try:
            charts = module_of(find(result.recipe)).draw(result, NoLogs())
        except LogsNeeded:
            note("needs logs", f"{place}: {', '.join(sorted(known))}")
            continue
        for name in sorted(known.keys() | charts.keys()):
            if name not in charts or name not in known:
                note("missing" if name not in charts else "new", f"{place}/{name}")
                continue
            drawn = svg(charts[name])
            found = ""
            if drawn != known[name]:
                # Pixels are compared to be looked at, and take longer than drawing.
                found = "redrawn" if write else difference(known[name], drawn)
            kind = "differs" if found else "equal" if drawn == known[name] else "equal pixels"
            note(kind, f"{place}/{name}{': ' if found else ''}{found}")
            if write and drawn != known[name]:
                (path.parent / "figures" / f"{name}.svg").write_bytes(drawn)
            if found and keep is not None:
                target = keep / place
                target.mkdir(parents=True, exist_ok=True)
                for when, drawing in (("before", known[name]), ("after", drawn)):
                    picture = vl_convert.svg_to_png(drawing.decode(), scale=1)
                    (target / f"{name}-{when}.png").write_bytes(picture)
    return outcomes


def main() -> int:
    """Print the outcomes; the status is 1 if any figure differs or is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    outcomes = compare(given.folder, given.keep, given.write)
    for outcome in ("differs", "missing", "new", "needs logs"):
        for text in outcomes.get(outcome, []):
            print(f"{outcome}: {text}")
    print(", ".join(f"{len(names)} {outcome}" for outcome, names in sorted(outcomes.items())))
    return int("differs" in outcomes or "missing" in outcomes)


if __name__ == "__main__":
    sys.exit(main())
