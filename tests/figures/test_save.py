"""Figures are written whole or not at all, and never stand in the way of numbers."""

import importlib.util
import os
import struct
import xml.etree.ElementTree as ET

import altair as alt
import pytest

from attnscope.figures.charts import heatmap
from attnscope.figures.save import figures_available, save
from cases import for_each


def figure(value=1.0):
    return heatmap(
        [[value]], columns=["a"], rows=["b"], x_title="x", y_title="y", value_title="value"
    )


def test_a_figure_is_written_as_svg_and_as_png_of_twice_the_size(tmp_path):
    svg, png = save(figure(), tmp_path / "new" / "figures", "fig")
    assert [svg, png] == [tmp_path / "new" / "figures" / name for name in ("fig.svg", "fig.png")]
    root = ET.parse(svg).getroot()
    content = png.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    assert width == pytest.approx(2 * float(root.get("width")), abs=2)
    assert height == pytest.approx(2 * float(root.get("height")), abs=2)


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    first = [path.read_bytes() for path in save(figure(), tmp_path, "one")]
    second = [path.read_bytes() for path in save(figure(), tmp_path, "two")]
    assert first == second


@for_each("survivors", [0, 1])
@for_each("reason", [KeyboardInterrupt, OSError])
def test_interrupted_saving_leaves_no_partial_file(tmp_path, monkeypatch, survivors, reason):
    old = {path.name: path.read_bytes() for path in save(figure(1.0), tmp_path, "fig")}
    new = {path.name: path.read_bytes() for path in save(figure(0.0), tmp_path / "new", "fig")}
    replace, calls = os.replace, []

    def interrupted(source, target):
        calls.append(target)
        if len(calls) > survivors:
            raise reason("interrupted")
        replace(source, target)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(Exception if reason is OSError else KeyboardInterrupt):
        save(figure(0.0), tmp_path, "fig")
    for name in old:
        assert (tmp_path / name).read_bytes() in (old[name], new[name])

    monkeypatch.undo()
    save(figure(0.0), tmp_path, "fig")
    assert {path.name for path in tmp_path.iterdir()} == {*old, "new"}
    assert {name: (tmp_path / name).read_bytes() for name in old} == new


def test_a_first_figure_that_was_interrupted_is_absent(tmp_path, monkeypatch):
    def interrupted(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(figure(), tmp_path, "fig")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("fig")]


def test_a_figure_drawn_again_has_the_same_bytes(tmp_path):
    first, again = (save(figure(), tmp_path / each, "fig") for each in ("first", "again"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


def test_figures_are_available_where_the_libraries_are():
    assert figures_available() is None


@for_each("missing", [{"altair"}, {"vl_convert"}, {"altair", "vl_convert"}])
def test_a_missing_library_is_one_sentence_that_names_it(monkeypatch, missing):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in missing else find(name)
    )
    notice = figures_available()
    assert notice.count(".") == 1
    assert all(name.replace("_", "-") in notice for name in missing)


def test_a_figure_with_a_configuration_of_its_own_keeps_it(tmp_path):
    svg, _ = save(figure().configure(background="#123456"), tmp_path, "fig")
    assert "#123456" in svg.read_text()


def test_any_altair_chart_gets_the_theme_of_the_project(tmp_path):
    chart = alt.Chart(alt.Data(values=[{"x": 1}])).mark_point().encode(x="x:Q")
    svg, _ = save(chart, tmp_path, "fig")
    assert "Liberation Sans" in svg.read_text()
