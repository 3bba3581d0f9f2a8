"""A served page follows a run, a notebook shows the same page, and long texts stay usable."""

import json
import shutil
import threading

import pytest

from attnscope import view, write_report
from attnscope.report.page import request_of
from attnscope.report.serve import serve
from attnscope.runs.lock import locked

expect = pytest.importorskip("playwright.sync_api").expect

DEMO = "grammar-translation-seq2seq-seed0-demo"


@pytest.fixture
def running(workspace, tmp_path):
    """A workspace whose translator has not come to its last step yet."""
    folder = tmp_path / "running"
    shutil.copytree(workspace / "units" / DEMO, folder / "units" / DEMO)
    unit = folder / "units" / DEMO
    (unit / "done.json").unlink()
    last = unit / "scores" / "step-00002000.safetensors"
    log = (unit / "log.jsonl").read_text()
    kept = last.rename(tmp_path / "last.safetensors")
    (unit / "log.jsonl").write_text("".join(log.splitlines(keepends=True)[:-1]))

    def go_on():
        shutil.copy(kept, last)
        (unit / "log.jsonl").write_text(log)

    with locked(unit / "lock", wait=False):
        yield folder, go_on


def test_a_served_page_follows_a_run_in_progress(opened, running):
    folder, go_on = running
    server = serve(request_of(folder), port=0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        watched = opened()
        page = watched.open(server.address, "attention")
        expect(page.locator("#live")).to_have_class("on")
        expect(page.locator("#unit")).to_contain_text("(training)")
        expect(page.locator(".step")).to_have_text("step 1,500 of 1,500")
        go_on()
        expect(page.locator(".step")).to_have_text("step 2,000 of 2,000")
        page.locator("#step").fill("0")
        expect(page.locator(".step")).to_have_text("step 0 of 2,000")
        assert watched.said == []
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    expect(page.locator("#live")).to_have_text("the server does not answer")


def test_a_notebook_shows_the_page_in_its_frame(opened, workspace, tmp_path):
    watched = opened()
    shown = view(workspace / "units" / DEMO, count=1)
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><title>notebook</title>{shown._repr_html_()}")
    watched.page.goto(notebook.as_uri())
    frame = watched.page.frame_locator("iframe")
    frame.locator("#tab-attention").click()
    expect(frame.locator(".maps canvas").first).to_be_visible()
    expect(frame.locator(".curves canvas")).to_be_visible()
    assert watched.said == []
    assert watched.asked == []


def test_five_hundred_words_stay_usable(opened, tmp_path):
    pictures = [
        {
            "kind": "matrix", "name": name, "dataset": "long", "n": 1, "seeds": [0],
            "axes": {"sentence": "long", "model": "base"}, "rows": ["positive"],
            "columns": [f"word{i}" for i in range(500)],
            "values": [[(i % 7) / 7 for i in range(500)]],
        }
        for name in ("word_attention", "word_probability")
    ]  # fmt: skip
    result = {
        "schema": 2, "recipe": "tutek/fig2", "scale": "quick", "config": {}, "seconds": 1,
        "environment": {"device": "cpu"}, "measurements": [], "pictures": pictures, "units": [],
    }  # fmt: skip
    place = tmp_path / "ws" / "tutek" / "fig2"
    place.mkdir(parents=True)
    (place / "result.json").write_text(json.dumps(result))
    page = opened().open(write_report(tmp_path / "ws", tmp_path / "r.html"), "attention")
    blocks = page.locator(".maps canvas")
    expect(blocks.nth(5)).to_be_attached()
    assert blocks.count() < 20
    blocks.last.scroll_into_view_if_needed()
    blocks.last.hover(position={"x": 240, "y": 130})
    expect(page.locator("#tip .pair")).to_contain_text("word")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
