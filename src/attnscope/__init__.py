"""attnscope: how attention was learned, and whether it can be trusted as an explanation.

The names below are imported when they are first used, so that the command line answers at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from attnscope.analysis.comparison import compare
    from attnscope.data.corpus_writer import write_corpus
    from attnscope.figures.heatmap import heatmap
    from attnscope.models.contract import check_model
    from attnscope.recipes.running import draw, run
    from attnscope.recipes.verdicts import verdicts
    from attnscope.report.notebook import view
    from attnscope.report.page import write_report
    from attnscope.scores.score import read_score
    from attnscope.training.trained_unit import load

_HOME = {
    "check_model": "attnscope.models.contract",
    "compare": "attnscope.analysis.comparison",
    "draw": "attnscope.recipes.running",
    "heatmap": "attnscope.figures.heatmap",
    "load": "attnscope.training.trained_unit",
    "read_score": "attnscope.scores.score",
    "run": "attnscope.recipes.running",
    "verdicts": "attnscope.recipes.verdicts",
    "view": "attnscope.report.notebook",
    "write_corpus": "attnscope.data.corpus_writer",
    "write_report": "attnscope.report.page",
}
__all__ = [
    "__version__",
    "check_model",
    "compare",
    "draw",
    "heatmap",
    "load",
    "read_score",
    "run",
    "verdicts",
    "view",
    "write_corpus",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'attnscope' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
