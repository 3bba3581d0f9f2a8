"""``attnscope data``: every verb prints text and JSON, an error is one sentence."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attnscope.cli import app
from attnscope.cli_data import use_data
from attnscope.data.corpus_writer import write_corpus
from attnscope.data.known import listing
from attnscope.errors import AttnscopeError, UsageError
from command import answers_without_torch, attnscope

ROWS = [(f"a film of number {n}", ("bad", "good")[n % 2]) for n in range(40)]


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATTNSCOPE_CACHE", str(tmp_path / "cache"))
    # Set first, so that what a command sets is undone after the test.
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def printed(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["data", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_list_shows_every_corpus_in_words_and_in_json(places: Path):
    write_corpus(places / "mine", ROWS)
    names = [row.name for row in listing()]
    assert {"sst", "mine", "grammar-translation"} <= set(names)
    assert all(name in printed("list") for name in names)
    rows = json.loads(printed("list", "--json"))
    assert [row["name"] for row in rows] == names
    assert set(rows[0]) == {"name", "task", "title", "where", "train", "val"}


def test_check_shows_splits_classes_and_digest(places: Path):
    write_corpus(places / "mine", ROWS)
    checked = json.loads(printed("check", "mine", "--json"))
    counts = checked["splits"]["train"]["of"]
    assert sum(part["n"] for part in checked["splits"].values()) == 40
    words = printed("check", str(places / "mine"))
    assert f"(bad {counts['bad']}, good {counts['good']})" in words
    assert f"Digest: {checked['digest']}" in words


def test_check_shows_the_range_of_many_classes(places: Path):
    rows = [(f"a film of number {n}", f"kind-{n % 12:02d}") for n in range(60)]
    parts = {"train": rows, "val": rows[:11]}
    write_corpus(places / "mine", **parts)
    words = printed("check", "mine")
    assert "  train: 60 (12 classes, kind-00 5 to kind-00 5, median 5)" in words
    assert "kind-00 1 to kind-00 1, median 1; 1 without a text" in words
    assert "Used: all of them" in words


def test_check_of_gold_alignments_names_the_recipe_that_takes_them(places: Path):
    pairs = [("das Haus", "the house", "0-0 1-1")] * 3
    write_corpus(places / "gold", pairs, languages=("de", "en"))
    assert "attnscope run snell/alignment gold=gold training=" in printed("check", "gold")


def test_check_shows_what_is_left_out_and_why(places: Path):
    write_corpus(places / "mine", [*ROWS, ("?!", "bad")])
    assert ": no word in the text: 1" in printed("check", "mine")


def test_data_takes_another_folder_of_corpora(places: Path):
    write_corpus(places / "elsewhere" / "theirs", ROWS)
    assert "theirs" in printed("list", "--data", str(places / "elsewhere"))


def test_a_malformed_corpus_is_one_sentence_and_exit_1(places: Path):
    write_corpus(places / "mine", ROWS)
    (places / "mine" / "train.jsonl.gz").write_bytes(b"no gzip")
    done = attnscope("data", "check", "mine")
    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith(f"attnscope: {places}/mine/train.jsonl.gz is not sound gzip")


def test_an_unknown_corpus_is_one_sentence_and_exit_1():
    done = attnscope("data", "check", "imbd")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "did you mean 'imdb'?" in done.stderr


def test_fetch_prints_the_folders_and_what_differs(places: Path, monkeypatch: pytest.MonkeyPatch):
    folder = write_corpus(places / "fetched", ROWS)
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps(meta | {"differs": "The test part alone."}))
    monkeypatch.setattr("attnscope.data.known.fetch", lambda name: [folder])
    assert printed("fetch", "sst") == f"Corpus: {folder}\nThe test part alone.\n"


def test_what_cannot_be_fetched_is_one_sentence():
    with pytest.raises(AttnscopeError, match="yelp is neither pinned nor on the hub"):
        printed("fetch", "yelp")


def test_run_refuses_a_data_folder_that_does_not_exist():
    with pytest.raises(UsageError, match=r"^--data nowhere is not a folder\.$"):
        CliRunner().invoke(app, ["run", "snell/fig3", "--data", "nowhere"], catch_exceptions=False)


def test_the_data_folder_of_a_run_is_that_of_every_process_it_starts(places: Path):
    (places / "other").mkdir()
    use_data(places / "other")
    assert os.environ["ATTNSCOPE_DATA"] == str(places / "other")
    use_data(None)
    assert os.environ["ATTNSCOPE_DATA"] == str(places / "other")


def test_help_and_list_answer_without_torch():
    assert answers_without_torch(["data", "--help"], ["data", "list"], ["data", "check", "--help"])


def test_check_shows_lengths_words_duplicates_and_what_recipes_leave_out(places: Path):
    long = ("so long " * 600, "good")
    rows = [("good film", "good"), ("bad film", "bad"), ("a bad bad film", "bad")] * 8
    write_corpus(places / "mine", train=[*rows, long], val=[rows[0], ("odd words here", "bad")])
    shown = printed("check", "mine")
    assert "train: 2, 4, 1,200" in shown
    assert "60.0 % of the validation words" in shown  # three of five: odd words here
    assert "Duplicates: 1 in train and val" in shown
    assert "Warning: 1 texts are in train and val" in shown
    assert "Largest class: 64.0 %" in shown
    assert "(max_length=1000): train: more than 1000 tokens: 1" in shown
    assert "tutek (longest=4000): nothing" in shown
    assert json.loads(printed("check", "mine", "--json"))["profile"]["unknown"] == 0.6
