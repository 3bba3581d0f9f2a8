"""What the project's own corpora promise: the same everywhere, right, learnable, not trivial."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from os import environ
from pathlib import Path

import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

import attnscope.data.grammar
from attnscope.data.grammar import (
    SentencePair,
    sentiment_corpus,
    sentiment_examples,
    translation_corpus,
    translation_examples,
)
from cases import for_each

DIGEST = """
from hashlib import sha256
from attnscope.data.grammar import sentiment_corpus, translation_corpus
print(sha256(repr((sentiment_corpus(), translation_corpus())).encode()).hexdigest())
"""
DICTIONARY = {
    "m": "Mann man Lehrer teacher Hund dog Brief letter Ball ball Bahnhof station Markt market",
    "f": "Frau woman Ärztin doctor Katze cat Zeitung newspaper Tasche bag Schule school "
    "Brücke bridge",
    "n": "Kind child Mädchen girl Pferd horse Buch book Fahrrad bicycle Krankenhaus hospital",
}
GENDERS = {noun: g for g, words in DICTIONARY.items() for noun in words.split()[::2]}
NOUNS = {noun for words in DICTIONARY.values() for noun in words.split()}
ARTICLES = {"der", "die", "das", "den", "dem", "ein", "eine", "einen", "einem", "einer", "the", "a"}
DETERMINERS = ARTICLES | {"zum", "zur"}
REVIEWS = [text for split in sentiment_corpus().values() for text in split]
PAIRS = [pair for split in translation_corpus().values() for pair in split]


def test_corpora_are_the_same_in_every_process() -> None:
    source_root = str(Path(attnscope.data.grammar.__file__).parents[2])
    env = environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": source_root}
    other = subprocess.run(
        [sys.executable, "-c", DIGEST], env=env, capture_output=True, text=True, check=True
    )
    here = sha256(repr((sentiment_corpus(), translation_corpus())).encode()).hexdigest()
    assert other.stdout.strip() == here


@pytest.mark.parametrize("examples", [sentiment_examples, translation_examples])
def test_seed_decides_the_examples_and_a_larger_count_extends_a_smaller(
    examples: Callable[..., list],
) -> None:
    assert examples(30, seed=5)[:20] == examples(20, seed=5)
    texts = [{repr(replace(example, id=0)) for example in examples(20, seed)} for seed in (5, 6)]
    assert len(texts[0] & texts[1]) < 5


def test_splits_have_the_stated_sizes_and_no_id_twice() -> None:
    sizes = {name: len(split) for name, split in sentiment_corpus().items()}
    assert sizes == {"train": 2000, "val": 400}
    sizes = {name: len(split) for name, split in translation_corpus().items()}
    assert sizes == {"train": 2000, "val": 200}
    assert len({text.id for text in REVIEWS}) == 2400
    assert len({pair.id for pair in PAIRS}) == 2200


def test_no_text_occurs_twice_in_or_across_splits() -> None:
    assert len({text.tokens for text in REVIEWS}) == len(REVIEWS)
    assert len({pair.source for pair in PAIRS}) == len(PAIRS)
    assert len({pair.target for pair in PAIRS}) == len(PAIRS)


def test_changing_a_returned_split_does_not_change_the_corpus() -> None:
    sentiment_corpus()["train"].clear()
    translation_corpus()["val"].clear()
    assert len(sentiment_corpus()["train"]) == 2000
    assert len(translation_corpus()["val"]) == 200


def test_labels_are_balanced_in_both_splits() -> None:
    for split in sentiment_corpus().values():
        share = sum(text.label for text in split) / len(split)
        assert abs(share - 0.5) < 3 * 0.5 / len(split) ** 0.5


def test_reviews_are_of_many_lengths_and_word_types() -> None:
    lengths = Counter(len(text.tokens) for text in REVIEWS)
    assert min(lengths) == 5
    assert 20 <= max(lengths) <= 27
    assert max(lengths.values()) < 0.15 * len(REVIEWS)
    assert len({token for text in REVIEWS for token in text.tokens}) >= 120
    words = [token for text in REVIEWS for token in text.tokens]
    assert all(word == word.lower() and "!" not in word for word in words)


def test_polar_words_are_about_evenly_frequent() -> None:
    counts = Counter(token for text in REVIEWS for token in text.tokens)
    for word in ("awful", "weak", "hate", "brilliant", "witty", "enjoy"):
        assert 50 < counts[word] < 150


CONTRAST = {"although", "despite"}
POLARITY = {
    **dict.fromkeys(("awful", "bad", "boring", "dull", "ugly", "weak", "hate", "mock"), 0),
    **dict.fromkeys(("clever", "funny", "good", "moving", "witty", "enjoy", "love", "praise"), 1),
}


def test_negation_turns_a_polar_word_round() -> None:
    checked: Counter[int] = Counter()
    for text in REVIEWS:
        after = text.tokens[text.tokens.index("not") + 1] if "not" in text.tokens else ""
        if after in POLARITY and not CONTRAST & set(text.tokens):
            assert text.label == 1 - POLARITY[after]
            checked[text.label] += 1
    assert min(checked[0], checked[1]) > 20


def test_no_polar_word_stands_twice_in_a_review() -> None:
    for text in REVIEWS:
        assert max(map(text.tokens.count, POLARITY)) <= 1


def test_main_clause_decides_a_contrast() -> None:
    checked: Counter[tuple[str, bool]] = Counter()
    for text in REVIEWS:
        words = " ".join(text.tokens[:-1])
        if words.count(" , ") != 1 or " not " in words or not CONTRAST & set(text.tokens):
            continue
        first, second = words.split(" , ")
        main, minor = (first, second) if second.startswith("although") else (second, first)
        assert {POLARITY.get(word, text.label) for word in main.split()} == {text.label}
        assert {POLARITY.get(word, 1 - text.label) for word in minor.split()} == {1 - text.label}
        checked[minor.split()[0], second is minor] += 1
    assert len(checked) == 3
    assert min(checked.values()) > 20


def test_bag_of_words_learns_most_reviews_but_not_all() -> None:
    corpus = sentiment_corpus()
    bags = CountVectorizer(analyzer=lambda text: text.tokens)
    labels = {name: [text.label for text in split] for name, split in corpus.items()}
    model = LogisticRegression(max_iter=1000)
    model.fit(bags.fit_transform(corpus["train"]), labels["train"])
    assert 0.8 < model.score(bags.transform(corpus["val"]), labels["val"]) < 0.98


def test_gold_links_are_in_range_and_cover_every_target_word() -> None:
    for pair in PAIRS:
        assert {t for t, _ in pair.alignment} == set(range(len(pair.target)))
        assert {s for _, s in pair.alignment} <= set(range(len(pair.source)))
        assert list(pair.alignment) == sorted(set(pair.alignment))


def test_only_the_comma_is_left_without_a_link() -> None:
    for pair in PAIRS:
        unlinked = set(range(len(pair.source))) - {s for _, s in pair.alignment}
        assert all(pair.source[s] == "," for s in unlinked)


def test_links_join_each_noun_to_its_translation_and_to_nothing_else() -> None:
    links = {(pair.source[s], pair.target[t]) for pair in PAIRS for t, s in pair.alignment}
    expected = set()
    for words in map(str.split, DICTIONARY.values()):
        expected |= set(zip(words[::2], words[1::2], strict=True))
    assert {(german, english) for german, english in links if german[0].isupper()} == expected


def test_sentences_are_short_and_the_german_vocabulary_small() -> None:
    lengths = [length for pair in PAIRS for length in (len(pair.source), len(pair.target))]
    assert min(lengths) >= 4
    assert max(lengths) <= 14
    assert 60 <= len({word for pair in PAIRS for word in pair.source}) <= 100
    assert all(pair.source[-1] == pair.target[-1] == "." for pair in PAIRS)


def test_evaluation_split_has_no_word_that_training_lacks() -> None:
    for side in ("source", "target"):
        words = {
            name: {word for pair in split for word in getattr(pair, side)}
            for name, split in translation_corpus().items()
        }
        assert words["val"] <= words["train"]


def crosses(pair: SentencePair) -> bool:
    order = [s for _, s in pair.alignment]
    return order != sorted(order)


def test_words_are_reordered_in_most_sentences_but_not_in_all() -> None:
    assert 0.5 < sum(map(crosses, PAIRS)) / len(PAIRS) < 0.95


def test_no_sentence_begins_with_its_verb() -> None:
    times = {"heute", "morgen", "übermorgen", "bald"}
    assert {pair.source[0] for pair in PAIRS} == times | {"der", "die", "das", "ein", "eine"}


def test_one_word_may_become_several_and_several_one() -> None:
    several, one = set(), set()
    for pair in PAIRS:
        sources = Counter(s for _, s in pair.alignment)
        targets = Counter(t for t, _ in pair.alignment)
        several |= {pair.source[s] for s, links in sources.items() if links > 1}
        one |= {pair.target[t] for t, links in targets.items() if links > 1}
    assert {"übermorgen", "zum", "zur", "sucht", "aufsteht", "dem"} <= several
    assert one == {"arrives"}


def shape(words: tuple[str, ...]) -> str:
    """Write A for articles and N for nouns."""
    classes = {word: "A" for word in ARTICLES} | {word: "N" for word in NOUNS}
    return " ".join(classes.get(word, word) for word in words)


@for_each(
    ("german", "english", "links"),
    [
        # the participle stands last
        ("A N hat A N gesehen .", "A N has seen A N .", "0 1 2 5 3 4 6"),
        # a separable verb's particle stands last, whether English has two words or one
        ("A N steht morgen auf .", "A N gets up tomorrow .", "0 1 2 4 3 5"),
        ("A N kommt bald an .", "A N arrives soon .", "0 1 2+4 3 5"),
        # the finite verb is second, whatever is first
        ("heute sieht A N A N .", "today A N sees A N .", "0 2 3 1 4 5 6"),
        # the verb of a subordinate clause stands last, the finite part after the participle
        (
            "A N lacht , weil A N A N sucht .",
            "A N laughs because A N looks for A N .",
            "0 1 2 4 5 6 9 9 7 8 10",
        ),
        (
            "A N sagt , dass A N A N gemalt hat .",
            "A N says that A N has painted A N .",
            "0 1 2 4 5 6 10 9 7 8 11",
        ),
        (
            "A N sagt , dass A N übermorgen aufsteht .",
            "A N says that A N gets up A day after tomorrow .",
            "0 1 2 4 5 6 8 8 7 7 7 7 9",
        ),
        # the dative is a preposition in English, and comes after the object
        ("A N gibt A N A N .", "A N gives A N to A N .", "0 1 2 5 6 3 3 4 7"),
        # company before the way, the way before company
        ("A N geht mit A N zur N .", "A N goes to A N with A N .", "0 1 2 6 6 7 3 4 5 8"),
    ],
)
def test_construction_is_translated_and_linked(german: str, english: str, links: str) -> None:
    expected = [(t, int(s)) for t, word in enumerate(links.split()) for s in word.split("+")]
    found = [pair for pair in PAIRS if shape(pair.source) == german]
    assert found
    for pair in found:
        assert shape(pair.target) == english
        assert list(pair.alignment) == expected


NOUN_PHRASES = {  # nominative, accusative, dative, as a German grammar book prints them
    "m": "der kleine/den kleinen/dem kleinen/ein kleiner/einen kleinen/einem kleinen",
    "f": "die kleine/die kleine/der kleinen/eine kleine/eine kleine/einer kleinen",
    "n": "das kleine/das kleine/dem kleinen/ein kleines/ein kleines/einem kleinen",
}


def test_articles_and_adjectives_agree_with_the_noun() -> None:
    seen: dict[str, set[str]] = {gender: set() for gender in NOUN_PHRASES}
    for pair in PAIRS:
        for at, noun in enumerate(pair.source):
            if noun in NOUNS:
                start = max(place for place in range(at) if pair.source[place] in DETERMINERS)
                seen[GENDERS[noun]].add(" ".join(pair.source[start:at]))
    for gender, forms in NOUN_PHRASES.items():
        phrases = forms.split("/")
        assert {phrase for phrase in seen[gender] if "klein" in phrase} == set(phrases)
        stems = ("klein", "jung", "müd", "neu", "rot")
        declined = {phrase.replace("klein", stem) for phrase in phrases for stem in stems}
        bare = {phrase.split()[0] for phrase in phrases} | {"zur" if gender == "f" else "zum"}
        assert seen[gender] <= declined | bare


@for_each(
    ("pattern", "articles"),
    [
        (r"^(\w+) (?:Mann|Lehrer) ", {"der", "ein"}),
        (r" weil (\w+) (?:Mann|Lehrer) ", {"der", "ein"}),
        (r" ([de]\w+) (?:Hund|Brief|Ball) (?:gesehen|gesucht|gekauft|gemalt)", {"den", "einen"}),
        (r" mit (\w+) (?:Mann|Lehrer|Hund) ", {"dem", "einem"}),
        (r"^\w+ \w+ (?:gibt|zeigt) (\w+) (?:Mann|Lehrer) ", {"dem", "einem"}),
    ],
)
def test_masculine_article_shows_the_case_of_its_role(pattern: str, articles: set[str]) -> None:
    texts = [" ".join(pair.source) for pair in PAIRS]
    assert {found for text in texts for found in re.findall(pattern, text)} == articles
