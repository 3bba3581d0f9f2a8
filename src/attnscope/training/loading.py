"""Loading a trained unit by name or by folder."""

from __future__ import annotations

from pathlib import Path

from attnscope.errors import UsageError
from attnscope.training.demo import demo_folder
from attnscope.training.trained import TrainedUnit


def load(unit: str | Path) -> TrainedUnit:
    """Return a trained unit: its model, its log, its stored scores.

    Parameters
    ----------
    unit
        ``"demo"`` for the tiny translator that comes with the package, or the folder of a unit, as
        in ``runs/units/permutations-40-seq2seq-seed0-…``.

    Examples
    --------
    >>> import attnscope
    >>> demo = attnscope.load("demo")
    >>> score = demo.score("attention", "der Mann hat den Hund gesehen .")
    >>> score.words(0)[1][:4]
    ['the', 'man', 'has', 'seen']
    """
    path = demo_folder() if unit == "demo" else Path(unit)
    if not path.is_dir():
        raise UsageError(f"There is no unit {str(unit)!r}; give 'demo' or the folder of a unit.")
    return TrainedUnit.read(path)
