"""The list of reference runs: each can be run today, and every committed result is one of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from attnscope.runs.result import read_result
from attnscope.runs.workspace import RESULTS
from tool import load_tool

ROOT = Path(__file__).parents[1]
# Results that others replace when these are made: tutek's under Jain and Wallace's limits of
# length, and figure 5 without its translators.
REPLACED = {"tutek-imdb", "tutek-20news", "without-translation"}


TOOL = load_tool("references")
LISTED = TOOL.references()


def test_each_reference_run_has_settings_of_today_and_a_place_of_its_own():
    places = [reference.place for reference in LISTED]
    assert len(set(places)) == len(places)


def test_every_committed_result_is_a_reference_run():
    listed = {reference.place for reference in LISTED}
    found = {path.parent for pattern in RESULTS for path in (ROOT / "results").glob(pattern)}
    places = {path.relative_to(ROOT / "results") for path in found}
    decides = {path for path in places if path.parts[0] not in ("audit", "variants")}
    others = {path for path in decides if path.as_posix() not in listed}
    assert {path.name.partition("+")[0] for path in others} <= REPLACED


@pytest.fixture
def reference(tmp_path):
    """A run that is made, with its result in a folder of its own."""
    made = next(each for each in LISTED if each.state() == "made")
    target = tmp_path / made.place
    target.mkdir(parents=True)
    shutil.copyfile(ROOT / "results" / made.place / "result.json", target / "result.json")
    return made


def test_a_result_of_other_settings_or_with_bootstraps_is_old(reference, tmp_path):
    folder = tmp_path / reference.place
    assert reference.state(tmp_path) == "made"
    result = read_result(folder / "result.json")
    for changes in ({"config": result.config | {"seeds": 99}}, {"intervals": "bootstrap"}):
        result.model_copy(update=changes).write(folder)
        assert reference.state(tmp_path) == "old"
    (folder / "result.json").unlink()
    assert reference.state(tmp_path) == "missing"


def test_a_result_is_kept_with_its_figures_as_svg_and_without_those_no_longer_drawn(tmp_path):
    made, target = tmp_path / "made", tmp_path / "kept"
    for folder, name in ((made, "new.svg"), (made, "new.png"), (target, "old.svg")):
        (folder / "figures").mkdir(parents=True, exist_ok=True)
        (folder / "figures" / name).touch()
    (made / "result.json").write_text("{}")
    TOOL.keep(made, target)
    assert [path.name for path in (target / "figures").iterdir()] == ["new.svg"]
    assert (target / "result.json").read_text() == "{}"
