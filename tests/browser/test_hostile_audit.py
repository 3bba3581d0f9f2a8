"""An audit is somebody's data: whatever its texts spell is shown, and nothing runs or is loaded."""

import numpy as np
import pytest

from attnscope import write_report
from attnscope.report import page as page_module
from attnscope.runs.atomic import write_json
from attnscope.runs.result import Curve, Matrix, Measurement, Result
from attnscope.runs.tensors import save_arrays

expect = pytest.importorskip("playwright.sync_api").expect

HOSTILE = (
    "</script><script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 2'>",
    "\"'><svg onload=alert(3)>",
    "</title></style><!--<script>",
    "http://evil.example/pixel.png",
    "nul\x00 and \x1b[31m",
    "\u202eturned",
    "constructor",
    "__proto__",
    "hasOwnProperty",
)


def row(name, value, **axes):
    return Measurement(
        name=name, dataset=HOSTILE[0], split=HOSTILE[1], value=value, n=9, axes=axes, seeds=(0,)
    )


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """An audit with hostile text in every place: names, axes, settings, maps, curves and words."""
    workspace = tmp_path_factory.mktemp("hostile") / "runs"
    folder = workspace / "audits" / "theirs"
    size = len(HOSTILE)
    found = [row("found_share", 0.1 * place, score=text) for place, text in enumerate(HOSTILE)]
    others = [row(text, 0.5, **{text: text}) for text in HOSTILE]
    maps = Matrix.of(
        f"{HOSTILE[0]}_map",
        HOSTILE[1],
        np.full((size, size), 0.5).tolist(),
        rows=list(HOSTILE),
        columns=list(HOSTILE),
        n=9,
    )
    curves = [
        Curve(
            name=text,
            dataset=text,
            axes={"score": text},
            axis=text,
            x=(1, 2),
            y=(0.1, 0.9),
            n=(9, 9),
        )
        for text in HOSTILE
    ]
    settings = {text: text for text in HOSTILE}
    places = {"model": HOSTILE[0], "data": HOSTILE[1], "site": HOSTILE[2], "sites": list(HOSTILE)}
    Result(
        recipe="audit",
        scale="full",
        config={**settings, **places, "examples": 200, "off": 0.0, "questions": list(HOSTILE)},
        environment={"device": HOSTILE[0]},
        seconds=1.0,
        measurements=(
            row("entropy", 0.9, site=HOSTILE[2], role="main", head="all"),
            *found,
            *others,
        ),
        pictures=(maps, *curves),
        units=HOSTILE,
    ).write(folder)
    names = [text.replace("/", " ").replace("\x00", " ") for text in HOSTILE]
    words = {text: {"inputs": list(HOSTILE), "outputs": [HOSTILE[1]]} for text in HOSTILE}
    write_json(folder / "scores" / "examples.json", words)
    arrays = {text: np.full((1, size), 0.5, dtype=np.float32) for text in HOSTILE}
    for name in names:
        save_arrays(folder / "scores" / f"{name}.safetensors", arrays, {})
    return write_report(workspace, workspace.parent / "audit.html")


def test_nothing_in_an_audit_runs_or_is_loaded(audited, opened):
    watched = opened()
    page = watched.open(audited)
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    overview = page.inner_text("#overview")
    for text in (*HOSTILE[:5], *HOSTILE[7:]):
        assert text in overview, text
    page.click("#tab-audit")
    view = page.locator("#audit")
    for text in (*HOSTILE[:5], *HOSTILE[7:]):
        assert text in view.inner_text(), text
    assert not set(view.inner_text()) & set("\x00\x1b\u202e")
    assert "⟨U+202E⟩turned" in view.inner_text()
    assert not view.inner_text().startswith("null")
    for slider in view.locator("input[type=range]").all():
        slider.fill("0")
    assert view.locator("img, iframe, script, svg").count() == 0
    assert page.evaluate("window.ran") is None
    assert (watched.dialogs, watched.asked, watched.said) == ([], [], [])


def test_text_of_the_chart_library_cannot_end_its_script(monkeypatch, tmp_path, audited):
    hostile = "var a = '</script><script>window.ran = 1</script><!--<script>';"
    static = page_module._static
    monkeypatch.setattr(
        page_module, "_static", lambda name: hostile if name == "vega.js" else static(name)
    )
    guarded = page_module._vega.__wrapped__()
    assert "</script" not in guarded
    assert "<!--" not in guarded
    assert guarded.replace("\\", "") == hostile


def test_charts_load_nothing_and_make_no_code(opened, report):
    """The page's policy forbids both too; then an error would stand in the console."""
    page = opened().open(report, "attention")
    expect(page.locator("#attention .vega-embed").first).to_be_visible()
    page.evaluate(
        """() => {
          const embed = window.vegaEmbed;
          window.options = [];
          window.vegaEmbed = (element, spec, options) => {
            window.options.push(options);
            document.body.dataset.drawn = "";
            return embed(element, spec, options);
          };
        }"""
    )
    last = page.locator("#scene option").last.get_attribute("value")
    page.select_option("#scene", last)
    page.wait_for_selector("body[data-drawn]")
    load = "(options) => options.loader.load('http://evil.example').catch((error) => error.message)"
    assert page.evaluate(f"Promise.all(window.options.map({load}))")[0] == "nothing is loaded"
    assert page.evaluate("window.options.every((options) => options.ast === true)")
