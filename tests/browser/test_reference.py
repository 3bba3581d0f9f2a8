"""The report over the reference results: small, quick to open, silent."""

from pathlib import Path

import pytest

from attnscope import write_report

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
