from attnscope.report import planes as module
from attnscope.report.planes import planes
from attnscope.runs.result import Measurement, Result


def row(name, value, n=1, **axes):
    return Measurement(name=name, dataset="d", value=value, n=n, axes=axes)


def result(*rows):
    return Result(
        recipe="r/x", scale="quick", config={}, environment={}, seconds=1, measurements=rows
    )


def test_two_components_make_a_point_with_its_word_and_group():
    rows = [
        row("input_plane", pc * 1.5, model="aed", point="state", word="run", number=0, pc=pc)
        for pc in (1, 2)
    ]
    (plane,) = planes(result(*rows))
    assert plane["title"] == "d, model aed"
    assert not plane["path"]
    assert plane["points"] == [["run", "state", 0.0, 1.5, 3.0, 1]]


def test_steps_make_a_path_named_by_time():
    rows = [
        row("temporal_path", step + pc, side="encoder", step=step, pc=pc)
        for step in (1, 2)
        for pc in (1, 2)
    ]
    (plane,) = planes(result(*rows))
    assert plane["path"]
    assert [point[0] for point in plane["points"]] == ["1", "2"]


def test_models_have_planes_of_their_own():
    rows = [row("plane", 1, model=m, word="w", pc=pc) for m in ("a", "b") for pc in (1, 2)]
    assert [plane["title"] for plane in planes(result(*rows))] == ["d, model a", "d, model b"]


def test_a_point_with_one_coordinate_is_no_point():
    assert planes(result(row("plane", 1, word="w", pc=1))) == []


def test_a_word_with_two_scores_is_a_point_of_a_cloud():
    rows = [
        Measurement(
            name="word",
            dataset="d",
            axes={"model": "dp", "group": "positive", "place": 3},
            found={"word": "good", "polarity": 2.5},
            value=-1,
            n=1,
        ),
        row("word", 1.0, group="neutral", place=0),
    ]
    (plane,) = planes(result(*rows))
    assert plane["title"] == "d, model dp"
    assert plane["axes"] == ["polarity score s", "attention score a"]
    assert plane["points"] == [["good", "positive", 3.0, 2.5, -1.0, 1]]


def test_a_large_vocabulary_is_cut_to_what_rests_on_most_occurrences(monkeypatch):
    monkeypatch.setattr(module, "MOST_POINTS", 3)
    rows = [row("plane", pc, n=n, word=f"w{n}", pc=pc) for n in range(1, 6) for pc in (1, 2)]
    (plane,) = planes(result(*rows))
    assert [point[0] for point in plane["points"]] == ["w5", "w4", "w3"]
    assert plane["notice"].startswith("2 of 5 points")


def test_a_title_tells_what_differs_between_planes_of_a_kind_and_rounds_its_numbers():
    rows = [
        row("plane", 1, cell="gru", **{"lambda": scale}, word="w", pc=pc)
        for scale in (10.0, 0.123456)
        for pc in (1, 2)
    ]
    assert [plane["title"] for plane in planes(result(*rows))] == ["d, λ 10", "d, λ 0.123"]
    assert all("fixed" not in plane for plane in planes(result(*rows)))
