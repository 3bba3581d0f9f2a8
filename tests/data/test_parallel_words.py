"""Parallel text by words: vocabularies, lengths, boundaries, identity, and what can be opened."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from attnscope.data import parallel_words, text
from attnscope.data.corpus import GrammarTranslation
from attnscope.data.corpus_writer import write_corpus
from attnscope.data.folder import CorpusFolder
from attnscope.data.parallel_words import ParallelWords, open_words
from attnscope.data.source import Source
from attnscope.errors import UsageError

LETTERS = "abcdefghij"
# Word "xa" occurs most often, then "xb", …; the other side has one word more.
PAIRS = [
    (
        f"X{' x'.join(LETTERS[:size])}{'!' * (extra + 1)}",
        f"Oh, y{' y'.join(LETTERS[:size])} ." + " z" * extra,
    )
    for size in range(1, len(LETTERS) + 1)
    for extra in range(4)
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNSCOPE_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("corpora")
    return write_corpus(place / "pairs", PAIRS, languages=("xx", "yy"), validation=0.3)


def words_of(folder: Path, **settings: Any) -> ParallelWords:
    source = open_words(folder, **settings)
    assert isinstance(source, ParallelWords)
    return source


def cut(line: str) -> list[str]:
    return line.lower().replace("!", " !").replace(",", " ,").split()


def ints(ids: Any) -> list[int]:
    return [int(index) for index in ids]


def test_a_pair_is_read_with_its_end_and_written_from_a_start_in_words_and_marks(
    folder: Path,
) -> None:
    source = words_of(folder)
    records = CorpusFolder.open(folder).pairs("val", "xx", "yy")
    start, end = source.output_words.encode(["<bos>", "<eos>"])
    assert source.boundaries == (start, end)
    assert len(source.validation_examples) == len(records)
    for example, record in zip(source.validation_examples, records, strict=True):
        inputs = source.input_words.decode(ints(example.inputs))
        targets = source.output_words.decode(ints(example.targets))
        assert inputs == [*cut(record.source), "<eos>"]
        assert targets == [*cut(record.target), "<eos>"]
        assert ints(example.decoder_inputs) == [start, *ints(example.targets[:-1])]
        assert source.encode(record.source) == ints(example.inputs)
        assert source.sentence(ints(example.targets)) == " ".join(cut(record.target))


def test_each_side_has_its_own_words_the_most_frequent_first(folder: Path) -> None:
    source = words_of(folder)
    train = CorpusFolder.open(folder).pairs("train", "xx", "yy")
    for vocabulary, lines in (
        (source.input_words, [pair.source for pair in train]),
        (source.output_words, [pair.target for pair in train]),
    ):
        counts = Counter(word for line in lines for word in cut(line))
        assert vocabulary.words[:4] == ("<pad>", "<bos>", "<eos>", "<unk>")
        assert set(vocabulary.words[4:]) == set(counts)
        found = [counts[word] for word in vocabulary.words[4:]]
        assert found == sorted(found, reverse=True)
    assert "xa" not in source.output_words.words
    assert "ya" not in source.input_words.words


def test_words_beyond_the_number_of_types_are_unknown(folder: Path) -> None:
    every, few = words_of(folder), words_of(folder, types=5)
    assert few.input_words.words == every.input_words.words[:9]
    assert few.output_words.words == every.output_words.words[:9]
    unknown = few.input_words.id("<unk>")
    for one, other in zip(every.training_examples, few.training_examples, strict=True):
        assert ints(other.inputs) == [i if i < 9 else unknown for i in ints(one.inputs)]
    assert few.encode("xa never") == [few.input_words.id("xa"), unknown, 2]


def test_words_of_the_validation_part_are_not_learned(tmp_path: Path) -> None:
    rows = [(f"x{n} x", f"y{n} y") for n in range(40)]
    source = words_of(write_corpus(tmp_path / "rare", rows, languages=("x", "y"), validation=0.5))
    own = {str(source.input_words.words[int(e.inputs[0])]) for e in source.validation_examples}
    assert own == {"<unk>"}


@pytest.mark.parametrize("longest", [9, 11])
def test_a_pair_with_more_tokens_on_a_side_is_left_out_and_counted(
    folder: Path, longest: int
) -> None:
    source = words_of(folder, longest=longest)
    for split, examples in (
        ("train", source.training_examples),
        ("val", source.validation_examples),
    ):
        pairs = CorpusFolder.open(folder).pairs(split, "xx", "yy")
        sizes = [max(len(cut(pair.source)), len(cut(pair.target))) for pair in pairs]
        kept = [n for n, size in enumerate(sizes) if size <= longest]
        assert [example.id for example in examples] == kept
        left_out = source.loaded.left_out[f"{split}: more than {longest} tokens"]
        assert left_out == len(sizes) - len(kept) > 0
    # 15 tokens and the end are 16 positions; the limit of all texts counts the end.
    other = words_of(folder, max_length=longest + 1)
    assert [e.id for e in other.training_examples] == [e.id for e in source.training_examples]


def test_a_limit_that_leaves_nothing_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"pairs: no train pair has 2 tokens or fewer\."):
        _ = words_of(folder, longest=2).training_examples


def test_defaults_are_the_papers(folder: Path) -> None:
    source = words_of(folder)
    assert (source.types, source.longest) == (30_000, 15)


@pytest.mark.parametrize("split", ["val", "train"])
def test_references_have_the_words_that_are_unknown_to_the_model(folder: Path, split: str) -> None:
    source = words_of(folder, types=3, longest=11)
    records = CorpusFolder.open(folder).pairs(split, "xx", "yy")
    ids = source.evaluation_batch(5, split).ids.tolist()
    expected = [" ".join(cut(records[index].target)) for index in ids]
    assert source.references(split, 5) == expected
    assert not any("<unk>" in line for line in expected)


def test_a_unit_refuses_a_corpus_that_has_changed_since(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "mine", PAIRS, languages=("xx", "yy"))
    source = open_words(folder, types=50)
    kept = Source.model_validate(source.model_dump(mode="json"))
    assert kept == source
    write_corpus(folder, [*PAIRS, ("xa again", "ya again")], languages=("xx", "yy"))
    for module in (text, parallel_words):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
    with pytest.raises(UsageError, match="is not the one that this unit was trained on"):
        kept.evaluation_batch(1)
    assert open_words(folder, types=50) != source


def test_a_folder_is_the_same_corpus_however_it_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert open_words(".") == open_words(folder)
    assert open_words(".").dataset == "pairs"


def test_the_corpus_of_the_package_is_made_of_words_already() -> None:
    assert open_words("grammar-translation", types=7) == GrammarTranslation()


def test_what_cannot_be_opened_is_said_in_one_sentence(folder: Path, tmp_path: Path) -> None:
    reviews = write_corpus(tmp_path / "reviews", [("a b", "good"), ("c d", "bad")] * 20)
    with pytest.raises(UsageError, match=r"reviews is not parallel text \(classification\); give"):
        open_words(reviews)
    with pytest.raises(UsageError, match="has no setting 'typse'; did you mean 'types'"):
        open_words(folder, typse=3)
    with pytest.raises(UsageError, match=r"No tokeniser 'word'; did you mean 'words'\?"):
        open_words(folder, tokens="word")


@pytest.mark.skipif(
    not os.environ.get("ATTNSCOPE_DATA"), reason="needs ATTNSCOPE_DATA: real corpora"
)
def test_english_and_french_of_tatoeba_keep_nearly_all_pairs() -> None:
    source = words_of(Path("tatoeba-en-fr"), types=2000)
    loaded = source.loaded
    assert len(loaded.train) + loaded.left_out["train: more than 15 tokens"] == 160_751
    assert len(loaded.val) + loaded.left_out["val: more than 15 tokens"] == 3_120
    assert {"the", "."} <= set(source.input_words.words[4:24])
    assert {"la", "le", "les"} <= set(source.output_words.words)
    assert max(len(example.inputs) for example in loaded.train) == 16
