"""Corpora of recipes: no example that chose is measured."""

from __future__ import annotations

import pytest

from attnscope.data.corpus import GrammarSentiment
from attnscope.data.reading import left_out, parts
from attnscope.errors import UsageError
from attnscope.recipes.kit.corpora import (
    NOTHING_LEFT_OUT,
    held_out,
    left_out_rows,
    open_labelled,
    printed_name,
)
from attnscope.recipes.kit.sheet import Sheet


def test_without_a_test_part_the_validation_examples_that_chose_are_not_measured():
    source = GrammarSentiment()
    chose = set(source.evaluation_batch(50).ids.tolist())
    measured = held_out(source, 50)
    ids = {example.id for example in measured.examples}
    assert measured.split == "val"
    assert not ids & chose
    assert len(ids) + len(chose) == len(source.validation_examples)
    assert measured.batch.ids.tolist() == [example.id for example in measured.examples]


def test_nothing_chosen_leaves_the_whole_validation_part():
    source = GrammarSentiment()
    assert list(held_out(source).examples) == list(source.validation_examples)


def test_a_corpus_whose_every_example_chose_is_refused():
    source = GrammarSentiment()
    with pytest.raises(UsageError, match="at least two are needed"):
        held_out(source, len(source.validation_examples))


def test_translations_are_refused_where_labels_are_needed():
    with pytest.raises(UsageError, match="sunlu is about classification; grammar-translation"):
        open_labelled("grammar-translation", "sunlu")


def test_a_generated_corpus_has_two_parts_no_printed_name_and_nothing_left_out():
    source = GrammarSentiment()
    assert list(parts(source)) == ["train", "val"]
    assert printed_name(source, "sunlu") is None
    assert left_out(source) == {}


def test_reasons_become_rows_of_their_split():
    rows = left_out_rows(Sheet("x"), {"val: too long": 3} | NOTHING_LEFT_OUT, 10)
    assert [(row.split, row.axes["reason"], row.value, row.n) for row in rows] == [
        ("val", "too long", 3, 10),
        ("train", "anything", 0, 10),
    ]
