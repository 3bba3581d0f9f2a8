"""Corpora by name, by folder, and where they are looked for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from attnscope.claims.published import published
from attnscope.data import grammar, hub, pinned
from attnscope.data.folder import CorpusError
from attnscope.data.known import (
    CorpusDefinition,
    data_folder,
    definition,
    definitions,
    fetch,
    listing,
    locate,
)
from attnscope.data.tokens import TOKENISERS
from attnscope.errors import UsageError
from cases import for_each

needs_corpora = pytest.mark.skipif(
    not os.environ.get("ATTNSCOPE_DATA"), reason="needs ATTNSCOPE_DATA: real corpora"
)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ATTNSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(folder: Path, splits: tuple[str, ...] = ("train", "dev"), **meta: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text(json.dumps(meta or {"labels": ["a", "b"]}))
    for split in splits:
        for name in meta.get("langs", ["jsonl"]):  # type: ignore[attr-defined]
            (folder / f"{split}.{name}").write_text('{"id": "1", "label": 0, "text": "x"}\n')
    return folder


def test_every_definition_names_a_tokeniser_and_a_data_set_of_the_paper():
    printed = {row.dataset for paper in ("snell", "sunlu") for row in published(paper)}
    for known in definitions().values():
        assert known.tokens in TOKENISERS
        assert known.published is None or known.published in printed
        assert (known.task == "classification") == (known.source == known.target == "")
    assert {"IMDB", "AG News", "20 NG", "SST", "Amzn", "Yelp", "SMS", "Multi30k"} <= {
        known.published for known in definitions().values()
    }


def test_the_rules_of_selection_are_those_of_the_paper():
    known = definitions()
    assert known["amazon"].shorter_than == 400
    assert known["yelp"].classes == (("negative", ("1", "2")), ("positive", ("4", "5")))
    assert [label for label, _ in known["ag_news"].classes] == ["World", "Business"]
    assert known["ag_news"].tokens == "words-no-numbers"
    assert known["newsgroups"].tokens == "words-no-numbers-split"
    labelled = [entry for entry in known.values() if entry.task == "classification"]
    assert {entry.validation_limit for entry in labelled if not entry.drawn} == {4000}


def test_a_misspelt_name_is_one_sentence_with_the_nearest(places: Path):
    with pytest.raises(UsageError, match=r"no corpus 'imbd' .*did you mean 'imdb'\?"):
        definition("imbd")


@pytest.mark.parametrize("validation", ["val", "valid", "validation", "dev", "test"])
def test_an_own_folder_is_found_by_path_and_by_name_in_the_data_folder(
    places: Path, validation: str
):
    mine = make(places / "data" / "mine", ("train", validation, "zzz"))
    for name in ("mine", str(mine), mine, "data/mine"):
        found = definition(name)
        assert (found.name, found.task, found.train, found.val) == (
            "mine",
            "classification",
            "train",
            validation,
        )
        assert (found.classes, found.deviation, found.published) == ((), "", None)
        assert (found.test, found.drawn) == ("", ())
        assert locate(found).path == mine


def test_an_own_folder_with_both_has_a_validation_and_a_test_part(places: Path):
    found = definition(make(places / "mine", ("train", "dev", "test")))
    assert (found.val, found.test) == ("dev", "test")


def test_an_own_parallel_folder_goes_from_its_first_language_to_its_second(places: Path):
    found = definition(make(places / "pairs", ("train", "val"), langs=["nl", "en"]))
    assert (found.task, found.source, found.target) == ("translation", "nl", "en")
    assert found.validation_limit is None


@pytest.mark.parametrize(
    ("splits", "missing"), [(("train",), "no validation split"), (("dev",), "no split 'train'")]
)
def test_an_own_folder_without_a_needed_split_is_one_sentence(places: Path, splits, missing):
    make(places / "mine", splits)
    with pytest.raises(CorpusError, match=rf"mine has {missing}; .*\(found: {splits[0]}\)\.$"):
        definition("mine")


def test_the_data_folder_comes_before_the_cache(places: Path):
    cached = make(places / "cache" / "corpora" / "imdb")
    assert locate(definition("imdb")).path == cached
    given = make(places / "data" / "imdb")
    assert locate(definition("imdb")).path == given


def test_a_user_without_a_home_folder_reads_and_is_told_where_to_fetch_to(
    places: Path, monkeypatch: pytest.MonkeyPatch
):
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    given = make(places / "data" / "imdb")
    monkeypatch.delenv("ATTNSCOPE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    assert locate(definition("imdb")).path == given
    assert {row.where for row in listing()} >= {"data folder", "to be fetched"}
    with pytest.raises(UsageError, match=r"^There is no home folder; set ATTNSCOPE_CACHE"):
        fetch("sst")


@for_each(
    ("name", "way"),
    [
        ("sst", r"or run `attnscope data fetch sst`\.$"),
        ("imdb", r"fetch imdb` \(needs pip install 'attnscope\[hub\]'\)\.$"),
        ("yelp", r"to a folder that holds yelp_stars/\.$"),
    ],
)
def test_a_corpus_that_is_not_here_says_how_to_get_it(places: Path, name: str, way: str):
    with pytest.raises(UsageError, match=rf"^The corpus {name} is not here: .*{way}"):
        locate(definition(name))


def test_a_data_folder_that_does_not_exist_is_one_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ATTNSCOPE_DATA", "/no/such/folder")
    with pytest.raises(UsageError, match="ATTNSCOPE_DATA is /no/such/folder"):
        data_folder()
    monkeypatch.delenv("ATTNSCOPE_DATA")
    assert data_folder() is None


def test_the_list_says_where_each_corpus_is(places: Path):
    make(places / "data" / "imdb", labels=["a", "b"], stats={"train": {"n": 9}, "test": {"n": 8}})
    make(places / "data" / "mine")
    make(places / "cache" / "corpora" / "sst_binary")
    make(places / "data" / ".aside-1-mine")
    make(places / "cache" / "corpora" / "mine")
    make(places / "mine", ("nothing of use",))
    (places / "data" / "vectors").mkdir()
    (places / "data" / "sms_spam").mkdir()
    rows = {row.name: row for row in listing()}
    assert (rows["imdb"].where, rows["imdb"].train, rows["imdb"].val) == ("data folder", 9, 8)
    assert (rows["sst"].where, rows["mine"].where) == ("cache", "data folder")
    assert rows["sms"].where == "data folder, malformed"
    assert rows["multi30k-de-en"].where == "to be fetched"
    assert (rows["newsgroups"].where, rows["yelp"].where) == ("hub", "not here")
    assert not {"vectors", ".aside-1-mine"} & set(rows)


def test_a_linked_folder_keeps_the_name_of_its_link(places: Path):
    make(places / "store" / "v2")
    (places / "data" / "linked").symlink_to(places / "store" / "v2")
    assert definition("linked").name == "linked"
    assert {row.name: row.where for row in listing()}["linked"] == "data folder"


def test_the_packages_own_corpora_are_listed_with_their_sizes(places: Path):
    rows = {row.name: row for row in listing() if row.where == "ships with attnscope"}
    made = {
        "grammar-sentiment": grammar.sentiment_corpus(),
        "grammar-translation": grammar.translation_corpus(),
    }
    assert {name: (row.train, row.val) for name, row in rows.items()} == {
        name: (len(parts["train"]), len(parts["val"])) for name, parts in made.items()
    }


def test_fetch_takes_pinned_files_before_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    asked: list[str] = []

    def note(way: str):
        def fetched(name: str):
            asked.append(f"{way} {name}")
            return [tmp_path] if way == "pinned" else tmp_path

        return fetched

    monkeypatch.setattr(pinned, "fetch", note("pinned"))
    monkeypatch.setattr(hub, "fetch", note("hub"))
    for name in ("sst", "multi30k-en-de", "scan", "gold-ro-en", "imdb", "ag_news", "ag_news_test"):
        assert fetch(name) == [tmp_path]
    assert asked == [
        "pinned sst",
        "pinned multi30k",
        "pinned scan",
        "pinned gold_align",
        "hub imdb",
        "hub ag_news_part",
        "pinned ag_news",
    ]


def test_what_cannot_be_fetched_is_one_sentence():
    with pytest.raises(UsageError, match="yelp is neither pinned nor on the hub: put yelp_stars/"):
        fetch("yelp")
    with pytest.raises(UsageError, match=r"nothing to fetch for 'sca'; did you mean 'scan'\?"):
        fetch("sca")


def test_a_definition_is_frozen_and_survives_json():
    for known in definitions().values():
        assert CorpusDefinition.model_validate_json(known.model_dump_json()) == known


@needs_corpora
def test_every_known_corpus_is_in_the_data_folder_with_its_splits_classes_and_languages():
    # MIMIC is its readers' own: nobody may pass it on.
    shared = [known for name, known in definitions().items() if not name.startswith("mimic-")]
    for known in shared:
        folder = locate(known)
        assert folder.kind == known.task
        drawn = {name for name, _ in known.drawn}
        sources = {split for _, part in known.drawn for split in part.of}
        assert {known.train, known.val, known.test} - {""} <= set(folder.splits) | drawn
        assert sources <= set(folder.splits)
        assert {name for _, names in known.classes for name in names} <= set(folder.labels)
        assert {known.source, known.target} - {""} <= set(folder.languages)
