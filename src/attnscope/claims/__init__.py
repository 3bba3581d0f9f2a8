"""Claims of the papers and the rules that decide them."""

from typing import TYPE_CHECKING

from attnscope.lazy import exports

if TYPE_CHECKING:
    from attnscope.claims.decide import (
        Verdict as Verdict,
        about_equal as about_equal,
        above as above,
        all_of as all_of,
        any_of as any_of,
        at_least as at_least,
        below as below,
        by_value as by_value,
        exactly as exactly,
        learns as learns,
        much_greater as much_greater,
        reaches as reaches,
        share_of as share_of,
        stays_within as stays_within,
        verdict as verdict,
    )
    from attnscope.claims.pool import (
        Decision as Decision,
        Pool as Pool,
        interval_of as interval_of,
        undecided as undecided,
    )
    from attnscope.claims.published import published_value as published_value
    from attnscope.claims.table import (
        Cell as Cell,
        Cells as Cells,
        Claim as Claim,
        Finding as Finding,
        Needs as Needs,
        Part as Part,
    )
else:
    __all__, __getattr__, __dir__ = exports(__name__)
