"""The command line: an error is one sentence and a non-zero exit, each verb prints JSON too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnscope.recipes import entries
from cases import for_each
from command import answers_without_torch, attnscope, python

TINY = ["length=5", "control_types=7", "hidden=8", "steps=4", "--seeds", "2", "--jobs", "1"]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    run = ["run", "snell/fig3", *TINY, "--quick", "--out", str(out)]
    done = python("-m", "attnscope", *run)
    assert done.returncode == 0, done.stderr
    (out / "printed.txt").write_text(done.stdout)
    return out


def test_a_run_ends_with_a_table_the_quick_verdicts_and_the_figure(workspace: Path) -> None:
    printed = (workspace / "printed.txt").read_text()
    assert "seeds learned" in printed  # in words, not as it is stored
    assert "quick, would say:" in printed
    assert "snell.permutation-copy" in printed
    (figure,) = workspace.glob("snell/fig3/**/fig3.svg")
    assert str(figure) in printed


def test_units_lists_what_is_trained_with_its_recipe_and_accuracy(workspace: Path) -> None:
    rows = json.loads(attnscope("units", str(workspace), "--json").stdout)
    assert {row["recipes"][0] for row in rows} == {"snell/fig3"}
    assert all(row["finished"] and 0 <= row["accuracy"] <= 1 for row in rows)
    assert len({(row["dataset"], row["label"]) for row in rows}) == len(rows)
    printed = attnscope("units", str(workspace)).stdout
    assert all(row["name"] in printed and row["label"] in printed for row in rows)


def test_show_and_help_explain_every_setting_and_what_a_run_decides() -> None:
    shown = attnscope("show", "snell/table5").stdout
    for part in ("seeds=5   --quick: 2 ▾", "Comparison runs", "snell.uniform-probe", "corpus=NAME"):
        assert part in shown
    helped = attnscope("run", "snell/table5", "--help").stdout
    assert "--budget" in helped
    assert "Comparison runs of a classifier" in helped
    read = json.loads(attnscope("show", "snell/table5", "--json").stdout)
    assert all(row["meaning"] for row in read["settings"])


def test_explain_prints_a_name_in_words_with_its_symbol() -> None:
    printed = attnscope("explain", "A(alpha,beta_uf)").stdout
    assert "attention and uniform probe, A(α, βᵘᶠ)" in printed


@for_each(
    ("arguments", "sentence"),
    [
        (["run", "snell/fig33"], "did you mean 'snell/fig3'?"),
        (["run", "snell/fig3", "stepz=3"], "did you mean 'steps'?"),
        (["run", "snell/fig3", "steps=0"], "steps=0 is not valid"),
        (["run", "snell/fig3", "steps=many"], "steps='many' is not valid"),
        (["run", "snell/fig3", "control_types=3", "length=5"], "at least as many types"),
        (["run", "snell/fig3", "steps"], "write key=value"),
        (["run", "snell/fig3", "--jobs", "0"], "at least one process"),
        (["run", "snell/fig3", "--on", "slrum"], "did you mean 'slurm'?"),
        (["run", "snell/fig3", "--workers", "4"], "belong to --on slurm"),
        (["work", "shared", "--until-idle", "soon"], "--until-idle='soon': write seconds"),
        (["units", "nowhere"], "There is no folder nowhere"),
        (["explain", "lexical prob"], "did you mean lexical probe"),
        (["show", "snell/fig33"], "did you mean 'snell/fig3'?"),
        (["run", "snell/fig3", "--budget", "soon"], "budget='soon': write seconds"),
        (["status", "nowhere"], "There is no folder nowhere"),
        (["run", "snell/fig3", "--out", "/proc/nowhere"], "choose another folder with --out"),
        (["claims", "no-such-folder"], "There is no folder no-such-folder"),
    ],
)
def test_an_error_is_one_sentence(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    done = attnscope(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


# Where no types are enforced, too: these are Literals.
@pytest.mark.parametrize(
    ("option", "valid"),
    [(("--device", "tpu"), "auto, cpu, cuda"), (("--precision", "bf16"), "float32, tf32")],
)
def test_an_error_is_one_sentence_in_a_process_of_its_own(
    tmp_path: Path, option: tuple[str, str], valid: str
) -> None:
    done = python("-m", "attnscope", "run", "snell/fig3", *option, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("attnscope: ")
    assert f"valid: {valid}" in sentence


def test_cuda_without_a_device_is_one_sentence(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device; the sentence is for machines without one")
    done = attnscope("run", "snell/fig3", "--device", "cuda", cwd=tmp_path)
    assert done.returncode == 1
    assert "No CUDA device was found" in done.stderr


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = attnscope("--debug", "run", "snell/fig3", "stepz=3", cwd=tmp_path)
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_a_file_in_place_of_the_workspace_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("not a folder")
    done = attnscope("run", "snell/fig3", "--quick", cwd=tmp_path)
    assert done.returncode == 1
    assert "choose another folder with --out" in done.stderr


def test_a_foreign_result_file_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "snell" / "fig3"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text('{"recipe": 1}')
    done = attnscope("claims", str(tmp_path))
    assert done.returncode == 1
    assert str(folder / "result.json") in done.stderr


def test_list_names_every_recipe_and_speaks_json() -> None:
    names = [entry.name for entry in entries()]
    shown = attnscope("list")
    assert all(name in shown.stdout for name in names)
    assert [row["name"] for row in json.loads(attnscope("list", "--json").stdout)] == names


def test_run_as_json_has_result_claims_and_figures(workspace: Path) -> None:
    done = attnscope("run", "snell/fig3", *TINY, "--quick", "--out", str(workspace), "--json")
    report = json.loads(done.stdout)
    assert report["result"]["recipe"] == "snell/fig3"
    assert {claim["id"] for claim in report["claims"]} >= {"snell.permutation-copy"}
    assert all(Path(path).exists() for path in report["figures"])


def test_claims_as_json_has_every_claim_with_the_fields_of_the_design(workspace: Path) -> None:
    judged = json.loads(attnscope("claims", str(workspace), "--json").stdout)
    assert len(judged) == 72
    for claim in judged:
        assert {"id", "verdict", "evidence", "deviation", "note"} <= set(claim)
        assert claim["verdict"] == "undecided"  # quick runs never decide
    quick = {claim["id"] for claim in judged if claim["quick"]}
    assert quick == {"snell.permutation-copy", "snell.mixture-copy", "snell.proxy-cannot"}


def test_help_and_list_answer_without_torch() -> None:
    assert answers_without_torch(["--help"], ["list"], ["run", "--help"])


def test_status_counts_the_units_of_a_workspace(workspace: Path) -> None:
    printed = attnscope("status", str(workspace), "--json")
    found = json.loads(printed.stdout)
    assert found["done"] == len(list((workspace / "units").iterdir()))
    assert (found["running"], found["waiting"], found["failed"]) == ([], 0, {})
    line = attnscope("status", str(workspace)).stdout.splitlines()[0]
    assert line.startswith(f"{found['done']} units done, 0 running, 0 waiting, 0 failed")
