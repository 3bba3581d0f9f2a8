"""A user's two columns become a corpus folder that reads back what was written."""

from __future__ import annotations

import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from attnscope.data.corpus_writer import write_corpus
from attnscope.data.folder import CorpusError, CorpusFolder, Pair
from attnscope.data.known import definition
from attnscope.errors import UsageError
from cases import for_each

WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12).filter(
    lambda text: text.strip() != ""
)
ROWS = [(f"text {n}", ("bad", "good")[n % 2]) for n in range(200)]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@settings(max_examples=60)
@given(st.lists(st.tuples(WORDS, st.sampled_from(["bad", "good"])), min_size=2, max_size=20))
def test_labelled_rows_read_back_and_equal_texts_stay_on_one_side(rows):
    rows = [*rows, ("one more", "bad"), ("and another", "good")]
    with tempfile.TemporaryDirectory() as place:
        folder = CorpusFolder.open(write_corpus(Path(place) / "mine", rows))
        train, val = folder.labelled("train"), folder.labelled("val")
        read = sorted((row.text, folder.labels[row.label]) for row in [*train, *val])
        assert read == sorted((text.strip(), label) for text, label in rows)
        assert not {row.text for row in train} & {row.text for row in val}
        assert train
        assert val


@settings(max_examples=60)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=2, max_size=20, unique_by=lambda r: r[0].strip()))
def test_pairs_read_back_and_stay_together(rows):
    with tempfile.TemporaryDirectory() as place:
        path = write_corpus(Path(place) / "mine", rows, languages=("de", "en"))
        folder = CorpusFolder.open(path)
        read = {pair for split in folder.splits for pair in folder.pairs(split, "de", "en")}
        assert read == {Pair(source.strip(), target.strip()) for source, target in rows}


def test_five_lines_from_a_two_column_file(tmp_path: Path):
    table = tmp_path / "reviews.tsv"
    table.write_text("".join(f"{text}\t{label}\n" for text, label in ROWS))
    with open(table, newline="", encoding="utf8") as file:
        folder = write_corpus(tmp_path / "mine", csv.reader(file, delimiter="\t"))
    found = definition(folder)
    assert (found.task, found.train, found.val) == ("classification", "train", "val")
    assert CorpusFolder.open(folder).labels == ("bad", "good")


def test_the_same_rows_give_the_same_bytes_and_the_parts_do_not_depend_on_other_rows(tmp_path):
    first = write_corpus(tmp_path / "a" / "mine", ROWS)
    assert content(write_corpus(tmp_path / "b" / "mine", ROWS)) == content(first)
    fewer = CorpusFolder.open(write_corpus(tmp_path / "fewer", ROWS[:150]))
    every = CorpusFolder.open(first)
    held_out = {row.text for row in every.labelled("val")}
    assert {row.text for row in fewer.labelled("val")} == held_out & {t for t, _ in ROWS[:150]}


@for_each("share", [0.1, 0.5, 0.8])
def test_the_share_of_validation_texts_is_near_what_was_asked_for(tmp_path: Path, share: float):
    rows = [(f"text {n}", n % 2) for n in range(2000)]
    folder = CorpusFolder.open(write_corpus(tmp_path / "mine", rows, validation=share))
    # Four standard deviations of a binomial share.
    bound = 4 * (share * (1 - share) / 2000) ** 0.5
    assert abs(len(folder.labelled("val")) / 2000 - share) < bound
    assert folder.sizes == {split: len(folder.labelled(split)) for split in ("train", "val")}


def test_labels_keep_a_given_order_and_numbers_go_by_their_value(tmp_path: Path):
    given_order = write_corpus(tmp_path / "a", ROWS, labels=["good", "bad", "never"])
    assert CorpusFolder.open(given_order).labels == ("good", "bad", "never")
    numbers = write_corpus(tmp_path / "b", [("x", 10), ("y", 9), ("z", 10)])
    assert CorpusFolder.open(numbers).labels == ("9", "10")


@for_each(
    ("row", "says"),
    [
        (("a",), "not a pair of two columns"),
        (("a", "b", "c"), "column 3 must be spans"),
        (("a", "b", "c", "d"), "not a pair of two columns"),
        ("ab", "not a pair of two columns: 'ab'"),
        (5, "not a pair of two columns: 5"),
        ((5, "good"), "column 1 must be text, not 5"),
        ((" ", "good"), "column 1 is empty"),
        (("a\0b", "good"), "column 1 has a NUL character"),
        (("a\ud800", "good"), "column 1 is not valid Unicode"),
        (("a", ""), "column 2 is empty"),
        (("a", None), "column 2 must be text, not None"),
        (("a", True), "column 2 must be text, not True"),
        (("a", 1.5), "column 2 must be text, not 1.5"),
    ],
)
def test_a_bad_row_is_one_sentence_with_its_number_and_nothing_is_written(
    tmp_path: Path, row: Any, says: str
):
    with pytest.raises(CorpusError) as caught:
        write_corpus(tmp_path / "mine", [*ROWS[:6], row])
    assert str(caught.value).startswith("Row 7")
    assert says in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_line_break_in_a_sentence_is_one_sentence_with_the_row(tmp_path: Path):
    with pytest.raises(CorpusError, match=r"^Row 2: column 2 has a line break\.$"):
        write_corpus(tmp_path / "mine", [("a", "b"), ("c", "d\ne")], languages=("de", "en"))


def test_an_unknown_label_is_one_sentence_with_the_nearest(tmp_path: Path):
    with pytest.raises(CorpusError, match=r"^Row 2: unknown label 'good'; did you mean 'goods'"):
        write_corpus(tmp_path / "mine", ROWS, labels=["bad", "goods"])


@for_each(
    ("rows", "options", "says"),
    [
        ([], {}, "no rows"),
        ([("a", "x"), ("b", "x")], {}, "at least two different labels, not 'x'"),
        ([("a", "x"), (" a", "y")], {}, "two different texts"),
        (ROWS, {"validation": 0.0}, "validation=0.0 is not a share"),
        (ROWS, {"validation": 1.0}, "validation=1.0 is not a share"),
        (ROWS, {"languages": ("de",)}, "must be two names"),
        (ROWS, {"languages": ("de", "de")}, "must be two names"),
        (ROWS, {"languages": ("de", "../en")}, "must be two names"),
        (ROWS, {"languages": ("de", "en"), "labels": ["a", "b"]}, "not both"),
        (ROWS, {"labels": ["bad", "bad"]}, "at least two different labels"),
    ],
)
def test_what_makes_no_corpus_is_one_sentence(tmp_path: Path, rows, options, says):
    with pytest.raises((CorpusError, UsageError), match=says):
        write_corpus(tmp_path / "mine", rows, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_made_before_is_replaced_as_a_whole(tmp_path: Path):
    folder = write_corpus(tmp_path / "mine", ROWS)
    write_corpus(folder, [("ja", "yes"), ("nein", "no")], languages=("de", "en"))
    assert sorted(path.name for path in folder.iterdir()) == [
        "meta.json",
        "train.de.gz",
        "train.en.gz",
        "val.de.gz",
        "val.en.gz",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_what_was_not_made_here_is_never_replaced(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "meta.json").write_text(json.dumps({"labels": ["a", "b"]}))
    with pytest.raises(UsageError, match="was not made by write_corpus; choose another name"):
        write_corpus(tmp_path / "mine", ROWS)
    with pytest.raises(UsageError, match="choose another name"):
        write_corpus(tmp_path / "mine" / "meta.json", ROWS)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["meta.json"]


def test_a_failed_replacement_leaves_the_old_folder(tmp_path: Path, monkeypatch):
    folder = write_corpus(tmp_path / "mine", ROWS)
    before = content(folder)
    rename = Path.rename

    def fail(self: Path, target: Any) -> Any:
        if self.name.startswith(".aside-"):
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(CorpusError, match=r"Cannot write .*mine: No space left on device\.$"):
        write_corpus(folder, ROWS[:20])
    assert content(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_header_is_asked_about_left_out_or_kept(tmp_path: Path):
    rows = [("Text", "Label"), *ROWS]
    with pytest.raises(CorpusError, match=r"Row 1 looks like a header .*header=True"):
        write_corpus(tmp_path / "mine", rows)
    without = CorpusFolder.open(write_corpus(tmp_path / "without", rows, header=True))
    assert without.labels == ("bad", "good")
    kept = CorpusFolder.open(write_corpus(tmp_path / "kept", rows, header=False))
    assert kept.labels == ("Label", "bad", "good")


def test_a_byte_order_mark_is_not_part_of_the_first_text(tmp_path: Path):
    rows = [("\ufefftext", "label"), *ROWS]
    with pytest.raises(CorpusError, match="looks like a header"):
        write_corpus(tmp_path / "mine", rows)
    folder = CorpusFolder.open(write_corpus(tmp_path / "mine", [("\ufefffirst", "bad"), *ROWS]))
    texts = [row.text for split in folder.splits for row in folder.labelled(split)]
    assert "first" in texts


def test_parts_that_are_given_stay_as_they_are(tmp_path: Path):
    path = write_corpus(tmp_path / "mine", train=ROWS[:20], val=ROWS[20:25], test=ROWS[25:30])
    folder = CorpusFolder.open(path)
    assert folder.splits == ("train", "val", "test")
    assert [row.text for row in folder.labelled("val")] == [text for text, _ in ROWS[20:25]]
    drawn = CorpusFolder.open(write_corpus(tmp_path / "drawn", train=ROWS[:50], test=ROWS[50:60]))
    assert sum(drawn.sizes.values()) == 60
    assert drawn.sizes["test"] == 10
    for wrong in ({}, {"rows": ROWS, "val": ROWS}, {"test": ROWS}):
        with pytest.raises(UsageError):
            write_corpus(tmp_path / "other", **wrong)


def test_blank_rows_are_errors_or_left_out_as_asked(tmp_path: Path):
    rows = [*ROWS, ("", "good"), ("  ", "bad"), ("a text", None), ("a text", float("nan"))]
    with pytest.raises(CorpusError, match=r"Row 201: column 1 is empty; blank='skip'"):
        write_corpus(tmp_path / "mine", rows)
    folder = CorpusFolder.open(write_corpus(tmp_path / "mine", rows, blank="skip"))
    assert sum(folder.sizes.values()) == 200


def test_numbers_of_numpy_and_tables_of_pandas_are_taken_by_their_values(tmp_path: Path):
    pandas = pytest.importorskip("pandas")
    texts = [text for text, _ in ROWS]
    numbers = np.array([n % 2 for n in range(200)])
    as_arrays = CorpusFolder.open(write_corpus(tmp_path / "a", zip(texts, numbers, strict=True)))
    frame = pandas.DataFrame({"text": texts, "label": numbers.astype(float)})
    as_frame = CorpusFolder.open(write_corpus(tmp_path / "b", frame))
    assert as_arrays.labels == as_frame.labels == ("0", "1")
    assert as_arrays.labelled("train") == as_frame.labelled("train")


def test_rationales_and_gold_alignments_are_a_third_column(tmp_path: Path):
    marked = [(f"a good film {n}", "good", [(1, 2)]) for n in range(9)] + [("bad", "bad", [])]
    folder = CorpusFolder.open(write_corpus(tmp_path / "marked", marked))
    spans = {row.rationales for split in folder.splits for row in folder.labelled(split)}
    assert spans == {((1, 2),), ()}
    gold = [("das alte Haus", "the old house", "0-0 1-1 2p2"), ("ja", "yes", "0-0")]
    folder = CorpusFolder.open(write_corpus(tmp_path / "gold", gold, languages=("de", "en")))
    first = folder.aligned("val", "de", "en")[0]
    assert (first.sure, first.possible) == ({(0, 0), (1, 1)}, {(0, 0), (1, 1), (2, 2)})
    for wrong in ("0-5", "0:0"):
        with pytest.raises(CorpusError, match="link"):
            write_corpus(tmp_path / "x", [("ja", "yes", wrong)], languages=("de", "en"))
