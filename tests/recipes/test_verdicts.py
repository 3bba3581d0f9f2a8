"""Verdicts over workspaces, and the page that is made of them."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

from attnscope.analysis.intervals import Interval
from attnscope.claims.catalogue import catalogue
from attnscope.claims.pool import Pool
from attnscope.recipes.snell import fig3
from attnscope.report.reproduction import write_reproduction
from attnscope.running.verdicts import judge, verdicts
from attnscope.runs.result import Measurement, Result, headline

ROOT = Path(__file__).parents[2]


def result(learned: int, scale: str = "full", seeds: range = range(20)) -> Result:
    rows = []
    for role, count in (("permutations", learned), ("control", len(seeds))):
        for place, seed in enumerate(seeds):
            axes = {"role": role, "run": place, "step": 200}
            good = place < count
            for name, value in (("accuracy", 1.0 if good else 0.7), ("steps_to_95", 50)):
                reached = value if good or name == "accuracy" else None
                rows.append(
                    Measurement(
                        name=name, dataset=role, axes=axes, value=reached, n=1, seeds=(seed,)
                    )
                )
    return Result(
        recipe="snell/fig3",
        scale=scale,  # type: ignore[arg-type]
        config=fig3.Config().model_dump(mode="json"),
        environment={"device": "cpu"},
        seconds=1.0,
        measurements=tuple(rows),
    )


def verdict_of(results: list[Result], claim: str = "snell.permutation-copy"):
    return next(judged for judged in judge(results) if judged.id == claim)


def test_every_claim_of_the_catalogue_gets_a_verdict_even_without_any_run(tmp_path: Path) -> None:
    judged = verdicts([tmp_path])
    assert [claim.id for claim in judged] == [entry.id for entry in catalogue()]
    assert {claim.verdict for claim in judged} == {"undecided"}
    assert all("no finished run" in claim.note for claim in judged)


def test_a_full_run_decides_and_a_quick_one_never_does() -> None:
    assert verdict_of([result(12)]).verdict == "holds"
    quick = verdict_of([result(12, "quick")])
    assert (quick.verdict, quick.quick) == ("undecided", "holds")


def test_the_setting_of_a_figure_without_numbers_is_not_a_printed_result() -> None:
    rows = (Measurement(name="AUC(attention)", dataset="sunlu-sst", value=0.8, n=1),)
    scores = result(12).model_copy(update={"recipe": "sunlu/scores", "measurements": rows})
    assert verdict_of([scores], "sunlu.polarity-sign").published == ()
    assert verdict_of([result(12)]).published != ()


def test_a_setting_says_what_the_runs_share_and_in_what_they_differ() -> None:
    longer = result(12).config | {"steps": 400}
    other = {"config": longer, "environment": {"device": "cuda"}}
    setting = verdict_of([result(12), result(12).model_copy(update=other)]).setting
    assert setting["differing"] == {"steps": [200, 400]}
    assert setting["config"] == {k: v for k, v in longer.items() if k != "steps"}
    assert setting["devices"] == ["cpu", "cuda"]


def test_a_quick_run_beside_a_full_one_changes_nothing() -> None:
    assert verdict_of([result(12), result(20, "quick")]) == verdict_of([result(12)])


def test_runs_of_several_workspaces_are_pooled(tmp_path: Path) -> None:
    for name, seeds in (("a", range(10)), ("b", range(10, 20))):
        result(6, seeds=seeds).write(tmp_path / name / "snell" / "fig3")
    alone = {claim.id: claim for claim in verdicts([tmp_path / "a"])}
    both = {claim.id: claim for claim in verdicts([tmp_path / "a", tmp_path / "b"])}
    assert alone["snell.permutation-copy"].verdict == "undecided"  # ten seeds are too few
    assert both["snell.permutation-copy"].verdict == "holds"
    assert both["snell.permutation-copy"].evidence["permutations learned"] == "12/20"


def test_a_later_measurement_replaces_an_earlier_one_of_the_same_key() -> None:
    pooled = Pool((result(12), result(15)))
    assert len(pooled.measurements) == len(result(12).measurements)
    assert sum(value == 1.0 for value in pooled.values("accuracy", role="permutations")) == 15


def test_of_a_curve_the_headline_is_its_last_step() -> None:
    rows = [
        Measurement(name="x", dataset="d", axes={"step": step}, value=step, n=1) for step in (1, 2)
    ]
    assert [row.value for row in headline(rows, ["x"])] == [2]


def test_the_page_names_every_claim_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    found = result(12)
    folder = tmp_path / "results" / "snell" / "fig3"
    found.write(folder)
    (folder / "figures").mkdir()
    (folder / "figures" / "fig3.svg").write_text("<svg/>")
    page = tmp_path / "docs" / "reproduction.md"
    write_reproduction(tmp_path / "results", page)
    text = page.read_text()
    assert all(entry.id in text for entry in catalogue())
    own = page.parent / "papers" / "snell.md"
    for source, pattern in ((page, r"\((papers/\w+\.md)"), (own, r"\]\((\.\./[^)#]*)\)")):
        links = re.findall(pattern, source.read_text())
        assert links
        assert all((source.parent / link).exists() for link in links)
    assert "### snell.permutation-copy" in own.read_text()
    stored = json.loads((tmp_path / "results" / "claims.json").read_text())
    assert len(stored) == len(catalogue())


def test_an_interval_among_the_evidence_keeps_its_names_in_json() -> None:
    known, single = Interval(0.5, 0.25, 0.75, 4), Interval(0.5, math.nan, math.nan, 1)
    told = {"rates": [known], "by model": {"aed": single}, "learned": "3/4"}
    judged = replace(judge([])[0], evidence=told)
    assert json.loads(json.dumps(judged.as_json(), allow_nan=False))["evidence"] == {
        "rates": [{"value": 0.5, "low": 0.25, "high": 0.75, "n": 4}],
        "by model": {"aed": {"value": 0.5, "low": None, "high": None, "n": 1}},
        "learned": "3/4",
    }


def test_the_repository_says_what_its_results_say(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for path in (ROOT / "results").rglob("*"):
        if path.is_file() and path.suffix != ".csv" and path.name != "claims.json":
            target = copy / "results" / path.relative_to(ROOT / "results")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    write_reproduction(copy / "results", copy / "docs" / "reproduction.md")
    made = [path.relative_to(copy) for path in (copy / "docs").rglob("*.md")]
    made += [path.relative_to(copy) for path in (copy / "results").rglob("*.csv")]
    assert len(made) == 14  # a page and two tables for each paper, one of each for all
    for name in (*made, Path("results/claims.json")):
        assert (copy / name).read_text() == (ROOT / name).read_text(), name
