"""Gold alignments from a folder and from the grammar, and the words of parallel text."""

from __future__ import annotations

import json
from pathlib import Path

from attnscope.analysis.alignment import link_sets
from attnscope.analysis.gold_alignments import GoldAlignments, open_gold, training_words
from attnscope.data import grammar
from attnscope.data.corpus import GrammarTranslation
from attnscope.data.folder import Aligned
from attnscope.data.text import open_text
from gold import write_gold

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


def gold_of(*pairs: Aligned) -> GoldAlignments:
    return GoldAlignments("made-up", "test", ("de", "en"), pairs)


def write_parallel(folder: Path) -> Path:
    folder.mkdir()
    (folder / "meta.json").write_text(json.dumps({"langs": ["de", "en"]}))
    for n, language in enumerate(("de", "en")):
        text = "".join(f"{sentences[n]}\n" for sentences in SENTENCES)
        for split in ("train", "val"):
            (folder / f"{split}.{language}").write_text(text)
    return folder


def test_gold_of_the_grammar_links_every_output_word_to_what_it_translates() -> None:
    gold = open_gold("grammar-translation")
    pairs = grammar.translation_corpus()["val"]
    assert [p.source for p in gold.sentences] == [p.source for p in pairs]
    sets = link_sets(gold.sure)
    assert sets == [frozenset((s, t) for t, s in p.alignment) for p in pairs]
    assert gold.sure.equal(gold.possible)


def test_gold_is_read_in_the_direction_of_the_training_text(tmp_path: Path) -> None:
    folder = str(write_gold(tmp_path / "mine"))
    own = open_gold(folder)
    turned = open_gold(folder, ("en", "de"))
    assert (own.dataset, own.languages, turned.languages) == ("mine", ("de", "en"), ("en", "de"))
    assert turned.sentences[1].source == ("oh", "yes")
    assert turned.sure.equal(own.sure.mT)
    assert turned.possible.equal(own.possible.mT)
    assert open_gold(folder, ("en", "fr")).languages == ("de", "en")


def test_gold_words_are_aligned_in_lower_case_and_without_their_links() -> None:
    told, untold = (gold_of(pair("Das Haus", "The House", *links)) for links in ([(0, 0)], []))
    assert told.lowered == untold.lowered == ([["das", "haus"]], [["the", "house"]])


def test_training_text_of_a_folder_is_cut_and_lower_cased(tmp_path: Path) -> None:
    folder = str(write_parallel(tmp_path / "parallel"))
    sources, targets = training_words(open_text(folder, translation={"pieces": 40}))
    assert sources[0] == ["das", "haus", "ist", "klein"]
    assert targets[-1] == ["the", "small", "book"]


def test_training_text_of_the_grammar_has_no_boundaries() -> None:
    sources, targets = training_words(GrammarTranslation())
    pairs = grammar.translation_corpus()["train"]
    assert [tuple(words) for words in sources] == [p.source for p in pairs]
    assert [tuple(words) for words in targets] == [p.target for p in pairs]


def test_contractions_of_both_languages_are_written_out_where_asked(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "meta.json").write_text(json.dumps({"langs": ["en", "fr"]}))
    for split in ("train", "val"):
        (folder / f"{split}.en").write_text("I don't see the end of it\n" * 8)
        (folder / f"{split}.fr").write_text("je ne vois pas la fin du livre\n" * 8)
    source = open_text(str(folder), translation={"pieces": 30})
    (english, *_), (french, *_) = training_words(source, "expanded")
    assert english[:4] == ["i", "do", "not", "see"]
    assert french[-3:] == ["de", "le", "livre"]
    (english, *_), (french, *_) = training_words(source)
    assert english[1] == "don't"
    assert french[-2:] == ["du", "livre"]
