"""Which examples a recipe names: those whose attention moved, right and wrong ones by turns."""

import numpy as np
import pytest
import torch

from attnscope.data.batch import Example, collate
from attnscope.recipes import entries
from attnscope.recipes.recipe import module_of
from attnscope.recipes.showing import Stored, movement, right_and_wrong
from attnscope.scores.score import Score


def stored(moved, lengths=None, right=None, outputs=1):
    """Return examples of which a share of attention has moved from the first word to the last."""
    lengths = lengths or [5] * len(moved)
    batch = collate(
        [
            Example(100 + row, [3] * length, [1] * outputs, [1] * outputs)
            for row, length in enumerate(lengths)
        ]
    )
    before = torch.zeros(len(moved), outputs, max(lengths))
    before[:, :, 0] = 1
    after = before.clone()
    for row, (share, length) in enumerate(zip(moved, lengths, strict=True)):
        after[row, :, 0], after[row, :, length - 1] = 1 - share, share
    scores = (Score("attention", values, batch.input_mask, batch) for values in (before, after))
    return Stored(*scores, None if right is None else np.array(right, dtype=float))


def ids(named):
    return [each.id for each in named]


def test_movement_is_the_share_of_attention_that_went_elsewhere():
    given = stored([0.25, 1.0, 0.0], outputs=3)
    np.testing.assert_allclose(movement(given.before, given.after), [0.25, 1.0, 0.0])


def test_those_whose_attention_moved_most_come_first_and_no_more_than_asked():
    named = right_and_wrong(stored([0.1, 0.9, 0.5, 0.7]), 3)
    assert ids(named) == [101, 103, 102]
    assert named[0].why == "Attention moved by 90 % in training."


def test_right_and_wrong_answers_take_turns():
    named = right_and_wrong(stored([0.9, 0.8, 0.7, 0.2], right=[1, 1, 1, 0]), 3)
    assert ids(named) == [100, 103, 101]
    assert [each.why.partition("; ")[2] for each in named[:2]] == [
        "the answer is right.",
        "the answer is wrong.",
    ]


def test_of_translations_the_better_half_takes_turns_with_the_worse():
    named = right_and_wrong(stored([0.9, 0.8, 0.7, 0.6], right=[0.5, 0.75, 0, 0.25], outputs=4), 4)
    assert ids(named) == [100, 102, 101, 103]
    assert named[0].why.endswith("2 of 4 output words are wrong.")


@pytest.mark.parametrize("right", [None, [0, 0, 0, 0], [1, 1, 1, 1]])
def test_where_all_answers_are_alike_movement_alone_decides(right):
    assert ids(right_and_wrong(stored([0.1, 0.9, 0.5, 0.7], right=right), 3)) == [101, 103, 102]


def test_readable_lengths_are_preferred_while_there_are_enough():
    given = stored([0.9, 0.5, 0.4, 0.3], lengths=[200, 6, 7, 8])
    assert ids(right_and_wrong(given, 3)) == [101, 102, 103]
    assert ids(right_and_wrong(given, 4)) == [100, 101, 102, 103]


def test_equals_keep_the_order_in_which_they_are_stored():
    assert ids(right_and_wrong(stored([0.5] * 6), 4)) == [100, 101, 102, 103]


@pytest.mark.parametrize("name", ["snell/table5", "snell/table10", "snell/table11", "aitken/fig4"])
def test_recipes_that_keep_attention_on_text_name_examples(name):
    (entry,) = (each for each in entries() if each.name == name)
    assert callable(module_of(entry).EXAMPLES)
