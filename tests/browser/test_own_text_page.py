"""The page of a run on the user's own text: the block at its top, numbers, and printing."""

import pytest

from attnscope import write_report
from attnscope.claims.wording import number
from attnscope.runs.result import Measurement, Result

expect = pytest.importorskip("playwright.sync_api").expect

VALUES = [12.25, 1234.5, -1234.5, 0.00012, 1.234e-5, 9.995, 99.95, 12.2499999, 0.1, 100.5, -0.05]
CASES = [f"case-{chr(ord('a') + place)}" for place in range(len(VALUES))]
FIGURES = 9


def row(name, value, low=None, high=None, **axes):
    return Measurement(
        name=name, dataset="reviews", value=value, low=low, high=high, n=100, axes=axes, seeds=(0,)
    )


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A report on one corpus of the user's, with more figures than a screen holds."""
    workspace = tmp_path_factory.mktemp("own")
    rows = (
        row("accuracy", 79.0, 71.0, 86.0),
        row("majority", 66.0),
        row("bag_of_words", 84.0),
        row("accuracy_uniform", 77.8),
        row("A(alpha,beta_uf)", 34.0, 29.0, 39.0, way="text"),
        row("A_random", 8.0, way="text"),
        *(row("excess(alpha,beta)", value, way=CASES[n]) for n, value in enumerate(VALUES)),
    )
    shared = {"environment": {"device": "cpu"}, "seconds": 1.0, "config": {}}
    result = Result(
        recipe="snell/table5",
        part="reviews-1234",
        variant="abcdef",
        scale="changed",
        changed={"steps": 500},
        measurements=rows,
        **shared,
    )
    result.write(workspace / result.place)
    figures = workspace / result.place / "figures"
    figures.mkdir()
    for place in range(FIGURES):
        (figures / f"figure-{place}.svg").write_text(
            '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="900">'
            '<rect width="900" height="900"/></svg>'
        )
    return write_report(workspace, workspace / "report.html")


def test_the_users_corpus_comes_first_and_the_papers_claims_fold_away(opened, own):
    for width in (1280, 390):
        watched = opened(width=width)
        page = watched.open(own)
        block = page.locator("#overview > div > *").first
        expect(block).to_contain_text("About reviews")
        expect(block).to_contain_text("right in 79\u00a0% of the held-out texts")
        expect(block).to_contain_text("in 34\u00a0% of the texts (29 to 39; chance 8)")
        expect(block).to_contain_text("costs 1.2 points")
        expect(block).to_contain_text("with steps=500")
        expect(block.locator(".warning")).to_contain_text("not better than a bag of words")
        folded = page.locator("details", has_text="What the paper claims")
        expect(folded).not_to_have_attribute("open", "")
        expect(page.locator(".claim").first).not_to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert watched.said == []


def test_numbers_are_rounded_as_in_the_terminal(opened, own):
    page = opened().open(own)
    page.locator("summary", has_text="All measurements").click()
    for place, value in enumerate(VALUES):
        cells = page.locator("tr", has_text=CASES[place]).last.locator("td.numeric")
        shown = cells.first.inner_text().replace(",", "").replace("\u2212", "-")
        assert shown == number(value), value


def test_every_figure_is_there_when_the_page_is_printed(opened, own):
    page = opened(height=500).open(own)
    page.wait_for_function(
        """(count) => {
          const images = [...document.querySelectorAll("figure img")];
          return images.length === count
            && images.every((image) => image.src.startsWith("blob:") && image.naturalWidth > 0);
        }""",
        arg=FIGURES,
    )
