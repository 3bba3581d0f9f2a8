"""Build hook: Vega-Lite's scripts as a file of the package, so that reports need no vl-convert."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SCRIPTS = "src/attnscope/report/static/vega.js"  # git ignores it; see "artifacts" in pyproject.toml
PAGE = "src/attnscope/report/page.py"


class VegaScripts(BuildHookInterface):
    """Writes the scripts of the version that the report is made for."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file before the wheel, editable or not, is put together."""
        import vl_convert

        page = Path(self.root, PAGE).read_text(encoding="utf-8")
        (wanted,) = re.findall(r'^VEGA_LITE = "([\d.]+)"$', page, re.MULTILINE)
        text = vl_convert.javascript_bundle(vl_version=wanted)
        Path(self.root, SCRIPTS).write_text(text, encoding="utf-8")
