"""The HTML report."""

from typing import TYPE_CHECKING

from attnscope.lazy import exports

if TYPE_CHECKING:
    from attnscope.report.notebook import View as View, view as view
    from attnscope.report.page import write_report as write_report
    from attnscope.report.unit_list import ListedUnit as ListedUnit, list_units as list_units
else:
    __all__, __getattr__, __dir__ = exports(__name__)
