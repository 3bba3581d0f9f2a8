"""Results that are partial, old or edited are decided, undecided or refused: nothing raises."""

from __future__ import annotations

from importlib import import_module

import pytest


@pytest.fixture
def attack():
    return import_module("attack")


def test_claims_are_decided_on_whatever_is_left_of_a_result(attack, tmp_path):
    table = attack.Table()
    attack.attack_results(tmp_path, 5000, table)
    print("\n".join(table.lines()))
    assert table.failures == []
    assert table.counts["edited results: claims"]["accepted rightly"] > 2500


def test_figures_and_report_are_made_of_whatever_is_left_of_a_result(attack, tmp_path):
    table = attack.Table()
    attack.attack_results(tmp_path, 40, table, attack.draw_all, "figures")
    print("\n".join(table.lines()))
    assert table.failures == []


def test_reference_results_lack_nothing_that_a_rule_needs(attack):
    from attnscope.recipes.verdicts import judge
    from attnscope.runs.workspace import read_results

    notes = [claim.note for claim in judge(read_results(attack.RESULTS))]
    assert not [note for note in notes if "lack what the rule needs" in note]
