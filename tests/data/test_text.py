"""Text corpora as sources: words or pieces in ids, batches, splits, and what is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from attnscope.data import pieces, text
from attnscope.data.corpus import GrammarSentiment, GrammarTranslation
from attnscope.data.corpus_writer import write_corpus
from attnscope.data.folder import CorpusFolder
from attnscope.data.source import Source
from attnscope.data.text import LabelledText, ParallelText, open_text
from attnscope.errors import UsageError
from cases import for_each

NOUNS = ("film", "plot", "cast", "music", "ending", "joke", "scene", "title", "poster")
KINDS = {"good": ("fine", "lovely", "superb"), "bad": ("dull", "awful", "boring")}
# Texts of 3 to 3 + 17 words; each "rareN" occurs once.
REVIEWS = [
    (" ".join([f"The {noun}!", *[word.upper()] * (n % 18), f"rare{n}"]), label)
    for n, (noun, label, word) in enumerate(
        (noun, label, word) for noun in NOUNS for label, words in KINDS.items() for word in words
    )
]
PAIRS = [
    (
        f"{subject[0]} sieht {' und '.join([thing[0]] * times)}",
        f"{subject[1]} sees {' and '.join([thing[1]] * times)}" + " over and over" * (times == 2),
    )
    for subject in (("ein Hund", "a dog"), ("die Katze", "the cat"), ("Anna", "Anna"))
    for thing in (("Brot", "bread"), ("Wasser", "water"), ("den Mond", "the moon"))
    for times in range(1, 6)
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ATTNSCOPE_DATA", raising=False)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("corpora")
    return {
        "reviews": write_corpus(place / "reviews", REVIEWS, validation=0.3),
        "pairs": write_corpus(place / "pairs", PAIRS, languages=("de", "en"), validation=0.3),
    }


def labelled(folders: dict[str, Path], **settings: Any) -> LabelledText:
    source = open_text(folders["reviews"], classification=settings)
    assert isinstance(source, LabelledText)
    return source


def parallel(folders: dict[str, Path], **settings: Any) -> ParallelText:
    source = open_text(folders["pairs"], translation={"pieces": 60} | settings)
    assert isinstance(source, ParallelText)
    return source


def as_in_a_new_process() -> None:
    for module in (text, pieces):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def ints(ids: Iterable[Any]) -> list[int]:
    return [int(index) for index in ids]


def plain_words(record: str) -> list[str]:
    return record.lower().replace("!", "").split()


# Vocabularies and ids.


def test_a_bare_text_has_no_boundaries_and_the_same_words(folders: dict[str, Path]) -> None:
    bare, marked = labelled(folders, edges="bare"), labelled(folders)
    assert [ints(e.inputs) for e in bare.training_examples] == [
        ints(e.inputs[1:-1]) for e in marked.training_examples
    ]
    assert bare.encode("good") == marked.encode("good")[1:-1]


def test_a_vocabulary_of_all_parts_knows_the_words_of_every_part(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "meta.json").write_text('{"labels": ["a", "b"]}')
    for split, word in (("train", "one"), ("dev", "two"), ("test", "three")):
        (folder / f"{split}.jsonl").write_text(f'{{"id": "1", "label": 1, "text": "{word}"}}\n')
    given = {"min_count": 1, "edges": "bare"}
    every = open_text(folder, classification=given | {"vocabulary": "all"})
    assert isinstance(every, LabelledText)
    assert every.input_words.words[4:] == ("one", "three", "two")
    assert every.input_words.decode(ints(every.test_examples[0].inputs)) == ["three"]
    train = open_text(folder, classification=given)
    assert isinstance(train, LabelledText)
    assert train.input_words.words[4:] == ("one",)
    assert train.input_words.decode(ints(train.test_examples[0].inputs)) == ["<unk>"]


def test_words_that_occur_three_times_in_the_training_part_have_ids_after_the_specials(
    folders: dict[str, Path],
) -> None:
    """Snell A.8: 'We mapped all words occurring less than 3 times in the training set to <unk>'."""
    train = CorpusFolder.open(folders["reviews"]).labelled("train")
    counts = Counter(word for record in train for word in plain_words(record.text))
    kept = sorted(word for word, count in counts.items() if count >= 3)
    words = labelled(folders).input_words
    assert words.words == ("<pad>", "<bos>", "<eos>", "<unk>", *kept)
    assert 2 in counts.values() or 1 in counts.values()
    assert words.encode(["rare0", "never seen"]) == [3, 3]


def test_the_least_count_of_a_word_is_a_setting(folders: dict[str, Path]) -> None:
    train = CorpusFolder.open(folders["reviews"]).labelled("train")
    every = {word for record in train for word in plain_words(record.text)}
    assert set(labelled(folders, min_count=1).input_words.words[4:]) == every


def test_words_may_be_counted_by_the_texts_that_have_them(folders: dict[str, Path]) -> None:
    train = CorpusFolder.open(folders["reviews"]).labelled("train")
    texts = [" ".join(plain_words(record.text)) for record in train]
    for least in (2, 4):
        vectoriser = CountVectorizer(tokenizer=str.split, token_pattern=None, min_df=least)
        vectoriser.fit(texts)
        source = labelled(folders, min_count=least, counted="texts")
        assert set(source.input_words.words[4:]) == set(vectoriser.vocabulary_)
    assert source.input_words != labelled(folders, min_count=4).input_words
    assert "counted" not in labelled(folders).model_dump(mode="json")


def test_words_of_a_vector_file_are_kept_however_rare(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    train = CorpusFolder.open(folders["reviews"]).labelled("train")
    rare = next(word for word in plain_words(train[0].text) if word.startswith("rare"))
    (tmp_path / "vectors.txt").write_text(f"{rare} 0.5 1\nnowhere 1 2\n")
    source = labelled(folders, vectors=str(tmp_path / "vectors.txt"))
    without = labelled(folders).input_words.words
    assert set(source.input_words.words) == {*without, rare}
    assert source.vectors_digest


def test_a_text_stands_between_its_boundaries_and_its_label_is_the_target(
    folders: dict[str, Path],
) -> None:
    source = labelled(folders)
    records = CorpusFolder.open(folders["reviews"]).labelled("val")
    assert len(source.validation_examples) == len(records)
    assert source.output_words.words == ("bad", "good")
    assert source.boundaries is None
    for example, record in zip(source.validation_examples, records, strict=True):
        kept = set(source.input_words.words)
        spelled = [word if word in kept else "<unk>" for word in plain_words(record.text)]
        assert source.input_words.decode(ints(example.inputs)) == ["<bos>", *spelled, "<eos>"]
        assert list(example.targets) == [record.label]
        assert source.encode(record.text) == ints(example.inputs)


def test_a_sentence_pair_is_read_and_written_between_boundaries(folders: dict[str, Path]) -> None:
    source = parallel(folders)
    records = CorpusFolder.open(folders["pairs"]).pairs("val", "de", "en")
    assert source.boundaries == (1, 2)
    assert source.input_words == source.output_words
    for example, record in zip(source.validation_examples, records, strict=True):
        assert (example.inputs[0], example.inputs[-1]) == (1, 2)
        assert list(example.decoder_inputs[1:]) == list(example.targets[:-1])
        assert (example.decoder_inputs[0], example.targets[-1]) == (1, 2)
        assert source.encode(record.source) == ints(example.inputs)
        assert source.sentence(ints(example.inputs)) == record.source
        assert source.sentence(ints(example.targets)) == record.target


def test_pieces_are_learned_from_both_sides_of_the_training_part_alone(tmp_path: Path) -> None:
    rows = [*PAIRS, *((f"ein Hund sieht {n}", f"a dog sees {n}") for n in range(10, 60))]
    folder = write_corpus(tmp_path / "pairs", rows, languages=("de", "en"), validation=0.3)
    train = CorpusFolder.open(folder).pairs("train", "de", "en")
    source = open_text(folder, translation={"pieces": 80})
    learned = {*"".join(f"{pair.source}{pair.target}" for pair in train)} - {" "}
    spelled = {*"".join(source.input_words.words[4:])} - {"▁"}
    assert spelled == learned


# Lengths.


@for_each("longest", [5, 9, 1000])
def test_longer_texts_are_left_out_and_counted(folders: dict[str, Path], longest: int) -> None:
    source = labelled(folders, max_length=longest)
    folder = CorpusFolder.open(folders["reviews"])
    for split, examples in (
        ("train", source.training_examples),
        ("val", source.validation_examples),
    ):
        lengths = [len(plain_words(record.text)) + 2 for record in folder.labelled(split)]
        short = [length for length in lengths if length <= longest]
        assert [len(example.inputs) for example in examples] == short
        told = source.loaded.left_out.get(f"{split}: more than {longest} tokens", 0)
        assert told == len(lengths) - len(short)


def test_a_pair_is_left_out_if_either_side_is_too_long(folders: dict[str, Path]) -> None:
    every = parallel(folders).training_examples
    longest = sorted(len(example.inputs) for example in every)[len(every) // 2]
    assert any(len(e.inputs) <= longest < len(e.targets) for e in every)
    kept = [e.id for e in every if len(e.inputs) <= longest and len(e.targets) <= longest]
    source = parallel(folders, max_length=longest)
    assert [example.id for example in source.training_examples] == kept
    assert source.loaded.left_out[f"train: more than {longest} tokens"] == len(every) - len(kept)


def test_lengths_never_change_the_vocabulary(folders: dict[str, Path]) -> None:
    assert labelled(folders, max_length=6).input_words == labelled(folders).input_words
    assert parallel(folders, max_length=9).input_words == parallel(folders).input_words


def test_a_limit_that_leaves_nothing_is_refused(folders: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match=r"reviews: no train example has 3 tokens or fewer\."):
        _ = labelled(folders, max_length=3).training_examples


# Identity.


def test_a_digest_follows_the_text_and_not_the_place(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    source = labelled(folders)
    moved = open_text(write_corpus(tmp_path / "moved", REVIEWS, validation=0.3))
    edited = [(REVIEWS[0][0] + " indeed", REVIEWS[0][1]), *REVIEWS[1:]]
    other = open_text(write_corpus(tmp_path / "edited", edited, validation=0.3))
    assert isinstance(moved, LabelledText)
    assert isinstance(other, LabelledText)
    assert len(source.digest) == 12
    assert source.digest == moved.digest != other.digest


@pytest.mark.parametrize("kind", ["reviews", "pairs"])
def test_a_unit_refuses_a_corpus_that_has_changed_since(kind: str, tmp_path: Path) -> None:
    rows, languages = (REVIEWS, None) if kind == "reviews" else (PAIRS, ("de", "en"))
    folder = write_corpus(tmp_path / "mine", rows, languages=languages)
    source = open_text(folder, translation={"pieces": 60})
    kept = Source.model_validate(source.model_dump(mode="json"))
    assert kept == source
    write_corpus(folder, [*rows, (f"{rows[0][0]} again", rows[0][1])], languages=languages)
    as_in_a_new_process()
    with pytest.raises(UsageError, match="is not the one that this unit was trained on"):
        kept.evaluation_batch(1)
    assert open_text(folder, translation={"pieces": 60}) != source


def test_a_folder_is_the_same_corpus_however_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_corpus(tmp_path / "mine", REVIEWS)
    monkeypatch.chdir(folder)
    sources = [open_text(name) for name in (folder, ".", "../mine")]
    assert sources[0] == sources[1] == sources[2]
    assert sources[1].dataset == "mine"


def test_a_corpus_that_is_written_anew_is_read_anew(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "mine", REVIEWS)
    before = len(open_text(folder).training_examples)
    write_corpus(folder, [*REVIEWS, *((f"more {n}", "good") for n in range(50))])
    assert len(open_text(folder).training_examples) > before


# Batches.


def batch_ids(source: Source, seed: int, steps: range, size: int) -> list[list[int]]:
    return [source.training_batch(seed, step, size).ids.tolist() for step in steps]


@given(st.integers(0, 3), st.integers(0, 6), st.integers(1, 7), st.integers(2, 5))
def test_sorted_batches_hold_the_same_examples_over_a_pool(folders, seed, pool, size, bucket):
    plain, sorted_ = labelled(folders, bucket_size=1), labelled(folders, bucket_size=bucket)
    steps = range(pool * bucket, (pool + 1) * bucket)
    drawn = [chain(*batch_ids(source, seed, steps, size)) for source in (plain, sorted_)]
    assert sorted(drawn[0]) == sorted(drawn[1])


@given(st.integers(0, 3), st.integers(0, 6))
def test_the_batches_of_a_pool_do_not_overlap_in_length(folders, seed, pool):
    source, bucket = labelled(folders, bucket_size=4), 4
    steps = range(pool * bucket, (pool + 1) * bucket)
    lengths = [source.training_batch(seed, step, 5).input_lengths.tolist() for step in steps]
    ordered = sorted(lengths, key=lambda batch: (min(batch), max(batch)))
    assert all(max(a) <= min(b) for a, b in pairwise(ordered))


def test_the_batches_of_a_pool_come_in_a_random_order(folders: dict[str, Path]) -> None:
    source = labelled(folders, bucket_size=4)
    longest = [int(source.training_batch(0, step, 5).input_lengths.max()) for step in range(40)]
    pools = [longest[start : start + 4] for start in range(0, 40, 4)]
    places = {tuple(sorted(range(4), key=pool.__getitem__)) for pool in pools}
    assert len(places) > 3


def test_every_example_comes_once_an_epoch_in_a_new_order(folders: dict[str, Path]) -> None:
    source = labelled(folders, bucket_size=1)
    ids = [example.id for example in source.training_examples]
    stream = [*chain(*batch_ids(source, 0, range(2 * len(ids)), 1))]
    epochs = stream[: len(ids)], stream[len(ids) :]
    assert sorted(epochs[0]) == sorted(epochs[1]) == ids
    assert epochs[0] != epochs[1]


def test_training_batches_are_a_function_of_seed_and_step_alone(folders: dict[str, Path]) -> None:
    source = labelled(folders)
    forwards = batch_ids(source, 1, range(30), 4)
    as_in_a_new_process()
    backwards = [source.training_batch(1, step, 4).ids.tolist() for step in reversed(range(30))]
    assert forwards == backwards[::-1]
    assert forwards != batch_ids(source, 2, range(30), 4)


def test_a_part_of_the_validation_part_has_both_classes_though_the_file_is_sorted(
    tmp_path: Path,
) -> None:
    rows = [(f"{label} text {n}", label) for label in ("bad", "good") for n in range(200)]
    source = open_text(write_corpus(tmp_path / "mine", rows, validation=0.5))
    every = source.evaluation_batch(4000)
    assert every.ids.tolist() == list(range(len(source.validation_examples)))
    part = source.evaluation_batch(40)
    assert part.ids.tolist() == source.evaluation_batch(40).ids.tolist()
    assert len(set(part.ids.tolist())) == 40
    assert set(part.targets[:, 0].tolist()) == {0, 1}


def test_the_training_part_of_an_evaluation_is_fixed_and_of_the_validation_parts_size(
    folders: dict[str, Path],
) -> None:
    """Details 1.3: a random subset of train of the validation size."""
    source = labelled(folders)
    count = len(source.validation_examples)
    batch = source.evaluation_batch(4000, "train")
    ids = batch.ids.tolist()
    assert len(ids) == len(set(ids)) == min(count, len(source.training_examples))
    assert ids != list(range(len(ids)))
    by_id = {example.id: example for example in source.training_examples}
    for row, index in enumerate(ids):
        length = int(batch.input_lengths[row])
        assert batch.inputs[row, :length].tolist() == list(by_id[index].inputs)
    as_in_a_new_process()
    assert labelled(folders).evaluation_batch(4000, "train").ids.tolist() == ids


def test_there_are_no_other_splits(folders: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="valid: val, train"):
        labelled(folders).evaluation_batch(3, "test")


@for_each("settings", [{}, {"max_length": 12}])
@for_each("split", ["val", "train"])
def test_references_are_the_targets_as_they_stand_in_the_files(
    folders: dict[str, Path], split: str, settings: dict[str, Any]
) -> None:
    source = parallel(folders, **settings)
    records = CorpusFolder.open(folders["pairs"]).pairs(split, "de", "en")
    batch = source.evaluation_batch(6, split)
    references = source.references(split, 6)
    assert references == [records[index].target for index in batch.ids.tolist()]
    # The same rows as the batch's: what the model reads is what the reference translates.
    for row, reference in enumerate(references):
        length = int(batch.target_lengths[row])
        assert source.sentence(batch.targets[row, :length].tolist()) == reference


# What can be opened.


def test_a_folder_is_known_by_its_own_name(folders: dict[str, Path]) -> None:
    assert labelled(folders).dataset == "reviews"
    assert parallel(folders).dataset == "pairs"


def test_the_corpora_of_the_package_need_no_folder() -> None:
    assert open_text("grammar-sentiment") == GrammarSentiment()
    assert open_text("grammar-translation") == GrammarTranslation()


def test_a_corpus_takes_the_settings_of_its_own_task(folders: dict[str, Path]) -> None:
    settings: dict[str, Any] = {
        "classification": {"min_count": 2, "max_length": 40},
        "translation": {"pieces": 60, "max_length": 30},
    }
    reviews, pairs = (open_text(folders[name], **settings) for name in ("reviews", "pairs"))
    assert isinstance(reviews, LabelledText)
    assert isinstance(pairs, ParallelText)
    assert (reviews.min_count, reviews.max_length) == (2, 40)
    assert (pairs.pieces, pairs.max_length) == (60, 30)


def test_what_cannot_be_opened_is_said_in_one_sentence(folders: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match=r"no corpus 'imbd'.*did you mean 'imdb'\?"):
        open_text("imbd")
    with pytest.raises(UsageError, match="gold-en-fr has alignments only"):
        open_text("gold-en-fr")
    with pytest.raises(UsageError, match=r"No tokeniser 'word'; did you mean 'words'\?"):
        labelled(folders, tokens="word")
    with pytest.raises(UsageError, match="has no setting 'min_cuont'; did you mean 'min_count'"):
        labelled(folders, min_cuont=2)
    with pytest.raises(UsageError, match="max_length=2 is not valid"):
        labelled(folders, max_length=2)
