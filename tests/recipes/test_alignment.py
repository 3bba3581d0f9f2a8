"""The recipe of gold alignments: links come from the right words, whoever finds them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from nltk.translate import AlignedSent, IBMModel1

from attnscope.analysis.alignment import alignment_error, link_sets, links_of, to_pharaoh
from attnscope.data import grammar
from attnscope.data.corpus import GrammarTranslation
from attnscope.data.folder import Aligned
from attnscope.data.text import ParallelText, open_text
from attnscope.data.tokens import SPECIALS
from attnscope.errors import UsageError
from attnscope.recipes.extra import alignment as recipe, alignment_links
from attnscope.recipes.extra.alignment import Gold
from attnscope.recipes.recipe import Lab
from attnscope.runs.result import Measurement, Result
from attnscope.scores.subwords import word_groups_of_ids
from attnscope.training.engine.workers import Workers
from attnscope.training.trained_unit import TrainedUnit

TINY = recipe.QUICK | {"translation_hidden": 8, "translation_steps": 3, "examples": 200}
SENTENCES = (
    ("das Haus ist klein", "the house is small"),
    ("das Buch ist neu", "the book is new"),
    ("ein Haus", "a house"),
    ("ein Buch", "a book"),
    ("das kleine Buch", "the small book"),
)


def pair(source: str, target: str, *links: tuple[int, int]) -> Aligned:
    sure = frozenset(links)
    return Aligned(source, tuple(source.split()), tuple(target.split()), sure, sure)


def gold_of(*pairs: Aligned) -> Gold:
    return Gold("made-up", "test", ("de", "en"), pairs)


def measure(folder: Path, **settings: Any) -> list[Measurement]:
    with Workers(folder, 1) as workers:
        return recipe.measure(recipe.Config(**(TINY | settings)), Lab(workers))


def write_gold(folder: Path, first: str = "de", second: str = "en") -> Path:
    folder.mkdir()
    (folder / "meta.json").write_text(json.dumps({"langs": [first, second]}))
    rows = [
        {"id": "0", first: "das Haus", second: "the house", "sure": [[0, 0]], "possible": [[1, 1]]},
        {"id": "1", first: "ja", second: "oh yes", "sure": [[0, 1]], "possible": []},
    ]
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def write_parallel(folder: Path) -> Path:
    folder.mkdir()
    (folder / "meta.json").write_text(json.dumps({"langs": ["de", "en"]}))
    for n, language in enumerate(("de", "en")):
        text = "".join(f"{sentences[n]}\n" for sentences in SENTENCES)
        for split in ("train", "val"):
            (folder / f"{split}.{language}").write_text(text)
    return folder


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="module")
def rows(workspace: Path) -> list[Measurement]:
    return measure(workspace)


# Where the gold comes from.


def test_gold_of_the_grammar_links_every_output_word_to_what_it_translates() -> None:
    gold = recipe.open_gold("grammar-translation")
    pairs = grammar.translation_corpus()["val"]
    assert [p.source for p in gold.sentences] == [p.source for p in pairs]
    sets = link_sets(gold.sure)
    assert sets == [frozenset((s, t) for t, s in p.alignment) for p in pairs]
    assert gold.sure.equal(gold.possible)


def test_gold_is_read_in_the_direction_of_the_training_text(tmp_path: Path) -> None:
    folder = str(write_gold(tmp_path / "mine"))
    own = recipe.open_gold(folder)
    turned = recipe.open_gold(folder, ("en", "de"))
    assert (own.dataset, own.languages, turned.languages) == ("mine", ("de", "en"), ("en", "de"))
    assert turned.sentences[1].source == ("oh", "yes")
    assert turned.sure.equal(own.sure.mT)
    assert turned.possible.equal(own.possible.mT)
    assert recipe.open_gold(folder, ("en", "fr")).languages == ("de", "en")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"gold": "multi30k-de-en"}, "gold= needs gold alignments"),
        ({"training": "gold-en-fr"}, "training= needs parallel text"),
        ({"training": "sst"}, "training= needs parallel text"),
    ],
)
def test_a_corpus_of_the_wrong_kind_is_refused_in_one_sentence(
    tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said) as error:
        measure(tmp_path, **settings)
    assert "\n" not in str(error.value)


# Spelling.


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("fr", "L'ami du roi n'est pas là.", "le ami de le roi ne est pas là ."),
        ("fr", "Aujourd’hui, aux enfants qu'il voit", "aujourd' hui , à les enfants que il voit"),
        ("fr", "C'est au sud des Alpes, dessous", "ce est à le sud de les alpes , dessous"),
        ("en", "I don't; we can't, won't.", "i do not ; we cannot , will not ."),
        ("en", "Tom's dog's fine, they're in", "tom 's dog 's fine , they are in"),
        ("de", "Wie geht's dir?", "wie geht's dir ?"),
    ],
)
def test_contractions_are_written_out_as_in_the_hansards(
    language: str, text: str, words: str
) -> None:
    rules = recipe.SPELLINGS["expanded"].get(language, ())
    assert recipe.cut(text, rules) == words.split()


def test_plain_spelling_keeps_contractions() -> None:
    assert recipe.SPELLINGS["plain"] == {}
    assert recipe.cut("L'ami n'est pas là.") == ["l'ami", "n'est", "pas", "là", "."]


def test_training_text_of_a_folder_is_cut_and_lower_cased(tmp_path: Path) -> None:
    folder = str(write_parallel(tmp_path / "parallel"))
    sources, targets = recipe.training_text(recipe.Config(training=folder))
    assert sources[0] == ["das", "haus", "ist", "klein"]
    assert targets[-1] == ["the", "small", "book"]


def test_training_text_of_the_grammar_has_no_boundaries() -> None:
    sources, targets = recipe.training_text(recipe.Config(**TINY))
    pairs = grammar.translation_corpus()["train"]
    assert [tuple(words) for words in sources] == [p.source for p in pairs]
    assert [tuple(words) for words in targets] == [p.target for p in pairs]


# Model 1.


Sentences = list[tuple[list[str], list[str]]]


def check_against_nltk(links: list[frozenset[tuple[int, int]]], sentences: Sentences) -> None:
    """Check that each target's link is nltk's likeliest word; ties, exact in theory, are open."""
    bitext = [AlignedSent(target, source) for source, target in sentences]
    table = IBMModel1(bitext, 5).translation_table
    for found, (source, target) in zip(links, sentences, strict=False):
        linked = {t: s for s, t in found}
        for t, word in enumerate(target):
            chosen = table[word][source[linked[t]] if t in linked else None]
            highest = max(table[word][other] for other in (None, *source))
            assert chosen == pytest.approx(highest, rel=1e-6)


def test_model1_finds_the_links_of_nltk() -> None:
    # Without repeated words, whose probability nltk halves.
    every = grammar.translation_corpus()["val"]
    distinct = [p for p in every if all(len(set(x)) == len(x) for x in (p.source, p.target))]
    pairs = distinct[:30]
    sentences = [([w.lower() for w in p.source], [w.lower() for w in p.target]) for p in pairs]
    gold = gold_of(*(pair(" ".join(p.source), " ".join(p.target)) for p in pairs[:12]))
    text = ([s for s, _ in sentences[12:]], [t for _, t in sentences[12:]])
    found = alignment_links.ibm_links(gold, text, iterations=5, null=True)
    check_against_nltk(link_sets(found["forward"]), sentences)
    turned = [(target, source) for source, target in sentences]
    check_against_nltk(link_sets(found["backward"].mT), turned)
    assert int(found["forward"].sum()) > 50


def test_directions_join_to_intersection_and_union() -> None:
    found = alignment_links.ibm_links(recipe.open_gold("grammar-translation"), null=False)
    forward, backward = found["forward"], found["backward"]
    assert int(forward.sum(2).max()) == 1
    assert int(backward.sum(1).max()) == 1
    assert found["intersection"].equal(forward & backward)
    assert found["union"].equal(forward | backward)


def test_training_text_teaches_what_the_gold_sentences_alone_do_not() -> None:
    gold = gold_of(pair("Buch Haus", "house book", (0, 1), (1, 0)))
    text = tuple([s[n].lower().split() for s in SENTENCES] for n in (0, 1))
    links = alignment_links.ibm_links(gold, (text[0], text[1]), iterations=10, null=False)
    assert to_pharaoh(links["union"]) == "0-1 1-0\n"
    alone = alignment_links.ibm_links(gold, iterations=10, null=False)
    assert not alone["forward"].equal(gold.sure)


def test_a_word_that_comes_with_every_sentence_is_left_to_the_null_word() -> None:
    gold = gold_of(*(pair(source, f"{target} of") for source, target in ("ax", "by", "cz")))
    assert set(link_sets(alignment_links.ibm_links(gold, null=True)["forward"])) == {
        frozenset({(0, 0)})
    }
    without = alignment_links.ibm_links(gold, null=False)["forward"]
    assert set(link_sets(without)) == {frozenset({(0, 0), (0, 1)})}


def test_the_gold_links_themselves_are_never_looked_at() -> None:
    told = gold_of(*(pair(s, t, (0, 0)) for s, t in SENTENCES))
    untold = gold_of(*(pair(s, t) for s, t in SENTENCES))
    for name, links in alignment_links.ibm_links(told).items():
        assert links.equal(alignment_links.ibm_links(untold)[name])


def test_diagonal_is_the_identity_where_lengths_are_equal() -> None:
    gold = gold_of(pair("a b c", "x y z"), pair("a b", "w x y z"), pair("a", "x"))
    assert link_sets(alignment_links.diagonal_links(gold)) == [
        {(0, 0), (1, 1), (2, 2)},
        {(0, 0), (0, 1), (1, 2), (1, 3)},
        {(0, 0)},
    ]


# The translator.


def test_gold_pairs_are_read_as_the_corpus_reads_its_own() -> None:
    source = GrammarTranslation()
    batch, inputs, outputs = alignment_links.forced(source, recipe.open_gold("grammar-translation"))
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
    folder = write_parallel(tmp_path / "parallel")
    source = open_text(folder, translation={"pieces": 30})
    assert isinstance(source, ParallelText)
    gold = gold_of(pair("ein kleines Haus xyz", "a small house"), pair("Buch", "new books"))
    batch, inputs, outputs = alignment_links.forced(source, gold)
    for n, sentence in enumerate(gold.sentences):
        length = int(batch.input_lengths[n])
        assert batch.inputs[n, :length].tolist() == source.encode(" ".join(sentence.source))
        length = int(batch.target_lengths[n])
        assert batch.targets[n, :length].tolist() == source.encode(" ".join(sentence.target))[1:]
    pieces, outside = source.input_words.words, SPECIALS[:3]
    assert inputs.equal(word_groups_of_ids(batch.inputs, batch.input_lengths, pieces, outside))
    assert outputs.equal(word_groups_of_ids(batch.targets, batch.target_lengths, pieces, outside))


def test_links_of_attention_are_its_highest_weights_among_the_words(
    rows: list[Measurement], workspace: Path
) -> None:
    (path,) = (workspace / "units").glob("grammar-translation-seq2seq-*")
    unit = TrainedUnit.read(path)
    gold = recipe.open_gold("grammar-translation")
    found = alignment_links.model_links(
        gold, unit, unit.model, {"attention": recipe._RULES["attention"]}
    )
    stored = unit.stored("attention")  # of the same sentences, read while training
    words_in = torch.arange(stored.batch.inputs.shape[1]) < stored.batch.input_lengths[:, None] - 1
    words_out = (
        torch.arange(stored.batch.targets.shape[1]) < stored.batch.target_lengths[:, None] - 1
    )
    expected = links_of(stored.values, words_in, words_out)[:, :-1, :-1]
    assert found["attention"].equal(expected)
    (row,) = [
        r
        for r in rows
        if r.name == "aer"
        and r.axes.get("checkpoint") == "last"
        and r.axes["method"] == "attention"
    ]
    rate = alignment_error(expected, gold.sure, gold.possible, rng=np.random.default_rng(0))
    assert row.value == pytest.approx(rate.value)


# What is measured.


def test_every_method_is_measured_with_its_interval(rows: list[Measurement]) -> None:
    rates = [row for row in rows if row.name == "aer"]
    methods = [str(row.axes["method"]) for row in rates]
    # Model 1: two training texts, with and without NULL, four ways to join directions.
    assert {name: methods.count(name) for name in methods} == {
        "diagonal": 1,
        "ibm_model1": 16,
        "attention": 2,
        "lexical_probe": 2,
    }
    for row in rates:
        assert 0 <= row.low <= row.value <= row.high <= 1  # type: ignore[operator]
        assert (row.n, row.split) == (200, "val")


def test_gold_in_other_languages_is_aligned_by_model1_on_its_own_sentences(tmp_path: Path) -> None:
    folder = write_gold(tmp_path / "mine", "ro", "en")
    found = measure(tmp_path / "workspace", gold=str(folder))
    assert {row.dataset for row in found} == {"mine"}
    assert {row.axes["method"] for row in found} == {"diagonal", "ibm_model1"}
    assert {row.axes.get("training") for row in found} == {None, recipe.ALONE}


def test_methods_can_be_left_out_and_then_nothing_is_trained(tmp_path: Path) -> None:
    found = measure(tmp_path, methods="ibm_model1")
    assert {row.axes["method"] for row in found} == {"ibm_model1"}
    assert not list(tmp_path.glob("units/*"))


def test_figure_has_one_line_for_every_rate(rows: list[Measurement]) -> None:
    result = Result(
        recipe="snell/alignment",
        scale="quick",
        config={},
        environment={},
        seconds=0,
        measurements=tuple(rows),
    )
    labels = [recipe._label(row) for row in result.select("aer")]
    assert len(set(labels)) == len(labels) == 21
    assert set(recipe.draw(result, [])) == {"aer-grammar-translation"}


@pytest.mark.skipif(
    not os.environ.get("ATTNSCOPE_DATA"), reason="needs ATTNSCOPE_DATA: real corpora"
)
def test_model1_beats_the_diagonal_on_the_romanian_gold(tmp_path: Path) -> None:
    found = measure(tmp_path, gold="gold-ro-en", methods="diagonal,ibm_model1")
    rates = {(r.axes["method"], r.axes["direction"]): r for r in found if r.name == "aer"}
    diagonal, joined = rates["diagonal", "forward"], rates["ibm_model1", "intersection"]
    assert diagonal.n == 248
    assert joined.high < diagonal.low  # type: ignore[operator]
