"""A score as a picture: output words down, input words across.

The picture is an SVG that is written here, so that a notebook, an HTML page and an SVG need neither
altair nor vl-convert. Words are data: they are escaped, the page has no script and its
Content-Security-Policy lets none run and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from attnscope.errors import AttnscopeError, UsageError, suggestion
from attnscope.figures.palette import SEQUENTIAL
from attnscope.figures.rendering import render
from attnscope.figures.save import figures_available
from attnscope.runs.atomic import write_bytes

_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
_STYLE = "body{margin:0;background:#fff}svg{display:block}"
_LETTER = 6.2  # mean width of a letter at 11 px
_MOST_LETTERS = 18
# What XML does not take, what cannot be seen, and what turns the direction of a line.
_NOT_SHOWN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\ud800-\udfff]"
)


@runtime_checkable
class WordMap(Protocol):
    """Values for pairs of output and input words, as every `attnscope.scores.Score` has them."""

    @property
    def name(self) -> str:
        """Printed over the picture."""
        ...

    def array(self) -> np.ndarray:
        """Return the values: example, output word, input word."""
        ...

    def words(self, example: int) -> tuple[list[str], list[str]]:
        """Return input and output words of an example."""
        ...


@dataclass(frozen=True)
class Heatmap:
    """A heat map that a notebook shows by itself; ``save`` writes it to a file.

    Attributes
    ----------
    svg
        The picture.
    label
        What it shows, for readers who cannot see it.
    """

    svg: str
    label: str = "heat map"

    @property
    def html(self) -> str:
        """The picture as a page that runs nothing and loads nothing."""
        digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'"
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            f"<title>attnscope</title><style>{_STYLE}</style></head>\n"
            f"<body>{self.svg}</body></html>\n"
        )

    def save(self, path: str | Path) -> Path:
        """Write the picture as ``.svg``, ``.html`` or ``.png``, whichever the name ends in."""
        path = Path(path)
        match path.suffix.lower():
            case ".svg":
                content = self.svg.encode()
            case ".html":
                content = self.html.encode()
            case ".png":
                content = self._png()
            case other:
                raise UsageError(
                    f"{path} ends in {other!r}; {suggestion(other, ('.svg', '.png', '.html'))}"
                )
        write_bytes(path, content)
        return path

    def _png(self) -> bytes:
        notice = figures_available()
        if notice:
            raise AttnscopeError(notice)
        return render("svg_to_png", self.svg, scale=2)

    def _repr_html_(self) -> str:
        # An image of its own: nothing inside it can run or be loaded.
        data = base64.b64encode(self.svg.encode()).decode()
        return f'<img alt="{escape(self.label)}" src="data:image/svg+xml;base64,{data}">'


def heatmap(score: WordMap, example: int = 0, title: str | None = None) -> Heatmap:
    """Draw one example of a score.

    Parameters
    ----------
    score
        Any score, for example ``load("demo").score("attention", "…")``.
    example
        Which example of its batch.
    title
        Over the picture; by default the score's name.

    Returns
    -------
    Heatmap
        Shown by a notebook; ``.save("attention.svg")`` (or .png, .html) writes it.

    Examples
    --------
    >>> import attnscope
    >>> demo = attnscope.load("demo")
    >>> picture = attnscope.heatmap(demo.score("attention", "der Mann hat den Hund gesehen ."))
    >>> picture.svg[:4], picture.label
    ('<svg', 'attention')
    """
    values = score.array()
    if not 0 <= example < len(values):
        raise UsageError(f"example={example}: the score has {len(values)} examples.")
    inputs, outputs = score.words(example)
    shown = values[example, : len(outputs), : len(inputs)]
    name = score.name.replace("_", " ")
    heading = name if title is None else title
    return Heatmap(_Drawing(shown, inputs, outputs, name, heading).svg(), _visible(heading))


class _Drawing:
    """Where the parts of a picture lie, and the parts themselves."""

    def __init__(
        self,
        values: np.ndarray,
        columns: Sequence[str],
        rows: Sequence[str],
        legend: str,
        title: str,
    ) -> None:
        self.values, self.legend, self.title = values, legend, title
        self.columns, self.rows = (list(map(_visible, words)) for words in (columns, rows))
        finite = [0.0, *values[np.isfinite(values)].tolist()]
        self.low, self.high = min(finite), max(finite) or 1.0
        self.side = max(9, min(28, 420 // max(len(columns), len(rows), 1)))
        self.left = 34 + _room(self.rows)
        self.top = 58 + round(0.72 * _room(self.columns))
        self.right = self.left + self.side * len(columns)
        self.bottom = self.top + self.side * len(rows)

    def svg(self) -> str:
        width = self.right + max(110, round(0.72 * _room(self.columns)))
        height = max(self.bottom, self.top + 130) + 16
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="{_FONT}" font-size="11" fill="#222222">',
            f'<rect width="{width}" height="{height}" fill="#FFFFFF"/>',
            _text(12, 20, _visible(self.title), ' font-size="12.5" font-weight="bold"'),
            *self._names(),
            *self._cells(),
            *self._scale(),
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    def _names(self) -> list[str]:
        middle, centre = (self.left + self.right) // 2, (self.top + self.bottom) // 2
        drawn = [
            _text(middle, 40, "input", ' text-anchor="middle" font-size="12"'),
            _text(
                20,
                centre,
                "output",
                f' text-anchor="middle" font-size="12" transform="rotate(-90 20 {centre})"',
            ),
        ]
        for number, word in enumerate(self.columns):
            x, y = self.left + (number + 0.65) * self.side, self.top - 6
            drawn.append(_text(x, y, _short(word), f' transform="rotate(-45 {x:g} {y})"', word))
        for number, word in enumerate(self.rows):
            below = self.top + (number + 0.5) * self.side + 4
            drawn.append(_text(self.left - 6, below, _short(word), ' text-anchor="end"', word))
        return drawn

    def _cells(self) -> list[str]:
        width, height = self.right - self.left, self.bottom - self.top
        drawn = [
            f'<rect x="{self.left}" y="{self.top}" width="{width}" height="{height}" '
            'fill="#E0E0E0" stroke="#BBBBBB" stroke-width="2"/>'
        ]
        for row, line in enumerate(self.values.tolist()):
            for column, value in enumerate(line):
                if not math.isfinite(value):
                    continue
                told = escape(f"{self.rows[row]} ← {self.columns[column]}: {value:.3g}")
                drawn.append(
                    f'<rect x="{self.left + column * self.side}" y="{self.top + row * self.side}" '
                    f'width="{self.side}" height="{self.side}" fill="{self._colour(value)}" '
                    f'stroke="#D9D9D9" stroke-width="0.5"><title>{told}</title></rect>'
                )
        return drawn

    def _scale(self) -> list[str]:
        # Below the words, whose last ones lean out to the right.
        x, top, steps = self.right + 24, self.top + 18, 24
        drawn = [_text(x, top - 8, _short(self.legend))]
        for step in range(steps):
            value = self.high - (self.high - self.low) * (step + 0.5) / steps
            drawn.append(
                f'<rect x="{x}" y="{top + 4 * step}" width="14" height="4" '
                f'fill="{self._colour(value)}"/>'
            )
        for share in (0, 0.5, 1):
            value = self.high - (self.high - self.low) * share
            drawn.append(_text(x + 20, top + 4 + 4 * steps * share, f"{value:.3g}"))
        return drawn

    def _colour(self, value: float) -> str:
        place = (value - self.low) / (self.high - self.low or 1.0) * (len(SEQUENTIAL) - 1)
        below = min(int(place), len(SEQUENTIAL) - 2)
        ends = [
            [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
            for colour in SEQUENTIAL[below : below + 2]
        ]
        mixed = (a + (b - a) * (place - below) for a, b in zip(*ends, strict=True))
        return "#" + "".join(f"{round(each):02X}" for each in mixed)


def _visible(word: str) -> str:
    return _NOT_SHOWN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", word)


def _short(word: str) -> str:
    return word if len(word) <= _MOST_LETTERS else f"{word[: _MOST_LETTERS - 1]}…"


def _room(words: Sequence[str]) -> int:
    return round(_LETTER * max((len(_short(word)) for word in words), default=1)) + 8


def _text(x: float, y: float, text: str, attributes: str = "", whole: str = "") -> str:
    told = f"<title>{escape(whole[:400])}</title>" if whole and whole != text else ""
    return f'<text x="{x:g}" y="{y:g}"{attributes}>{escape(text)}{told}</text>'
