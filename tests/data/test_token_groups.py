"""Groups of words by label: the paper's rule, and for several labels the one nearest to it."""

from __future__ import annotations

import os
import re

import pytest
import torch
from hypothesis import given, strategies as st

from attnscope.data.batch import Example
from attnscope.data.corpus import GrammarSentiment, GrammarTranslation
from attnscope.data.known import definition, locate
from attnscope.data.text import open_text
from attnscope.data.token_groups import (
    Grouped,
    GroupRule,
    association,
    corpus_counts,
    label_counts,
    nearest_rule,
)
from attnscope.errors import UsageError

LABELS = ("negative", "positive")
needs_data = pytest.mark.skipif(
    not os.environ.get("ATTNSCOPE_DATA"), reason="needs ATTNSCOPE_DATA: real corpora"
)
rows = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=30)


def table(*cells: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor(cells)


def named(counts: torch.Tensor) -> dict[str, list[int]]:
    return {name: ids.tolist() for name, ids in GroupRule().groups(counts, LABELS).items()}


def test_every_occurrence_counts_under_its_texts_label():
    texts = [([0, 2, 2], 1), ([0], 0), ([2, 1], 1)]
    examples = [Example(n, words, [0], [label]) for n, (words, label) in enumerate(texts)]
    assert label_counts(examples, 4, 2).tolist() == [[1, 1], [0, 1], [0, 3], [0, 0]]


@given(rows)
def test_with_two_labels_the_rule_is_the_papers(cells):
    found = named(table(*cells))
    for word, (negative, positive) in enumerate(cells):
        total = negative + positive
        gamma = (positive - negative) / total if total else float("nan")
        assert (word in found["positive"]) == (gamma > 0.5 and positive > 5)
        assert (word in found["negative"]) == (gamma < -0.5 and negative > 5)
        even = abs(gamma) < 0.1 and abs(positive - negative) < 5
        assert (word in found["neutral"]) == even


def test_words_of_one_label_alone_are_included_and_bounds_are_exclusive():
    found = named(
        table((0, 6), (0, 5), (2, 6), (7, 0), (6, 2), (50, 54), (50, 55), (9, 11), (1, 1))
    )
    # (2, 6) has γ = ½ exactly and (9, 11) γ = .1; (0, 5) is too rare.
    assert found == {"negative": [3], "positive": [0], "neutral": [5, 8]}


def test_a_word_that_never_occurs_is_in_no_group():
    assert named(table((0, 0))) == {"negative": [], "positive": [], "neutral": []}
    assert association(table((0, 0))).isnan().all()


def test_with_three_labels_each_is_set_against_the_others():
    counts = table((30, 0, 0), (8, 1, 1), (10, 10, 11), (6, 6, 0))
    torch.testing.assert_close(association(counts)[1], torch.tensor([0.6, -0.8, -0.8]))
    found = GroupRule().groups(counts, ("motor", "med", "guns"))
    assert found["motor"].tolist() == [0, 1]
    assert found["med"].tolist() == found["guns"].tolist() == []
    assert found["neutral"].tolist() == [2]


def test_a_label_called_neutral_keeps_a_group_of_its_own():
    found = GroupRule().groups(table((9, 0, 0)), ("neutral", "bad", "good"))
    assert list(found) == ["neutral (label)", "bad", "good", "neutral"]
    assert found["neutral (label)"].tolist() == [0]


def test_groups_of_two_labels_are_negative_and_positive_and_of_three_their_own():
    two = Grouped.of(GroupRule(), table((9, 0), (0, 9), (9, 9)), ("no", "yes"))
    assert (two.polar, two.binary) == (("negative", "positive"), True)
    assert {name: ids.tolist() for name, ids in two.members.items()} == {
        "negative": [0],
        "positive": [1],
        "neutral": [2],
    }
    three = Grouped.of(GroupRule(), table((9, 0, 0), (0, 9, 0), (0, 0, 9)), ("a", "b", "c"))
    assert (three.polar, three.binary) == (("a", "b", "c"), False)


def test_a_corpus_is_counted_without_its_special_words():
    source = GrammarSentiment()
    counts = corpus_counts(source)
    words = sum(len(example.inputs) - 1 for example in source.training_examples)
    assert counts.sum().item() == words  # <eos> ends every text.
    assert counts[source.input_words.id("<eos>")].tolist() == [0, 0]


def test_a_corpus_without_labels_is_told():
    with pytest.raises(UsageError, match="grammar-translation has no labels"):
        corpus_counts(GrammarTranslation())


def test_the_nearest_rule_finds_the_thresholds_that_made_the_groups():
    stream = torch.Generator().manual_seed(0)
    counts = torch.randint(0, 60, (3000, 3), generator=stream)
    made = GroupRule(polar=0.37, minimum=12, neutral=0.23)
    sizes = made.members(counts).sum(0).tolist()
    found = nearest_rule(counts, sizes, minimum=range(20))
    assert found.sizes == tuple(sizes)
    assert found.rule.members(counts).equal(made.members(counts))


def test_the_nearest_rule_needs_a_size_for_every_group():
    with pytest.raises(UsageError, match=r"^nearest_rule needs 3 sizes, .* there are 2\.$"):
        nearest_rule(table((1, 2)), (3, 4))


@needs_data
def test_on_sst_the_groups_are_as_large_as_the_papers():
    """412 / 265 / 1384 with the authors' tokens: every character that is no word's is a blank."""
    texts = locate(definition("sst")).labelled("train")
    words: dict[str, int] = {}
    examples = [
        Example(
            n,
            [words.setdefault(w, len(words)) for w in re.sub(r"\W", " ", t.text.lower()).split()],
            [0],
            [t.label],
        )
        for n, t in enumerate(texts)
    ]
    found = GroupRule().groups(label_counts(examples, len(words), 2), LABELS)
    assert {name: len(ids) for name, ids in found.items()} == {
        "positive": 412,
        "negative": 265,
        "neutral": 1384,
    }


@needs_data
def test_on_sst_the_packages_words_give_the_same_polar_groups():
    source = open_text("sst", classification={"min_count": 1})
    found = GroupRule().groups(corpus_counts(source), source.output_words.words)
    # Words keep an inner apostrophe here, which leaves "o" and "t" rarer, and so neutral.
    sizes = {name: len(ids) for name, ids in found.items()}
    assert sizes == {"positive": 412, "negative": 265, "neutral": 1386}
