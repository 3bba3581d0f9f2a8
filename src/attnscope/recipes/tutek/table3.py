"""Table 3: how probable the predicted label would be if all attention were on one word.

The mean over the words of a text, then over the texts that are classified rightly (Eq. 9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from attnscope.analysis.intervals import Interval, crossed_interval
from attnscope.analysis.token_probabilities import TokenProbabilities, token_probabilities
from attnscope.claims.decide import all_of, below
from attnscope.claims.pool import Decision, Pool, interval_of
from attnscope.recipes.recipe import Charts, Lab, Logged
from attnscope.recipes.tutek.held_out import best_model, held_out
from attnscope.recipes.tutek.judging import (
    against,
    cells,
    deviations,
    evidence_of,
    full_size,
    too_few,
)
from attnscope.recipes.tutek.rows import Rows, axes_of, rng
from attnscope.recipes.tutek.table1_figures import dot_table
from attnscope.recipes.tutek.units import SMALL, TutekConfig, Which, train_corpora
from attnscope.runs.result import Measurement, Result
from attnscope.training.trained_unit import TrainedUnit

_MODELS = ("base", "residual", "tying", "mlm")
_LOWER = ("tying", "mlm")

PerSeed = Sequence[TokenProbabilities]


class Config(TutekConfig):
    """Settings of table 3."""


QUICK = SMALL
HEADLINE = ("token_probability", "token_probability_difference")


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Read every model word by word."""
    models = [Which(name, attention) for attention in config.attention for name in _MODELS]
    made: list[Measurement] = []
    for runs in train_corpora(config, lab, models):
        rows = Rows(runs.source, range(config.seeds), "table3")
        found = {which: measure_tokens(units, lab.device) for which, units in runs.units.items()}
        made += [
            rows.row("token_probability", of_correct(each), axes_of(which))
            for which, each in found.items()
        ]
        made += _differences(rows, found)
    return made


def measure_tokens(units: Sequence[TrainedUnit], device: str) -> list[TokenProbabilities]:
    """Read trained units word by word, one by one."""
    batch = held_out(units[0].unit.source).batch.to(device)
    return [token_probabilities(best_model(unit, device), batch) for unit in units]


def of_correct(each: PerSeed) -> Interval:
    """Return the mean over seeds and the texts that each classifies rightly."""
    return crossed_interval(np.stack([one.of_correct("token_mean") for one in each]), rng=rng())


def _differences(rows: Rows, found: Mapping[Which, PerSeed]) -> list[Measurement]:
    """Return what a word carries less than in the base model, where both are right."""
    made = []
    for which, each in found.items():
        if which.model == "base":
            continue
        base = found[Which("base", which.attention)]
        # Where either is wrong the difference is not a number, and is left out.
        pairs = [
            own.of_correct("token_mean") - other.of_correct("token_mean")
            for own, other in zip(each, base, strict=True)
        ]
        interval = crossed_interval(np.stack(pairs), rng=rng())
        made.append(rows.row("token_probability_difference", interval, axes_of(which)))
    return made


def token_probability(pool: Pool) -> Decision:
    """Decide tutek.token-probability: below the base model's in every cell."""
    pool = full_size(pool)
    found = {
        key: row
        for key, row in cells(pool, "token_probability_difference", "attention", "model").items()
        if key[2] in _LOWER
    }
    evidence = evidence_of(cells(pool, "token_probability", "attention", "model"))
    evidence |= {f"less base: {key}": shown for key, shown in evidence_of(found).items()}
    corpora = {key[0] for key in found}
    if len(corpora) < pool.needed(_CORPORA):
        return too_few("four corpora with five seeds", len(corpora), evidence)
    parts = [below(interval_of(row)) for row in found.values()]
    return Decision(all_of(parts), evidence, deviations(pool, corpora), against(found, parts))


_CORPORA = 4
CLAIMS = {"tutek.token-probability": token_probability}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the table, and the differences from the base model."""
    columns = {
        "token_probability": "mean probability of single words",
        "token_probability_difference": "less the base model's",
    }
    datasets = dict.fromkeys(row.dataset for row in result.select("token_probability"))
    return {f"table3-{name}": dot_table(result, name, columns) for name in datasets}
