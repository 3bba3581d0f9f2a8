"""Workspaces: settings, results, units' folders, atomic writes. Nothing here imports torch."""

from typing import TYPE_CHECKING

from attnscope.lazy import exports

if TYPE_CHECKING:
    from attnscope.runs.result import (
        Measurement as Measurement,
        Result as Result,
        measured as measured,
        read_result as read_result,
    )
    from attnscope.runs.spec import (
        Settings as Settings,
        Spec as Spec,
        fingerprint as fingerprint,
        read_settings as read_settings,
    )
    from attnscope.runs.unit import UnitFolder as UnitFolder
else:
    __all__, __getattr__, __dir__ = exports(__name__)
