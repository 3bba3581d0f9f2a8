"""Verdicts on claims of users: shown with a note, never dropped."""

from __future__ import annotations

import json

from attnscope.claims.decide import above
from attnscope.claims.pool import Decision, Pool, undecided
from attnscope.claims.table import Cells, Claim, Part
from attnscope.claims.verdicts import AMOUNTS, NOT_LISTED, deciding, judge
from attnscope.claims.wording import sentence
from attnscope.runs.result import Measurement, Result

MEASURED = Measurement(name="gain", dataset="sst", value=2.0, low=1.0, high=3.0, n=9, published=4.5)
RESULT = Result(
    recipe="mine/one",
    scale="full",
    config={},
    environment={"device": "cpu"},
    seconds=0.0,
    measurements=(MEASURED,),
)
MINE = Claim(
    Cells("gain"), [Part("", "gain", above)], statement="mine is better", where="my notes, p. 3"
)


def test_a_claim_that_is_not_in_the_catalogue_is_shown_with_a_note() -> None:
    *listed, own = judge([RESULT], {"mine/one": {"mine.better": MINE}})
    assert (own.id, own.verdict) == ("mine.better", "holds")
    assert (own.statement, own.where) == ("mine is better", "my notes, p. 3")
    assert NOT_LISTED in own.note
    assert own.recipes == ("mine/one",)
    assert not any(NOT_LISTED in claim.note for claim in listed)


def test_a_function_can_be_a_claim_and_its_docstring_the_statement() -> None:
    def best(pool: Pool) -> Decision:
        """Mine is the best.

        By far.
        """
        return undecided("nobody knows")

    own = judge([RESULT], {"mine/one": {"mine.best": best}})[-1]
    assert (own.statement, own.verdict) == ("Mine is the best.", "undecided")


def test_a_measurement_among_the_evidence_keeps_its_interval_and_the_papers_number() -> None:
    own = judge([RESULT], {"mine/one": {"mine.better": MINE}})[-1]
    stored = json.loads(json.dumps(own.as_json()))["evidence"]
    assert stored == {"sst": {"value": 2.0, "low": 1.0, "high": 3.0, "n": 9, "published": 4.5}}
    assert sentence(own.evidence) == "sst: 2 (1 to 3; paper 4.5)"


def of_seeds(value: float, *seeds: int, **changed: object) -> Result:
    row = MEASURED.model_copy(update={"value": value, "seeds": seeds})
    scale = "changed" if changed else "full"
    return RESULT.model_copy(update={"measurements": (row,), "scale": scale, "changed": changed})


def test_of_measurements_over_several_seeds_that_over_most_counts_and_of_as_many_the_later() -> (
    None
):
    many, few, later = of_seeds(1.0, 0, 1, 2), of_seeds(2.0, 0, 1), of_seeds(3.0, 4, 5, 6)
    for results, expected in (
        ((many, few), [1.0]),
        ((few, many), [1.0]),
        ((many, few, later), [3.0]),
        ((later, many), [1.0]),
    ):
        assert Pool(results).values("gain") == expected
    # Runs of one seed each are as many measurements; the same run made again replaces itself.
    single = (of_seeds(1.0, 0), of_seeds(2.0, 1), of_seeds(3.0, 0))
    assert sorted(Pool(single).values("gain")) == [2.0, 3.0]


def test_runs_that_differ_in_how_much_they_measure_decide_together_and_others_do_not() -> None:
    plain, more = of_seeds(1.0, 0, 1), of_seeds(2.0, 0, 1, 2, seeds=3, tasks=["one"], text_seeds=0)
    other = of_seeds(3.0, 0, 1, 2, 3, seeds=4, hidden=9)
    assert {"seeds", "tasks", "text_seeds"} <= {*AMOUNTS}
    assert deciding([plain, more, other]) == (plain, more)
    own = judge([plain, more, other], {"mine/one": {"mine.better": MINE}})[-1]
    assert own.evidence["sst"].value == 2.0
    assert own.note == f"{NOT_LISTED}."
    assert "hidden=9" in judge([other], {"mine/one": {"mine.better": MINE}})[-1].note
