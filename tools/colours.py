"""Print colours that a new score may have: far enough from all others in every vision.

The distances and thresholds are those of tests/figures/test_palette.py.
"""

from __future__ import annotations

import importlib.util
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np

from attnscope.figures import palette

_TEST = Path(__file__).parents[1] / "tests" / "figures" / "test_palette.py"
_LEVELS = range(0, 256, 17)


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("palette_test", _TEST)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def candidates(taken: set[str], count: int = 5) -> list[tuple[float, str]]:
    """Return the colours of a grid that are farthest from those taken, with their distance."""
    vision = _load()
    grid = [f"#{r:02X}{g:02X}{b:02X}" for r, g, b in product(_LEVELS, repeat=3)]
    nearest = np.full(len(grid), np.inf)
    for name in vision.VISIONS:
        points = np.array([vision.lab(colour, name) for colour in grid])
        for other in taken:
            apart = np.linalg.norm(points - vision.lab(other, name), axis=1)
            nearest = np.minimum(nearest, apart)
    return sorted(zip(nearest.tolist(), grid, strict=True), reverse=True)[:count]


def _readable(colour: str, dark: bool) -> bool:
    page = palette.luminance("#131418")
    light = palette.luminance(colour)
    return (light + 0.05) / (page + 0.05) >= 3 if dark else 1.05 / (light + 0.05) > 2.2


def _saturation(colour: str) -> int:
    channels = [int(colour[start : start + 2], 16) for start in (1, 3, 5)]
    return max(channels) - min(channels)


if __name__ == "__main__":
    on_white = {**palette.SCORES, **palette.ROLES, **palette.POSITIONS}
    pages = {"white": (on_white, False), "dark": (palette.ON_DARK, True)}
    for page, (taken, dark) in pages.items():
        found = candidates(set(taken.values()), count=4096)
        fit = [colour for apart, colour in found if apart >= 15 and _readable(colour, dark)]
        shown = ", ".join(sorted(fit, key=_saturation, reverse=True)[:5])
        print(f"on {page}: {shown or 'none is left'}")
