import re
from html import unescape

from attnscope import load, view


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(trained):
    shown = view(trained, height=500)
    frame = shown._repr_html_()
    assert 'sandbox="allow-scripts allow-downloads"' in frame
    assert 'height="500"' in frame
    assert unescape(re.search(r'srcdoc="([^"]*)"', frame)[1]) == shown.html


def test_a_loaded_unit_shows_itself():
    assert '"grammar-translation"' in view(load("demo")).html


def test_a_view_can_be_saved(trained, tmp_path):
    shown = view([trained])
    assert shown.save(tmp_path / "view.html").read_text(encoding="utf8") == shown.html
