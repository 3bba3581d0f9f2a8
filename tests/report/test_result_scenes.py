import base64
import gzip

import pytest

from attnscope.report.result_scenes import read_sentences, scored_cells, spelled_cells
from attnscope.runs.result import Measurement


def row(name, value, found=None, **axes):
    return Measurement(
        name=name, dataset="d", value=value, n=1, seeds=(7,), axes=axes, found=found or {}
    )


def levels(scene):
    return list(gzip.decompress(base64.b64decode(scene.as_json()["data"])))


def test_cells_with_words_in_their_axes_make_one_map_a_score():
    cells = [
        row("weight", t + i / 2, score=score, t=t, l=i, output="xy"[t], input="ab"[i])
        for score in ("attention", "optimal_attention")
        for t in range(2)
        for i in range(2)
    ]
    (scene,) = scored_cells(cells, "k")
    assert [m.score for m in scene.maps] == ["attention", "optimal_attention"]
    assert scene.examples[0].inputs == ["a", "b"]
    assert scene.examples[0].outputs == ["x", "y"]
    assert levels(scene)[:4] == [0, 85, 169, 254]
    assert scene.units[0].label == "seed 7"


def test_words_may_be_rows_of_their_own():
    words = [row("example", 0, side="input", place=0, word="run", model="aed")]
    words += [row("example", 0, side="output", place=0, word="RUN", model="aed")]
    cells = [row("attention", 0.5, out=0, inp=0, model="aed"), row("attention", 1, out=0, inp=0)]
    (scene,) = spelled_cells([*words, *cells], "k")
    assert scene.title == "d, model aed"
    assert len(scene.maps) == 1
    assert scene.examples[0].outputs == ["RUN"]


def test_scenes_of_several_models_are_named_by_what_tells_them_apart():
    rows = [
        row(name, 0.5, **axes, model=model, cell="gru")
        for model in ("aed", "ao")
        for name, axes in (
            ("example", {"side": "input", "place": 0, "word": "run"}),
            ("example", {"side": "output", "place": 0, "word": "RUN"}),
            ("attention", {"out": 0, "inp": 0}),
        )
    ]
    assert [scene.title for scene in spelled_cells(rows, "k")] == ["d, model aed", "d, model ao"]


def test_sentences_word_by_word_have_a_unit_for_each_model():
    rows = [
        row(f"word_{what}", value, {"word": w}, sentence="sure", place=i, model=m, attention="add")
        for m in ("base", "tying")
        for what in ("probability", "attention")
        for i, (w, value) in enumerate([("good", 0.9), ("film", 0.4)])
    ]
    rows.append(row("confidence", 0.9, {"label": "positive"}, sentence="sure", model="base"))
    (scene,) = read_sentences(rows, "k")
    assert scene.classification
    assert [unit.label for unit in scene.units] == ["base", "tying"]
    assert scene.examples[0].inputs == ["good", "film"]
    assert scene.examples[0].outputs == ["positive"]
    assert [(m.score, m.unit) for m in scene.maps] == [
        ("lexical_probe", 0),
        ("attention", 0),
        ("lexical_probe", 1),
        ("attention", 1),
    ]


@pytest.mark.parametrize("reader", [scored_cells, spelled_cells, read_sentences])
def test_other_measurements_make_no_scene(reader):
    assert reader([row("accuracy", 0.5, role="control"), row("gamma", 1, place=3)], "k") == []
