"""Words, labels, names and settings are data: whatever they spell is shown, and nothing runs."""

import json

import pytest
import torch

from attnscope import heatmap, write_report
from attnscope.data.batch import Example, collate
from attnscope.data.vocabulary import Vocabulary
from attnscope.report.notebook import View
from attnscope.scores.score import Score

# What every JavaScript object seems to have.
INHERITED = [
    "constructor",
    "toString",
    "valueOf",
    "hasOwnProperty",
    "isPrototypeOf",
    "__proto__",
    "__defineGetter__",
]

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
    *INHERITED,
    "half \ud800 of a pair",
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    return write_hostile(
        tmp_path_factory.mktemp("hostile"), "snell/fig33<img src=x onerror=alert(1)>"
    )


@pytest.fixture(scope="module")
def inherited(tmp_path_factory):
    """A report in which the recipe, too, has such a name."""
    return write_hostile(tmp_path_factory.mktemp("inherited"), "constructor/__proto__")


def write_hostile(folder, recipe):
    def row(name, dataset, value, axes, found=None):
        return {
            "name": name, "dataset": dataset, "split": HOSTILE[0], "axes": axes,
            "found": found or {}, "value": value, "n": 1, "seeds": [0],
        }  # fmt: skip

    def picture(kind, name, dataset, axes, **fields):
        return {
            "kind": kind, "name": name, "dataset": dataset, "split": HOSTILE[0], "axes": axes,
            "n": 1, "seeds": [0], **fields,
        }  # fmt: skip

    table = {"columns": HOSTILE, "values": [[0.5] * len(HOSTILE)]}
    maps = [
        picture("matrix", "weight", HOSTILE[0], {"score": s}, rows=[HOSTILE[1]], **table)
        for s in ("attention", HOSTILE[1])
    ]
    spoken = picture(
        "matrix", "word_probability", "d", {"sentence": HOSTILE[1]}, rows=HOSTILE[:1], **table
    )
    points = [[w, w if w in INHERITED else HOSTILE[0], i, i + 1] for i, w in enumerate(HOSTILE)]
    titles = {"x": HOSTILE[0], "y": HOSTILE[1]}
    plane = picture("plane", "input_plane", HOSTILE[1], {HOSTILE[2]: 1}, points=points, **titles)
    curve = picture(
        "curve", HOSTILE[0], HOSTILE[1], {HOSTILE[2]: HOSTILE[3]}, axis=HOSTILE[4], x=[1], y=[2]
    ) | {"n": [1]}
    numbers = [row(w, w, 1.0, {w: w}, {w: w}) for w in HOSTILE]
    result = {
        "schema": 2, "recipe": recipe, "scale": "full",
        "config": {w: w for w in HOSTILE}, "environment": {"device": HOSTILE[0]}, "seconds": 1,
        "measurements": numbers, "pictures": [*maps, spoken, plane, curve], "units": HOSTILE,
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


def test_words_that_every_object_has_take_nothing_away(opened, inherited):
    watched = opened()
    page = watched.open(inherited)
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    shown = page.inner_text("#overview")
    for word in INHERITED:
        assert shown.count(word) >= 4, word  # name, data set, axis, configuration
    page.click("#tab-trajectories")
    expect(page.locator("#trajectories canvas").first).to_be_visible()
    for word in INHERITED:
        page.fill("#search", word)
        expect(page.locator("#trajectories .said")).to_have_text("1 point found")
    page.click("#tab-attention")
    expect(page.locator(".maps canvas").first).to_be_visible()
    text = page.inner_text(".sentences")
    assert all(word in text for word in INHERITED)
    assert watched.said == []


@pytest.fixture(scope="module")
def hostile_score():
    """A score whose words, name and title are hostile."""
    inputs = Vocabulary(tuple(HOSTILE))
    ids = list(range(len(HOSTILE)))
    batch = collate([Example(0, ids, ids, ids)])
    values = torch.full((1, len(ids), len(ids)), 0.5)
    return Score(HOSTILE[0], values, batch.input_mask, batch, inputs, inputs)


@pytest.mark.parametrize("ending", ["svg", "html"])
def test_heat_map_is_a_picture_of_words_and_nothing_else(opened, hostile_score, tmp_path, ending):
    path = heatmap(hostile_score, title=HOSTILE[0]).save(tmp_path / f"map.{ending}")
    watched = opened()
    watched.page.goto(path.as_uri())
    text = watched.page.locator("svg").text_content()
    assert "</script><script>" in text
    assert all(word in text for word in INHERITED)
    assert watched.page.locator("script, img, iframe, foreignObject, a").count() == 0
    assert watched.page.locator("rect").count() > len(HOSTILE) ** 2
    assert watched.page.evaluate("window.ran") is None
    assert (watched.dialogs, watched.asked, watched.said) == ([], [], [])


@pytest.mark.parametrize("what", ["score", "map"])
def test_heat_map_in_a_notebook_is_one_image(opened, hostile_score, tmp_path, what):
    shown = hostile_score if what == "score" else heatmap(hostile_score, title=HOSTILE[0])
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><title>n</title>{shown._repr_html_()}", encoding="utf8")
    watched = opened()
    watched.page.goto(path.as_uri())
    expect(watched.page.locator("body > *")).to_have_count(1)
    assert watched.page.locator("img").evaluate("(image) => image.naturalWidth") > 300
    assert watched.page.evaluate("window.ran") is None
    assert (watched.dialogs, watched.asked, watched.said) == ([], [], [])


def test_notebook_view_of_hostile_runs_is_as_quiet(opened, hostile, tmp_path):
    frame = View(hostile.read_text(encoding="utf8"))._repr_html_()
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><title>n</title>{frame}", encoding="utf8")
    watched = opened()
    watched.page.goto(path.as_uri())
    inner = watched.page.frame_locator("iframe")
    expect(inner.locator("#overview .recipe")).to_be_visible()
    inner.locator("#tab-attention").click()
    expect(inner.locator(".maps canvas").first).to_be_visible()
    assert watched.page.evaluate("window.ran") is None
    assert (watched.dialogs, watched.asked, watched.said) == ([], [], [])


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
