"""SentencePiece vocabularies: one for both languages, learned once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from attnscope.data import pieces
from attnscope.data.pieces import trained_pieces
from attnscope.errors import UsageError

GERMAN = ["ein hund sieht den hund", "der hund schläft", "eine katze sieht ein haus"]
ENGLISH = ["a dog sees the dog", "the dog sleeps", "a cat sees a house"]
TEXTS = [text for pair in zip(GERMAN, ENGLISH, strict=True) for text in pair]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATTNSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_first_ids_are_padding_start_end_and_unknown() -> None:
    words = trained_pieces("text", TEXTS, 40).words
    assert words.words[:4] == ("<pad>", "<bos>", "<eos>", "<unk>")
    assert words.encode(["<pad>", "<bos>", "<eos>", "no such piece"]) == [0, 1, 2, 3]


def test_one_vocabulary_spells_both_languages() -> None:
    found = trained_pieces("text", TEXTS, 60)
    ids = found.encode(TEXTS)
    assert all(index > 3 for row in ids for index in row)
    assert [found.decode(row) for row in ids] == TEXTS


def test_a_vocabulary_has_at_most_the_types_asked_for() -> None:
    assert len(trained_pieces("text", TEXTS, 34).words) == 34


def test_a_corpus_too_small_for_a_size_gets_as_many_pieces_as_it_gives() -> None:
    found = trained_pieces("text", TEXTS, 8000)
    assert len({*"".join(TEXTS)}) < len(found.words) < 8000
    assert [found.decode(row) for row in found.encode(TEXTS)] == TEXTS


def test_a_character_that_was_never_seen_is_unknown() -> None:
    found = trained_pieces("text", TEXTS, 40)
    assert 3 in found.encode(["a ☃"])[0]


def test_padding_and_boundaries_leave_no_trace_in_the_text() -> None:
    found = trained_pieces("text", TEXTS, 40)
    ids = found.encode(["the dog sleeps"])[0]
    assert found.decode([1, *ids, 2, 0, 0]) == "the dog sleeps"


def test_pieces_are_learned_once_and_found_in_the_cache_after_that(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = trained_pieces("text", TEXTS, 40)

    def never() -> Iterator[str]:
        raise AssertionError("the text was looked at again")
        yield

    pieces._read.cache_clear()
    monkeypatch.setattr(pieces, "_train", lambda *_: pytest.fail("pieces were learned again"))
    again = trained_pieces("text", never(), 40)
    assert again.words == first.words
    assert len(list((own_cache / "pieces").glob("*.model"))) == 1


def test_other_texts_and_other_sizes_have_pieces_of_their_own(own_cache: Path) -> None:
    first = trained_pieces("text", TEXTS, 34)
    assert trained_pieces("text", TEXTS, 36).words != first.words
    assert trained_pieces("other text", ["xyz zyx"] * 9, 34).words != first.words
    assert len(list((own_cache / "pieces").glob("*.model"))) == 3


def test_learning_repeats_itself_to_the_byte(own_cache: Path) -> None:
    trained_pieces("text", TEXTS, 40)
    (model,) = (own_cache / "pieces").glob("*.model")
    before = model.read_bytes()
    model.unlink()
    trained_pieces("text", TEXTS, 40)
    assert model.read_bytes() == before


def test_fewer_types_than_characters_are_refused(own_cache: Path) -> None:
    with pytest.raises(UsageError, match="No 10 pieces can be learned from this text"):
        trained_pieces("text", TEXTS, 10)
    assert not list((own_cache / "pieces").glob("*.model"))
