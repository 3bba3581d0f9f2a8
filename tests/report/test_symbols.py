import pytest

from attnscope.recipes import entries
from attnscope.recipes.recipe import module_of
from attnscope.report.symbols import in_letters, measure_symbol, score_symbol


def test_an_agreement_is_written_with_its_letters_and_explained():
    label, meaning = measure_symbol("A(alpha,beta_uf)")
    assert label == "A(α, βᵘᶠ)"
    assert "highest position of attention" in meaning
    assert "uniform attention" in meaning


def test_a_name_that_nobody_explained_is_shown_as_it_is():
    assert measure_symbol("frob_nication") == ("frob nication", "")
    assert score_symbol("frob_nication") == ("frob nication", "")


def test_terms_of_the_logit_say_what_they_multiply():
    label, meaning = score_symbol("term_temporal_word")
    assert label == "temporal · word"
    assert "time step" in meaning


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("A(alpha,beta_px): 3", "A(α, βᵖˣ): 3"),
        ("xi(alpha,beta) and f(x)", "ξ(α, β) and f(x)"),
        ("A(gold, beta_px) in", "A(gold, βᵖˣ) in"),
        ("A(β^uf, β^log)", "A(βᵘᶠ, βˡᵒᵍ)"),
    ],
)
def test_sentences_have_letters_for_names(text, told):
    assert in_letters(text) == told


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_every_measurement_that_a_recipe_puts_first_is_explained(entry):
    assert [name for name in module_of(entry).HEADLINE if not measure_symbol(name)[1]] == []
