"""The catalogue is complete and its entries are well formed."""

from __future__ import annotations

from attnscope.claims.catalogue import catalogue
from attnscope.claims.papers import PAPERS


def test_every_claim_of_every_paper_is_there_once():
    assert {entry.paper for entry in catalogue()} == set(PAPERS)
    assert len({entry.id for entry in catalogue()}) == len(catalogue())


def test_every_entry_says_what_is_claimed_where_and_what_decides_it():
    for entry in catalogue():
        assert entry.id.startswith(f"{entry.paper}.")
        assert entry.where
        assert entry.statement
        assert entry.decided_by
        assert entry.paper in PAPERS


def test_every_entry_names_recipes_of_its_own_paper():
    for entry in catalogue():
        assert entry.recipes
        for recipe in entry.recipes:
            assert recipe.startswith(f"{entry.paper}/")
            assert not set(recipe) & set(" ;,")


def test_options_and_absolute_bars_survive_the_file_format():
    entries = {entry.id: entry for entry in catalogue()}
    assert entries["snell.kendall"].options == ("agreement=kendall",)
    assert entries["snell.uniform-probe"].options == ()
    assert entries["aitken.delta-small"].recipes == ("aitken/fig2", "aitken/fig3")
    assert entries["sunlu.lambda-terms"].decided_by.startswith("|A|/(|B|+|C|) falls")
