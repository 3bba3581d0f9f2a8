"""Explanations: one source for every name that attnscope prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnscope.claims.symbols import in_words
from attnscope.errors import UsageError
from attnscope.recipes import entries
from attnscope.recipes.recipe import module_of
from attnscope.recipes.registry import measures_of, paper_measures
from attnscope.report.explain import explain, explanations, glossary_page
from attnscope.runs.measures import arguments_of
from cases import for_each

DOCS = Path(__file__).parents[2] / "docs"


@for_each(
    ("name", "part"),
    [
        ("A(alpha,beta_uf)", "attention is among the top 5 % of the probe"),
        ("A(α, βᵘᶠ)", "attention is among the top 5 % of the probe"),
        ("ξ(α, β)", "begins to agree better than attention and the lexical probe"),
        ("beta_uf", "trained under uniform attention"),
        ("lexical_probe", "looked at this one input word"),
        ("JSD", "how far apart two attentions are"),
        ("snell.uniform-probe", "on every corpus"),
        ("snell/table5", "agree on real text"),
    ],
)
def test_names_symbols_scores_claims_and_recipes_are_explained(name, part):
    assert part in " ".join(each.text for each in explain(name))


def test_an_unknown_name_shows_near_ones():
    with pytest.raises(UsageError, match=r"Nothing is called 'lexical prob'; .*lexical probe"):
        explain("lexical prob")


def test_every_headline_name_is_explained_under_its_own_name():
    explained = {each.name for each in explanations() if each.text.endswith(".")}
    for entry in entries():
        assert {arguments_of(name)[0] for name in module_of(entry).HEADLINE} <= explained


def test_every_declared_measure_has_an_explanation():
    explained = {(each.of, each.name) for each in explanations() if each.text}
    for paper in ("snell", "sunlu", "tutek", "aitken"):
        assert {(f"{paper}: measures", name) for name in paper_measures(paper)} <= explained


@for_each("entry", entries(), ids=lambda entry: entry.name)
def test_headline_names_begin_with_words_and_not_with_a_symbol(entry):
    measures = measures_of(entry.name, module_of(entry))
    for name in module_of(entry).HEADLINE:
        first = in_words(name, measures).split()[0].strip(",")
        assert first.isascii(), name
        assert "(" not in first, name


def test_agreements_are_named_in_words_with_their_symbol():
    words = in_words("A(alpha,beta_uf)", paper_measures("snell"))
    assert words == "attention and uniform probe, A(α, βᵘᶠ)"


def test_the_page_of_the_docs_is_made_from_the_same_source():
    assert (DOCS / "glossary.md").read_text(encoding="utf-8") == glossary_page()
