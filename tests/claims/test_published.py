"""The printed numbers: all there, found by what they are, never guessed."""

from __future__ import annotations

import math

import pytest

from attnscope.claims.papers import PAPERS
from attnscope.claims.published import published, published_value
from attnscope.errors import UsageError


def test_every_printed_number_is_there():
    assert [len(published(paper)) for paper in PAPERS] == [760, 170, 389, 32]


def test_every_number_is_found_by_what_identifies_it():
    for paper in PAPERS:
        for row in published(paper):
            found = published_value(
                paper, row.table, row.dataset, row.metric, split=row.split, **dict(row.variant)
            )
            assert found == row.value
            assert math.isfinite(row.value)


def test_a_number_of_each_paper_is_the_printed_one():
    assert published_value("snell", "table5", "SST", "A(alpha,beta_uf)") == 19.85
    assert published_value("snell", "table2", "IMDB", "A(beta_uf,beta_px)") == 82
    assert (
        published_value("sunlu", "table2", "SST", "accuracy", model="DP", **{"lambda": 10}) == 82.2
    )
    drop = published_value(
        "tutek", "table1", "SST", "f1_drop_permuted", attention="additive", model="base"
    )
    assert drop == -5.0
    assert published_value("aitken", "fig2", "one-to-one", "vocab_size") == 3


def test_what_was_not_printed_is_none():
    assert published_value("snell", "table5", "SST", "A(gold,beta_px)") is None
    assert published_value("tutek", "table1", "SST", "f1_trained", model="transformer") is None


def test_an_ambiguous_question_names_what_would_settle_it():
    with pytest.raises(UsageError, match="attention, model"):
        published_value("tutek", "table1", "SST", "f1_trained")
    with pytest.raises(UsageError, match="split"):
        published_value("snell", "table9", "IMDB", "median_length")


def test_an_unknown_paper_is_one_sentence_with_the_near_name():
    with pytest.raises(UsageError, match="did you mean 'snell'"):
        published("snel")
