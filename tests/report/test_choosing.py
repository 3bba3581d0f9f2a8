"""Who decides which examples are shown: the user, then the recipe, then the order of the files."""

import pytest

from attnscope.recipes.showing import Named
from attnscope.recipes.snell import fig3
from attnscope.report.page import request_of
from attnscope.report.payload import payload
from attnscope.training.trained_unit import TrainedUnit


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
    units = ", ".join(f'"{name}"' for name in listed)
    path.write_text(path.read_text().replace('"units": []', f'"units": [{units}]'))
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
