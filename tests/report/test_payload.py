import base64
import gzip
import json
import os

import numpy as np
import pytest

from attnscope import compare, load
from attnscope.report.overview import size_of
from attnscope.report.page import as_data, request_of
from attnscope.report.payload import payload
from attnscope.runs.lock import locked
from attnscope.runs.result import Matrix, Result

DEMO = "grammar-translation-seq2seq-seed0-demo"


@pytest.fixture(scope="module")
def value(trained):
    return payload(request_of(trained))


def scene_of(value, title):
    return next(scene for scene in value["scenes"] if scene["title"] == title)


def decoded(scene, score, unit=0):
    """Return the values of a score by example and step, read as the page reads them."""
    content = gzip.decompress(base64.b64decode(scene["data"]))
    chosen = next(m for m in scene["maps"] if m["score"] == score and m["unit"] in (unit, -1))
    place, ends, found = chosen["start"], iter(chosen["ends"]), {}
    for example in scene["examples"]:
        shape = len(example["outputs"]), len(example["inputs"])
        for step in chosen["steps"]:
            low, high = next(ends)
            levels = np.frombuffer(content, np.uint8, shape[0] * shape[1], place).astype(float)
            place += levels.size
            values = np.where(levels == 255, np.nan, low + (high - low) * levels / 254)
            found[example["key"], step] = values.reshape(shape)
    return found


def test_the_same_folders_give_the_same_bytes(trained, value):
    assert as_data(payload(request_of(trained))) == as_data(value)


def test_every_stored_step_of_every_example_is_there(trained, value):
    unit = load(trained / "units" / DEMO)
    scene = scene_of(value, "grammar-translation")
    assert scene["maps"][0]["steps"] == unit.folder.score_steps
    found = decoded(scene, "attention")
    for example in scene["examples"]:
        row = unit.examples.ids.tolist().index(int(example["key"].split()[1]))
        for step in (unit.folder.score_steps[0], unit.folder.score_steps[-1]):
            score = unit.stored("attention", step)
            inputs, outputs = score.words(row)
            assert (example["inputs"], example["outputs"]) == (inputs, outputs)
            stored = score.array()[row, : len(outputs), : len(inputs)]
            np.testing.assert_allclose(found[example["key"], step], stored, atol=0.5 / 254 + 1e-5)


def test_a_probe_is_shown_as_a_probability(trained, value):
    scene = scene_of(value, "grammar-translation")
    unit = load(trained / "units" / DEMO)
    log_odds = unit.stored("lexical_probe").array()
    example = scene["examples"][0]
    row = unit.examples.ids.tolist().index(int(example["key"].split()[1]))
    shown = decoded(scene, "lexical_probe")[example["key"], unit.folder.score_steps[-1]]
    expected = 1 / (1 + np.exp(-log_odds[row, : shown.shape[0], : shown.shape[1]].astype(float)))
    np.testing.assert_allclose(shown, expected, atol=0.5 / 254 + 1e-5)


def test_agreement_is_that_of_the_library(trained, value):
    unit = load(trained / "units" / DEMO)
    curves = scene_of(value, "grammar-translation")["units"][0]["curves"]
    step, shown = curves["A(attention,lexical_probe)"][-1]
    found = compare(unit.stored("attention", step), unit.stored("lexical_probe", step)).value
    assert shown == pytest.approx(100 * found, abs=0.01)
    assert curves["accuracy"][-1] == (step, pytest.approx(100 * unit.log[-1]["accuracy"]))


def test_what_attention_is_compared_with_stands_beside_it(value):
    scene = scene_of(value, "grammar-sentiment")
    assert scene["classification"]
    assert {m["score"] for m in scene["maps"]} == {
        "attention",
        "lexical_probe",
        "uniform_probe",
        "saliency",
        "proxy",
    }
    assert [unit["label"] for unit in scene["units"]] == ["model, seed 0", "model, seed 1"]
    assert "A(attention,uniform_probe)" in scene["units"][0]["curves"]
    translated = {m["score"] for m in scene_of(value, "grammar-translation")["maps"]}
    assert "ibm_model1" in translated


def test_examples_are_chosen_by_id(trained, value):
    wanted = [int(e["key"].split()[1]) for e in scene_of(value, "grammar-sentiment")["examples"]]
    made = payload(request_of(trained, examples=wanted[2:0:-1]))
    keys = [example["key"] for example in scene_of(made, "grammar-sentiment")["examples"]]
    assert keys == [f"example {wanted[2]}", f"example {wanted[1]}"]


def test_ids_that_nobody_stores_are_a_notice(trained):
    made = payload(request_of(trained, examples=[10**6]))
    assert made["scenes"] == []
    assert sum("none of the examples 1000000 is stored" in each for each in made["notices"]) == 2


def test_a_sentence_of_ones_own_is_read_by_the_model_that_can(trained):
    made = payload(request_of(trained, sentences=["der Mann hat den Hund gesehen ."]))
    scene = scene_of(made, "grammar-translation: your sentences")
    assert scene["examples"][0]["outputs"][:4] == ["the", "man", "has", "seen"]
    assert made["notices"] == []


def test_a_sentence_that_no_model_can_read_is_a_notice(trained):
    made = payload(request_of(trained, sentences=["Quux frobnicates"]))
    assert made["notices"] == ["No trained model here can read the sentence 'Quux frobnicates'."]


def test_a_report_never_grows_beyond_its_bound(trained, value):
    whole = len(json.dumps(value, ensure_ascii=False).encode())
    bound = whole * 3 // 4
    made = payload(request_of(trained), most_bytes=bound)
    assert len(json.dumps(made, ensure_ascii=False).encode()) <= bound + 400  # its own notices
    assert len(made["scenes"][0]["examples"]) < len(value["scenes"][0]["examples"])
    assert any("too large" in notice for notice in made["notices"])


def test_figures_that_do_not_fit_are_counted(trained):
    made = payload(request_of(trained), most_bytes=1000)
    assert made["runs"][0]["figures"] == []
    assert any("1 figures are left out" in notice for notice in made["notices"])


def test_a_unit_in_training_is_shown_as_such(workspace):
    unit = workspace / "units" / DEMO
    (unit / "done.json").unlink()
    with locked(unit / "lock", wait=False):
        (shown,) = scene_of(payload(request_of(workspace)), "grammar-translation")["units"]
        assert (shown["running"], shown["stopped"]) == (True, False)


def test_a_unit_that_was_stopped_is_not_still_training(workspace):
    unit = workspace / "units" / DEMO
    (unit / "done.json").unlink()
    for signed in ("", json.dumps({"host": "elsewhere", "token": "x"})):
        (unit / "lock").write_text(signed)
        # A holder that was killed leaves its signature, and touches it no more.
        os.utime(unit / "lock", (0, 0))
        (shown,) = scene_of(payload(request_of(workspace)), "grammar-translation")["units"]
        assert (shown["running"], shown["stopped"]) == (False, True)


def test_a_unit_of_another_version_is_left_out_with_a_sentence(workspace):
    path = workspace / "units" / DEMO / "config.json"
    config = json.loads(path.read_text())
    config["model"]["frobnication"] = 3
    path.write_text(json.dumps(config))
    made = payload(request_of(workspace))
    assert [scene["title"] for scene in made["scenes"]] == ["grammar-sentiment"]
    assert any(DEMO in notice for notice in made["notices"])


def test_claims_are_those_of_the_catalogue_and_quick_runs_never_decide(value):
    by_id = {claim["id"]: claim for claim in value["claims"]}
    assert len(by_id) == len(value["claims"])
    claim = by_id["snell.permutation-copy"]
    assert claim["measured"]
    assert claim["verdict"] == "undecided"
    assert not by_id["aitken.subphrase"]["measured"]


def test_claims_without_their_numbers_are_undecided_and_say_what_is_lacking(workspace):
    path = workspace / "snell" / "fig6"
    path.mkdir()
    bare = json.loads((workspace / "snell/fig3/result.json").read_text())
    bare["recipe"], bare["measurements"] = "snell/fig6", bare["measurements"][1:2]
    (path / "result.json").write_text(json.dumps(bare))
    made = payload(request_of(workspace))
    claims = {claim["id"]: claim for claim in made["claims"]}
    lacking = claims["snell.more-heads"]
    assert lacking["verdict"] == "undecided"
    assert "lack what the rule needs" in lacking["note"]
    assert claims["snell.permutation-copy"]["measured"]


def test_a_run_carries_its_measurements_beside_the_published_ones(value):
    run = value["runs"][0]
    assert run["rows"][0] == ["seeds_learned", "permutations", "", 3, 1, 4, 3, 4, 0, ""]
    assert run["headline"] == 1
    assert gzip.decompress(base64.b64decode(run["figures"][0]["svg"])).startswith(b"<svg")


def test_the_room_of_a_drawing_is_read_from_its_first_tag():
    first = b'<svg class="a" width="864" height="275.5" viewBox="0 0 1 1">'
    assert size_of(first + b'<g width="3"/></svg>') == (864.0, 275.5)
    assert size_of(b'<svg stroke-width="3"><rect width="7" height="8"/></svg>') == (300.0, 300.0)


def test_scores_that_units_have_come_before_other_tables(tmp_path):
    table, attention = (
        Matrix.of(name, "d", [[1.0]], ["A"], [word], n=1)
        for name, word in (("counts", "a"), ("attention", "b"))
    )
    made = Result(
        recipe="own/one",
        scale="quick",
        config={},
        environment={},
        seconds=1,
        measurements=(),
        pictures=(table, attention),
    )
    made.write(tmp_path / "own" / "one")
    scenes = payload(request_of(tmp_path))["scenes"]
    assert [scene["title"] for scene in scenes] == ["d: attention", "d: counts"]
