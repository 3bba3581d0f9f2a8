"""Counted text: numbered words, tables of one example, corpora without boundaries."""

from __future__ import annotations

import pytest

from attnscope.data import grammar
from attnscope.data.corpus import GrammarTranslation
from attnscope.theory.counted_text import CountedText

PAIRS = [
    (("ein", "Haus"), ("a", "house")),
    (("Haus",), ("house",)),
    (("ein", "ein", "Buch"), ("a", "book")),
]


def by_hand(word: str, output: str) -> float:
    return sum(x.count(word) * y.count(output) / len(x) for x, y in PAIRS)


def test_every_output_word_shares_one_count_among_the_inputs() -> None:
    text = CountedText.of(PAIRS)
    for word in ("ein", "Haus", "Buch"):
        for output in ("a", "house", "book"):
            found = text.counts[text.inputs.id(word), text.outputs.id(output)]
            assert float(found) == pytest.approx(by_hand(word, output))


def test_tables_of_an_example_are_those_of_its_words() -> None:
    inputs, outputs, tables = CountedText.of(PAIRS).example(1)
    assert (inputs, outputs) == (["Haus"], ["house"])
    assert tables["count"].tolist() == [[pytest.approx(1.5)]]
    # Haus is counted with a (1/2) and with house (3/2).
    assert tables["translation"].tolist() == [[pytest.approx(0.75)]]
    assert tables["alignment"].tolist() == [[pytest.approx(1.0)]]


def test_alignment_shares_each_output_among_the_inputs_by_trans() -> None:
    inputs, outputs, tables = CountedText.of(PAIRS).example(0)
    shape = (len(inputs), len(outputs))
    assert {table.shape for table in tables.values()} == {shape}
    translation = tables["translation"]
    shared = translation / translation.sum(0)
    assert tables["alignment"].numpy() == pytest.approx(shared.numpy())


def test_a_corpus_is_read_without_boundaries() -> None:
    text = CountedText.of_corpus(GrammarTranslation())
    pairs = grammar.translation_corpus()["train"]
    assert set(text.inputs.words) == {word for pair in pairs for word in pair.source}
    assert int(text.pairs.target_mask.sum()) == sum(len(pair.target) for pair in pairs)


def test_counts_are_the_first_counts_of_model1_and_others_are_not() -> None:
    text = CountedText.of(PAIRS)
    assert text.model1_difference() < 1e-12
    assert text._replace(counts=text.counts + 1).model1_difference() > 0.1


def test_polar_words_speak_for_a_label_or_against_it_and_frequent_ones_are_neither() -> None:
    reviews = [(("all", "good"), ("yes",)), (("bad",), ("no",))] * 3
    text = CountedText.of([*reviews, (("all", "once"), ("yes",))])
    found = {
        group: text.inputs.decode(words.tolist())
        for group, words in text.polar_words("yes", 1, least=2).items()
    }
    assert found == {"positive": ["good"], "frequent": ["all"], "negative": ["bad"]}
    assert text.shares().to_dense()[0, text.inputs.id("good")] == 0.5
