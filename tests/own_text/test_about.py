"""Sentences about a corpus: every recipe that takes one has them, with the measured numbers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from attnscope.own_text import About, about_corpora, only_own
from attnscope.own_text.corpora import RULES
from attnscope.recipes import entries, registry
from attnscope.recipes.recipe import module_of
from attnscope.runs.result import Measurement, Result
from cases import for_each

TAKES_A_CORPUS = [
    entry.name for entry in entries() if "corpus" in module_of(entry).Config.model_fields
]


def result(recipe: str, *rows: Measurement) -> Result:
    shared: dict[str, Any] = {"environment": {}, "seconds": 1.0, "config": {}, "scale": "full"}
    return Result(recipe=recipe, measurements=rows, **shared)


def row(name: str, value: float, dataset: str = "mine", n: int = 9, **axes: Any) -> Measurement:
    ends = {"low": value - value / 10, "high": value + value / 10}
    return Measurement(name=name, dataset=dataset, axes=axes, value=value, n=n, **ends)


def test_every_recipe_that_takes_a_corpus_says_something_about_it() -> None:
    assert set(TAKES_A_CORPUS) <= RULES.keys() <= {entry.name for entry in entries()}


def test_a_recipe_of_the_users_brings_its_own_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_own", {})
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "my_counting.py").write_text(
        "from attnscope.own_text import About\n"
        "from attnscope.recipes import RecipeSettings as Config\n"
        "def measure(config, lab): return []\n"
        "def ABOUT(numbers): return About(numbers.dataset, found=(str(numbers.one('n').n),))\n"
    )
    registry.find(str(tmp_path / "my_counting.py"))
    assert about_corpora(result("own/my_counting", row("n", 1.0, n=7))) == [
        About("mine", found=("7",))
    ]
    assert about_corpora(result("own/another", row("n", 1.0))) == []


def test_single_words_that_carry_the_decision_are_a_share_in_percent() -> None:
    shares = {"base": 0.5, "tying": 0.25, "mlm": 0.4}
    rows = [row("token_share", share, model=model) for model, share in shares.items()]
    (about,) = about_corpora(result("tutek/fig2", *rows))
    assert about.found == (
        "50 % of single words alone have the base model give its answer (45 to 55); with states "
        "tied to their words 25 %, with states that also predict masked words 40 %.",
    )
    assert about.means[0].endswith("as in the paper.")


@for_each(("masked", "end"), [(0.5, "as in the paper."), (0.7, "unlike in the paper.")])
def test_the_answer_of_one_word_is_a_probability(masked: float, end: str) -> None:
    means = {"base": 0.6, "tying": 0.5, "mlm": masked}
    rows = [row("token_probability", mean, model=model) for model, mean in means.items()]
    (about,) = about_corpora(result("tutek/table3", *rows))
    assert "a probability of 0.60 on average (0.54 to 0.66)" in about.found[0]
    assert about.means[0].endswith(end)


def test_generated_tasks_next_to_a_corpus_are_not_the_users() -> None:
    counts = row("ibm_difference", 2e-15, n=1200)
    task = row("own_word_largest", 1.0, dataset="permutation-40", role="control")
    grammar = row("ibm_difference", 2e-15, dataset="grammar-sentiment")
    found = result("snell/cooccurrence", counts, task, grammar)
    (about,) = about_corpora(found)
    assert about.dataset == "mine"
    assert "of 1,200 training examples differ" in about.found[0]
    assert "They are the same" in about.means[0]
    assert not only_own(found)  # the claim about the task is decided
    assert only_own(result("snell/cooccurrence", counts))


def test_counts_that_differ_are_said_to_differ() -> None:
    (about,) = about_corpora(result("snell/cooccurrence", row("ibm_difference", 0.01)))
    assert "not the same" in about.means[0]


@pytest.fixture
def translator() -> list[Measurement]:
    shared = {"model": "aed"}
    return [
        row("token_accuracy", 0.6, reads="right words", **shared),
        row("largest_share", 0.2, form="raw", **shared),
        row("attention_similarity", 0.4, **shared),
        row("variance_drop", 0.12, **shared),
    ]


@for_each("recipe", ["aitken/fig4", "aitken/fig5"])
def test_a_translator_is_described_in_percent(recipe: str, translator: list[Measurement]) -> None:
    task = row("term_share", 0.7, dataset="escan", model="aed")
    (about,) = about_corpora(result(recipe, *translator, task))
    assert "finds 60 % of the next words" in about.found[0]
    assert "the largest has 20 % of it (18 to 22)" in about.found[1]
    assert "12 % of how a word's state varies" in about.found[-1]


def test_shares_are_cut_at_100_and_a_model_that_learned_nothing_means_nothing() -> None:
    group = {"model": "DP", "penalty": 0.0, "lambda": 10.0}
    wide = row("AUC(attention)", 0.7, **group, group="good").model_copy(
        update={"low": -0.1, "high": 1.4}
    )
    at_chance, better = row("accuracy", 50.0, penalty=0.0), row("accuracy", 90.0, penalty=0.0)
    majority = row("majority", 50.0)
    (untrained,) = about_corpora(result("sunlu/scores", wide, at_chance, majority))
    assert "good 70 % (0 to 100)" in " ".join(untrained.found)
    assert untrained.means == ("So nothing follows from which words draw its attention.",)
    (trained,) = about_corpora(result("sunlu/scores", wide, better, majority))
    assert "draw more attention" in trained.means[0]
