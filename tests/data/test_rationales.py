"""Marks over words between blanks, carried onto a source's own tokens."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnscope.data.corpus import GrammarSentiment
from attnscope.data.folder import CorpusError, CorpusFolder, LabelledRecord
from attnscope.data.rationales import annotated, label_words, marked_tokens
from attnscope.data.text import open_text
from attnscope.data.tokens import TOKENISERS
from attnscope.errors import UsageError
from cases import for_each

REAL = pytest.mark.skipif(
    not os.environ.get("ATTNSCOPE_DATA"), reason="needs ATTNSCOPE_DATA: real corpora"
)
ROWS = [
    {"label": 1, "text": "it's a fine , fine film !", "rationales": [[2, 5]]},
    {"label": 0, "text": "dull .\nI slept well", "rationales": [[0, 1], [2, 4]]},
    {"label": 0, "text": "no mark here", "rationales": []},
    {"label": 1, "text": "only a full stop .", "rationales": [[4, 5]]},
    {"label": 1, "text": "fine", "rationales": [[0, 1], [0, 1]]},
]


def folder(path: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    path.mkdir()
    (path / "meta.json").write_text(json.dumps({"labels": ["negative", "positive"]}))
    for split in ("train", "val", "test"):
        lines = [json.dumps(row | {"id": f"{split}{n}"}) for n, row in enumerate(rows)]
        (path / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return path


def source(path: Path, **settings: Any) -> Any:
    return open_text(folder(path), classification={"min_count": 1} | settings)


def record(text: str, *spans: tuple[int, int]) -> LabelledRecord:
    return LabelledRecord("a", 0, text, spans)


def test_a_mark_lies_on_every_token_inside_its_words():
    text = record("well-made , it's fine", (0, 2), (3, 4))
    assert marked_tokens(text, TOKENISERS["words"]).tolist() == [True, True, False, True]
    marks = marked_tokens(text, TOKENISERS["words-and-marks"]).tolist()
    assert marks == [True, True, True, True, False, True]  # well - made , it's fine
    assert marked_tokens(text, TOKENISERS["blanks"]).tolist() == [True, True, False, True]


def test_marks_may_overlap_touch_and_be_empty():
    text = record("a b c d e", (0, 2), (1, 3), (4, 4))
    assert marked_tokens(text, str.split).tolist() == [True, True, True, False, False]
    assert not marked_tokens(record("a b"), str.split).any()


def test_a_tokeniser_that_reaches_over_blanks_is_one_sentence():
    with pytest.raises(UsageError, match="tokens that reach over a blank"):
        marked_tokens(record("a b", (0, 1)), lambda text: [text])


@for_each("split", ["train", "val", "test"])
def test_positions_of_a_batch_know_whether_they_are_marked(tmp_path, split):
    text = source(tmp_path / "reviews")
    found = annotated(text, split)
    assert found.batch.ids.tolist() == [0, 1, 4]
    assert found.batch.targets[:, 0].tolist() == [1, 0, 1]
    words = [
        [text.input_words.words[i] for i in row[mask].tolist()]
        for row, mask in zip(found.batch.inputs, found.rationale, strict=True)
    ]
    assert words == [["fine", "fine"], ["dull", "i", "slept"], ["fine"]]
    assert found.words.sum(1).tolist() == (found.batch.input_lengths - 2).tolist()
    assert not found.words[:, 0].any()
    assert not (found.rationale & ~found.words).any()


def test_what_is_left_out_is_counted(tmp_path):
    found = annotated(source(tmp_path / "reviews", max_length=6), "test")
    assert found.left_out == {"no rationale": 2, "more than 6 tokens": 1}
    assert found.batch.ids.tolist() == [1, 4]


def test_a_corpus_without_rationales_is_one_sentence(tmp_path):
    rows = [{key: row[key] for key in ("label", "text")} for row in ROWS]
    text = open_text(folder(tmp_path / "plain", rows))
    with pytest.raises(UsageError, match="No text of plain, split 'val', has a rationale"):
        annotated(text, "val")


def test_rationales_do_not_change_what_a_unit_is_trained_on(tmp_path):
    rows = [{key: row[key] for key in ("label", "text")} for row in ROWS]
    plain = open_text(folder(tmp_path / "plain", rows))
    assert plain.digest == source(tmp_path / "marked").digest


@for_each(
    ("spans", "said"),
    [
        ("0-2", "rationales is not a list of"),
        ([[0]], r"rationales has \[0\], which is not a pair of integers"),
        ([[0, 1.5]], r"which is not a pair of integers"),
        ([[0, 9]], r"rationales has \[0, 9\], but there are 7 words"),
        ([[2, 1]], r"rationales has \[2, 1\], but there are 7 words"),
        ([[-1, 1]], r"but there are 7 words"),
    ],
)
def test_malformed_rationales_are_one_sentence_that_names_file_and_line(tmp_path, spans, said):
    path = folder(tmp_path / "reviews", [ROWS[0] | {"rationales": spans}])
    with pytest.raises(CorpusError, match=rf"train\.jsonl.*1.*{said}"):
        CorpusFolder.open(path).labelled("train")


@REAL
@for_each(("split", "share", "unmarked"), [("train", 8.6, 1), ("val", 6.5, 0), ("test", 30.3, 0)])
def test_the_annotated_reviews_are_marked_as_densely_as_their_readme_says(split, share, unmarked):
    texts = CorpusFolder.open(Path(os.environ["ATTNSCOPE_DATA"]) / "movies_rationales")
    marks = [marked_tokens(text, str.split) for text in texts.labelled(split)]
    assert sum(not each.any() for each in marks) == unmarked
    assert 100 * np.concatenate(marks).mean() == pytest.approx(share, abs=0.06)


@REAL
def test_no_word_of_the_annotated_reviews_reaches_over_a_blank():
    texts = CorpusFolder.open(Path(os.environ["ATTNSCOPE_DATA"]) / "movies_rationales")
    for text in texts.labelled("val"):
        marks = marked_tokens(text, TOKENISERS["words"])
        assert len(marks) == len(TOKENISERS["words"](text.text))
        assert marks.any()


def test_words_that_nearly_always_have_one_label_are_marked_in_texts_of_that_label():
    own = GrammarSentiment()
    texts = label_words(own)
    words = own.input_words.words
    marked = {
        (words[int(word)], int(label))
        for row, label in enumerate(texts.batch.targets[:, 0])
        for word in texts.batch.inputs[row][texts.rationale[row]]
    }
    assert ("wonderful", 1) in marked
    assert ("boring", 0) in marked
    assert "the" not in {word for word, _ in marked}
    assert not (texts.rationale & ~texts.words).any()
