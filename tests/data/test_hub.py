"""Corpora of the hub: a stand-in for the ``datasets`` library serves made-up rows."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from attnscope.data import hub
from attnscope.data.folder import CorpusError, CorpusFolder, LabelledRecord, Pair
from attnscope.data.known import definition, locate
from attnscope.errors import UsageError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATTNSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ATTNSCOPE_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], list[tuple[str, str]]]:
    """Put a module named datasets in place; return what was asked of it."""

    def put(load: Any) -> list[tuple[str, str]]:
        asked: list[tuple[str, str]] = []

        def load_dataset(path: str, *, split: str) -> Any:
            asked.append((path, split))
            return load(path, split)

        module = ModuleType("datasets")
        module.load_dataset = load_dataset  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "datasets", module)
        return asked

    return put


def test_a_labelled_corpus_becomes_a_folder_that_is_found_by_name(serve, cache: Path):
    rows = [{"text": "fine\n\nfilm", "label": 1}, {"text": "dull", "label": 0}]
    asked = serve(lambda path, split: rows)
    assert hub.fetch("imdb") == cache / "corpora" / "imdb"
    assert asked == [("stanfordnlp/imdb", "train"), ("stanfordnlp/imdb", "test")]
    folder = locate(definition("imdb"))
    assert folder.labels == ("negative", "positive")
    assert folder.labelled("test") == [
        LabelledRecord("test-0", 1, "fine\n\nfilm"),
        LabelledRecord("test-1", 0, "dull"),
    ]


def test_a_parallel_corpus_becomes_one_file_per_language(serve):
    asked = serve(lambda path, split: [{"en": "a\nman ", "de": "ein Mann"}])
    folder = CorpusFolder.open(hub.fetch("multi30k"))
    assert folder.pairs("val", "de", "en") == [Pair("ein Mann", "a man")]
    assert ("bentrevett/multi30k", "validation") in asked


def test_empty_rows_are_left_out_and_counted(serve):
    rows = [{"text": " ", "label": 9}, {"text": "puck", "label": 10}, {"text": None, "label": 9}]
    serve(lambda path, split: rows)
    folder = hub.fetch("newsgroups20")
    stats = json.loads((folder / "meta.json").read_text())["stats"]
    assert stats["train"] == {"n": 1, "empty_rows_left_out": 2}
    (read,) = CorpusFolder.open(folder).labelled("train")
    assert CorpusFolder.open(folder).labels[read.label] == "rec.sport.hockey"


def test_a_local_copy_is_read_in_place_of_the_hub(serve, tmp_path: Path):
    (tmp_path / "copy").mkdir()
    for split in ("train", "test"):
        (tmp_path / "copy" / f"{split}.json").write_text(json.dumps([{"text": split, "label": 0}]))

    def load(path: str, split: str) -> Any:
        return json.loads((Path(path) / f"{split}.json").read_text())

    serve(load)
    folder = hub.fetch("imdb", source=tmp_path / "copy")
    assert CorpusFolder.open(folder).labelled("test") == [LabelledRecord("test-0", 0, "test")]


def test_a_missing_extra_is_one_sentence_with_the_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UsageError, match=r"hub: pip install 'attnscope\[hub\]'\.$"):
        hub.fetch("imdb")
    with pytest.raises(
        UsageError, match=r"test part alone with `attnscope data fetch ag_news_test`"
    ):
        hub.fetch("ag_news_part")


def test_a_failing_download_is_one_sentence_and_writes_nothing(serve, cache: Path):
    def fail(path: str, split: str) -> Any:
        raise ConnectionError("no route\nto the hub")

    serve(fail)
    with pytest.raises(CorpusError, match=r"imdb \(train\) cannot be read: no route to the hub\.$"):
        hub.fetch("imdb")
    assert not cache.exists()


@pytest.mark.parametrize("label", [2, -1, True, None, "1"])
def test_a_label_that_the_table_does_not_have_is_one_sentence(serve, label: Any):
    serve(lambda path, split: [{"text": "a", "label": 0}, {"text": "b", "label": label}])
    with pytest.raises(CorpusError, match=r"row 1 for 'train': label .* is none of 0 to 1\.$"):
        hub.fetch("imdb")


def test_a_corpus_without_rows_is_one_sentence(serve):
    serve(lambda path, split: [])
    with pytest.raises(CorpusError, match="no usable row"):
        hub.fetch("imdb")


def test_another_name_is_one_sentence():
    with pytest.raises(UsageError, match=r"'imbd' is known on the hub; did you mean 'imdb'\?"):
        hub.fetch("imbd")
