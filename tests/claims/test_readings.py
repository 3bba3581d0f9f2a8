"""Two readings of a claim: the paper's words give the verdict, the stricter rule is never lost."""

from __future__ import annotations

import json

from attnscope.analysis.intervals import Interval
from attnscope.claims.catalogue import catalogue
from attnscope.claims.decide import Verdict, above, by_median
from attnscope.claims.pool import Pool
from attnscope.claims.readings import RULE_FIXED, WORDS_FIXED, Readings, at_setting
from attnscope.claims.table import Cells, Claim, Part
from attnscope.claims.verdicts import judge
from attnscope.recipes.recipe import module_of
from attnscope.recipes.registry import entries
from attnscope.runs.result import Measurement, Result

HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED


def result(value: float, scale: str = "full", dataset: str = "escan", **config: object) -> Result:
    row = Measurement(name="gain", dataset=dataset, value=value, low=value, high=value, n=9)
    return Result(
        recipe="aitken/fig3",
        scale=scale,  # type: ignore[arg-type]
        config=config,
        environment={"device": "cpu"},
        seconds=0.0,
        measurements=(row,),
    )


def claim(bound: float) -> Claim:
    return Claim(Cells("gain"), [Part("", "gain", above, bound)])


def test_the_papers_words_give_the_verdict_and_the_rule_is_kept_with_its_own():
    both = Readings(claim(1.0), claim(3.0))
    found = judge([result(2.0)], {"aitken/fig3": {"aitken.subphrase": both}})
    own = next(claim for claim in found if claim.id == "aitken.subphrase")
    words, rule = own.readings
    assert (own.verdict, words.verdict, rule.verdict) == (HOLDS, HOLDS, FAILS)
    assert words.fixed.startswith(WORDS_FIXED)
    assert rule.fixed == RULE_FIXED
    entry = next(entry for entry in catalogue() if entry.id == own.id)
    assert (words.says, rule.says) == (entry.words, entry.decided_by)
    stored = json.loads(json.dumps(own.as_json()))["readings"]
    assert [reading["verdict"] for reading in stored] == ["holds", "fails"]
    assert stored[1]["evidence"] == {"escan": {"value": 2.0, "low": 2.0, "high": 2.0, "n": 9}}


def test_a_claim_has_two_readings_where_the_catalogue_has_them():
    known = {entry.id: bool(entry.words) for entry in catalogue()}
    assert all(bool(entry.because) == bool(entry.words) for entry in catalogue())
    for entry in entries():
        for name, rule in module_of(entry).CLAIMS.items():
            if name in known:
                assert isinstance(rule, Readings) == known[name], name


def test_only_runs_with_the_settings_decide_and_others_keep_other_data_sets():
    marked, plain = result(2.0, separator="marked"), result(-2.0, separator="none")
    at = at_setting(claim(0.0), {"separator": "marked"})
    assert at(Pool((marked, plain))).verdict is HOLDS
    assert at(Pool((plain,))).note == "no full run with separator=marked"
    assert at(Pool((result(2.0),))).verdict is HOLDS  # a recipe that does not have the setting
    assert at(Pool((result(2.0, "quick", separator="none"),))).verdict is HOLDS
    of_escan = at_setting(claim(0.0), {"separator": "marked"}, ("escan",))
    other = result(-1.0, dataset="one-to-one-3", separator="none")
    assert of_escan(Pool((marked, other))).verdict is FAILS
    assert set(of_escan(Pool((plain, other, marked))).evidence) == {"escan", "one-to-one-3"}


def test_the_median_seed_decides_only_where_each_seeds_number_is_kept():
    values = (0.1, 0.9, 0.95)
    assert by_median(above)(Interval(0.65, -1.0, 2.0, 3, values), 0.8) is HOLDS
    assert by_median(above)(Interval(0.65, 0.6, 0.7, 3), 0.5) is UNDECIDED
