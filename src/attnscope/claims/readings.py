"""Two readings of a claim: the paper's own words, and a stricter rule that was fixed first.

After the first full run some rules turned out stricter than the papers' words, or asked for a
setting that the figures do not come from. A threshold that is moved after the fact proves nothing,
so both readings are decided: the claim's verdict is that of (a), the paper's words in the paper's
or the authors' recorded setting; (b), the rule that was fixed before any run, is shown with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from attnscope.claims.decide import Verdict
from attnscope.claims.pool import Decision, Pool, undecided
from attnscope.claims.table import Predicate

WORDS_FIXED = "fixed on 2026-11-16 from the text and the authors' code"
RULE_FIXED = "fixed before any run"


@dataclass(frozen=True)
class Readings:
    """A claim that is read in two ways; called with a pool, it is its first reading.

    Attributes
    ----------
    words
        (a), the paper's own words; the claim's verdict.
    rule
        (b), the stricter rule.
    """

    words: Predicate
    rule: Predicate

    def __call__(self, pool: Pool) -> Decision:
        """Decide the claim by the paper's words."""
        return self.words(pool)


@dataclass(frozen=True)
class Reading:
    """One reading of a decided claim: the rule in words, when it was fixed, and its outcome."""

    says: str
    fixed: str
    verdict: Verdict
    evidence: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


def at_setting(
    claim: Predicate, settings: Mapping[str, Any], datasets: Collection[str] = ()
) -> Predicate:
    """Return a claim that is decided on runs with these settings alone.

    Parameters
    ----------
    settings
        Values by name; a run that does not have a setting fits, and so does a quick run.
    datasets
        The data sets that the settings are about; all others count whatever the settings are.
    """

    def decide(pool: Pool) -> Decision:
        own = pool.with_settings(settings, datasets)
        if own is None:
            wanted = ", ".join(f"{name}={value}" for name, value in settings.items())
            return undecided(f"no full run with {wanted}")
        return claim(own)

    return decide
