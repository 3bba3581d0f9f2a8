from attnscope.analysis.alignment_terms import TERMS
from attnscope.claims.symbols import (
    SCORES,
    in_figures,
    in_letters,
    measure_words,
    product_in_figures,
    score_in_figures,
    score_symbol,
)
from attnscope.figures import palette
from attnscope.recipes import entries
from attnscope.recipes.recipe import module_of
from attnscope.recipes.registry import paper_measures
from attnscope.report.overview import known_measures
from attnscope.runs.measures import Measure, measure_of
from attnscope.scores.score import ScoreRule
from cases import for_each


def test_an_agreement_is_written_with_its_letters_and_explained():
    label, meaning = measure_words("A(alpha,beta_uf)", paper_measures("snell"))
    assert label == "A(α, βᵘᶠ)"
    assert "highest position of attention" in meaning
    assert "uniform attention" in meaning


def test_figures_name_things_in_words_with_the_symbol_and_without_superscripts():
    measures = paper_measures("snell")
    label = "attention and uniform probe, A(α, β uniform)"
    assert in_figures("A(alpha,beta_uf)", measures) == label
    assert score_in_figures("alpha_opt") == "optimal attention, α*"
    assert product_in_figures("muD.muE") == "time·time, μ·μ"
    both = "time·word + time·rest, μ·χ + μ·Δh"
    assert product_in_figures("muD.chiE+muD.deltahE") == both
    assert product_in_figures("the other six") == "the other six"


def test_a_name_that_nobody_explained_is_shown_as_it_is():
    assert measure_words("frob_nication", {}) == ("frob nication", "")
    assert score_symbol("frob_nication") == ("frob nication", "")


def test_terms_of_the_logit_say_what_they_multiply():
    label, meaning = score_symbol("term_temporal_word")
    assert label == "temporal · word"
    assert "time step" in meaning


@for_each("name", [*SCORES, *ScoreRule.variants, *(f"term_{'_'.join(term)}" for term in TERMS)])
def test_every_score_is_explained_and_has_a_colour_of_its_own(name):
    assert score_symbol(name)[1]
    assert palette.NEUTRAL not in palette.score_colours(name)


@for_each(
    ("text", "told"),
    [
        ("A(alpha,beta_px): 3", "A(α, βᵖˣ): 3"),
        ("xi(alpha,beta) and f(x)", "ξ(α, β) and f(x)"),
        ("A(gold, beta_px) in", "A(gold, βᵖˣ) in"),
        ("A(β^uf, β^log)", "A(βᵘᶠ, βˡᵒᵍ)"),
        ("muD.chiE+muD.deltahE: 3", "μ·χ+μ·Δh: 3"),
        ("alpha_opt: [0, 0.5], A_random: 7, xi* 3", "α*: [0, 0.5], Â: 7, ξ* 3"),
        (
            "multi30k-de-en: -13.4 (-14.9 to -.5); 1e-05",
            "multi30k-de-en: −13.4 (−14.9 to −.5); 1e-05",
        ),
    ],
)
def test_sentences_have_letters_for_names(text, told):
    assert in_letters(text) == told


def test_a_name_has_the_label_that_its_table_gives():
    assert measure_words("xi_star", {"xi_star": Measure("Best.", label="ξ*")}) == ("ξ*", "Best.")


@for_each("entry", entries(), ids=lambda entry: entry.name)
def test_every_measurement_that_a_recipe_puts_first_is_explained(entry):
    measures = known_measures(entry.name)
    names = module_of(entry).HEADLINE
    assert [name for name in names if not measure_words(name, measures)[1]] == []


@for_each("paper", ["snell", "sunlu", "tutek", "aitken"])
def test_every_declared_name_is_explained_in_a_sentence(paper):
    measures = paper_measures(paper)
    assert [name for name, each in measures.items() if not each.says.endswith(".")] == []
    for name, each in measures.items():
        if each.of:
            assert measure_of(measures, name.replace("()", f"({each.of[0]})")) is each
