"""Words, labels, names and settings are data: whatever they spell is shown, and nothing runs."""

import json

import pytest

from attnscope import write_report

expect = pytest.importorskip("playwright.sync_api").expect

HOSTILE = [
    "</script><script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 2'>",
    "\"'><svg onload=alert(3)>",
    "</title></style><!--<script>",
    "javascript:alert(4)",
    "{{ 7 * 7 }} ${alert(5)} `",
    "\u202e\u200fright to left\u2066",
    "line\u2028sep\u2029arated",
    "nul\x00byte\x1b[31m",
    "🙂👩\u200d💻 ﷽",
    "x" * 10_000,
    '=HYPERLINK("http://evil.example")',
    "http://evil.example/pixel.png",
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")

    def row(name, dataset, value, axes, found=None):
        return {
            "name": name, "dataset": dataset, "split": HOSTILE[0], "axes": axes,
            "found": found or {}, "value": value, "n": 1, "seeds": [0],
        }  # fmt: skip

    cells = [
        row(
            "weight",
            HOSTILE[0],
            0.5,
            {"score": s, "t": 0, "l": i, "output": HOSTILE[1], "input": w},
        )
        for s in ("attention", HOSTILE[1])
        for i, w in enumerate(HOSTILE)
    ]
    points = [
        row(
            "input_plane",
            HOSTILE[1],
            pc + i,
            {"point": HOSTILE[0], "word": w, "number": i, "pc": pc},
        )
        for i, w in enumerate(HOSTILE)
        for pc in (1, 2)
    ]
    spoken = [
        row("word_probability", "d", 0.5, {"sentence": HOSTILE[1], "place": i}, {"word": w})
        for i, w in enumerate(HOSTILE)
    ]
    numbers = [row(w, w, 1.0, {w: w}, {w: w}) for w in HOSTILE]
    result = {
        "schema": 1, "recipe": "snell/fig33<img src=x onerror=alert(1)>", "scale": "full",
        "config": {w: w for w in HOSTILE}, "environment": {"device": HOSTILE[0]}, "seconds": 1,
        "measurements": [*numbers, *cells, *points, *spoken], "units": HOSTILE,
    }  # fmt: skip
    place = folder / "snell" / "fig33"
    place.mkdir(parents=True)
    (place / "result.json").write_text(json.dumps(result))
    (place / "figures").mkdir()
    (place / "figures" / "x.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="top.ran = 6">'
        '<script>top.ran = 7</script><image href="http://evil.example/x.png"/></svg>'
    )
    return write_report(folder, folder / "report.html")


def test_nothing_runs_and_nothing_is_asked(opened, hostile):
    watched = opened()
    page = watched.open(hostile)
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page.locator("figure img").scroll_into_view_if_needed()
    expect(page.locator("figure img")).to_have_js_property("naturalWidth", 9)
    for tab in ("attention", "trajectories"):
        page.click(f"#tab-{tab}")
        expect(page.locator(f"#{tab} canvas").first).to_be_visible()
    for scene in page.locator("#scene option").all():
        page.click("#tab-attention")
        page.select_option("#scene", scene.get_attribute("value"))
        page.locator(".maps canvas").first.hover()
    assert page.evaluate("window.ran") is None
    assert watched.dialogs == []
    assert watched.asked == []
    assert watched.said == []


def test_markup_is_shown_as_text(opened, hostile):
    page = opened().open(hostile)
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    shown = page.inner_text("#overview")
    for word in HOSTILE[:6]:
        assert word in shown
    assert page.locator("#overview img, #overview svg, #overview script").count() == 1  # the figure


def test_what_cannot_be_seen_is_shown_by_its_name(opened, hostile):
    page = opened().open(hostile, "attention")
    text = page.inner_text(".sentences")
    assert "⟨U+202E⟩⟨U+200F⟩right to left⟨U+2066⟩" in text
    assert "line⟨U+2028⟩sep" in text
    assert "nul␀byte␛" in text
    assert "🙂" in text
    assert not set(text) & set("\x00\u2028\u202e")


def test_a_word_of_ten_thousand_letters_takes_no_room(opened, hostile):
    page = opened(width=390, height=800).open(hostile)
    for tab in ("overview", "attention", "trajectories"):
        page.click(f"#tab-{tab}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert "x" * 500 not in page.inner_text("body")


def test_a_script_from_elsewhere_is_refused(opened, report):
    watched = opened()
    page = watched.open(report)
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.ran = 8";
          document.body.append(script);
        }"""
    )
    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in said for said in watched.said)


def test_copied_cells_are_no_formulas(opened, hostile):
    page = opened(permissions=["clipboard-read", "clipboard-write"]).open(hostile)
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page.locator(".copy").first.click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert not any(line.startswith(("=", '"=')) for line in copied.split("\n"))
