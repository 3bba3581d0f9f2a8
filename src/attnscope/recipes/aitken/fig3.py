"""Figure 3: AED and AO on eSCAN (§4): what they attend to, and what their states are made of.

Both are close to one-to-one translation. With recurrence, a state holds a subphrase, and several
outputs attend to its end; without, states are their time step and their word, and little else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnscope.analysis.intervals import independent_difference_interval
from attnscope.claims.decide import Verdict, all_of, much_greater, share_of, verdict
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.claims.published import published_value
from attnscope.recipes.aitken import escan_measure as measures
from attnscope.recipes.aitken.escan_units import ESCAN_QUICK, MODELS, EscanConfig, escan_groups
from attnscope.recipes.aitken.fig3_figures import draw as draw
from attnscope.recipes.aitken.groups import REACHED, Group, Numbers, key, of_one, over_networks
from attnscope.recipes.aitken.networks import Network
from attnscope.recipes.aitken.shared_claims import ESCAN, delta_small
from attnscope.recipes.recipe import Lab
from attnscope.runs.result import Measurement, measured

# Fixed beforehand: seeds that each architecture needs, and their share that must reach .98.
_SEEDS, _SHARE = 10, 1 / 3

Config = EscanConfig
QUICK = ESCAN_QUICK
HEADLINE = ("word_accuracy", "accepted", "reached", "delta_share", "subphrase_difference")


def measure(config: EscanConfig, lab: Lab) -> list[Measurement]:
    """Train both architectures, and look at the accepted networks."""
    groups = escan_groups(config, lab)
    rows: list[Measurement] = []
    shares: dict[str, list[float]] = {}
    for model, group in groups.items():
        rows += _with_published(group.accuracy_rows(), group)
        networks = [Network.of(unit, config.samples) for unit in group.accepted]
        found = [
            measures.delta_shares(network) | measures.subphrases(network) for network in networks
        ]
        shares[model] = [numbers[key("delta_share", side="encoder")] for numbers in found]
        rows += over_networks(group, found)
        for network in networks[:1]:
            rows += of_one(group, _shown(network))
    if all(shares.values()):
        rows.append(_difference(groups, shares))
    return rows


def _with_published(rows: list[Measurement], group: Group) -> list[Measurement]:
    """Put the paper's accuracy beside ours."""
    model = str(group.wanted.model).upper()
    printed = published_value("aitken", "text-s4", "eSCAN", "word_accuracy", model=model)
    share = None if printed is None else printed / 100
    return [
        row.model_copy(update={"published": share}) if row.name == "word_accuracy" else row
        for row in rows
    ]


def _shown(network: Network) -> Numbers:
    return (
        measures.example_attention(network)
        | measures.temporal_paths(network)
        | measures.temporal_matrix(network)
        | measures.input_plane(network)
    )


def _difference(groups: dict[str, Group], shares: dict[str, list[float]]) -> Measurement:
    gap = independent_difference_interval(shares["aed"], shares["ao"], rng=np.random.default_rng(0))
    seeds = {unit.unit.seed for group in groups.values() for unit in group.accepted}
    axes: dict[str, str | int | float] = {"from": "aed", "to": "ao"}
    return measured("delta_share_difference", groups["aed"].dataset, gap, axes, sorted(seeds))


def escan_accuracy(pool: Pool) -> Decision:
    """Decide aitken.escan-accuracy: a third of the seeds of each architecture reach .98."""
    parts: list[Verdict] = []
    evidence: dict[str, Any] = {}
    for model in MODELS:
        seeds = pool.select("seed_accuracy", ESCAN, model=model)
        if len(seeds) < pool.needed(_SEEDS):
            return undecided(f"needs {_SEEDS} seeds of AED and of AO")
        reached = [verdict((row.value or 0.0) >= REACHED, row.value is not None) for row in seeds]
        parts.append(share_of(reached, _SHARE))
        evidence[model] = {
            "reached .98": sum(part is Verdict.HOLDS for part in reached),
            "seeds": len(seeds),
            "accuracies": [row.value for row in seeds],
            "rates": {
                name: interval_of(row)
                for name in ("reached", "accepted")
                for row in pool.select(name, ESCAN, model=model)
            },
        }
    return Decision(all_of(parts), evidence)


def subphrase(pool: Pool) -> Decision:
    """Decide aitken.subphrase: AED's maxima against those on another sequence's attention."""
    differences = pool.select("subphrase_difference", ESCAN, model="aed")
    ratios = pool.select("subphrase_ratio", ESCAN, model="aed")
    if not differences or not ratios:
        return undecided("no run of AED was accepted")
    evidence = {
        f"{model}: {row.axes['attended']}": interval_of(row)
        for model in MODELS
        for row in pool.select("subphrase", ESCAN, model=model)
    } | {"difference": interval_of(differences[0]), "ratio": interval_of(ratios[0])}
    result = much_greater(interval_of(differences[0]), interval_of(ratios[0]))
    note = "chance is the attention of another sequence, which is as diagonal"
    return Decision(result, evidence, note=note)


CLAIMS = {
    "aitken.escan-accuracy": escan_accuracy,
    "aitken.subphrase": subphrase,
    "aitken.delta-small": delta_small,
}
