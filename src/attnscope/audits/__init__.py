"""An audit: can the attention of a user's own model be trusted as an explanation?

One file per question, each with its ``measure``; the claims (``audit.*``) with their thresholds
stand in `attnscope.audits.claims` and are never mixed with those of the papers.
"""

from typing import TYPE_CHECKING

from attnscope.lazy import exports

if TYPE_CHECKING:
    from attnscope.audits.texts import Texts as Texts
    from attnscope.audits.verdict import Audit as Audit
else:
    __all__, __getattr__, __dir__ = exports(__name__)
