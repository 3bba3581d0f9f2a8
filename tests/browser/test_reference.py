"""The report over the reference results: small, quick to open, silent."""

import re
from pathlib import Path

import pytest

from attnscope import write_report

expect = pytest.importorskip("playwright.sync_api").expect

RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.skipif(not RESULTS.is_dir(), reason="needs the repository's results")
def test_a_report_over_all_reference_results_stays_under_ten_megabytes(opened, tmp_path):
    path = write_report(RESULTS, tmp_path / "results.html")
    watched = opened()
    page = watched.open(path)
    page.click("#tab-attention")
    page.click("#tab-trajectories")
    seconds = float(page.get_attribute("#opened", "data-seconds"))
    print(
        f"report of results: {path.stat().st_size / 1e6:.1f} MB, first view after {seconds:.2f} s"
    )
    assert path.stat().st_size < 10_000_000
    assert watched.said == []
    assert watched.asked == []


@pytest.mark.skipif(not RESULTS.is_dir(), reason="needs the repository's results")
def test_a_link_to_a_recipe_ends_at_it_though_figures_above_come_later(opened, tmp_path):
    page = opened().open(write_report(RESULTS, tmp_path / "results.html"))
    last = "#recipe-snell-alignment"
    # Smooth scrolling passes every figure above, and each comes when it is seen.
    top = page.evaluate(
        """async (last) => {
          const ended = new Promise((done) => addEventListener("scrollend", done, { once: true }));
          document.querySelector(`a[href="${last}"]`).click();
          await ended;
          return document.querySelector(last).getBoundingClientRect().top;
        }""",
        last,
    )
    assert 0 <= top <= 150


@pytest.mark.skipif(not RESULTS.is_dir(), reason="needs the repository's results")
def test_letters_of_a_claim_are_explained_and_its_evidence_has_a_line_for_each_corpus(
    opened, tmp_path
):
    corpora = sorted((RESULTS / "snell" / "table5").iterdir())
    page = opened().open(write_report(corpora, tmp_path / "results.html"))
    claim = page.locator(".claim", has_text="snell.uniform-probe")
    for letter, meaning in (("βᵘᶠ", "trained under uniform attention"), ("Â", "shuffled score")):
        claim.locator(".term", has_text=letter).hover()
        expect(page.locator("#tip")).to_contain_text(meaning)
    lines = claim.locator(".evidence li")
    expect(lines.filter(has_text="multi30k-de-en")).to_contain_text(re.compile(r"\d \(.* to .*\)"))
