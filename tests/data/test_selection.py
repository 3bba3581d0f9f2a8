"""What is used of a corpus follows the paper's rules, and what is not is counted."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from attnscope.data.folder import CorpusError, LabelledRecord, Pair
from attnscope.data.known import CorpusDefinition, CorpusPart, definition, definitions
from attnscope.data.selection import check, select
from attnscope.data.tokens import TOKENISERS
from attnscope.errors import UsageError
from cases import for_each

needs_corpora = pytest.mark.skipif(
    not os.environ.get("ATTNSCOPE_DATA"), reason="needs ATTNSCOPE_DATA: real corpora"
)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path))
    monkeypatch.setenv("ATTNSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path


def stars(folder: Path, **splits: list[tuple[int, str]]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "meta.json").write_text(json.dumps({"labels": ["1", "2", "3", "4"]}))
    for split, rows in splits.items():
        lines = [
            json.dumps({"id": f"{split}{place}", "label": label, "text": text})
            for place, (label, text) in enumerate(rows)
        ]
        content = gzip.compress("".join(f"{line}\n" for line in lines).encode())
        (folder / f"{split}.jsonl.gz").write_bytes(content)


def asked(**more: object) -> CorpusDefinition:
    values = {"name": "s", "folder": "s", "title": "", "task": "classification"}
    return CorpusDefinition(**(values | {"train": "train", "val": "test"} | more))


BINARY = (("low", ("1", "2")), ("high", ("4",)))


def test_classes_are_renumbered_and_the_others_counted(data: Path):
    rows = [(0, "a"), (1, "b"), (2, "c"), (3, "d")]
    stars(data / "s", train=rows, test=rows[1:])
    chosen = select(asked(classes=BINARY), str.split)
    assert chosen.train == (
        LabelledRecord("train0", 0, "a"),
        LabelledRecord("train1", 0, "b"),
        LabelledRecord("train3", 1, "d"),
    )
    assert [row.label for row in chosen.val] == [0, 1]
    assert chosen.labels == ("low", "high")
    assert chosen.dropped == {"train: class not used": 1, "val: class not used": 1}


def test_without_classes_all_labels_stay_and_nothing_is_counted(data: Path):
    rows = [(3, "a"), (0, "b")]
    stars(data / "s", train=rows, test=rows)
    chosen = select(asked(), str.split)
    assert [row.label for row in chosen.train] == [3, 0]
    assert (chosen.labels, chosen.dropped) == (("1", "2", "3", "4"), {})


def test_texts_of_the_limit_or_longer_and_texts_without_a_word_are_left_out(data: Path):
    rows = [(0, "a b"), (1, "a b c"), (2, "a b c d"), (3, "?!")]
    stars(data / "s", train=rows, test=rows)
    chosen = select(asked(shorter_than=3), TOKENISERS["words"])
    assert [row.text for row in chosen.train] == ["a b"]
    assert chosen.dropped == {
        "train: no word in the text": 1,
        "train: 3 words or more": 2,
        "val: no word in the text": 1,
        "val: 3 words or more": 2,
    }


def test_a_test_part_is_selected_like_the_others_and_moves_the_digest(data: Path):
    rows = [(0, "a b"), (1, "a b c")]
    stars(data / "s", train=rows, dev=rows, test=[(2, "x"), (3, "a b c d"), (0, "?")])
    chosen = select(asked(val="dev", test="test", shorter_than=4), TOKENISERS["words"])
    assert [row.text for row in chosen.test] == ["x"]
    assert chosen.dropped == {"test: no word in the text": 1, "test: 4 words or more": 1}
    before = select(asked(val="dev"), TOKENISERS["words"])
    assert before.test == ()
    assert before.digest != chosen.digest


PARTS = (
    ("val", CorpusPart(of=("train", "test"), size=10)),
    ("test", CorpusPart(of=("train", "test"), size=6)),
    ("train", CorpusPart(of=("train", "test"))),
)


def test_drawn_parts_have_their_sizes_and_share_no_text(data: Path):
    rows = [(place % 4, f"t{place}") for place in range(24)]
    stars(data / "s", train=rows[:20], test=[*rows[20:], (0, "?")])
    ask = asked(train="train", val="val", test="test", drawn=PARTS)
    chosen = select(ask, TOKENISERS["words"])
    parts = [[row.text for row in part] for part in (chosen.train, chosen.val, chosen.test)]
    assert [len(part) for part in parts] == [8, 10, 6]
    assert sorted(text for part in parts for text in part) == sorted(text for _, text in rows)
    assert chosen.dropped == {"test: no word in the text": 1}
    assert select(ask, TOKENISERS["words"]) == chosen


def test_drawn_parts_have_each_class_by_its_share(data: Path):
    rows = [(0, f"a{place}") for place in range(75)] + [(1, f"b{place}") for place in range(25)]
    stars(data / "s", train=rows, test=[(0, "unused")])
    drawn = (("val", CorpusPart(of=("train",), size=20)), ("train", CorpusPart(of=("train",))))
    chosen = select(asked(val="val", drawn=drawn, validation_limit=None), str.split)
    assert [sum(row.label == label for row in chosen.val) for label in (0, 1)] == [15, 5]
    assert len(chosen.train) == 80
    # In the order of the files, and no block of them.
    places = [rows.index((row.label, row.text)) for row in chosen.val]
    assert places == sorted(places)
    assert places[:15] != list(range(15))


def test_cleaning_is_done_before_words_are_counted(data: Path):
    rows = [(0, "fine<br /><br />film"), (1, "<BR> <br>")]
    stars(data / "s", train=rows, test=rows)
    chosen = select(asked(cleaning="line-breaks"), TOKENISERS["words"])
    assert [row.text.split() for row in chosen.train] == [["fine", "film"]]


def test_at_most_the_limit_of_validation_examples_is_drawn_in_file_order(data: Path):
    rows = [(0, f"t{place}") for place in range(40)]
    stars(data / "s", train=rows, test=rows)
    chosen = select(asked(validation_limit=10), str.split)
    places = [int(row.id.removeprefix("test")) for row in chosen.val]
    assert len(places) == 10
    assert places == sorted(places)
    assert places != list(range(10))
    assert len(chosen.train) == 40
    assert chosen.dropped == {"val: beyond 10 sampled": 30}
    assert select(asked(validation_limit=10), str.split) == chosen
    other = select(asked(name="other", validation_limit=10), str.split)
    assert other.val != chosen.val
    assert select(asked(validation_limit=40), str.split).dropped == {}


def test_every_validation_example_is_drawn_equally_often(data: Path):
    rows = [(0, f"t{place}") for place in range(4)]
    stars(data / "s", train=rows, test=rows)
    drawn = [0] * 4
    for name in range(400):
        chosen = select(asked(name=str(name), validation_limit=1), str.split)
        drawn[int(chosen.val[0].id.removeprefix("test"))] += 1
    # Four standard deviations of a binomial count (400, 1/4).
    assert all(abs(count - 100) < 35 for count in drawn)


@settings(max_examples=30)
@given(st.integers(0, 2), st.sampled_from(["label", "text", "order", "part"]))
def test_the_digest_changes_with_label_text_order_and_part_and_with_nothing_else(place, change):
    import tempfile

    rows = [(0, "a"), (1, "b"), (2, "c"), (3, "d")]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTNSCOPE_DATA", folder)
        stars(Path(folder) / "s", train=rows, test=rows)
        before = select(asked(), str.split).digest
        (Path(folder) / "s" / "more.jsonl").write_text("unread")
        assert select(asked(title="another"), str.split).digest == before
        train, test = list(rows), list(rows)
        label, text = train[place]
        if change == "label":
            train[place] = ((label + 1) % 4, text)
        elif change == "text":
            train[place] = (label, f"{text} ")
        elif change == "order":
            train[place], train[place + 1] = train[place + 1], train[place]
        else:
            test.append(train.pop())
        stars(Path(folder) / "s", train=train, test=test)
        after = select(asked(), str.split).digest
        assert after != before
        assert len(after) == 12
        assert set(after) <= set("0123456789abcdef")


def test_a_class_that_the_folder_does_not_have_is_one_sentence(data: Path):
    stars(data / "s", train=[(0, "a")], test=[(0, "a")])
    with pytest.raises(CorpusError, match=r"meta\.json names no label '5', which s uses; valid: 1"):
        select(asked(classes=(("low", ("1",)), ("high", ("5",)))), str.split)


def test_a_selection_that_leaves_nothing_is_one_sentence(data: Path):
    stars(data / "s", train=[(0, "a")], test=[(2, "a")])
    with pytest.raises(CorpusError, match=r"leaves nothing of its split 'test' \(1 × val: class"):
        select(asked(classes=BINARY), str.split)


def parallel(folder: Path) -> None:
    folder.mkdir()
    (folder / "meta.json").write_text('{"langs": ["de", "en"]}')
    for split in ("train", "val"):
        (folder / f"{split}.de").write_text("ja gut\n...\nnein\n")
        (folder / f"{split}.en").write_text("yes fine\nwell\n!\n")


def test_pairs_go_in_the_direction_asked_for_and_need_a_word_on_both_sides(data: Path):
    parallel(data / "p")
    mine = definition("p")
    assert select(mine, TOKENISERS["words"]).train == (Pair("ja gut", "yes fine"),)
    turned = mine.model_copy(update={"source": "en", "target": "de"})
    chosen = select(turned, TOKENISERS["words"])
    assert chosen.val == (Pair("yes fine", "ja gut"),)
    assert chosen.dropped == {"train: no word in the text": 2, "val: no word in the text": 2}
    assert len(select(mine, str.split).train) == 3


def test_alignments_are_not_selected_from(data: Path):
    folder = data / "gold_align_en_fr"
    folder.mkdir()
    (folder / "meta.json").write_text('{"langs": ["en", "fr"]}')
    row = {"id": "0", "en": "a b", "fr": "c", "sure": [[0, 0]], "possible": [[1, 0]]}
    (folder / "test.jsonl").write_text(json.dumps(row))
    with pytest.raises(UsageError, match="gold-en-fr has gold alignments"):
        select(definition("gold-en-fr"), str.split)
    checked = check("gold-en-fr")
    assert checked.selected["val"].n == 1
    assert checked.selected["val"].of == {"sure links": 1, "possible links": 2}


def test_check_counts_files_and_selection_by_class(data: Path):
    rows = [(0, "a"), (1, "b"), (2, "c"), (3, "d")]
    stars(data / "yelp_stars", train=[*rows, *rows], dev=rows, test=rows)
    # Yelp's labels are stars 1 to 5.
    (data / "yelp_stars" / "meta.json").write_text('{"labels": ["1", "2", "3", "4", "5"]}')
    checked = check("yelp")
    assert checked.splits["train"].of == {"1": 2, "2": 2, "3": 2, "4": 2, "5": 0}
    assert checked.selected["train"].of == {"negative": 4, "positive": 2}
    assert (checked.selected["val"].n, checked.splits["test"].n) == (3, 4)
    assert checked.dropped == {"train: class not used": 2, "val: class not used": 1}
    assert checked.digest == select(definition("yelp"), TOKENISERS["words"]).digest


def test_check_reads_splits_and_languages_that_are_not_used(data: Path):
    parallel(data / "p")
    (data / "p" / "meta.json").write_text('{"langs": ["de", "en", "fr"]}')
    for split, text in (("train", "oui\nbon\nnon\n"), ("val", "oui\n\nnon\n")):
        (data / "p" / f"{split}.fr").write_text(text)
    with pytest.raises(CorpusError, match=r"val\.fr, line 2: the line is empty"):
        check("p")


# Table 9 and A.5 of the paper where the corpus is the paper's, else counts of the sources' own
# documentation, class by class.
REAL = {
    "sst": (6920, 872),
    "imdb": (25000, 4000),
    "newsgroups": (1197, 796),
    "multi30k-de-en": (29000, 1014),
    "multi30k-en-de": (29000, 1014),
}


@needs_corpora
@for_each("name", REAL)
def test_the_papers_corpora_have_the_papers_sizes(name: str):
    chosen = select(definitions()[name], str.split)
    assert (len(chosen.train), len(chosen.val)) == REAL[name]


@needs_corpora
def test_stand_ins_have_what_the_rules_leave_of_them():
    sizes = {}
    for name in ("ag_news", "amazon", "yelp"):
        known = definitions()[name]
        chosen = select(known, TOKENISERS[known.tokens])
        sizes[name] = (len(chosen.train), len(chosen.val), sum(chosen.dropped.values()))
    assert sizes["ag_news"][1] == 3800  # Table 9
    assert sizes["amazon"][1] == 4000
    assert sum(sizes["amazon"]) == 21452 + 5600
    assert sizes["yelp"] == (605 + 716 + 2819 + 2678, 77 + 105 + 357 + 327, 1184 + 133)


SUNLU = {
    "sunlu-sst": {"train": (3310, 3610), "val": (428, 444), "test": (912, 909)},
    "sunlu-20news-1": {"train": (612, 624), "val": (154, 156), "test": (192, 195)},
}


@needs_corpora
@pytest.mark.parametrize("name", SUNLU)
def test_the_parts_of_sunlu_have_the_sizes_that_the_paper_prints(name: str):
    found = check(name)
    assert {part: tuple(count.of.values()) for part, count in found.selected.items()} == SUNLU[name]
