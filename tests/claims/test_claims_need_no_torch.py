"""Verdicts are read off stored numbers, so listing them must not wait for torch."""

from __future__ import annotations

import subprocess
import sys

MODULES = ["claims.table", "claims.verdicts", "claims.published", "analysis.intervals"]
# Prints the first module that brought torch with it.
IMPORT = """
import sys
from importlib import import_module
for module in sys.argv[1:]:
    import_module(f"attnscope.{module}")
    if "torch" in sys.modules:
        sys.exit(module)
"""


def test_importing_the_claims_loads_no_torch():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, *MODULES], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
