"""The readings of a claim, for tests of one of them."""

from __future__ import annotations

from attnscope.claims.readings import Readings
from attnscope.claims.table import Predicate


def stricter(claim: Predicate) -> Predicate:
    """Return the rule that was fixed before any run; of most claims it is the only one."""
    return claim.rule if isinstance(claim, Readings) else claim
