"""Who decides which examples are shown: the user, then the recipe, then the order of the files."""

import json

import numpy as np
import pytest
import torch

from attnscope.data.batch import Example, collate
from attnscope.recipes import entries
from attnscope.recipes.recipe import module_of
from attnscope.recipes.snell import fig3
from attnscope.report.examples import CHOICES, Named, moved_most, movement
from attnscope.report.page import request_of
from attnscope.report.payload import payload
from attnscope.report.stored_scores import StoredAttention
from attnscope.scores.score import Score
from attnscope.training.trained_unit import TrainedUnit
from cases import for_each


@pytest.fixture
def named(workspace, monkeypatch):
    """Return what a recipe was given, and let it name the last examples but one, backwards."""
    seen = []

    def choice(stored, count):
        seen.append((stored, count))
        ids = stored.after.batch.ids.tolist()
        return [Named(key, f"because of {key}") for key in ids[-2::-1]]

    path = workspace / "snell" / "fig3" / "result.json"
    listed = [each.name for each in (workspace / "units").glob("grammar-sentiment-classifier*")]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"units": listed}))
    monkeypatch.setattr(fig3, "EXAMPLES", choice, raising=False)
    return seen


def shown(workspace, title="grammar-sentiment", **wishes):
    value = payload(request_of(workspace, **wishes))
    return next(scene for scene in value["scenes"] if scene["title"] == title)


def keys(scene):
    return [int(example["key"].split()[1]) for example in scene["examples"]]


def test_a_recipe_names_the_examples_of_its_units(workspace, named):
    scene = shown(workspace)
    ((stored, count),) = named
    ids = stored.after.batch.ids.tolist()
    assert count == 6
    assert keys(scene) == ids[-2::-1][:6]  # bounded, and in the recipe's order
    assert scene["examples"][0]["why"] == f"because of {ids[-2]}"
    assert "chosen by snell/fig3" in scene["note"]


def test_a_recipe_chooses_by_the_first_and_last_attention_and_by_what_is_right(workspace, named):
    shown(workspace)
    ((stored, _),) = named
    (path,) = (workspace / "units").glob("grammar-sentiment-classifier*seed0*")
    unit = TrainedUnit.read(path)
    steps = unit.folder.score_steps
    for score, step in ((stored.before, steps[0]), (stored.after, steps[-1])):
        assert score.values.equal(unit.stored("attention", step).values)
    assert stored.right.mean() == pytest.approx(unit.log[-1]["accuracy"])


def test_without_weights_a_recipe_chooses_by_attention_alone(workspace, named):
    for path in (workspace / "units").glob("grammar-sentiment-classifier*/last.safetensors"):
        path.unlink()
    shown(workspace)
    assert named[0][0].right is None


@pytest.mark.parametrize("wish", [{"count": 2}, {"examples": [3, 1]}])
def test_the_users_wish_comes_before_the_recipes(workspace, named, wish):
    before = keys(shown(workspace, count=12))
    wishes = {"examples": [before[3], before[1]]} if "examples" in wish else wish
    scene = shown(workspace, **wishes)
    assert keys(scene) == wishes.get("examples", before[:2])
    assert "chosen by" not in scene["note"]
    assert named == []


def test_units_of_no_such_recipe_show_their_first_readable_examples(workspace, named):
    scene = shown(workspace, "grammar-translation")
    assert "chosen by" not in scene["note"]
    assert keys(scene) == sorted(keys(scene))
    assert not any("why" in example for example in scene["examples"])


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
    return StoredAttention(*scores, None if right is None else np.array(right, dtype=float))


def ids(named):
    return [each.id for each in named]


def test_movement_is_the_share_of_attention_that_went_elsewhere():
    given = stored([0.25, 1.0, 0.0], outputs=3)
    np.testing.assert_allclose(movement(given.before, given.after), [0.25, 1.0, 0.0])


def test_those_whose_attention_moved_most_come_first_and_no_more_than_asked():
    named = moved_most(stored([0.1, 0.9, 0.5, 0.7]), 3)
    assert ids(named) == [101, 103, 102]
    assert named[0].why == "Attention moved by 90 % in training."


def test_moved_most_answers_take_turns():
    named = moved_most(stored([0.9, 0.8, 0.7, 0.2], right=[1, 1, 1, 0]), 3)
    assert ids(named) == [100, 103, 101]
    assert [each.why.partition("; ")[2] for each in named[:2]] == [
        "the answer is right.",
        "the answer is wrong.",
    ]


def test_of_translations_the_better_half_takes_turns_with_the_worse():
    named = moved_most(stored([0.9, 0.8, 0.7, 0.6], right=[0.5, 0.75, 0, 0.25], outputs=4), 4)
    assert ids(named) == [100, 102, 101, 103]
    assert named[0].why.endswith("2 of 4 output words are wrong.")


@for_each("right", [None, [0, 0, 0, 0], [1, 1, 1, 1]])
def test_where_all_answers_are_alike_movement_alone_decides(right):
    assert ids(moved_most(stored([0.1, 0.9, 0.5, 0.7], right=right), 3)) == [101, 103, 102]


def test_readable_lengths_are_preferred_while_there_are_enough():
    given = stored([0.9, 0.5, 0.4, 0.3], lengths=[200, 6, 7, 8])
    assert ids(moved_most(given, 3)) == [101, 102, 103]
    assert ids(moved_most(given, 4)) == [100, 101, 102, 103]


def test_equals_keep_the_order_in_which_they_are_stored():
    assert ids(moved_most(stored([0.5] * 6), 4)) == [100, 101, 102, 103]


@for_each("name", ["snell/table5", "snell/table10", "snell/table11", "aitken/fig4"])
def test_recipes_that_keep_attention_on_text_name_examples(name):
    (entry,) = (each for each in entries() if each.name == name)
    assert module_of(entry).EXAMPLES in CHOICES
