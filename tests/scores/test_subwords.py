"""Pieces merged into words, against a loop over pieces."""

from __future__ import annotations

import statistics

import pytest
import torch
from hypothesis import given, strategies as st

from attnscope.analysis.comparison import compare
from attnscope.data.batch import Example, collate
from attnscope.errors import UsageError
from attnscope.figures.heatmap import heatmap
from attnscope.scores.score import Score
from attnscope.scores.subwords import merge_words, word_groups, word_groups_of_ids
from cases import for_each

SPECIALS = ("<pad>", "<bos>", "<eos>")
PIECES = (*SPECIALS, "▁the", "▁cat", "s", "▁", "x", "▁sat", ".")
RULES = {"sum": sum, "mean": statistics.fmean, "max": max}


def score_of(shapes, name="attention", hidden=()):
    """Return a random score on examples of these numbers of input and output pieces."""
    batch = collate([Example(n, [3] * i, [0] * o, [3] * o) for n, (i, o) in enumerate(shapes)])
    stream = torch.Generator().manual_seed(0)
    mask = batch.input_mask.clone()
    for row, place in hidden:
        mask[row, place] = False
    values = torch.randn(
        *batch.targets.shape, batch.inputs.shape[1], dtype=torch.float64, generator=stream
    )
    real = batch.target_mask[:, :, None] & mask[:, None]
    return Score(name, values.masked_fill(~real, 0.0), mask, batch)


def padded(rows):
    width = max(map(len, rows))
    # Whatever stands at padding must play no part: 0 is a word's number.
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])


def merged_by_hand(score, inputs, outputs, reduce):
    found = []
    for row, (inp, out) in enumerate(zip(inputs, outputs, strict=True)):
        table = []
        for word in range(max(out) + 1):
            lines = [t for t, group in enumerate(out) if group == word]
            cells = [
                [p for p, group in enumerate(inp) if group == w and score.input_mask[row, p]]
                for w in range(max(inp) + 1)
            ]
            table.append(
                [
                    statistics.fmean(
                        reduce([score.values[row, t, p].item() for p in c]) for t in lines
                    )
                    if c
                    else 0.0
                    for c in cells
                ]
            )
        found.append(table)
    return found


@st.composite
def groupings(draw):
    """Return piece-to-word numbers: words of 1 to 3 pieces, specials in between."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    row = []
    for word, size in enumerate(sizes):
        row += [-1] * draw(st.integers(0, 1)) + [word] * size
    return row + [-1] * draw(st.integers(0, 1))


@for_each("rule", RULES)
@given(st.lists(st.tuples(groupings(), groupings()), min_size=1, max_size=4), st.integers(0, 3))
def test_a_merged_score_is_that_of_a_loop_over_pieces(rule, groups, hidden):
    inputs, outputs = (list(side) for side in zip(*groups, strict=True))
    outside = [(0, min(hidden, len(inputs[0]) - 1))]
    score = score_of([(len(i), len(o)) for i, o in groups], hidden=outside)
    merged = merge_words(score, padded(inputs), padded(outputs), rule)
    for row, table in enumerate(merged_by_hand(score, inputs, outputs, RULES[rule])):
        words_out, words_in = len(table), len(table[0])
        assert merged.batch.target_lengths[row] == words_out
        assert merged.batch.input_lengths[row] == words_in
        torch.testing.assert_close(
            merged.values[row, :words_out, :words_in], torch.tensor(table, dtype=torch.float64)
        )
    assert not merged.values[~merged.mask].any()
    assert merged.batch.ids.equal(score.batch.ids)


def test_attention_on_words_is_a_distribution_where_every_piece_belongs_to_one():
    score = score_of([(5, 3), (2, 2)])
    weights = score.values.masked_fill(~score.mask, float("-inf")).softmax(-1).nan_to_num()
    alpha = Score("attention", weights, score.input_mask, score.batch)
    merged = merge_words(alpha, padded([[0, 0, 1, 2, 2], [0, 0]]), padded([[0, 1, 1], [0, 1]]))
    torch.testing.assert_close(
        merged.values.sum(-1)[merged.target_mask], torch.ones(4, dtype=torch.float64)
    )


@for_each(
    ("name", "rule"),
    [("attention", "sum"), ("saliency", "sum"), ("logistic", "sum"), ("lexical_probe", "max")],
)
def test_a_score_has_a_rule_of_its_own_unless_one_is_named(name, rule):
    score, groups = score_of([(4, 1)], name), (padded([[0, 0, 1, 1]]), padded([[0]]))
    default, named = merge_words(score, *groups), merge_words(score, *groups, rule)
    assert default.name == name
    assert default.values.equal(named.values)
    assert not default.values.equal(merge_words(score, *groups, "mean").values)


def test_a_word_that_the_score_does_not_speak_of_is_outside_its_mask():
    score = score_of([(4, 1)], hidden=[(0, 0), (0, 1)])
    merged = merge_words(score, padded([[0, 0, 1, 1]]), padded([[0]]))
    assert merged.input_mask.tolist() == [[False, True]]


def test_merged_scores_can_be_compared_and_drawn():
    groups = padded([[0, 0, 1, 2], [0, 1, -1, -1]]), padded([[0, 1, 1], [0, 0, 0]])
    one = merge_words(score_of([(4, 3), (3, 2)]), *groups)
    other = merge_words(score_of([(4, 3), (3, 2)], "lexical_probe"), *groups)
    assert compare(one, one).value == 1.0
    assert compare(one, other).n == 2
    assert one.words(0) == (["0", "1", "2"], ["0", "1"])
    assert heatmap(one).svg.count("<title>") == 6  # a cell each


def test_words_begin_at_sentencepieces_mark():
    pieces = ["<bos>", "▁the", "▁cat", "s", "▁", "x", "<eos>"]
    assert word_groups(pieces, SPECIALS) == [-1, 0, 1, 1, 2, 2, -1]
    assert word_groups(["un", "seen", "▁cat"]) == [0, 0, 1]
    assert word_groups([]) == []


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=8), min_size=1, max_size=4))
def test_groups_of_a_batch_are_those_of_its_sentences(rows):
    batch = collate([Example(n, row, [0], [0]) for n, row in enumerate(rows)], pad=4)
    groups = word_groups_of_ids(batch.inputs, batch.input_lengths, PIECES, SPECIALS)
    for row, found in zip(rows, groups.tolist(), strict=True):
        assert found[: len(row)] == word_groups([PIECES[i] for i in row], SPECIALS)
        assert set(found[len(row) :]) <= {-1}


@for_each(
    ("inputs", "outputs", "message"),
    [
        ([[0, 2, 2]], [[0]], "^input_groups must number .* without gaps"),
        ([[0, 1, 1]], [[1]], "^output_groups must number .* without gaps"),
        ([[-2, 0, 1]], [[0]], "^input_groups must number"),
        ([[0, 1]], [[0]], r"^input_groups is \[1, 2\]: the score has \[1, 3\] pieces\.$"),
    ],
)
def test_groups_that_do_not_fit_are_one_sentence(inputs, outputs, message):
    with pytest.raises(UsageError, match=message):
        merge_words(score_of([(3, 1)]), torch.tensor(inputs), torch.tensor(outputs))
