"""The time of a run: units are planned without training, timed once a kind, and multiplied."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pydantic import Field

from attnscope.data.corpus import GrammarTranslation
from attnscope.data.tasks import PermutationCopy
from attnscope.errors import UsageError
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.recipes import entries, find
from attnscope.recipes.kit.settings import RecipeSettings
from attnscope.recipes.recipe import module_of
from attnscope.running.cost import budget as budgets
from attnscope.running.cost.budget import fit_budget
from attnscope.running.cost.measuring import MeasuringCost, measuring_cost
from attnscope.running.cost.plan import planned_units
from attnscope.running.cost.timing import (
    Pace,
    kind_of,
    measure_paces,
    seconds_of_evaluations,
    seconds_of_units,
)
from attnscope.running.duration import about
from attnscope.running.run import read_config
from attnscope.running.settings_list import settings_of
from attnscope.training.progress import Silent
from attnscope.training.unit import Training, Unit


class Config(RecipeSettings):
    """Settings of a recipe that trains one kind of models."""

    seeds: int = Field(5, ge=1)
    """Models."""
    steps: int = Field(4000, ge=1)
    """Steps of each."""
    hidden: int = Field(64, ge=1)
    """Their size."""
    shown: int = 60
    """Words in the figure."""


def measure(config, lab):
    """Plan models, look at them, and plan one more."""
    model = Seq2SeqSpec(embedding=config.hidden, hidden=config.hidden)
    units = [unit_of(model, seed, config.steps) for seed in range(config.seeds)]
    lab.train({"models": units}, "models")
    last = lab.train(unit_of(model, 99, config.steps), "one more")
    return last.log


def unit_of(model, seed, steps):
    training = Training(steps=steps, batch_size=4, evaluate_at=(1,), examples=40)
    return Unit(source=PermutationCopy(length=5), model=model, training=training, seed=seed)


OWN = SimpleNamespace(
    Config=Config,
    QUICK={"seeds": 2, "steps": 150, "hidden": 8, "shown": 5},
    HEADLINE=(),
    CLAIMS={},
    measure=measure,
    draw=lambda result, units: {},
)


def test_units_of_every_stage_are_planned_up_to_the_first_measurement():
    assert [unit.seed for unit in planned_units(OWN, Config(seeds=3))] == [0, 1, 2, 99]
    assert planned_units(module_of(find("sunlu/gradient-flow")), Config()) == []


def test_recipes_that_choose_between_two_stages_are_planned_to_the_end():
    entry = find("tutek/table6")
    units = planned_units(module_of(entry), read_config(entry, quick=True))
    assert any(getattr(unit.model.encoder, "layers", 1) == 2 for unit in units)


def test_units_of_one_kind_differ_in_seeds_steps_and_examples_only():
    first, *others = planned_units(OWN, Config(seeds=2))
    assert {kind_of([unit]) for unit in others} == {kind_of([first])}
    assert kind_of([planned_units(OWN, Config(steps=7))[0]]) == kind_of([first])
    assert kind_of([planned_units(OWN, Config(hidden=7))[0]]) != kind_of([first])


def test_times_are_multiplied_and_shared_by_the_processes():
    units = planned_units(OWN, Config(seeds=2, steps=10))
    paces = {kind_of(units[:1]): Pace(1.0, 0.5, 0.25)}
    each = 1 + 10 * 0.5 + 3 * 40 * 0.25  # evaluated at steps 0, 1 and 10
    assert seconds_of_units(units, paces, 1) == pytest.approx(3 * each)
    assert seconds_of_units(units, paces, 2) == pytest.approx(1.5 * each)
    assert seconds_of_units(units, paces, 100) == pytest.approx(each)


def test_a_corpus_has_no_more_examples_to_evaluate_than_it_has():
    training = Training(steps=1, batch_size=4, evaluate_at=(), examples=1_000_000)
    model = Seq2SeqSpec(embedding=4, hidden=4)
    unit = Unit(source=GrammarTranslation(), model=model, training=training, seed=0)
    # The grammar's validation part has 200 pairs; evaluated at steps 0 and 1.
    assert Pace(0.0, 0.0, 0.25).evaluations(unit) == 2 * 200 * 0.25


def test_a_kind_is_timed_by_real_steps_and_only_once():
    units = planned_units(OWN, Config(seeds=2, hidden=4))
    timed = []
    paces = measure_paces(units, {}, timed.append)
    assert timed == [1]
    assert all(pace.step > 0 and pace.example > 0 for pace in paces.values())
    assert measure_paces(units, paces, pytest.fail) == paces


@pytest.fixture
def fit(monkeypatch):
    """Fit budgets at a pace of one second a step, with nothing timed."""
    monkeypatch.setattr(budgets, "measure_paces", lambda units, known: {})
    monkeypatch.setattr(
        budgets, "seconds_of_units", lambda units, paces, jobs: sum(u.training.steps for u in units)
    )
    # A second for the evaluations of each unit.
    monkeypatch.setattr(budgets, "seconds_of_evaluations", lambda units, paces: len(units))

    def fit(budget, ratio=0, seconds=0, **given):
        cost = MeasuringCost(ratio, seconds)
        return fit_budget(OWN, Config(**given), given, budget, "cpu", 1, Silent(), cost)

    return fit


def test_a_budget_takes_seeds_first_then_steps_and_leaves_models_alone(fit):
    assert "the full sizes fit" in fit("7h").sentence  # six models of 4,000 seconds: 6.7 hours
    fewer = fit("4.5h").config
    assert (fewer.seeds, fewer.steps, fewer.hidden) == (3, 4000, 64)
    short = fit("1h")
    assert (short.config.seeds, short.config.hidden, short.config.shown) == (2, 64, 60)
    assert 150 < short.config.steps <= 1200
    assert "seeds=2 (not 5)" in short.sentence


def test_a_given_setting_stays_and_what_never_fits_is_one_sentence(fit):
    assert fit("2h", seeds=5).config.seeds == 5
    with pytest.raises(UsageError, match=r"--budget 60s: at its smallest sizes .* about 8 min"):
        fit("60s")


def test_a_budget_includes_measuring_and_says_so(fit):
    # Six models train for 24,000 seconds and are measured for 6 * 1000 + 600.
    whole = fit("8.5h", ratio=1000, seconds=600)
    assert (whole.config.seeds, whole.seconds) == (5, 30_600)
    assert "of which about 1.8 h to measure and draw" in whole.sentence
    assert fit("8.4h", ratio=1000, seconds=600).config.seeds < 5


def test_a_smaller_choice_never_evaluates_more_often():
    """``grid=25`` evaluates every 25 steps and 0 never: nothing lies between them."""
    recipe = find("snell/table5")
    config = read_config(recipe, {"corpus": "grammar-sentiment"})
    module = module_of(recipe)
    free = [each for each in settings_of(module) if each.size]
    _, amounts = budgets._sizes(module, config, free, "cpu")
    assert "grid" in {each.name for each in amounts}
    evaluations = []
    for changes in budgets._ladder(amounts):
        _, units = budgets._planned(module, config, changes, "cpu")
        evaluations.append(sum(len(unit.training.schedule) for unit in units))
    assert evaluations == sorted(evaluations, reverse=True)
    assert evaluations[-1] < evaluations[0] / 2


def test_settings_that_do_not_go_together_are_passed_over(fit, monkeypatch):
    def measure_wide_models_only(config, lab):
        if config.hidden < 64:
            raise UsageError("hidden is too small for the vectors.")
        return measure(config, lab)

    monkeypatch.setattr(OWN, "measure", measure_wide_models_only)
    assert fit("1h").config.hidden == 64


def test_measuring_grows_with_all_evaluations_of_all_units():
    units = planned_units(OWN, Config(seeds=2, steps=10))
    paces = {kind_of(units[:1]): Pace(1.0, 0.5, 0.25)}
    assert seconds_of_evaluations(units, paces) == pytest.approx(3 * 3 * 40 * 0.25)
    assert MeasuringCost(0.5, 2.0).after(90.0) == 47.0


def test_the_time_of_measuring_of_every_recipe_is_known():
    untimed = MeasuringCost()
    assert [entry.name for entry in entries() if measuring_cost(entry.name) == untimed] == []
    assert measuring_cost("own/mine") == untimed


def test_settings_that_make_a_run_smaller_are_numbers_and_lists_not_data():
    sizes = {row.name for row in settings_of(module_of(find("tutek/table1"))) if row.size}
    assert {"seeds", "hidden", "most_steps", "deltas", "permutations"} <= sizes
    assert not {"corpus", "vectors", "lr"} & sizes


def test_durations_are_read_in_two_digits():
    told = [about(seconds) for seconds in (0.2, 40, 100, 840, 12_600, 180_000)]
    assert told == [
        "about 1 s",
        "about 40 s",
        "about 2 min",
        "about 14 min",
        "about 3.5 h",
        "about 50 h",
    ]
