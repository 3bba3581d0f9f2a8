"""The HTML report."""

from typing import TYPE_CHECKING

from attnscope.lazy import exports

if TYPE_CHECKING:
    from attnscope.report.notebook import View as View, view as view
    from attnscope.report.page import write_report as write_report
else:
    __all__, __getattr__, __dir__ = exports(__name__)
