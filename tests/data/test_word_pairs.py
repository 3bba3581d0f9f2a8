"""Pairs in words: read as the corpus reads its own sentences, each piece with its word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnscope.data import grammar
from attnscope.data.corpus import GrammarTranslation
from attnscope.data.text import ParallelText, open_text
from attnscope.data.tokens import SPECIALS
from attnscope.data.word_pairs import read_word_pairs
from attnscope.scores.subwords import word_groups_of_ids

SENTENCES = {
    "de": ("das Haus ist klein", "das Buch ist neu", "ein Haus", "ein Buch", "das kleine Buch"),
    "en": ("the house is small", "the book is new", "a house", "a book", "the small book"),
}


def write_parallel(folder: Path) -> Path:
    folder.mkdir()
    (folder / "meta.json").write_text(json.dumps({"langs": list(SENTENCES)}))
    for language, sentences in SENTENCES.items():
        for split in ("train", "val"):
            (folder / f"{split}.{language}").write_text("\n".join(sentences) + "\n")
    return folder


def test_pairs_are_read_as_the_corpus_reads_its_own() -> None:
    source = GrammarTranslation()
    pairs = [(pair.source, pair.target) for pair in grammar.translation_corpus()["val"]]
    batch, inputs, outputs = read_word_pairs(source, pairs)
    own = source.evaluation_batch(len(batch))
    assert batch.inputs.equal(own.inputs)
    assert batch.decoder_inputs.equal(own.decoder_inputs)
    assert batch.targets.equal(own.targets)
    assert (inputs.amax(1) + 1).equal(own.input_lengths - 1)  # all but <eos> are words
    assert (outputs.amax(1) + 1).equal(own.target_lengths - 1)


def test_pieces_of_words_are_those_of_the_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = open_text(write_parallel(tmp_path / "parallel"), translation={"pieces": 30})
    assert isinstance(source, ParallelText)
    pairs = [("ein kleines Haus xyz", "a small house"), ("Buch", "new books")]
    batch, inputs, outputs = read_word_pairs(source, [(x.split(), y.split()) for x, y in pairs])
    for n, (words, target) in enumerate(pairs):
        length = int(batch.input_lengths[n])
        assert batch.inputs[n, :length].tolist() == source.encode(words)
        length = int(batch.target_lengths[n])
        assert batch.targets[n, :length].tolist() == source.encode(target)[1:]
    pieces, outside = source.input_words.words, SPECIALS[:3]
    assert inputs.equal(word_groups_of_ids(batch.inputs, batch.input_lengths, pieces, outside))
    assert outputs.equal(word_groups_of_ids(batch.targets, batch.target_lengths, pieces, outside))
