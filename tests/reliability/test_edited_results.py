"""Results that are partial, old or edited are decided, undecided or refused: nothing raises."""

from __future__ import annotations

from pathlib import Path

from attnscope.running.verdicts import judge
from attnscope.runs.workspace import read_results

RESULTS = Path(__file__).parents[2] / "results"


def test_claims_are_decided_on_whatever_is_left_of_a_result(attacked):
    table = attacked("--results", "5000")
    assert table.failures == []
    assert table.counts["edited results: claims"].total() == 5000
    assert table.counts["edited results: claims"]["accepted rightly"] > 2500


def test_figures_and_report_are_made_of_whatever_is_left_of_a_result(attacked):
    table = attacked("--figures", "40")
    assert table.failures == []
    assert table.counts["edited results: figures, report"].total() == 40


def test_reference_results_lack_nothing_that_a_rule_needs():
    notes = [claim.note for claim in judge(read_results(RESULTS))]
    assert not [note for note in notes if "lack what the rule needs" in note]
