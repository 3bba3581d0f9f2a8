import base64
import gzip

import numpy as np

from attnscope.report.matrices import matrix_scenes
from attnscope.runs.measures import Measure
from attnscope.runs.result import Matrix, Result


def matrix(name, values, rows=None, columns=None, dataset="d", **more):
    titles = {key: more.pop(key) for key in ("row_axis", "column_axis") if key in more}
    return Matrix.of(name, dataset, values, rows, columns, axes=more, n=1, seeds=(7,), **titles)


def scenes(*pictures, measures=None):
    result = Result(
        recipe="r/x",
        scale="quick",
        config={},
        environment={},
        seconds=1,
        measurements=(),
        pictures=pictures,
    )
    return matrix_scenes(result, "k", measures or {})


def levels(scene):
    return list(gzip.decompress(base64.b64decode(scene.as_json()["data"])))


def test_scores_of_one_sentence_share_a_scene():
    cells = [[0.0, 0.5], [1.0, 1.5]]
    (scene,) = scenes(
        *(
            matrix("weight", cells, ["x", "y"], ["a", "b"], score=score)
            for score in ("attention", "optimal_attention")
        )
    )
    assert [each.score for each in scene.maps] == ["attention", "optimal_attention"]
    assert scene.examples[0].inputs == ["a", "b"]
    assert scene.examples[0].outputs == ["x", "y"]
    assert levels(scene)[:4] == [0, 85, 169, 254]
    assert scene.units[0].label == "seed 7"


def test_attention_by_position_is_shown_on_the_words_of_the_same_models_example():
    (scene,) = scenes(
        matrix("attention", [[0.5, 0.5]], ["RUN"], ["run", "<eos>"], model="aed"),
        matrix("temporal_attention", [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], model="aed"),
    )
    assert [each.score for each in scene.maps] == ["attention", "temporal_attention"]
    np.testing.assert_array_equal(scene.maps[1].values[0][0], [[0.1, 0.2]])


def test_matrices_of_other_seeds_have_scenes_of_their_own():
    several = matrix("products", [[1.0]], ["A"], ["a"]).model_copy(update={"seeds": (7, 8)})
    made = scenes(several, matrix("attention", [[1.0]], ["A"], ["a"]), matrix("temporal", [[1.0]]))
    assert [[each.score for each in scene.maps] for scene in made] == [
        ["products"],
        ["attention", "temporal"],
    ]


def test_a_smaller_matrix_by_position_has_no_values_at_the_end():
    (scene,) = scenes(
        matrix("attention", [[1.0, 0.0], [0.0, 1.0]], ["A", "B"], ["a", "b"]),
        matrix("temporal_attention", [[0.25]]),
    )
    expected = [[0.25, np.nan], [np.nan, np.nan]]
    np.testing.assert_array_equal(scene.maps[1].values[0][0], expected)


def test_positions_alone_and_other_axes_have_scenes_of_their_own():
    measures = {"readouts": Measure("Products.", label="readouts and words")}
    made = scenes(
        matrix("attention", [[1.0]], ["A"], ["a"]),
        matrix("readouts", [[1.0]], ["A"], ["b"]),
        matrix("profile", [[1.0]], row_axis="step", column_axis="offset"),
        measures=measures,
    )
    assert [scene.title for scene in made] == [
        "d: attention",
        "d: readouts and words",
        "d: profile",
    ]
    assert made[1].maps[0].label == "readouts and words"
    assert made[1].maps[0].meaning == "Products."


def test_a_table_with_inputs_down_is_turned():
    (scene,) = scenes(
        matrix(
            "count",
            [[1.0, 2.0], [3.0, 4.0]],
            ["der", "Hund"],
            ["the", "dog"],
            row_axis="input",
            column_axis="output",
        )
    )
    assert scene.examples[0].outputs == ["the", "dog"]
    np.testing.assert_array_equal(scene.maps[0].values[0][0], [[1.0, 3.0], [2.0, 4.0]])


def test_scenes_of_several_models_are_named_by_what_distinguishes_them():
    made = scenes(
        *(matrix("attention", [[1.0]], ["A"], ["a"], model=m, cell="gru") for m in ("aed", "ao"))
    )
    assert [scene.title for scene in made] == ["d, model aed: attention", "d, model ao: attention"]
    assert len({scene.key for scene in made}) == 2


def test_parts_of_attention_are_maps_with_names_of_their_own():
    (scene,) = scenes(
        *(
            matrix("example_attention", [[1.0]], ["A"], ["a"], of=of)
            for of in ("attention", "temporal")
        )
    )
    assert [each.score for each in scene.maps] == ["attention", "example_attention temporal"]
    assert scene.maps[1].label == "example attention, temporal"


def test_sentences_word_by_word_have_a_unit_for_each_model():
    (scene,) = scenes(
        *(
            matrix(
                name, [[0.9, 0.4]], ["positive"], ["good", "film"], sentence=sentence, model=model
            )
            for model in ("base", "tying")
            for name in ("word_probability", "word_attention")
            for sentence in ("sure", "long")
            if (model, sentence) != ("tying", "long")
        )
    )
    assert scene.classification
    assert [unit.label for unit in scene.units] == ["base", "tying"]
    assert [example.key for example in scene.examples] == ["sure", "long"]
    assert scene.examples[0].inputs == ["good", "film"]
    assert scene.examples[0].outputs == ["positive"]
    assert [(each.score, each.unit) for each in scene.maps] == [
        ("lexical_probe", 0),
        ("attention", 0),
        ("lexical_probe", 1),
        ("attention", 1),
    ]
    assert scene.maps[2].values[1] == [None]


def test_a_result_without_matrices_has_no_scene():
    assert scenes() == []
