import json

import pytest

from attnscope.errors import WorkspaceError
from attnscope.report.folders import find_contents


def test_a_workspace_has_results_and_units(trained):
    found = find_contents([trained])
    assert [each.result.recipe for each in found.results] == ["snell/fig3"]
    assert len(found.units) == 5
    assert found.notices == []


def test_a_missing_folder_is_one_sentence(tmp_path):
    with pytest.raises(WorkspaceError, match=r"no folder .*nowhere; name a workspace"):
        find_contents([tmp_path / "nowhere"])


def test_an_empty_folder_is_a_notice(tmp_path):
    assert find_contents([tmp_path]).notices == [
        f"There is no result and no unit in {tmp_path} yet."
    ]


def test_a_damaged_result_is_named_and_the_others_stay(workspace):
    broken = workspace / "snell" / "fig6"
    broken.mkdir()
    (broken / "result.json").write_text("{")
    found = find_contents([workspace])
    assert len(found.results) == 1
    assert any("fig6" in notice for notice in found.notices)


def test_a_link_out_of_the_folder_is_not_followed(workspace, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "result.json").write_text((workspace / "snell/fig3/result.json").read_text())
    (workspace / "snell" / "linked").symlink_to(outside)
    (workspace / "units" / "linked").symlink_to(next((workspace / "units").iterdir()))
    found = find_contents([workspace])
    assert len(found.results) == 1
    assert sum("is outside" in notice for notice in found.notices) == 1


def test_a_folder_of_one_result_brings_the_units_that_it_lists(workspace):
    path = workspace / "snell/fig3/result.json"
    name = next((workspace / "units").iterdir()).name
    path.write_text(json.dumps(json.loads(path.read_text()) | {"units": [name]}))
    assert [unit.name for unit in find_contents([workspace / "snell" / "fig3"]).units] == [name]


def test_a_listed_unit_cannot_name_a_place_elsewhere(workspace):
    path = workspace / "snell/fig3/result.json"
    secret = workspace / "secret"
    secret.mkdir()
    (secret / "config.json").write_text("{}")
    units = ["../secret", "/etc", str(secret)]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"units": units}))
    assert find_contents([workspace / "snell" / "fig3"]).units == []


def test_a_folder_of_one_unit_is_enough(trained):
    unit = next((trained / "units").iterdir())
    assert find_contents([unit]).units == [unit]


def test_a_result_of_the_old_schema_is_shown_with_a_notice(workspace):
    path = workspace / "snell/fig3/result.json"
    path.write_text(path.read_text().replace('"schema":2', '"schema":1'))
    found = find_contents([workspace])
    assert len(found.results) == 1
    assert [notice for notice in found.notices if "old schema 1" in notice]


def test_a_report_of_a_folder_without_results_is_one_sentence(tmp_path):
    from attnscope import write_report

    with pytest.raises(WorkspaceError, match="There is no result and no unit in"):
        write_report(tmp_path, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
