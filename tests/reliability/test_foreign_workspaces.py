"""A workspace of somebody else is data: nothing outside it is read, written or imported."""

from __future__ import annotations

import json
import shutil

import pytest

from attnscope.errors import AttnscopeError, UsageError, WorkspaceError
from attnscope.report.folders import find_contents
from attnscope.report.page import request_of
from attnscope.report.payload import payload
from attnscope.running.run import draw, run
from attnscope.runs.result import Measurement, Result
from attnscope.runs.workspace import read_results
from attnscope.training.trained_unit import TrainedUnit, demo_folder

SECRET = "correcthorsebatterystaple"


def result(recipe="snell/fig3", **more):
    row = Measurement(name="accuracy", dataset="d", value=0.5, n=1)
    settings = {"scale": "full", "config": {}, "environment": {}, "seconds": 1.0}
    return Result(recipe=recipe, measurements=(row,), **settings | more)


@pytest.fixture
def private(tmp_path):
    """A corpus of the reader's own, which nobody else is to see."""
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "meta.json").write_text(json.dumps({"labels": ["no", "yes"]}))
    for split in ("train", "val"):
        rows = [{"id": f"{n}", "label": n % 2, "text": f"{SECRET} {SECRET} x"} for n in range(6)]
        (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.fixture
def unit(tmp_path):
    """The demo's unit in a workspace, as somebody may have altered it."""
    folder = tmp_path / "runs" / "units" / "foreign"
    shutil.copytree(demo_folder(), folder)
    (folder / "done.json").unlink()
    return folder


def test_unit_that_names_a_private_folder_shows_none_of_its_words(unit, private):
    config = json.loads((unit / "config.json").read_text())
    config["source"] = {"kind": "labelled-text", "corpus": str(private), "min_count": 1}
    (unit / "config.json").write_text(json.dumps(config))
    with pytest.raises(UsageError, match="without the digest of its text"):
        TrainedUnit.read(unit)
    shown = payload(request_of(unit.parents[1]))
    assert shown["scenes"] == []
    assert any("without the digest" in notice for notice in shown["notices"])
    assert SECRET not in json.dumps(shown)


@pytest.mark.parametrize("name", ["a/b/c/d/e/f", "../../x/y", "/etc/x", "snell/fig3/../../.."])
def test_recipe_with_more_slashes_takes_no_units_from_further_up(tmp_path, name):
    shutil.copytree(demo_folder(), tmp_path / "units" / "demo")
    place = tmp_path / "deep" / "runs" / "snell" / "fig3"
    result(recipe=name, units=("demo",)).write(place)
    assert find_contents([place]).units == []
    with pytest.raises(AttnscopeError):
        draw(place)


def test_unit_listed_with_a_path_is_not_read(tmp_path):
    shutil.copytree(demo_folder(), tmp_path / "elsewhere")
    place = tmp_path / "runs" / "snell" / "fig3"
    result(units=("../../elsewhere", str(tmp_path / "elsewhere"))).write(place)
    assert find_contents([place]).units == []
    with pytest.raises(WorkspaceError, match="outside"):
        draw(place)


def test_recipe_of_a_result_is_never_imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    place = tmp_path / "runs" / "evil.py"
    result(recipe="evil.py").write(place)
    with pytest.raises(UsageError, match=r"No recipe 'evil\.py'"):
        draw(place)


@pytest.mark.parametrize("where", ["snell", "snell/fig3/own", "snell/fig3/own/figures", "units"])
def test_run_writes_through_no_link(tmp_path, fig3, where):
    victim = tmp_path / "victim"
    (victim / "fig3").mkdir(parents=True)
    (victim / "result.json").write_text("precious")
    place = tmp_path / "runs" / where
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(victim)
    before = sorted(victim.rglob("*"))
    with pytest.raises(AttnscopeError, match="is a link to"):
        run("snell/fig3", fig3, device="cpu", jobs=1, out=tmp_path / "runs", name="own")
    assert sorted(victim.rglob("*")) == before
    assert (victim / "result.json").read_text() == "precious"


def test_results_behind_links_are_not_judged(tmp_path):
    result().write(tmp_path / "outside" / "snell" / "fig3")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "snell").symlink_to(tmp_path / "outside" / "snell")
    with pytest.raises(WorkspaceError, match="leads out of"):
        read_results(tmp_path / "runs")
