"""Take the pictures of a report that the README and the site show, with Chromium.

    python tools/screenshots.py

The overview and the trajectories are those of ``results/``, attention is the shipped demo's.
"""

from __future__ import annotations

import os
import shutil
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import sync_playwright

from attnscope.report import write_report
from attnscope.training.trained_unit import demo_folder

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
STEP, SENTENCE = 600, "der Mann lacht"


def attention(page: Any) -> None:
    """Show one sentence of the demo while it is learned, the pointer on 'because' and 'weil'."""
    choice = page.locator("#attention select").nth(2)
    wanted = choice.locator("option", has_text=SENTENCE).first
    choice.select_option(value=wanted.get_attribute("value"))
    # The stored evaluations are the positions of the slider.
    slider = page.locator("input[type=range]")
    for place in range(int(slider.get_attribute("max")) + 1):
        slider.fill(str(place))
        if page.get_by_text(f"step {STEP} of").count():
            break
    box = page.locator("#attention canvas").nth(1).bounding_box()
    for row, column in product(range(20), range(20)):
        x, y = box["x"] + box["width"] * column / 20, box["y"] + box["height"] * row / 20
        page.mouse.move(x, y)
        if page.get_by_text("because ← weil").count():
            break


def trajectories(page: Any) -> None:
    """Show where the states of 'twice' lie."""
    page.locator("#trajectories select").nth(1).select_option(label="input components")
    page.locator("#trajectories input[type=search]").fill("twice")


def main() -> None:
    """Write the three pictures."""
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    os.chdir(ROOT)  # a report names the folders that it was made from
    results = Path("results")
    with TemporaryDirectory() as folder, sync_playwright() as running:
        browser = running.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        shots = (
            ("overview", results, (1280, 900), None),
            ("attention", demo_folder(), (1280, 1120), attention),
            ("trajectories", results / "aitken" / "fig3", (1280, 760), trajectories),
        )
        for name, source, (width, height), prepare in shots:
            report = write_report(source, Path(folder) / f"{name}.html")
            page = browser.new_page(viewport={"width": width, "height": height})
            page.goto(f"{report.resolve().as_uri()}#{name}")
            if prepare is not None:
                prepare(page)
            page.wait_for_timeout(1000)  # figures are unpacked after the text
            page.screenshot(path=DOCS / f"report-{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
