"""The built site: its links lead somewhere, and it asks no network."""

from __future__ import annotations

import importlib.util
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from attnscope.claims.papers import PAPERS
from attnscope.recipes import entries

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
# Elements whose address is loaded with the page; a link is only followed by its reader.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
NOT_LOADED = {"canonical", "next", "prev", "search", "index", "alternate", "author"}


class Page(HTMLParser):
    """The anchors, links and loaded addresses of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given and given.get("rel") not in NOT_LOADED:
            self.loaded.append(given[LOADED[tag]])


@pytest.fixture(scope="module")
def read(site: Path) -> dict[Path, Page]:
    return {path.resolve(): Page(path) for path in site.rglob("*.html")}


def test_every_internal_link_and_anchor_exists(site: Path, read: dict[Path, Page]) -> None:
    broken = []
    for path, page in read.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            # A report makes its anchors when it is opened: see the test in a browser.
            anchor = "" if "reports" in target.parts else unquote(parts.fragment)
            if not target.exists() or (
                anchor and target in read and anchor not in read[target].anchors
            ):
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
    assert broken == []


def test_no_page_loads_anything_from_elsewhere(read: dict[Path, Page]) -> None:
    outside = [
        (path.name, address)
        for path, page in read.items()
        for address in page.loaded
        if urlsplit(address).netloc
    ]
    assert outside == []


def test_no_style_or_script_loads_anything_from_elsewhere(site: Path) -> None:
    asks = re.compile(r"@import\s|url\(['\"]?(?:https?:)?//|\bimportScripts\(['\"]https?:")
    found = [
        path.name
        for kind in ("*.css", "*.js")
        for path in site.rglob(kind)
        if asks.search(path.read_text(encoding="utf8"))
    ]
    assert found == []


in_browser = pytest.mark.skipif(
    CHROMIUM is None or importlib.util.find_spec("playwright") is None,
    reason="needs Chromium and playwright: apt-get install chromium, pip install -e '.[dev]'",
)


@in_browser
def test_a_browser_asks_no_network_and_reports_no_error(site: Path) -> None:
    from playwright.sync_api import sync_playwright

    asked, said = [], []
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(offline=True)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: said.append(str(error)))
        shown = [path for path in sorted(site.rglob("*.html")) if "source" not in path.parts]
        for path in shown:
            page.goto(path.resolve().as_uri())
        browser.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert said == []
    assert len(shown) > 40


@in_browser
def test_a_card_of_the_gallery_opens_its_recipe_in_the_report(
    site: Path, read: dict[Path, Page]
) -> None:
    from playwright.sync_api import sync_playwright

    gallery = (site / "generated" / "gallery.html").resolve()
    cards = [link for link in read[gallery].links if "#recipe-" in link]
    assert len(cards) == len(entries())
    missing = []
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context(offline=True).new_page()
        for link in cards:
            # The next recipe of the same report is reached without loading it again.
            page.goto(f"{gallery.parent.as_uri()}/{link}")
            name = urlsplit(link).fragment
            article = page.locator(f"#{name}")
            if article.count() != 1 or abs(article.bounding_box()["y"]) > 100:
                missing.append(link)
        browser.close()
    # The last recipes of a report may be too short to be scrolled to the top.
    assert len(missing) <= len(PAPERS), missing
