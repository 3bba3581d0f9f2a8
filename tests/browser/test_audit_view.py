"""The report's view of an audit."""

import re

import numpy as np
import pytest

from attnscope import write_report
from attnscope.runs.atomic import write_json
from attnscope.runs.result import Curve, Matrix, Measurement, Result
from attnscope.runs.tensors import save_arrays

HOSTILE = "<img src=x onerror=alert(1)>"

NOTICE = f"3 texts were left out: more than 64 pieces {HOSTILE}."


def row(name, value, **axes):
    ends = {"low": value - 0.05, "high": value + 0.05}
    return Measurement(name=name, dataset="sst", value=value, n=200, axes=axes, seeds=(0,), **ends)


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    workspace = tmp_path_factory.mktemp("audited") / "runs"
    folder = workspace / "audits" / "bert-sst-0"
    main = {"site": "encoder.2.self", "role": "main", "head": "all"}
    rows = [
        row("entropy", 0.95, **main),
        row("dependence", -0.2, **main),
        row("found_share", 0.02, score="attention"),
        row("found_share", 0.84, score="lexical_probe"),
        row("found_share", 1.0, score="leave_one_out"),
        row("agreement_above_chance", 0.41, score="ibm_model1"),
        row("agreement_with_ibm1", 0.63, score="lexical_probe"),
    ]
    heads = Matrix.of(
        "entropy_map", "sst", [[0.9, 0.8], [0.7, None]], rows=["encoder.1.self", HOSTILE], n=200
    )
    learned = Curve(
        name="agreement_with_last",
        dataset="sst",
        axes={"score": "attention"},
        axis="step",
        x=(10, 50),
        y=(0.1, 1.0),
        n=(200, 200),
    )
    config = {"model": "bert", "data": "sst", "examples": 200, "site": "encoder.2.self", "off": 0.0}
    Result(
        recipe="audit",
        scale="full",
        config={**config, "questions": ["uniform", "idle", "finds"], "notices": [NOTICE]},
        environment={"device": "cpu"},
        seconds=1.0,
        measurements=tuple(rows),
        pictures=(heads, learned),
    ).write(folder)
    words = {"7": {"inputs": ["a", HOSTILE, "film"], "outputs": ["1"], "words": [0, 1, 1]}}
    write_json(folder / "scores" / "examples.json", words)
    for name, values in {"attention": [[0.2, 0.5, 0.3]], "saliency": [[-1.0, 2.0, 0.5]]}.items():
        arrays = {"7": np.array(values, dtype=np.float32)}
        save_arrays(folder / "scores" / f"{name}.safetensors", arrays, {})
    return write_report(workspace, workspace.parent / "audit.html")


def test_an_audit_is_a_view_with_its_verdict_questions_maps_and_texts(audited, opened):
    watched = opened()
    page = watched.open(audited, "audit")
    view = page.locator("#audit")
    assert "Do not trust the attention at encoder.2.self" in view.inner_text()
    assert "Read the lexical probe instead: it finds 84 %" in view.inner_text()
    assert "Attention is near uniform." in view.inner_text()
    assert re.search(r"minus chance\s+score\s+agreement\s+ibm model1\s+0\.41", view.inner_text())
    assert re.search(r"IBM Model 1\s+score\s+agreement\s+lexical probe\s+0\.63", view.inner_text())
    assert "entropy, site by head" in view.inner_text()
    assert "Step 50" in view.inner_text()
    assert not watched.said
    assert not watched.asked


def test_what_a_reader_should_know_of_an_audit_is_on_its_page(audited, opened):
    view = opened().open(audited, "audit").locator("#audit")
    assert "3 texts were left out: more than 64 pieces" in view.inner_text()
    assert "Text 7, output 1" in view.inner_text()
    assert re.search(
        r"step\s+agreement with last, attention\s+10\s+0\.1\s+50\s+1", view.inner_text()
    )


def test_how_it_was_learned_is_drawn_and_the_slider_marks_its_step(audited, opened):
    watched = opened()
    view = watched.open(audited, "audit").locator("#audit")
    view.locator(".chart canvas").wait_for()
    assert view.locator(".chart canvas").bounding_box()["width"] > 300
    view.get_by_label("step").fill("0")
    assert "Step 10: agreement with last, attention 0.1" in view.inner_text()
    assert not watched.said


def test_pieces_of_a_word_stand_together(audited, opened):
    view = opened().open(audited, "audit").locator("#audit")
    assert f"a {HOSTILE}film" in view.locator(".coloured p").first.inner_text()


def test_a_report_of_audits_alone_opens_with_them(audited, opened):
    page = opened().open(audited)
    assert page.locator("#audit").is_visible()
    page.click("#tab-overview")
    assert "attnscope audit bert sst" in page.locator("#overview").inner_text()


def test_words_of_an_audit_are_text_and_never_markup(audited, opened):
    watched = opened()
    page = watched.open(audited, "audit")
    assert page.locator("#audit").get_by_text(HOSTILE).count() >= 2
    assert page.locator("#audit img").count() == 0
    assert not watched.dialogs


def test_the_slider_shows_how_attention_was_learned(audited, opened):
    page = opened().open(audited, "audit")
    page.locator("#audit input[type=range]").fill("0")
    assert "Step 10: agreement with last, attention 0.1" in page.locator("#audit").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_audit_fits_a_phone(audited, opened, scheme):
    page = opened(width=360, height=700, color_scheme=scheme).open(audited, "audit")
    room = page.evaluate("[document.body.scrollWidth, document.documentElement.clientWidth]")
    assert room[0] <= room[1]


def test_a_report_without_audits_has_no_such_tab(report, opened):
    page = opened().open(report)
    assert page.locator("#tab-audit").is_hidden()
