"""Charts and the colours they share."""

from typing import TYPE_CHECKING

from attnscope.lazy import exports

if TYPE_CHECKING:
    from attnscope.figures.charts import (
        band as band,
        beside as beside,
        curves as curves,
        dots_with_intervals as dots_with_intervals,
        points as points,
        themed as themed,
    )
    from attnscope.figures.panel import Axis as Axis, Guide as Guide, Panel as Panel
    from attnscope.figures.save import figures_available as figures_available
else:
    __all__, __getattr__, __dir__ = exports(__name__)
