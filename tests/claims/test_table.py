"""Claims as tables: cells, rules, needs and evidence, on measurements made up for each case."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from attnscope.analysis.intervals import Interval
from attnscope.claims.decide import Verdict, above, below, by_value, much_greater, reaches, share_of
from attnscope.claims.pool import Decision, Pool
from attnscope.claims.table import Cell, Cells, Claim, Finding, Needs, Part
from attnscope.runs.result import Measurement, Result
from cases import for_each

HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED


def row(
    name: str, value: float | None, dataset: str = "sst", seeds: int = 3, **axes: Any
) -> Measurement:
    """A measurement whose interval reaches 1 to both sides."""
    low, high = (None, None) if value is None else (value - 1, value + 1)
    return Measurement(
        name=name,
        dataset=dataset,
        axes=axes,
        value=value,
        low=low,
        high=high,
        n=10,
        seeds=tuple(range(seeds)),
    )


def pool(*rows: Measurement, scale: str = "full", **config: Any) -> Pool:
    return Pool(
        (
            Result(
                recipe="mine/one",
                scale=scale,  # type: ignore[arg-type]
                config=config,
                environment={"device": "cpu"},
                seconds=0.0,
                measurements=rows,
            ),
        )
    )


GAIN = Part("gain", "gain", above)


def decide(*rows: Measurement, scale: str = "full", **fields: Any) -> Decision:
    claim = Claim(**({"cells": Cells("gain"), "checks": [GAIN]} | fields))
    return claim(pool(*rows, scale=scale))


def test_a_claim_holds_where_every_cell_does_and_names_those_that_do_not() -> None:
    assert decide(row("gain", 2), row("gain", 5, "imdb")).verdict is HOLDS
    decision = decide(row("gain", 2), row("gain", -5, "imdb"))
    assert (decision.verdict, decision.note) == (FAILS, "not held on imdb")


def test_a_share_of_the_cells_can_be_enough() -> None:
    rows = [row("gain", 2), row("gain", 5, "imdb"), row("gain", -5, "sms")]
    assert decide(*rows, over=partial(share_of, share=2 / 3)).verdict is HOLDS


def test_evidence_is_the_measurement_itself() -> None:
    measured = row("gain", 2)
    assert decide(measured).evidence == {"sst": {"gain": measured}}
    assert decide(measured, checks=[Part("", "gain", above)]).evidence == {"sst": measured}


def test_a_part_without_a_rule_is_shown_and_decides_nothing() -> None:
    beside = row("loss", -7)
    decision = decide(row("gain", 2), beside, checks=[GAIN, Part("loss", "loss")])
    assert decision.verdict is HOLDS
    assert decision.evidence["sst"]["loss"] == beside


@pytest.mark.parametrize("value", [None, "absent"])
def test_a_missing_number_decides_nothing_and_is_never_read_as_zero(value: Any) -> None:
    rows = [] if value == "absent" else [row("loss", None)]
    decision = decide(row("gain", 2), *rows, checks=[GAIN, Part("loss", "loss", below, 5.0)])
    assert decision.verdict is UNDECIDED
    assert decision.evidence["sst"]["loss"] == "not measured"


def test_several_measurements_are_the_arguments_of_one_rule() -> None:
    both = Part("far above", ("gain", "ratio"), much_greater)
    assert decide(row("gain", 5), row("ratio", 2.0), checks=[both]).verdict is HOLDS
    assert decide(row("gain", 5), row("ratio", 0.2), checks=[both]).verdict is FAILS


def test_a_part_can_be_about_every_value_of_an_axis() -> None:
    each = Part("gain of", "gain", above, each="group")
    rows = [row("gain", 2, group="positive"), row("gain", -2, group="negative")]
    decision = decide(*rows, checks=[each])
    assert decision.verdict is FAILS
    assert set(decision.evidence["sst"]) == {"gain of positive", "gain of negative"}


def test_a_part_can_be_about_some_cells_alone() -> None:
    rows = [row("gain", 2, model="aed"), row("gain", -2, model="ao")]
    only = Part("gain", "gain", above, only={"model": "aed"})
    assert decide(*rows, cells=Cells("gain", by=("model",)), checks=[only]).verdict is HOLDS


def test_a_part_can_decide_on_some_cells_and_be_shown_on_the_others() -> None:
    rows = [row("gain", 2, model="aed"), row("gain", -2, model="ao"), row("word", 1, model="ved")]
    some = Part("gain", "gain", above, decides_on={"model": "aed"})
    cells = Cells(("gain", "word"), by=("model",))
    decision = decide(*rows, cells=cells, checks=[some])
    assert decision.verdict is HOLDS
    assert set(decision.evidence) == {"aed", "ao"}
    other = Part("gain", "gain", above, decides_on={"model": "ao"})
    assert decide(*rows, cells=cells, checks=[other]).verdict is FAILS


def test_axes_are_chosen_by_value_or_by_several_values() -> None:
    rows = [row("gain", 2, kind="dot"), row("gain", 2, kind="none"), row("gain", -9, kind="odd")]
    cells = Cells("gain", by=("dataset", "kind"), given={"kind": ("dot", "none")})
    assert set(decide(*rows, cells=cells).evidence) == {"sst dot", "sst none"}


def test_a_bound_can_depend_on_the_measurement() -> None:
    own = Part("gain", "gain", above, lambda found: float(found.axes["chance"]))
    assert decide(row("gain", 2, chance=0.5), checks=[own]).verdict is HOLDS
    assert decide(row("gain", 2, chance=4), checks=[own]).verdict is FAILS


def test_a_rule_by_value_does_not_look_at_the_interval() -> None:
    assert decide(row("gain", 2), checks=[Part("", "gain", reaches, 2.0)]).verdict is UNDECIDED
    by = Part("", "gain", by_value(reaches), 2.0)
    assert decide(row("gain", 2), checks=[by]).verdict is HOLDS


def test_data_sets_put_aside_and_generated_ones_are_shown_and_do_not_count() -> None:
    rows = [row("gain", 2), row("gain", -5, "sms"), row("gain", -5, "grammar-sentiment")]
    decision = decide(*rows, cells=Cells("gain", aside=("sms",)))
    assert decision.verdict is HOLDS
    assert set(decision.evidence) == {"sst", "sms", "grammar-sentiment"}


def test_only_the_named_data_sets_decide() -> None:
    rows = [row("gain", 2), row("gain", -5, "mine")]
    cells = Cells("gain", decide=("sst",))
    assert decide(*rows, cells=cells).verdict is HOLDS
    assert "mine" in decide(*rows, cells=cells).evidence


@for_each(
    ("needs", "said"),
    [
        (Needs(datasets=2), "needs 2 data sets; there are 1"),
        (Needs(seeds=5), "needs a data set with 5 seeds; there is none"),
        (Needs(each={"dataset": ("sst", "imdb")}), "needs sst, imdb; imdb is missing"),
        (Needs(also=lambda pool, cells: "needs a longer run"), "needs a longer run"),
    ],
)
def test_a_claim_says_what_it_needs(needs: Needs, said: str) -> None:
    decision = decide(row("gain", 2), needs=needs)
    assert (decision.verdict, decision.note) == (UNDECIDED, said)
    assert decision.evidence


@for_each("needs", [Needs(datasets=2), Needs(seeds=5), Needs(each={"dataset": ("imdb",)})])
def test_a_quick_run_shows_what_it_has(needs: Needs) -> None:
    assert decide(row("gain", 2), needs=needs, scale="quick").verdict is HOLDS


def test_runs_that_are_too_small_do_not_count() -> None:
    claim = Claim(Cells("gain"), [GAIN], Needs(sizes={"hidden": 64}))
    assert claim(pool(row("gain", 2), hidden=64)).verdict is HOLDS
    small = claim(pool(row("gain", 2), hidden=32))
    assert (small.verdict, small.evidence) == (UNDECIDED, {})
    assert "at full size" in small.note


def test_a_check_can_be_any_function_of_the_cell() -> None:
    def longer(cell: Cell) -> Finding:
        gain, loss = cell.value("gain"), cell.value("loss")
        return Finding(HOLDS if gain > loss else FAILS, {"gain": gain, "loss": loss})

    assert decide(row("gain", 2), row("loss", 1), checks=[longer]).verdict is HOLDS
    assert decide(row("gain", 2), row("loss", 3), checks=[longer]).verdict is FAILS
    assert decide(row("gain", 2), checks=[longer]).evidence == {"sst": {"loss": "not measured"}}


def test_a_claim_about_the_whole_pool_has_no_label() -> None:
    decision = decide(row("gain", 2), cells=Cells())
    assert (decision.verdict, list(decision.evidence)) == (HOLDS, ["gain"])


def test_deviations_are_those_of_the_data_sets_that_the_claim_is_about() -> None:
    rows = [row("gain", 2), row("gain", 5, "mine")]
    cells = Cells("gain", decide=("sst",))
    decision = decide(*rows, cells=cells, deviation=lambda pool, names: f"on {names}")
    assert decision.deviation == "on ['sst']"


def test_each_recipe_can_have_its_own_sizes() -> None:
    claim = Claim(
        Cells("gain"), (GAIN,), Needs(sizes={"mine/one": {"steps": 10}, "mine/two": {"steps": 100}})
    )
    assert claim(pool(row("gain", 5.0), steps=20)).verdict is HOLDS
    assert claim(pool(row("gain", 5.0), steps=5)).verdict is UNDECIDED


def test_a_run_that_is_too_small_does_not_count_once_its_numbers_were_listed() -> None:
    small = pool(row("gain", 5.0), steps=5)
    assert len(small.measurements) == 1
    assert small.full_size({"steps": 10}).measurements == ()


def test_cells_can_be_distinguished_by_the_name_of_their_measurement() -> None:
    def positive(cell: Cell) -> Finding:
        found = cell.one(str(cell.given["name"]))
        return Finding(above(Interval(found.number, *[found.number] * 2, 1)), {"": found})

    claim = Claim(Cells(("gain", "loss"), ("dataset", "name")), (positive,))
    decided = claim(pool(row("gain", 5.0), row("loss", -5.0)))
    assert list(decided.evidence) == ["sst gain", "sst loss"]
    assert decided.note == "not held on sst loss"


def test_an_axis_that_was_not_measured_is_shown_as_nothing_without_a_rule() -> None:
    claim = Claim(Cells("gain"), (GAIN, Part("other", "other", each="model")))
    assert claim(pool(row("gain", 5.0))).verdict is HOLDS
