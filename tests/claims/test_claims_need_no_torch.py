"""Verdicts are read off stored numbers, so listing them must not wait for torch."""

from __future__ import annotations

import subprocess
import sys

from cases import for_each

MODULES = ["claims.table", "claims.verdicts", "claims.published", "analysis.intervals"]


@for_each("module", MODULES)
def test_importing_the_claims_loads_no_torch(module):
    code = f"import sys, attnscope.{module}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
