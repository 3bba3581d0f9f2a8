"""What goes wrong, told in one sentence: what it is, where it is, what to do about it.

The command line prints these sentences and nothing else; every other exception is a defect of
attnscope and shows its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AttnscopeError(Exception):
    """A mistake or a misfortune that the user can act on."""


class UsageError(AttnscopeError):
    """What was asked for does not exist or is out of range."""


class WorkspaceError(AttnscopeError):
    """A folder or a file of a workspace cannot be used."""


class UnitLocked(WorkspaceError):
    """Another process is training this unit."""


class DamagedFile(WorkspaceError):
    """A file is truncated or was altered after it was written."""


class NonFiniteLoss(AttnscopeError):
    """Training diverged."""


class MissingCapability(AttnscopeError):
    """A measurement needs something that the model does not offer."""


def suggestion(name: str, valid: Iterable[str]) -> str:
    """Return the end of an error sentence: the nearest valid name, then all of them."""
    choices = sorted(valid)
    near = difflib.get_close_matches(name, choices, n=1, cutoff=0.5)
    start = f"did you mean {near[0]!r}? Valid" if near else "valid"
    return f"{start}: {', '.join(choices) if choices else '(none)'}."
