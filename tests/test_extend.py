"""A user's own score, model, loss term, task, corpus reader, recipe and claim work from one file.

The examples are copied to a folder outside the package and run there, as a user would.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from attnscope.errors import UsageError
from attnscope.recipes import add, find
from cases import for_each
from forked import Done, forked

EXAMPLES = Path(__file__).parents[1] / "examples" / "extend"
SCRIPTS = ["own_score", "own_model", "own_term", "own_task", "own_corpus"]


# Loads every unit of the workspace and prints its name, or the sentence that says why not.
LOAD = """
import attnscope
from pathlib import Path
for path in sorted(Path("runs/units").iterdir()):
    try:
        score = attnscope.load(path).score("attention")
        print(path.name, "is", score.values.isfinite().all().item())
    except attnscope.errors.UsageError as error:
        print(path.name, "needs", error)
"""
CLI = ("-m", "attnscope")
IMPORTS = [part for name in SCRIPTS for part in ("--import", name)]
RECIPE_RUN = ["run", "own_recipe.py", "steps=40", "--quick", "--jobs", "2", "--out", "recipe-runs"]
# Each in a process of its own, one after another.
COMMANDS: dict[str, list[str]] = {
    **{name: [f"{name}.py"] for name in SCRIPTS},
    "load, imported": ["-c", f"import {', '.join(SCRIPTS)}\n{LOAD}"],
    "load": ["-c", LOAD],
    "report, imported": [*CLI, "report", "runs", *IMPORTS, "--out", "units.html"],
    "run": [*CLI, *RECIPE_RUN],
    "claims": [*CLI, "claims", "recipe-runs"],
    "claims, imported": [*CLI, "claims", "recipe-runs", "--import", "own_recipe.py"],
    "report": [*CLI, "report", "recipe-runs"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copied = tmp_path_factory.mktemp("user")
    for path in EXAMPLES.glob("*.py"):
        shutil.copy(path, copied)
    return copied


@pytest.fixture(scope="module")
def done(folder: Path) -> dict[str, Done]:
    return forked(COMMANDS, folder)


def test_every_command_succeeds(done: dict[str, Done]) -> None:
    assert {name: each.stderr for name, each in done.items() if each.returncode} == {}


@for_each("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_has_at_most_60_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 60


def test_the_examples_do_what_they_say(done: dict[str, Done]) -> None:
    printed = {name: done[name].stdout for name in SCRIPTS}
    assert "Score('weighted_norm'" in printed["own_score"]
    assert printed["own_model"].count("kept") == 9
    assert "BROKEN" not in printed["own_model"]
    attention = [float(line.rpartition(" ")[2]) for line in printed["own_term"].splitlines()]
    assert max(attention[:2]) < min(attention[2:])  # the penalty of entropy makes it sharper
    for name in ("own_model", "own_task", "own_corpus"):
        assert printed[name].count("seed0") == printed[name].count("seed1") == 1


def test_units_with_parts_of_users_load_in_a_new_process_that_imports_them(
    done: dict[str, Done],
) -> None:
    lines = done["load, imported"].stdout.splitlines()
    assert len(lines) == 12
    assert all(line.endswith("is True") for line in lines), done["load, imported"]


def test_without_that_import_each_says_in_one_sentence_what_to_import(
    done: dict[str, Done],
) -> None:
    lines = done["load"].stdout.splitlines()
    assert len(lines) == 12
    hint = "if a module of yours defines it, import that module first (--import MODULE"
    assert all("unknown kind 'my-" in line and hint in line for line in lines)


def test_a_report_shows_units_with_own_kinds_when_their_modules_are_named(
    folder: Path, done: dict[str, Done]
) -> None:
    assert "unknown kind" not in (folder / "units.html").read_text()


def test_a_recipe_in_a_file_runs_with_settings_seeds_and_workers(
    folder: Path, done: dict[str, Done]
) -> None:
    (path,) = folder.glob("recipe-runs/own/own_recipe/quick-*/result.json")
    result = json.loads(path.read_text())
    assert result["recipe"] == "own/own_recipe"
    assert result["config"]["steps"] == 40
    assert result["measurements"][0]["seeds"] == [0, 1]
    assert len(result["units"]) == 2


def test_its_claim_is_shown_with_a_note(done: dict[str, Done]) -> None:
    assert "own.finds-keyword" in done["run"].stdout
    assert "Not one of the papers' claims" in done["run"].stdout


def test_claims_and_report_say_which_file_is_missing_and_take_it(
    folder: Path, done: dict[str, Done]
) -> None:
    assert "--import own_recipe.py" in done["claims"].stderr
    assert "own.finds-keyword" not in done["claims"].stdout
    assert done["claims, imported"].stderr == ""
    assert "own.finds-keyword" in done["claims, imported"].stdout
    page = (folder / "report.html").read_text()
    assert "keyword_share" in page
    assert "attnscope run own_recipe.py" in page


def test_a_stored_name_never_imports_a_module(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"own/antigravity is in a file of its author"):
        find("own/antigravity")
    assert "antigravity" not in sys.modules


@for_each(
    ("name", "content", "sentence"),
    [
        ("absent.py", None, "There is no file absent.py"),
        ("own_notes.py", "x = 1", "own_notes.py is not a recipe: it must define a class Config"),
        ("json.py", "x = 1", "Another module is called json"),
        ("own_broken.py", "x = unknown", "cannot be imported: NameError: name 'unknown'"),
    ],
)
def test_a_file_that_is_not_a_recipe_is_one_sentence(
    name: str, content: str | None, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    if content is not None:
        Path(name).write_text(content)
    with pytest.raises(UsageError, match=sentence) as raised:
        find(name)
    assert "\n" not in str(raised.value)


def test_a_module_that_does_not_exist_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="There is no module 'no_such_module'"):
        add("no_such_module")
