"""Units carry their words: they read text after their corpus has gone."""

from __future__ import annotations

import shutil

import pytest

import attnscope
from attnscope.data.parallel_words import open_words
from attnscope.data.text import open_text
from attnscope.errors import DamagedFile, UsageError
from attnscope.models.attentions import Additive
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import WordStates
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.training.loop import train_unit
from attnscope.training.unit import Training, Unit
from cases import for_each

# Every word is in three texts, so that it is known.
TEXTS = ["a good film", "a bad film", "good good", "bad and bad", "a film and a film"] * 6
LABELS = ["good", "bad", "good", "bad", "good"] * 6
PAIRS = [("das Haus", "the house"), ("der Mann", "the man"), ("ein Haus", "a house")] * 8
CLASSIFIER = ClassifierSpec(embedding=6, encoder=WordStates(), attention=Additive(hidden=4))
TRANSLATOR = Seq2SeqSpec(embedding=6, hidden=6, embeddings="separate")


def trained(source, model, workspace):
    training = Training(steps=2, batch_size=4, evaluate_at=(), examples=4, stored=2)
    unit = Unit(source=source, model=model, training=training)
    return train_unit(unit, workspace).path


def labelled(folder, **settings):
    attnscope.write_corpus(folder, zip(TEXTS, LABELS, strict=True))
    return open_text(folder, classification={"min_count": 1} | settings)


def parallel(folder):
    attnscope.write_corpus(folder, PAIRS, languages=("de", "en"))
    return folder


SOURCES = {
    "words": (labelled, CLASSIFIER, "a good film"),
    "pieces": (lambda folder: labelled(folder, tokens="pieces-20"), CLASSIFIER, "good film"),
    "bare": (lambda folder: labelled(folder, edges="bare"), CLASSIFIER, "bad film"),
    "sentences in pieces": (
        lambda folder: open_text(parallel(folder), translation={"pieces": 40}),
        TRANSLATOR,
        "das Haus",
    ),
    "sentences in words": (lambda folder: open_words(parallel(folder)), TRANSLATOR, "der Mann"),
}


@for_each("name", SOURCES)
def test_a_unit_reads_text_the_same_way_with_and_without_its_corpus(tmp_path, name):
    make, model, text = SOURCES[name]
    corpus = tmp_path / name / "corpus"
    source = make(corpus)
    path = trained(source, model, tmp_path / name / "runs")
    unit = attnscope.load(path)
    ids = source.encode(text)
    words = source.input_words.decode(ids)
    assert unit.source.encode(text) == ids
    assert unit.source.boundaries == source.boundaries
    shutil.rmtree(corpus)
    alone = attnscope.load(path)
    assert alone.predict([text])[0].output == unit.predict([text])[0].output
    assert alone.score("attention", text).words(0)[0] == words


def test_labels_come_with_probabilities_that_add_up_to_one(tmp_path):
    unit = attnscope.load(trained(labelled(tmp_path / "corpus"), CLASSIFIER, tmp_path))
    many = unit.predict(["a good film", "nothing known here", "bad"] * 30)
    assert len(many) == 90
    for each in many:
        assert each.probabilities.keys() == {"good", "bad"}
        assert sum(each.probabilities.values()) == pytest.approx(1)
        assert each.probability == max(each.probabilities.values())
    assert [each.unknown for each in many[:3]] == [0, 3, 0]
    # Texts of other lengths in the batch change nothing.
    alone = unit.predict(["bad"])[0].probability
    assert many[2].probability == pytest.approx(alone, abs=1e-6)
    with pytest.raises(UsageError, match="give a list"):
        unit.predict("one text")


def test_words_are_part_of_what_a_finished_unit_is_compared_with(tmp_path):
    path = trained(labelled(tmp_path / "corpus"), CLASSIFIER, tmp_path)
    words = path / "words.json"
    words.write_text(words.read_text().replace("film", "fool"))
    with pytest.raises(DamagedFile, match=r"words\.json is not the file"):
        attnscope.load(path).predict(["a film"])


def test_an_older_unit_without_words_reads_its_corpus_or_says_that_it_is_gone(tmp_path):
    corpus = tmp_path / "corpus"
    path = trained(labelled(corpus), CLASSIFIER, tmp_path)
    (path / "words.json").unlink()
    (path / "done.json").unlink()
    assert attnscope.load(path).predict(["a film"])[0].output in {"good", "bad"}
    shutil.rmtree(corpus)
    with pytest.raises(UsageError, match=r"carries no words .* its corpus is not here"):
        attnscope.load(path).predict(["a film"])
