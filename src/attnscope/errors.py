"""User-facing errors. Each message is one sentence: the problem, where it is, how to fix it.

The command line prints that sentence alone; any other exception is a defect of attnscope and shows
its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AttnscopeError(Exception):
    """An error the user can do something about."""


class UsageError(AttnscopeError):
    """A name that does not exist, or a value out of range."""


class WorkspaceError(AttnscopeError):
    """A folder or file of a workspace that cannot be used."""


class UnitLocked(WorkspaceError):
    """A unit that another process is training."""


class DamagedFile(WorkspaceError):
    """A file that was truncated or altered after it was written."""


class UnreadableFile(WorkspaceError):
    """A file that is not a regular one, is too large, or does not hold what its name says."""


class NonFiniteLoss(AttnscopeError):
    """Training that diverged."""


class NotDrawn(AttnscopeError):
    """A figure whose drawing failed."""


class MissingCapability(AttnscopeError):
    """A measurement that needs something the model does not offer."""


def suggestion(name: str, valid: Iterable[str]) -> str:
    """Return the end of an error sentence: the nearest valid name, then all of them."""
    choices = sorted(valid)
    near = difflib.get_close_matches(name, choices, n=1, cutoff=0.5)
    start = f"did you mean {near[0]!r}? Valid" if near else "valid"
    return f"{start}: {', '.join(choices) if choices else '(none)'}."
