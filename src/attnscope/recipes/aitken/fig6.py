"""Figure 6: how AED and AO attend off the diagonal on eSCAN (§4.2).

Of panel b the caption says that the plot "was generated on a subset of eSCAN with T = S", to keep
the offset between 'twice' and its output constant, and that the same is seen when T ≥ S. That is
about the sequences shown; of a network trained on them alone neither the text nor the authors' code
speaks, though §4.2's "which the network has learned to be t = s − 1" would be truest of one. So the
networks are those of the other panels, trained on all of eSCAN, and are shown sequences without
'and', where T = S.
"""

from __future__ import annotations

from attnscope.analysis.state_measures import OFFSETS
from attnscope.claims.decide import above, all_of, below
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.recipes.aitken.escan_units import ESCAN_QUICK, EscanConfig, escan_groups
from attnscope.recipes.aitken.fig5_claims import at_least
from attnscope.recipes.aitken.fig5_measure import SILENT
from attnscope.recipes.aitken.fig6_figures import draw as draw
from attnscope.recipes.aitken.fig6_measure import (
    context_numbers,
    context_plane,
    product_numbers,
    twice_numbers,
)
from attnscope.recipes.aitken.groups import of_one, over_networks
from attnscope.recipes.aitken.networks import Network
from attnscope.recipes.aitken.shared_claims import ESCAN
from attnscope.recipes.recipe import Lab
from attnscope.runs.result import Measurement

# Fixed beforehand, as the catalogue has them.
_MOSTLY, _CLUSTERED, _ONE_CLUSTER = 0.9, 0.5, 0.1

Config = EscanConfig
QUICK = ESCAN_QUICK
HEADLINE = ("word_accuracy", "preceding_verb", "silhouette", "twice_previous", "left_slope")


def measure(config: EscanConfig, lab: Lab) -> list[Measurement]:
    """Train both architectures, and look at how the accepted networks handle three words."""
    rows: list[Measurement] = []
    for group in escan_groups(config, lab).values():
        rows += group.accuracy_rows()
        networks = [Network.of(unit, config.samples) for unit in group.accepted]
        found = [
            context_numbers(network) | product_numbers(network) | twice_numbers(network)
            for network in networks
        ]
        rows += over_networks(group, found)
        for network in networks[:1]:
            rows += of_one(group, context_plane(network))
    return rows


def context(pool: Pool) -> Decision:
    """Decide aitken.context: AED's states at 'twice' know the verb, AO's do not."""
    rows = {
        (name, model): pool.select(name, ESCAN, model=model)
        for name, model in (
            ("preceding_verb", "aed"),
            ("silhouette", "aed"),
            ("preceding_verb", "ao"),
            ("silhouette", "ao"),
        )
    }
    evidence = {
        f"{model}: {name}": interval_of(row)
        for (name, model), found in rows.items()
        for row in found
    }
    missing = sorted({model for (_, model), found in rows.items() if not found})
    if missing:
        return undecided(f"no run of {' and '.join(missing)} was accepted", evidence)
    parts = [
        at_least(rows["preceding_verb", "aed"][0], _MOSTLY),
        above(interval_of(rows["silhouette", "aed"][0]), _CLUSTERED),
        below(interval_of(rows["silhouette", "ao"][0]), _ONE_CLUSTER),
    ]
    return Decision(all_of(parts), evidence)


def hide(pool: Pool) -> Decision:
    """Decide aitken.hide: AO's silent words lean away, and 'twice' is passed over."""
    leaning = {
        f"{word} at offset {offset}": row
        for word in SILENT
        for offset in OFFSETS
        for row in pool.select("offset_product", ESCAN, model="ao", word=word, offset=offset)
    }
    slope = pool.select("left_slope", ESCAN, model="ao")
    previous = {
        row.axes["sequences"]: row for row in pool.select("twice_previous", ESCAN, model="ao")
    }
    if not slope or not previous:
        return undecided("no run of ao was accepted")
    evidence = {name: interval_of(row) for name, row in leaning.items()}
    evidence |= {
        f"left at offset {row.axes['offset']}": interval_of(row)
        for row in pool.select("offset_product", ESCAN, model="ao", word="left")
    }
    evidence |= {
        f"attended before 'twice', sequences: {name}": interval_of(row)
        for name, row in previous.items()
    }
    evidence["slope of left"] = interval_of(slope[0])
    evidence |= {
        f"number {row.axes['rank']} of muD.muE at t - s = {row.axes['offset']}": interval_of(row)
        for row in pool.select("temporal_rank", ESCAN, model="ao")
    }
    parts = [below(interval_of(row)) for row in leaning.values()]
    parts += [at_least(previous["T=S"], _MOSTLY), above(interval_of(slope[0]))]
    deviation = "networks are trained on all of eSCAN, and shown sequences without 'and' for T = S"
    return Decision(all_of(parts), evidence, deviation)


CLAIMS = {"aitken.context": context, "aitken.hide": hide}
