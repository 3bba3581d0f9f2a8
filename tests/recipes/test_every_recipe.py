"""Every recipe, in a form of a few steps: it runs, draws, decides, resumes and repeats itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from attnscope.claims.catalogue import catalogue
from attnscope.recipes import entries
from attnscope.recipes.kit.lab import Lab
from attnscope.recipes.recipe import module_of
from attnscope.running import run as running
from attnscope.running.run import Run, draw, run
from attnscope.running.verdicts import judge
from attnscope.runs.result import read_result
from cases import for_each
from other_device import DEVICE, other_device

TEXT: dict[str, Any] = {
    "steps": 4,
    "seeds": 2,
    "embedding": 8,
    "hidden": 4,
    "translation_steps": 4,
    "translation_hidden": 4,
    "examples": 6,
    "proxy_dimension": 4,
    "proxy_epochs": 1,
    "proxy_translation_epochs": 1,
}
ESCAN: dict[str, Any] = {"escan_steps": 4, "hidden": 8, "samples": 30, "examples": 10}
TUTEK: dict[str, Any] = {"most_steps": 2, "seeds": 1, "hidden": 4, "deltas": [1], "etas": [1]}
SUNLU: dict[str, Any] = {
    "epochs": 1,
    "batch_size": 1000,
    "embedding": 8,
    "hidden": 8,
    "lstm_hidden": 4,
}
TINY: dict[str, dict[str, Any]] = {
    "sunlu/gradient-flow": {"problems": 2, "seeds": 2, "texts": 50},
    "sunlu/table2": SUNLU,
    "sunlu/scores": SUNLU | {"shown": 5, "listed": 2},
    "sunlu/weights": SUNLU,
    "sunlu/synthetic": {"epochs": 2, "texts": 100, "record_every": 1, "embedding": 8},
    "tutek/table1": TUTEK | {"seeds": 2, "permutations": 2},
    "tutek/table2": TUTEK | {"words": 10, "clusters": 5, "occurrences": 100},
    "tutek/table3": TUTEK,
    "tutek/fig1": TUTEK | {"adversary_steps": 2, "searched": 4, "search_steps": 2},
    "tutek/fig2": TUTEK,
    "tutek/table6": TUTEK | {"permutations": 2},
    "tutek/initialisation": {"most_steps": 2, "hidden": 4, "permutations": 2},
    "tutek/rationales": TUTEK,
    "aitken/beyond": {
        "steps": 4,
        "escan_steps": 4,
        "text_steps": 4,
        "hidden": 8,
        "width": 8,
        "examples": 10,
        "samples": 30,
    },
    "aitken/fig3": ESCAN,
    "aitken/fig4": {"steps": 4, "hidden": 8, "samples": 80, "examples": 10},
    "aitken/fig5": ESCAN
    | {
        "seeds": 1,
        "steps": 4,
        "sorting_steps": 4,
        "task_seeds": 1,
        "text_seeds": 1,
        "text_steps": 4,
        "text_hidden": 8,
    },
    "aitken/fig6": ESCAN,
    "snell/table5": TEXT,
    "snell/table10": TEXT,
    "snell/table11": TEXT,
    "snell/optimal-attention": {"translation_hidden": 8, "translation_steps": 3, "examples": 6},
    "snell/alignment": {"translation_hidden": 8, "translation_steps": 3, "examples": 6},
    "snell/fig3": {"steps": 4, "seeds": 2, "length": 5, "control_types": 7, "hidden": 8},
    "snell/fig6": {
        "steps": 4,
        "seeds": 2,
        "length": 5,
        "hidden": 8,
        "candidates": 4,
        "wave": 2,
        "heads": 2,
        "head_counts": [1, 2],
    },
    "snell/fig7": {"steps": 4, "seeds": 2, "length": 5, "types": 6, "hidden": 8, "examples": 20},
    "snell/permutation-function": {
        "steps": 6,
        "copy_steps": 3,
        "seeds": 2,
        "length": 5,
        "types": 7,
        "hidden": 8,
    },
    "aitken/fig2": {
        "seeds": 1,
        "cell_seeds": 1,
        "steps": 4,
        "sorting_steps": 4,
        "batch_size": 4,
        "hidden": 8,
        "shortest": 3,
        "longest": 4,
        "samples": 20,
        "examples": 10,
    },
}
Figures = tuple[tuple[Path, ...], str | None]
Drawing = Callable[[Path], Figures]
NAMES = [entry.name for entry in entries()]


def tiny(name: str, workspace: Path, drawn: Drawing) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "draw", drawn)
        return run(name, TINY.get(name, {}), quick=True, device="cpu", jobs=1, out=workspace)


def from_result_and_logs(folder: Path) -> Figures:
    """Draw a run's figures where nothing but its result and its units' logs exists."""
    result = read_result(folder / "result.json")
    workspace = folder.parents[result.place.count("/")]
    copied = workspace.with_name("drawn")
    for file in (folder / "result.json", *_logs(workspace, result.units)):
        copy = copied / file.relative_to(workspace)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    return draw(copied / folder.relative_to(workspace))


def _logs(workspace: Path, units: Sequence[str]) -> list[Path]:
    return [
        workspace / "units" / unit / file for unit in units for file in ("config.json", "log.jsonl")
    ]


def it_draws_svg_and_png_figures_from_the_result_and_the_logs_alone(done: Run) -> None:
    kinds = {path.suffix for path in done.figures}
    assert done.notice is None
    assert kinds == {".svg", ".png"}
    assert all(path.stat().st_size > 1000 for path in done.figures)


def every_measurement_has_an_n_and_the_schema_of_the_design(done: Run) -> None:
    result = json.loads((done.folder / "result.json").read_text())
    assert result["schema"] == 2
    assert result["recipe"] == done.entry.name
    assert result["scale"] == "quick"
    assert result["measurements"] or result["pictures"]
    for row in result["measurements"]:
        assert {"name", "dataset", "split", "axes", "value", "low", "high", "n", "seeds"} <= set(
            row
        )
        assert row["n"] > 0


def every_claim_is_in_the_catalogue_and_gets_a_quick_verdict(done: Run) -> None:
    own = set(module_of(done.entry).CLAIMS)
    listed = {entry.id for entry in catalogue() if done.entry.name in entry.recipes}
    assert own == listed
    judged = [claim for claim in judge([done.result]) if claim.id in own]
    assert all(claim.verdict == "undecided" and claim.quick is not None for claim in judged)


def headline_measurements_exist(done: Run) -> None:
    measured = {row.name for row in done.result.numbers}
    assert set(module_of(done.entry).HEADLINE) <= measured


def running_again_reuses_every_unit_and_gives_the_same_measurements(done: Run) -> None:
    workspace = done.folder.parents[done.result.place.count("/")]
    before = {path: path.stat().st_mtime_ns for path in workspace.glob("units/*/last.safetensors")}
    again = tiny(done.entry.name, workspace, lambda folder: ((), None))
    after = {path: path.stat().st_mtime_ns for path in workspace.glob("units/*/last.safetensors")}
    assert again.result.measurements == done.result.measurements
    assert again.result.pictures == done.result.pictures
    assert before == after


# Measures of these are those of figures 3, 4 and 6, in many more networks; gradient-flow takes
# derivatives of functions, which tensors in a wrapper do not allow.
ON_THE_CPU = ("aitken/fig2", "aitken/fig5", "aitken/beyond", "sunlu/gradient-flow")


def measuring_on_another_device_gives_the_same_numbers(done: Run) -> None:
    if done.entry.name in ON_THE_CPU:
        return
    workspace = done.folder.parents[done.result.place.count("/")]

    def elsewhere(*given: Any, trains_on: str, precision: Any) -> Lab:
        lab = Lab(*given, trains_on="cpu", precision=precision)
        lab.device = DEVICE.type
        return lab

    with pytest.MonkeyPatch.context() as patch, other_device():
        patch.setattr(running, "Lab", elsewhere)
        again = tiny(done.entry.name, workspace, lambda folder: ((), None))
    here, there = (
        {(row.name, row.dataset, row.split, str(row.axes)): row.number for row in run.numbers}
        for run in (done.result, again.result)
    )
    assert there == pytest.approx(here, rel=1e-3, abs=1e-3, nan_ok=True)


def a_quick_configuration_is_valid_and_smaller_than_the_full_one(done: Run) -> None:
    module = module_of(done.entry)
    full, quick = module.Config(), module.Config(**module.QUICK)
    assert quick != full


PROMISES = [
    it_draws_svg_and_png_figures_from_the_result_and_the_logs_alone,
    every_measurement_has_an_n_and_the_schema_of_the_design,
    every_claim_is_in_the_catalogue_and_gets_a_quick_verdict,
    headline_measurements_exist,
    running_again_reuses_every_unit_and_gives_the_same_measurements,
    measuring_on_another_device_gives_the_same_numbers,
    a_quick_configuration_is_valid_and_smaller_than_the_full_one,
]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recipes") / "runs"


@pytest.fixture
def done(workspace: Path, name: str) -> Run:
    return tiny(name, workspace, from_result_and_logs)


@pytest.mark.parametrize("name", NAMES)
@for_each("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_a_recipe_keeps_every_promise(done: Run, promise: Callable[[Run], None]) -> None:
    promise(done)
