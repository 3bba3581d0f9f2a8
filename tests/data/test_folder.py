"""Corpus folders: sound ones are read as they are, damaged ones are one sentence with the place."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from attnscope.data.folder import Aligned, CorpusError, CorpusFolder, LabelledRecord, Pair
from cases import for_each

TEXTS = ["a fine film", "dull , dull", "Straße ’t — ok", "not bad at all", "I slept", "wow"]
LABELS = [1, 0, 1, 1, 0, 1]
ROWS = [
    {"id": f"r{i}", "label": label, "text": text}
    for i, (label, text) in enumerate(zip(LABELS, TEXTS, strict=True))
]
DE = ["ein Haus", "der Hund schläft", "ja", "zwei Männer", "gut so", "Ende"]
EN = ["a house", "the dog sleeps", "yes", "two men", "fine so", "the end"]
LINKED = [
    {"id": f"s{i}", "de": de, "en": en, "sure": [[0, 0]], "possible": [[0, len(en.split()) - 1]]}
    for i, (de, en) in enumerate(zip(DE, EN, strict=True))
]
META = {
    "labelled": {"labels": ["negative", "positive"]},
    "parallel": {"langs": ["de", "en"]},
    "aligned": {"langs": ["de", "en"]},
}


def json_lines(rows: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(row, ensure_ascii=False).encode() for row in rows]


SOUND = {
    "labelled": {"train.jsonl": json_lines(ROWS)},
    "parallel": {"train.de": [s.encode() for s in DE], "train.en": [s.encode() for s in EN]},
    "aligned": {"train.jsonl": json_lines(LINKED)},
}
RECORDS: dict[str, list[Any]] = {
    "labelled": [LabelledRecord(**row) for row in ROWS],
    "parallel": [Pair(de, en) for de, en in zip(DE, EN, strict=True)],
    "aligned": [
        Aligned(
            row["id"],
            tuple(row["de"].split()),
            tuple(row["en"].split()),
            frozenset({(0, 0)}),
            frozenset({(0, 0), tuple(row["possible"][0])}),
        )
        for row in LINKED
    ],
}


def write(path: Path, content: bytes, packed: bool) -> Path:
    path = path.with_name(f"{path.name}.gz") if packed else path
    path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
    return path


@contextmanager
def corpus(form: str, packed: bool) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "corpus"
        folder.mkdir()
        (folder / "meta.json").write_text(json.dumps(META[form]))
        for name, lines in SOUND[form].items():
            write(folder / name, b"\n".join(lines) + b"\n", packed)
        yield folder


def read(folder: Path, form: str) -> list[Any]:
    opened = CorpusFolder.open(folder)
    if form == "labelled":
        return opened.labelled("train")
    if form == "parallel":
        return opened.pairs("train", "de", "en")
    return opened.aligned("train", "de", "en")


# Damage to one line: what replaces it.
def changed(**fields: Any) -> Callable[[bytes], bytes]:
    return lambda line: json.dumps({**json.loads(line), **fields}).encode()


def without(field: str) -> Callable[[bytes], bytes]:
    def drop(line: bytes) -> bytes:
        return json.dumps({k: v for k, v in json.loads(line).items() if k != field}).encode()

    return drop


def put(content: bytes) -> Callable[[bytes], bytes]:
    return lambda _: content


def replaced(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda line: line.replace(old, new)


JSON_LINE = {
    "JSON breaks off": lambda line: line[:-3],
    "single quotes": replaced(b'"', b"'"),
    "two objects in a line": lambda line: line + line,
    "a list in place of an object": put(b"[1, 2]"),
    "null in place of an object": put(b"null"),
    "a string in place of an object": put(b'"text"'),
    "plain text in place of JSON": put(b"a fine film\t1"),
    "an empty line": put(b""),
    "a blank line": put(b"  \t"),
    "id missing": without("id"),
    "id is a number": changed(id=7),
    "id is empty": changed(id=""),
    "a byte that is not UTF-8": replaced(b'"id"', b'"\xe9id"'),
    "a NUL byte": replaced(b'"id"', b'"\0id"'),
    "nested too deeply": put(b'{"id": ' + b"[" * 200_000),
    "a number of too many digits": put(b'{"id": ' + b"9" * 6000 + b"}"),
}
LABELLED_LINE = JSON_LINE | {
    "label missing": without("label"),
    "text missing": without("text"),
    "label is a string": changed(label="1"),
    "label is true": changed(label=True),
    "label is a fraction": changed(label=1.0),
    "label is null": changed(label=None),
    "label is NaN": changed(label=float("nan")),
    "label is a list": changed(label=[1]),
    "label below the range": changed(label=-1),
    "label above the range": changed(label=2),
    "text is a number": changed(text=5),
    "text is null": changed(text=None),
    "text is a list": changed(text=["a"]),
    "text is empty": changed(text=""),
    "text is blank": changed(text=" \n "),
    "an escaped NUL in the text": changed(text="a\0b"),
    "half a surrogate pair in the text": changed(text="a\ud800b"),
}
ALIGNED_LINE = JSON_LINE | {
    "sure missing": without("sure"),
    "possible missing": without("possible"),
    "a sentence missing": without("en"),
    "a sentence is empty": changed(de=" "),
    "a sentence is a list": changed(de=["ein"]),
    "links are no list": changed(sure={"0": 0}),
    "a link is a string": changed(sure=["0-0"]),
    "a link has three ends": changed(sure=[[0, 0, 0]]),
    "a link has one end": changed(possible=[[0]]),
    "a link has a fraction": changed(sure=[[0.0, 0]]),
    "a link has true": changed(sure=[[True, 0]]),
    "source index out of range": changed(sure=[[3, 0]]),
    "target index out of range": changed(possible=[[0, 3]]),
    "index below zero": changed(possible=[[-1, 0]]),
}
PARALLEL_LINE = {
    "an empty line": put(b""),
    "a blank line": put(b" \t "),
    "a line of a no-break space": put("\u00a0".encode()),
    "a byte that is not UTF-8": put(b"Stra\xdfe"),
    "a NUL byte": put(b"a\0b"),
    "a carriage return inside": put(b"a\rb"),
}
HARMLESS_LINE = {
    "labelled": {
        "a further field": changed(stars=[3]),
        "escaped characters": lambda line: json.dumps(json.loads(line)).encode(),
        "blanks around": lambda line: b"  " + line + b" ",
    },
    "parallel": {"blanks around": lambda line: b"  " + line + b"\t"},
    "aligned": {
        "a repeated link": changed(sure=[[0, 0], [0, 0]]),
        "more blanks between words": lambda line: line.replace(b'"de": "', b'"de": " '),
    },
}


@dataclass(frozen=True)
class LineDamage:
    form: str
    file: str
    name: str
    change: Callable[[bytes], bytes]
    harmless: bool = False


def line_damages() -> list[LineDamage]:
    kinds = {"labelled": LABELLED_LINE, "aligned": ALIGNED_LINE, "parallel": PARALLEL_LINE}
    found = [
        LineDamage(form, file, name, change)
        for form, changes in kinds.items()
        for file in SOUND[form]
        for name, change in changes.items()
    ]
    return found + [
        LineDamage(form, file, name, change, harmless=True)
        for form, changes in HARMLESS_LINE.items()
        for file in SOUND[form]
        for name, change in changes.items()
    ]


def told(error: CorpusError) -> str:
    sentence = str(error)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


def test_more_than_thirty_kinds_of_damage_are_tried():
    kinds = {damage.name for damage in line_damages() if not damage.harmless}
    assert len(kinds | set(FILE_DAMAGES) | set(META_DAMAGES)) > 60


@for_each("damage", line_damages(), ids=lambda d: f"{d.form}-{d.file}-{d.name}")
@settings(max_examples=8)
@given(place=st.integers(0, 5), packed=st.booleans(), ends=st.sampled_from([b"\n", b"\r\n"]))
def test_a_damaged_line_is_named_and_a_harmless_change_changes_nothing(
    damage: LineDamage, place: int, packed: bool, ends: bytes
):
    with corpus(damage.form, packed) as folder:
        lines = list(SOUND[damage.form][damage.file])
        lines[place] = damage.change(lines[place])
        path = write(folder / damage.file, ends.join(lines) + ends, packed)
        if damage.harmless:
            assert read(folder, damage.form) == RECORDS[damage.form]
            return
        with pytest.raises(CorpusError) as caught:
            read(folder, damage.form)
        assert told(caught.value).startswith(f"{path}, line {place + 1}: ")


@settings(max_examples=30)
@given(st.integers(0, 4), st.integers(1, 5), st.booleans())
def test_a_repeated_id_names_both_lines(first: int, later: int, packed: bool):
    second = min(first + later, 5)
    with corpus("labelled", packed) as folder:
        rows = [dict(row) for row in ROWS]
        rows[second]["id"] = rows[first]["id"]
        path = write(folder / "train.jsonl", b"\n".join(json_lines(rows)), packed)
        with pytest.raises(CorpusError) as caught:
            read(folder, "labelled")
        assert told(caught.value) == (
            f'{path}, line {second + 1}: id "r{first}" was given to line {first + 1} already.'
        )


# Damage to a whole file: its new bytes, or None where it is removed.
FILE_DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "no file": lambda _: None,
    "no bytes": lambda _: b"",
    "one line break": lambda _: gzip.compress(b"\n"),
    "truncated gzip": lambda content: content[: len(content) // 2],
    "gzip without its end": lambda content: content[:-4],
    "a wrong checksum": lambda content: content[:-8] + bytes(4) + content[-4:],
    "not gzip": lambda content: gzip.decompress(content),
    "rubbish after gzip": lambda content: content + b"more",
    "gzip twice": gzip.compress,
    "UTF-16": lambda c: gzip.compress(gzip.decompress(c).decode().encode("utf-16")),
    "one line fewer in a third of it": lambda c: c[: len(c) // 3],
}


@for_each("form", SOUND)
@for_each("name", FILE_DAMAGES)
def test_a_damaged_file_is_named(form: str, name: str):
    for file in SOUND[form]:
        with corpus(form, packed=True) as folder:
            path = folder / f"{file}.gz"
            content = FILE_DAMAGES[name](path.read_bytes())
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content)
            with pytest.raises(CorpusError) as caught:
                read(folder, form)
            gone = content is None and form != "parallel"
            assert (f"{folder} has no splits" if gone else file) in told(caught.value)


META_DAMAGES: dict[str, bytes | None] = {
    "no meta.json": None,
    "meta.json is empty": b"",
    "meta.json is not JSON": b"{labels: [a, b]}",
    "meta.json is a list": b'["a", "b"]',
    "meta.json is not UTF-8": b'{"labels": ["\xe9", "b"]}',
    "meta.json is nested too deeply": b"[" * 200_000,
    "neither labels nor languages": b'{"name": "x"}',
    "labels are a string": b'{"labels": "ab"}',
    "labels are numbers": b'{"labels": [0, 1]}',
    "a label is blank": b'{"labels": ["a", " "]}',
    "a label twice": b'{"labels": ["a", "b", "a"]}',
    "one label": b'{"labels": ["a"]}',
    "no label": b'{"labels": []}',
    "one language": b'{"langs": ["de"]}',
    "a language twice": b'{"langs": ["de", "de"]}',
    "a path as language": b'{"langs": ["de", "../en"]}',
}


@for_each("form", SOUND)
@for_each("name", META_DAMAGES)
def test_a_damaged_meta_json_is_named(form: str, name: str):
    with corpus(form, packed=False) as folder:
        content = META_DAMAGES[name]
        if content is None:
            (folder / "meta.json").unlink()
        else:
            (folder / "meta.json").write_bytes(content)
        with pytest.raises(CorpusError) as caught:
            read(folder, form)
        assert str(folder / "meta.json") in told(caught.value)


@settings(max_examples=300)
@given(
    form=st.sampled_from(sorted(SOUND)),
    packed=st.booleans(),
    cut=st.tuples(st.floats(0, 1), st.integers(0, 6)),
    new=st.binary(max_size=6),
    data=st.data(),
)
def test_bytes_changed_at_random_are_read_or_told_in_one_sentence(form, packed, cut, new, data):
    with corpus(form, packed) as folder:
        path = data.draw(st.sampled_from(sorted(folder.iterdir())))
        content = path.read_bytes()
        start = int(cut[0] * len(content))
        path.write_bytes(content[:start] + new + content[start + cut[1] :])
        refused = ""
        try:
            read(folder, form)
        except CorpusError as error:
            refused = told(error)
        assert not refused or str(folder) in refused


@for_each("form", SOUND)
@for_each("packed", [True, False])
@for_each("mark", [b"", b"\xef\xbb\xbf"])
@for_each("ends", [b"\n", b"\r\n"])
@for_each("last", [True, False])
def test_line_ends_and_byte_order_marks_change_nothing(form, packed, mark, ends, last):
    with corpus(form, packed) as folder:
        for name, lines in SOUND[form].items():
            write(folder / name, mark + ends.join(lines) + (ends if last else b""), packed)
        assert read(folder, form) == RECORDS[form]


def test_characters_that_look_like_line_ends_stay_inside_a_sentence():
    with corpus("parallel", packed=False) as folder:
        odd = "a\u2028b\u0085c\x0bd"
        write(folder / "train.de", "\n".join([odd, *DE[1:]]).encode(), packed=False)
        assert read(folder, "parallel")[0].source == odd


def test_a_byte_that_is_not_utf8_is_found_behind_a_byte_order_mark():
    with corpus("parallel", packed=False) as folder:
        write(folder / "train.de", b"\xef\xbb\xbfa\nb\n\xff\n", packed=False)
        with pytest.raises(CorpusError, match=r"train\.de, line 3: "):
            read(folder, "parallel")


@pytest.mark.parametrize("fewer", ["train.de", "train.en"])
def test_unequal_line_counts_name_both(fewer: str):
    with corpus("parallel", packed=False) as folder:
        write(folder / fewer, b"\n".join(SOUND["parallel"][fewer][:-2]), packed=False)
        with pytest.raises(CorpusError) as caught:
            read(folder, "parallel")
        counts = (4, 6) if fewer == "train.de" else (6, 4)
        expected = f"{folder}/train.de has {counts[0]} lines but train.en has {counts[1]}; "
        assert told(caught.value).startswith(expected)


def test_a_label_out_of_range_lists_the_labels():
    with corpus("labelled", packed=True) as folder:
        rows = [*ROWS[:3], {**ROWS[3], "label": 5}]
        path = write(folder / "train.jsonl", b"\n".join(json_lines(rows)), packed=True)
        with pytest.raises(CorpusError) as caught:
            read(folder, "labelled")
        assert str(caught.value) == (
            f"{path}, line 4: label 5 is out of range; labels are 0 (negative), 1 (positive)."
        )


def test_a_file_both_packed_and_plain_is_refused():
    with corpus("labelled", packed=True) as folder:
        write(folder / "train.jsonl", b"", packed=False)
        with pytest.raises(CorpusError, match=r"train\.jsonl\.gz and train\.jsonl both exist"):
            read(folder, "labelled")


def test_another_split_language_or_kind_of_text_is_one_sentence_with_the_choices():
    with corpus("parallel", packed=True) as folder:
        opened = CorpusFolder.open(folder)
        with pytest.raises(CorpusError, match=r"no split 'tain'; did you mean 'train'\?"):
            opened.pairs("tain", "de", "en")
        with pytest.raises(CorpusError, match=r"no language 'fr'; valid: de, en\."):
            opened.pairs("train", "de", "fr")
        with pytest.raises(CorpusError, match="a corpus for translation; it has no labelled text"):
            opened.labelled("train")
        with pytest.raises(CorpusError, match="is not a folder"):
            CorpusFolder.open(folder / "meta.json")


def test_links_turn_with_the_direction_and_possible_ones_include_the_sure():
    with corpus("aligned", packed=True) as folder:
        opened = CorpusFolder.open(folder)
        there, back = opened.aligned("train", "de", "en"), opened.aligned("train", "en", "de")
        assert (there[1].source, there[1].target) == (back[1].target, back[1].source)
        assert there[1].possible == {(0, 0), (0, 2)}
        assert back[1].possible == {(0, 0), (2, 0)}
        assert back[1].sure <= back[1].possible
        with pytest.raises(CorpusError, match="source and target are both 'de'"):
            opened.aligned("train", "de", "de")


def test_splits_come_in_the_order_of_their_use_and_sizes_from_meta_json():
    with corpus("labelled", packed=True) as folder:
        for split in ("test", "extra", "dev"):
            write(folder / f"{split}.jsonl", b"", packed=False)
        (folder / ".aside-1-old.jsonl").write_text("")
        stats = {"train": {"n": 6}, "dev": {"n": True}, "vocab": 7}
        (folder / "meta.json").write_text(json.dumps(META["labelled"] | {"stats": stats}))
        opened = CorpusFolder.open(folder)
        assert opened.splits == ("train", "dev", "test", "extra")
        assert opened.sizes == {"train": 6}
        assert (opened.name, opened.labels) == ("corpus", ("negative", "positive"))


@pytest.mark.skipif(
    not os.environ.get("ATTNSCOPE_DATA"), reason="needs ATTNSCOPE_DATA: real corpora"
)
def test_the_gold_alignments_have_the_known_numbers_of_links():
    gold = CorpusFolder.open(Path(os.environ["ATTNSCOPE_DATA"]) / "gold_align_en_fr")
    pairs = gold.aligned("test", "en", "fr")
    # The figures of the 2003 shared task.
    assert len(pairs) == 447
    assert sum(len(pair.sure) for pair in pairs) == 4038
    assert sum(len(pair.possible) for pair in pairs) == 17438


def test_languages_of_parallel_text_may_be_those_of_its_files(tmp_path):
    (tmp_path / "meta.json").write_text('{"kind": "parallel text"}')
    for split, lines in (("train", "eins\nzwei\n"), ("dev", "drei\n")):
        for language in ("de", "en"):
            (tmp_path / f"{split}.{language}").write_text(lines)
    corpus = CorpusFolder.open(tmp_path)
    assert (corpus.kind, corpus.languages) == ("translation", ("de", "en"))
    assert corpus.pairs("dev", "de", "en")[0].source == "drei"
    (tmp_path / "train.nl").write_text("een\ntwee\n")  # Which two of the three?
    with pytest.raises(CorpusError, match="neither 'labels'"):
        CorpusFolder.open(tmp_path)
