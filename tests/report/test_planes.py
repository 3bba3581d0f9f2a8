from attnscope.report import planes as module
from attnscope.report.planes import planes
from attnscope.runs.measures import Measure
from attnscope.runs.result import Plane, Point, Result


def plane(*points, name="input_plane", joined=False, **axes):
    return Plane(
        name=name, dataset="d", axes=axes, x="PC 1", y="PC 2", points=points, joined=joined, n=9
    )


def shown(*pictures, measures=None):
    result = Result(
        recipe="r/x",
        scale="quick",
        config={},
        environment={},
        seconds=1,
        measurements=(),
        pictures=pictures,
    )
    return planes(result, measures or {})


def test_a_point_is_shown_with_its_label_group_and_coordinates():
    (made,) = shown(plane(Point("run", "state", 1.500049, 3.0), model="aed"))
    assert made["title"] == "d, model aed"
    assert made["axes"] == ["PC 1", "PC 2"]
    assert not made["path"]
    assert made["points"] == [["run", "state", 1.5, 3.0]]


def test_joined_points_are_a_path():
    (made,) = shown(plane(Point("1", "encoder", 0, 1), Point("2", "encoder", 1, 1), joined=True))
    assert made["path"]


def test_the_words_of_a_plane_are_those_that_its_recipe_declares():
    measures = {"input_plane": Measure("What is left of states.", label="input components")}
    (made,) = shown(plane(), measures=measures)
    assert (made["name"], made["meaning"]) == ("input components", "What is left of states.")
    (bare,) = shown(plane())
    assert (bare["name"], bare["meaning"]) == ("input plane", "")


def test_a_large_plane_is_thinned_evenly_with_a_notice(monkeypatch):
    monkeypatch.setattr(module, "MOST_POINTS", 3)
    (made,) = shown(plane(*(Point(f"w{n}", "", n, 0) for n in range(5))))
    assert [point[0] for point in made["points"]] == ["w0", "w2", "w4"]
    assert made["notice"] == "2 of 5 points are left out."


def test_a_title_names_what_differs_between_planes_of_a_name_and_rounds_its_numbers():
    made = shown(
        *(plane(cell="gru", **{"lambda": scale}) for scale in (10.0, 0.123456)),
        plane(name="other", cell="lstm"),
    )
    assert [each["title"] for each in made] == ["d, λ 10", "d, λ 0.123", "d, cell lstm"]
