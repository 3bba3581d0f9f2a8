"""Where things that can be made or fetched again are kept for this user."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return ``$ATTNSCOPE_CACHE``, or attnscope's part of the user's cache folder."""
    given = os.environ.get("ATTNSCOPE_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attnscope"
