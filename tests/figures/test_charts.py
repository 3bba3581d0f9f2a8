"""Chart pieces, judged by the SVG that comes out of them."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from attnscope.figures.charts import (
    Axis,
    Guide,
    Panel,
    band,
    beside,
    curves,
    dots_with_intervals,
    heatmap,
    points,
)
from attnscope.figures.palette import POSITIONS, ROLES
from attnscope.figures.save import save
from cases import for_each

STEPS = Axis("training step")
ACCURACY = Axis("accuracy", domain=(0, 1))
COLOURS = {"control": ROLES["control"], "hard": ROLES["hard"]}


@pytest.fixture(scope="module")
def draw(tmp_path_factory):
    """Return a function that draws a chart and parses its SVG."""
    folder = tmp_path_factory.mktemp("figures")

    def drawn(chart):
        return ET.parse(save(chart, Path(folder), "figure")[0]).getroot()

    return drawn


def texts(svg: ET.Element) -> list[str]:
    return ["".join(node.itertext()) for node in svg.iter() if node.tag.endswith("}text")]


def marks(svg: ET.Element, kind: str) -> list[ET.Element]:
    return [node for node in svg.iter() if node.get("aria-roledescription") == kind]


def accuracies(seeds=2, steps=(0, 100, 200)):
    return [
        {"step": step, "acc": step / 200, "seed": seed, "distribution": name}
        for name in COLOURS
        for seed in range(seeds)
        for step in steps
    ]


def accuracy_curves(rows=None, **options):
    panel = Panel(x=STEPS, y=ACCURACY, colours=COLOURS, **options)
    rows = accuracies() if rows is None else rows
    return curves(rows, panel, x="step", y="acc", group="distribution", detail="seed")


def word_map(matrix, columns=None, rows=None, **options):
    return heatmap(
        matrix,
        columns=columns or [f"c{j}" for j in range(len(matrix[0]))],
        rows=rows or [f"r{i}" for i in range(len(matrix))],
        x_title="input word",
        y_title="output word",
        value_title="weight",
        **options,
    )


def interval_band():
    rows = [
        {"step": step, "value": 1.0, "low": 0.5, "high": 1.5, "position": name}
        for step in (0, 10)
        for name in POSITIONS
    ]
    panel = Panel(x=STEPS, y=Axis("log-odds γ"), colours=POSITIONS)
    return band(rows, panel, x="step", group="position")


def failure_rates():
    rows = [{"k": k, "rate": 0.5**k, "low": 0.0, "high": 0.6, "g": "random"} for k in (1, 2)]
    panel = Panel(
        x=Axis("heads"),
        y=Axis("share that fails"),
        colours={"random": ROLES["mixed"]},
        guides=[Guide([(1, 0.5), (2, 0.25)], "predicted")],
    )
    return points(rows, panel, x="k", y="rate", low="low", high="high", group="g")


def agreements():
    rows = [
        {"name": "ours", "value": 20.0, "low": 18.0, "high": 22.0, "published": 19.85},
        {"name": "random", "value": 6.0, "low": None, "high": None, "published": None},
    ]
    return dots_with_intervals(rows, Axis("agreement (%)"), label="name")


@for_each(
    ("chart", "expected"),
    [
        (accuracy_curves, {"training step", "accuracy", "control", "hard"}),
        (interval_band, {"training step", "log-odds γ", *POSITIONS}),
        (failure_rates, {"heads", "share that fails", "random", "predicted"}),
        (agreements, {"agreement (%)", "ours", "random", "diamond: published value"}),
        (lambda: word_map([[1.0, 2.0]]), {"input word", "output word", "weight", "c0", "c1", "r0"}),
    ],
)
def test_axis_titles_and_groups_are_named_in_the_figure(draw, chart, expected):
    assert expected <= set(texts(draw(chart())))


def test_each_seed_is_one_line(draw):
    assert len(marks(draw(accuracy_curves(accuracies(seeds=7))), "line mark")) == 14


def test_a_later_group_lies_on_top(draw):
    strokes = [line.get("stroke") for line in marks(draw(accuracy_curves()), "line mark")]
    assert [stroke.upper() for stroke in strokes] == [COLOURS["control"]] * 2 + [
        COLOURS["hard"]
    ] * 2


@for_each("labels", ["direct", "legend", "none"])
def test_groups_are_named_where_it_was_asked(draw, labels):
    named = {"control", "hard"} & set(texts(draw(accuracy_curves(labels=labels))))
    assert named == (set() if labels == "none" else {"control", "hard"})


def label_heights(svg: ET.Element, names) -> dict[str, float]:
    """Distance of each named text from the top of its panel."""
    return {
        node.text: float(re.findall(r"[-\d.]+", node.get("transform"))[1])
        for node in svg.iter()
        if node.tag.endswith("}text") and node.text in names
    }


def test_labels_of_curves_with_the_same_end_do_not_overlap(draw):
    heights = label_heights(draw(accuracy_curves()), COLOURS)  # both groups end at accuracy 1
    assert abs(heights["control"] - heights["hard"]) >= 11  # the size of the font


def test_a_guide_without_a_label_moves_no_other_label(draw):
    guide = Guide([(0, 1.0), (200, 1.0)])
    plain, guided = (draw(accuracy_curves(guides=guides)) for guides in ([], [guide]))
    assert label_heights(plain, COLOURS) == label_heights(guided, COLOURS)


def test_a_guide_is_named_where_it_starts_or_ends(draw):
    points = [(0, 0.5), (200, 0.5)]
    for at, inside in (("start", True), ("end", False)):
        svg = draw(accuracy_curves(guides=[Guide(points, "half", at=at)]))
        (label,) = [node for node in svg.iter() if node.text == "half"]
        x = float(re.findall(r"[-\d.]+", label.get("transform"))[0])
        assert (x < 130) == inside


def test_labels_may_have_several_lines(draw):
    colours = {"40 types\n12 of 20": ROLES["hard"]}
    rows = [{"x": x, "y": 0.5, "g": "40 types\n12 of 20", "s": 0} for x in (0, 1)]
    chart = curves(rows, Panel(STEPS, ACCURACY, colours), x="x", y="y", group="g", detail="s")
    found = [[line.text for line in node] for node in draw(chart).iter() if len(node) == 2]
    assert ["40 types", "12 of 20"] in found


def test_every_tick_that_was_asked_for_is_shown(draw):
    ticks = [0, 100, 500, 1000, 2000, 4000]  # more than vega's own tick count
    rows = [{"x": x, "y": 0.5, "g": "hard", "s": 0} for x in ticks]
    panel = Panel(Axis("step", scale="sqrt", ticks=ticks), ACCURACY, COLOURS)
    shown = texts(draw(curves(rows, panel, x="x", y="y", group="g", detail="s")))
    assert {"0", "100", "500", "1,000", "2,000", "4,000"} <= set(shown)


def test_long_logs_are_drawn_whole(draw):
    rows = accuracies(seeds=1, steps=range(4000))
    assert len(marks(draw(accuracy_curves(rows)), "line mark")) == 2


def test_a_value_that_is_not_finite_leaves_a_gap(draw):
    rows = accuracies(seeds=1, steps=(0, 50, 100, 150, 200))
    rows[2]["acc"] = np.float32("nan")
    broken, whole = marks(draw(accuracy_curves(rows)), "line mark")
    assert broken.get("d").count("M") == 2
    assert whole.get("d").count("M") == 1


def test_a_group_without_a_colour_is_an_error():
    rows = [{**accuracies()[0], "distribution": "unheard of"}]
    with pytest.raises(ValueError, match="unheard of"):
        accuracy_curves(rows)


def test_annotations_are_enforced_while_tests_run():
    with pytest.raises(jaxtyping.TypeCheckError, match="title"):
        Axis(title=3)


def test_a_column_that_does_not_exist_is_an_error():
    with pytest.raises(KeyError, match="typo"):
        curves(
            accuracies(),
            Panel(STEPS, ACCURACY, COLOURS),
            x="step",
            y="typo",
            group="distribution",
            detail="seed",
        )


def test_only_known_intervals_and_published_values_are_drawn(draw):
    svg = draw(agreements())
    assert len(marks(svg, "circle")) == 2
    assert len([mark for mark in marks(svg, "rule mark") if mark.get("opacity") != "0"]) == 1
    assert len(marks(svg, "point")) == 1


def test_an_interval_beyond_the_axis_ends_at_the_frame(draw):
    rows = [{"name": "a", "value": 0.5, "low": -30.0, "high": 40.0}]
    drawing = draw(dots_with_intervals(rows, Axis("share", domain=(0, 1)), label="name"))
    # The rule itself is longer than the panel, which is 260 pixels wide; a clip cuts it.
    assert "clip" in ET.tostring(drawing, "unicode")
    assert float(drawing.get("width")) < 400


def test_an_interval_that_reaches_0_is_drawn_on_a_logarithmic_axis(draw):
    rows = [
        {"x": x, "group": "control", "value": 10.0**-x, "low": -1.0, "high": 1.0} for x in (1, 2)
    ]
    panel = Panel(STEPS, Axis("ratio", "log", format="~e"), COLOURS)
    drawing = draw(band(rows, panel, x="x", group="group"))
    # Ticks from a decade below the smallest value up to the highest end.
    assert {"1e-3", "1e-2", "1e-1", "1e+0"} <= set(texts(drawing))


@for_each("array", [np.asarray, torch.tensor, list])
def test_a_heat_map_has_one_cell_for_each_value(draw, array):
    svg = draw(word_map(array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])))
    assert len(marks(svg, "rect mark")) == 6


def test_a_masked_cell_is_left_out(draw):
    svg = draw(word_map([[0.1, None], [float("nan"), 0.4]]))
    assert len(marks(svg, "rect mark")) == 2


def test_a_repeated_token_keeps_a_place_of_its_own(draw):
    svg = draw(word_map([[0.1, 0.2, 0.3]], columns=["the", "film", "the"]))
    assert texts(svg).count("the") == 2
    assert len(marks(svg, "rect mark")) == 3


@for_each("value", [0.0, 0.25, 7.0])
def test_a_constant_matrix_has_one_colour(draw, value):
    svg = draw(word_map([[value] * 4] * 4))
    assert len({cell.get("fill") for cell in marks(svg, "rect mark")}) == 1


def test_values_are_written_into_the_cells_on_request(draw):
    shown = texts(draw(word_map([[0.125, 0.5]], value_format=".3f")))
    assert {"0.125", "0.500"} <= set(shown)


# XML's and JavaScript's special characters, what ends a string literal, and letters of all kinds.
tokens = st.text(
    st.sampled_from("<>&\"'\\`${}[]();/*é漢α😀\u2028") | st.characters(categories=["L", "N"]),
    min_size=1,
    max_size=5,
)


@settings(max_examples=15)
@given(st.lists(tokens, min_size=2, max_size=2))
def test_tokens_are_shown_as_they_are_and_never_as_markup(draw, words):
    svg = draw(word_map([[0.1, 0.2], [0.3, 0.4]], columns=['<b>&"', '"];x()//'], rows=words))
    shown = {"".join(text.split()) for text in texts(svg)}
    assert {'<b>&"', '"];x()//', *("".join(word.split()) for word in words)} <= shown
    assert not [node for node in svg.iter() if node.tag.endswith(("}b", "}script"))]


def test_titles_and_groups_are_never_markup(draw):
    name = '<b>&"'
    rows = [{"x": x, "y": 0.5, "g": name, "s": 0} for x in (0, 1)]
    panel = Panel(Axis(f"x {name}"), ACCURACY, {name: ROLES["hard"]}, title=f"title {name}")
    svg = draw(curves(rows, panel, x="x", y="y", group="g", detail="s"))
    assert {name, f"x {name}", f"title {name}"} <= set(texts(svg))


def test_a_character_that_no_svg_may_hold_is_replaced(draw):
    assert "a\ufffdb" in texts(draw(word_map([[0.1]], columns=["a\x00b"], rows=["c"])))


def test_panels_stand_beside_each_other_with_scales_of_their_own(draw):
    low = [{"x": x, "y": 0.5, "g": "hard", "s": 0} for x in (0, 1)]
    high = [{"x": x, "y": 5000.0, "g": "hard", "s": 0} for x in (0, 1)]
    panels = [
        curves(rows, Panel(STEPS, axis, COLOURS), x="x", y="y", group="g", detail="s")
        for rows, axis in ((low, ACCURACY), (high, Axis("loss", domain=(0, 9000))))
    ]
    shown = texts(draw(beside(*panels, title="Both")))
    assert {"Both", "accuracy", "loss", "1.0", "8,000"} <= set(shown)
