"""Figure 6: one good head among eight is enough to copy permutations (§5.2).

Heads are initialised one by one on one random base model and tried alone; good ones learn whatever
the data seed, bad ones never do. Then eight heads are put together: all bad, one good, or random.
Contexts are summed as in the text; ``join=averaged cell=gru embeddings=separate`` is the authors'
script.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import Field

from attnscope.analysis.intervals import Interval, rate_interval
from attnscope.analysis.learning import learned_at
from attnscope.claims.decide import (
    Verdict,
    all_of,
    cochran_armitage_trend,
    fisher_less,
    fisher_p,
    verdict,
)
from attnscope.claims.pool import Decision, Pool, undecided
from attnscope.claims.readings import Readings, at_setting
from attnscope.data.tasks import PermutationCopy
from attnscope.figures.charts import Axis, Guide, Panel, beside, points
from attnscope.figures.palette import ROLES
from attnscope.models.recurrence import Cell
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.plots import accuracy_curves
from attnscope.recipes.kit.settings import RecipeSettings
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.recipe import Charts
from attnscope.runs.result import Measurement, Result
from attnscope.training.unit import Training, Unit, every

# Seeds of random heads start here, so that none of them was ever a candidate.
_RANDOM_HEADS = 1_000_000
# Data seeds of the assembled models, apart from those that sorted the candidates.
_MODEL_DATA = 1_000


# Figure 6 and the counts of §5.2 come from the authors' script, which is not the model of Eq. 21.
SCRIPT = {"cell": "gru", "join": "averaged", "embeddings": "separate"}
TEXT = {"cell": "lstm", "join": "summed", "embeddings": "shared"}


class Config(RecipeSettings):
    """Settings of figure 6."""

    seeds: int = Field(20, ge=1)
    """Models of each scenario, as in the paper."""
    steps: int = Field(200, ge=1)
    """Training steps, the number of figure 3."""
    batch_size: int = Field(128, ge=1)
    """Sequences in a training batch, as in figure 3."""
    length: int = Field(40, ge=2)
    """Words of a sequence, as in figure 3."""
    hidden: int = Field(256, ge=1)
    """Size of embeddings and LSTM states, as in figure 3."""
    examples: int = Field(100, ge=1)
    """Sequences of each evaluation, as in figure 3."""
    heads: int = Field(8, ge=2)
    """Number K of heads of the three scenarios."""
    head_counts: tuple[int, ...] = (1, 2, 4, 8)
    """Numbers K of heads of the right panel."""
    base_seed: int = 0
    """Seed of the base model that all runs share, so that they differ in their heads alone."""
    trials: int = Field(3, ge=1)
    """Data seeds on all of which a head must succeed to be good, or fail to be bad."""
    wanted: int = Field(20, ge=1)
    """Good and bad heads to find, as in the authors' script."""
    candidates: int = Field(200, ge=1)
    """Heads tried at most."""
    wave: int = Field(48, ge=1)
    """Heads tried together before good and bad ones are counted again."""
    cell: Cell = "lstm"
    """Recurrent cell of the encoder and the decoder; the text has LSTMs, the script GRUs."""
    join: Literal["summed", "averaged"] = "summed"
    """Whether the contexts of heads are summed, as in Eq. 21, or averaged, as in their script."""
    embeddings: Literal["shared", "separate"] = "shared"
    """Whether input and output words share embeddings; in the authors' script they do not."""

    @property
    def part(self) -> str:
        """The subfolder of the result: ``authors-script`` for the networks of their script."""
        chosen = {name: getattr(self, name) for name in SCRIPT}
        return "authors-script" if chosen == SCRIPT else ""

    @property
    def in_part(self) -> tuple[str, ...]:
        """Settings whose values `part` names."""
        return tuple(SCRIPT) if self.part else ()


QUICK = {
    "seeds": 3,
    "steps": 200,
    "batch_size": 64,
    "length": 12,
    "hidden": 64,
    "examples": 50,
    "wanted": 2,
    "candidates": 4,
    "wave": 4,
    "trials": 1,
    "heads": 3,
    "head_counts": (1, 3),
}
HEADLINE = ("heads_found", "seeds_learned", "failure_rate")


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Sort candidate heads, assemble models, and count which of them learn."""
    trials = _sort_candidates(config, lab)
    good = [head for head, passed in trials.items() if passed == [True] * config.trials]
    bad = [head for head, passed in trials.items() if passed == [False] * config.trials]
    counts = {"good": len(good), "bad": len(bad), "neither": len(trials) - len(good) - len(bad)}
    sheet = Sheet(PermutationCopy(length=config.length).dataset)
    rows = [
        sheet.point("heads_found", count, {"kind": kind}, len(trials))
        for kind, count in counts.items()
    ]
    units = {}
    for scenario, models in _scenarios(config, good, bad).items():
        units[scenario, len(models[0])] = [
            _unit(config, heads, _MODEL_DATA + index) for index, heads in enumerate(models)
        ]
    for (scenario, heads), done in lab.train(units, "several heads").items():
        rows += sheet.outcomes(done, config.steps, {"scenario": scenario, "heads": heads})
    alone = [passed[0] for passed in trials.values()]
    failed, axes = len(alone) - sum(alone), {"heads": 1, "of": "candidates"}
    return [*rows, sheet.rate("failure_rate", failed, len(alone), axes)]


def _unit(config: Config, heads: Sequence[int], seed: int) -> Unit:
    return Unit(
        source=PermutationCopy(length=config.length),
        model=Seq2SeqSpec(
            embedding=config.hidden,
            hidden=config.hidden,
            cell=config.cell,
            join=config.join,
            embeddings=config.embeddings,
            base_seed=config.base_seed,
            head_seeds=tuple(heads),
            heads=len(heads),
        ),
        training=Training(
            steps=config.steps,
            batch_size=config.batch_size,
            evaluate_at=every(10, config.steps),
            examples=config.examples,
            stored=2,
        ),
        seed=seed,
    )


def _sort_candidates(config: Config, lab: Lab) -> dict[int, list[bool]]:
    """Return for every head tried, in order, whether it learned with each data seed.

    A head whose data seeds disagree is neither good nor bad and is not tried further.
    """
    trials: dict[int, list[bool]] = {}
    while len(trials) < config.candidates:
        first = len(trials)
        wave = range(first, min(first + config.wave, config.candidates))
        trials |= {head: [] for head in wave}
        for data in range(config.trials):
            alike = [head for head in wave if len(set(trials[head])) < 2]
            units = {head: _unit(config, [head], data) for head in alike}
            for head, unit in lab.train(units, f"heads {first}–{wave[-1]}").items():
                trials[head].append(learned_at(unit.log) is not None)
        found = [passed for passed in trials.values() if len(passed) == config.trials]
        if min(sum(all(p) for p in found), sum(not any(p) for p in found)) >= config.wanted:
            break
    return trials


def _scenarios(config: Config, good: list[int], bad: list[int]) -> dict[str, list[list[int]]]:
    """Return the heads of every model of every scenario that there are heads for."""
    rng = np.random.default_rng(config.base_seed)

    def some(heads: list[int], count: int) -> list[int]:
        return [int(head) for head in rng.choice(heads, count, replace=False)]

    models = range(config.seeds)
    scenarios: dict[str, list[list[int]]] = {}
    if len(bad) >= config.heads:
        scenarios["all bad"] = [some(bad, config.heads) for _ in models]
    if good and len(bad) >= config.heads - 1:
        scenarios["one good"] = [[*some(good, 1), *some(bad, config.heads - 1)] for _ in models]
    widest = max(*config.head_counts, config.heads)
    fresh = [[_RANDOM_HEADS + model * widest + head for head in range(widest)] for model in models]
    for count in sorted({*config.head_counts, config.heads}):
        scenarios[f"random, K = {count}"] = [heads[:count] for heads in fresh]
    return scenarios


def _failure_rates(learned: Sequence[Measurement]) -> dict[int, Interval]:
    """Return the failure rate of models of random heads, by the number of heads."""
    return {
        int(row.axes["heads"]): rate_interval(row.n - round(row.number), row.n)
        for row in learned
        if str(row.axes["scenario"]).startswith("random")
    }


_COMPARED = {"bad": "all bad", "one good": "one good", "random": "random, K = {}"}


def good_heads(pool: Pool) -> Decision:
    """Decide snell.good-heads."""
    config = Config.model_validate(pool.config())
    found = {str(row.axes["kind"]): row for row in pool.select("heads_found")}
    evidence: dict[str, Any] = {
        "heads tried": found["good"].n,
        "good": found["good"].value,
        "bad": found["bad"].value,
    }
    counts = []
    for name, scenario in _COMPARED.items():
        runs = pool.outcomes(scenario=scenario.format(config.heads))
        counts.append((sum(run.learned for run in runs), len(runs)))
        evidence[f"{name} learned"] = "{}/{}".format(*counts[-1])
    if min(n for _, n in counts) < pool.needed(20):
        return undecided("too few heads of a kind were found, or too few models", evidence)
    bad, one, drawn = counts
    evidence["Fisher p, bad against one good"] = fisher_p(*bad, *one)
    evidence["Fisher p, bad against random"] = fisher_p(*bad, *drawn)
    most = verdict(drawn[0] / drawn[1] >= 0.8, True)
    parts = [fisher_less(*bad, *one), fisher_less(*bad, *drawn), most]
    # The statement's first half is refuted outright where most models of bad heads learn.
    refuted = rate_interval(*bad).low > 0.5
    outcome = Verdict.FAILS if refuted else all_of(parts)
    return Decision(outcome, evidence, _deviation(config))


def more_heads(pool: Pool, every_step: bool = True) -> Decision:
    """Decide snell.more-heads by the trend; the stricter reading lets no single step rise."""
    config = Config.model_validate(pool.config())
    rates = _failure_rates(pool.select("seeds_learned"))
    heads = sorted(rates)
    failures = [round(rates[k].value * rates[k].n) for k in heads]
    totals = [rates[k].n for k in heads]
    single = pool.select("failure_rate")[0].number
    trend = cochran_armitage_trend(failures, totals, heads)
    evidence = {
        "failures": {k: f"{f}/{n}" for k, f, n in zip(heads, failures, totals, strict=True)},
        "p_bad^K": {k: single**k for k in heads},
        "trend p": trend.p,
    }
    if len(heads) < pool.needed(4) or min(totals) < pool.needed(20):
        return undecided("needs K = 1, 2, 4, 8 with 20 models each", evidence)
    monotone = all(rates[a].value >= rates[b].value for a, b in pairwise(heads))
    falling = monotone or not every_step
    significant = trend.p < 0.05
    holds = falling and significant and trend.statistic < 0
    rising = significant and trend.statistic > 0
    outcome = verdict(holds, rising or not falling)
    return Decision(outcome if len(heads) > 1 else Verdict.UNDECIDED, evidence, _deviation(config))


def _deviation(config: Config) -> str:
    chosen = (config.cell, config.join, config.embeddings)
    if chosen == ("lstm", "summed", "shared"):
        return ""
    script = " (the authors' script)" if chosen == ("gru", "averaged", "separate") else ""
    return f"{config.cell.upper()} cells, {config.join} heads, {chosen[2]} embeddings{script}"


CLAIMS = {
    "snell.good-heads": Readings(at_setting(good_heads, SCRIPT), at_setting(good_heads, TEXT)),
    "snell.more-heads": Readings(
        at_setting(partial(more_heads, every_step=False), SCRIPT), at_setting(more_heads, TEXT)
    ),
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw accuracy against steps for the three scenarios, and failures against the heads."""
    config = Config.model_validate(result.config)
    learned = {str(row.axes["scenario"]): row for row in result.select("seeds_learned")}
    colours = {
        f"random, K = {config.heads}": ROLES["mixed"],
        "one good": ROLES["control"],
        "all bad": ROLES["hard"],
    }
    labels = {}
    for name in colours:
        if name in learned:
            row, kind = learned[name], name.split(",")[0]
            labels[name] = f"{config.heads} heads, {kind}:\n{row.value:.0f} of {row.n} learn"
    # Units and measurements of the assembled models are in the same order.
    assembled = [unit for unit in units if unit.config["seed"] >= _MODEL_DATA]
    groups: dict[str, list[Logged]] = {label: [] for label in labels.values()}
    for unit, end in zip(assembled, result.select("accuracy"), strict=True):
        scenario = str(end.axes["scenario"])
        if scenario in labels:
            groups[labels[scenario]].append(unit)
    tints = {label: colours[name] for name, label in labels.items()}
    left = accuracy_curves(groups, tints, config.steps, title="Which initial heads")
    return {"fig6": beside(left, _failures(result))}


def _failures(result: Result) -> Any:
    """Draw the share of models that fail against their number of random heads."""
    single = result.select("failure_rate")[0].number
    rates = _failure_rates(result.select("seeds_learned"))
    widest = max(rates)
    expected = [(float(k), single**k) for k in range(1, widest + 1)]
    panel = Panel(
        Axis("random heads K", domain=(0.5, widest + 0.5), ticks=sorted(rates)),
        Axis("share of models that fail", domain=(0, 1)),
        {"measured": ROLES["mixed"]},
        title="How many heads",
        labels="none",
        guides=[Guide(expected, "all K fail alone", at="end")],
    )
    dots: list[dict[str, Any]] = []
    for heads, rate in rates.items():
        ends = {"value": rate.value, "low": rate.low, "high": rate.high}
        dots.append({"heads": heads, "group": "measured", **ends})
    return points(dots, panel, x="heads", y="value", group="group", low="low", high="high")
