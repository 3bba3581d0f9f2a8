"""Running a recipe: where its result lies, where its units train, what it costs."""

from typing import TYPE_CHECKING

from attnscope.lazy import exports

if TYPE_CHECKING:
    from attnscope.running.cost.estimate import Estimate as Estimate, estimate as estimate
    from attnscope.running.run import Run as Run
    from attnscope.running.settings_list import Setting as Setting, settings_of as settings_of
else:
    __all__, __getattr__, __dir__ = exports(__name__)
