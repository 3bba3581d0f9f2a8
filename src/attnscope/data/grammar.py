"""A text corpus of the project's own, so that every recipe runs without a download.

Two small grammars write it: film reviews with a sentiment label, and German-English sentence
pairs with gold word alignment. No paper has these corpora; they keep what the papers' corpora
share: polar words among neutral ones, verbs at the German clause's end, one word for several.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import NamedTuple, TypeVar

_Option = TypeVar("_Option")
_Example = TypeVar("_Example")


@dataclass(frozen=True)
class LabelledText:
    """One review: its tokens and its label (1 positive, 0 negative)."""

    id: str
    tokens: tuple[str, ...]
    label: int


@dataclass(frozen=True)
class SentencePair:
    """A German sentence and its English translation.

    ``alignment`` lists the gold links as (target index, source index), sorted. Every target token
    has a link; a source token may have none (the comma before a subordinate clause).
    """

    id: str
    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[tuple[int, int], ...]


def sentiment_examples(count: int, seed: int) -> list[LabelledText]:
    """Draw ``count`` reviews, no text twice; the same ones on every machine.

    Labels are fair coins. All polar words of a clause share its polarity, a ``not`` turns them
    round, and in a sentence of two opposed clauses the main clause decides.
    """
    reviews = _distinct(count, _review, seed)
    return [LabelledText(f"review-{seed}-{n}", *review) for n, review in enumerate(reviews)]


def translation_examples(count: int, seed: int) -> list[SentencePair]:
    """Draw ``count`` German-English pairs, no sentence twice; the same ones on every machine.

    A sentence has one translation, in either direction, so this holds for both languages.
    """
    pairs = _distinct(count, _sentence, seed)
    return [SentencePair(f"de-en-{seed}-{n}", *pair) for n, pair in enumerate(pairs)]


def sentiment_corpus() -> dict[str, list[LabelledText]]:
    """The sentiment corpus: ``train`` (2000) and ``val`` (400).

    Both are cut from one stream without repetition, so no text is in two splits.
    """
    examples = _sentiment_stream()
    return {"train": list(examples[:2000]), "val": list(examples[2000:])}


def translation_corpus() -> dict[str, list[SentencePair]]:
    """The German-English corpus: ``train`` (2000) and ``val`` (200).

    Both are cut from one stream without repetition in either language, so no sentence of either
    language is in two splits.
    """
    examples = _translation_stream()
    return {"train": list(examples[:2000]), "val": list(examples[2000:])}


@cache
def _sentiment_stream() -> tuple[LabelledText, ...]:
    return tuple(sentiment_examples(2400, seed=0))


@cache
def _translation_stream() -> tuple[SentencePair, ...]:
    return tuple(translation_examples(2200, seed=0))


def _distinct(count: int, draw: Callable[[Random], _Example], seed: int) -> list[_Example]:
    rng = Random(seed)
    examples: dict[_Example, None] = {}  # keeps the order in which they were drawn
    while len(examples) < count:
        examples[draw(rng)] = None
    return list(examples)


def _pick(rng: Random, options: tuple[_Option, ...]) -> _Option:
    # Of all of Random's methods only random() is promised to stay the same across versions.
    return options[int(rng.random() * len(options))]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Sentiment. Capitals are symbols to rewrite, `!` hands the opposite polarity to what follows,
# and a repeated alternative is a more likely one. All nouns are singular and nothing after `a`
# begins with a vowel, so every sentence agrees.

_POLAR = {  # by label: negative words, positive words
    "QUALITY": (
        _words(
            "awful bad boring clumsy dreadful dull empty flat lazy messy noisy painful pointless "
            "shallow silly stale tedious terrible ugly weak"
        ),
        _words(
            "beautiful brilliant charming clever delightful elegant fresh funny good graceful "
            "gripping honest lovely moving splendid superb tender vivid witty wonderful"
        ),
    ),
    "FEEL": (
        _words("detest dislike hate loathe mock resent"),
        _words("admire adore enjoy love praise recommend"),
    ),
}
_THINGS = _words(
    "acting camera cast comedy dialogue drama ending film hero humour mystery opening pace plot "
    "romance script singing soundtrack story villain"
)
_RULES: dict[str, tuple[str, ...]] = {
    "REVIEW": ("LEAD CLAUSE .",) * 9
    + ("LEAD CLAUSE and CLAUSE .",) * 6
    + ("FACT , and CLAUSE .", "CLAUSE , and FACT .") * 3
    + (
        "although !CLAUSE , CLAUSE .",
        "CLAUSE , although !CLAUSE .",
        "despite the !QUALITY THING , LEAD CLAUSE .",
    ),
    "CLAUSE": ("SUBJECT is VERDICT", "SUBJECT is VERDICT", "PEOPLE FEEL OBJECT") * 8
    + ("SUBJECT is not !QUALITY", "PEOPLE do not !FEEL OBJECT"),
    "VERDICT": ("QUALITY", "DEGREE QUALITY", "DEGREE QUALITY", "QUALITY and QUALITY"),
    "SUBJECT": ("the THING", "the THING", "this THING", "the QUALITY THING", "the THING PLACE"),
    "OBJECT": ("the THING", "this QUALITY THING", "the THING PLACE"),
    "FACT": ("the film lasts for two hours", "we meet a KIND PERSON in a NEAR town"),
    "LEAD": ("",) * 6 + ("for the most part ,", "to be fair ,", "once again ,", "after all ,"),
    "PLACE": ("in the second half", "on a large screen", "of this KIND film", "at the cinema"),
    "PEOPLE": ("i", "we", "you", "they", "most critics", "my friends", "many parents"),
    "DEGREE": _words("very really truly quite rather so"),
    "KIND": _words("danish french korean local polish russian swedish turkish"),
    "NEAR": _words("busy distant nearby northern quiet small"),
    "PERSON": _words("doctor driver farmer painter soldier teacher waiter"),
    "THING": _THINGS,
}
_NEVER_TWICE = frozenset(_THINGS).union(*_POLAR["QUALITY"], *_POLAR["FEEL"])


def _review(rng: Random) -> tuple[tuple[str, ...], int]:
    label = _pick(rng, (0, 1))
    while True:
        tokens = tuple(_rewrite(rng, "REVIEW", label))
        content = [token for token in tokens if token in _NEVER_TWICE]
        if len(set(content)) == len(content):  # no "dull and dull"
            return tokens, label


def _rewrite(rng: Random, symbol: str, label: int) -> list[str]:
    if symbol.startswith("!"):
        return _rewrite(rng, symbol[1:], 1 - label)
    if symbol in _POLAR:
        return [_pick(rng, _POLAR[symbol][label])]
    if symbol not in _RULES:
        return [symbol]
    parts = _pick(rng, _RULES[symbol]).split()
    return [word for part in parts for word in _rewrite(rng, part, label)]


# German-English. A phrase carries both languages, so that a construction only has to say in which
# order phrases stand. Everything is singular and in the third person.


class _Token:
    """A German token; compared by identity, since a word may stand twice in a sentence."""

    def __init__(self, text: str) -> None:
        self.text = text


class _Phrase(NamedTuple):
    german: tuple[_Token, ...]
    english: tuple[tuple[str, tuple[_Token, ...]], ...]  # each word with what it translates


class _Noun(NamedTuple):
    german: str
    gender: str
    english: str


def _nouns(table: str) -> tuple[_Noun, ...]:
    return tuple(_Noun(*row.split()) for row in table.split(","))


# By article and gender: nominative, accusative, dative of the article itself and of the ending
# of an adjective after it. No noun declines further in the singular.
_NOMINATIVE, _ACCUSATIVE, _DATIVE = range(3)
_ARTICLES = {
    "the": {"m": "der den dem", "f": "die die der", "n": "das das dem"},
    "a": {"m": "ein einen einem", "f": "eine eine einer", "n": "ein ein einem"},
}
_ENDINGS = {
    "the": {"m": "e en en", "f": "e e en", "n": "e e en"},
    "a": {"m": "er en en", "f": "e e en", "n": "es es en"},
}
_PEOPLE = _nouns(
    "Mann m man, Lehrer m teacher, Frau f woman, Ärztin f doctor, Kind n child, Mädchen n girl"
)
_ANIMALS = _nouns("Hund m dog, Katze f cat, Pferd n horse")
_GOODS = _nouns(
    "Brief m letter, Ball m ball, Zeitung f newspaper, Tasche f bag, Buch n book, Fahrrad n bicycle"
)
_PLACES = _nouns(
    "Bahnhof m station, Markt m market, Schule f school, Brücke f bridge, Krankenhaus n hospital"
)
_OF_GOODS = (("neu", "new"), ("klein", "small"), ("rot", "red"))
_OF_THE_LIVING = (("jung", "young"), ("klein", "small"), ("müd", "tired"))
_TRANSITIVE = (  # present, participle
    (("sieht", "sees"), ("gesehen", "seen")),
    (("sucht", "looks for"), ("gesucht", "looked for")),
    (("kauft", "buys"), ("gekauft", "bought")),
    (("malt", "paints"), ("gemalt", "painted")),
)
_DITRANSITIVE = (
    (("gibt", "gives"), ("gegeben", "given")),
    (("zeigt", "shows"), ("gezeigt", "shown")),
)
_MOTION = (("geht", "goes"), ("läuft", "runs"), ("fährt", "drives"))
_SEPARABLE = (  # in a main clause, in a subordinate one
    ("steht auf", "aufsteht", "gets up"),
    ("kommt an", "ankommt", "arrives"),
    ("kommt zurück", "zurückkommt", "comes back"),
)
_OPENINGS = (
    (("sagt", "says"), ("dass", "that")),
    (("lacht", "laughs"), ("weil", "because")),
)
_TODAY = (("heute", "today"),)
_AHEAD = (("morgen", "tomorrow"), ("übermorgen", "the day after tomorrow"), ("bald", "soon"))
_LONGEST = 14


def _sentence(rng: Random) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[int, int], ...]]:
    while True:
        german, english = _join(_period(rng), _phrase(".", "."))
        if max(len(german), len(english)) <= _LONGEST:
            place = {token: position for position, token in enumerate(german)}
            links = sorted((t, place[g]) for t, (_, tokens) in enumerate(english) for g in tokens)
            source = tuple(token.text for token in german)
            return source, tuple(word for word, _ in english), tuple(links)


def _period(rng: Random) -> _Phrase:
    people = _shuffled(rng, _PEOPLE)  # so that nobody is in a sentence twice
    if rng.random() < 0.6:
        return _clause(rng, people, subordinate=False)
    verb, conjunction = _pick(rng, _OPENINGS)
    comma = _Phrase((_Token(","),), ())  # English has none here
    opening = _join(_phrase(*verb), comma, _phrase(*conjunction))
    subject = _noun_phrase(rng, people.pop(), _NOMINATIVE)
    return _join(subject, opening, _clause(rng, people, subordinate=True))


def _clause(rng: Random, people: list[_Noun], subordinate: bool) -> _Phrase:
    """Order a clause in both languages.

    German has the finite verb second and the rest of the verb last in a main clause, and both
    last in a subordinate one. English keeps the verb whole and reverses what stands between.
    """
    subject = _noun_phrase(rng, people.pop(), _NOMINATIVE)
    verb, complements, times = _predicate(rng, people, subordinate)
    time = [_phrase(*_pick(rng, times))] if rng.random() < 0.5 else []
    fronted = bool(time) and not subordinate and rng.random() < 0.4
    mirrored = complements[::-1]
    if fronted:
        first, second, english = time, [subject], [*time, subject, verb, *mirrored]
    else:
        first, second, english = [subject], time, [subject, verb, *mirrored, *time]
    field = _join(*second, *complements).german
    finite, rest = verb.german[:1], verb.german[1:]
    predicate = field + rest + finite if subordinate else finite + field + rest
    return _Phrase(_join(*first).german + predicate, _join(*english).english)


def _predicate(
    rng: Random, people: list[_Noun], subordinate: bool
) -> tuple[_Phrase, list[_Phrase], tuple[tuple[str, str], ...]]:
    """Return a verb (finite part first), its complements in German order, and times to choose."""
    kind = _pick(rng, ("separable", "motion", "ditransitive", "transitive", "transitive"))
    if kind == "separable":
        apart, joined, english = _pick(rng, _SEPARABLE)
        return _phrase(joined if subordinate else apart, english), [], _TODAY + _AHEAD
    if kind == "motion":
        return _phrase(*_pick(rng, _MOTION)), _way(rng, people), _TODAY + _AHEAD
    complements = [_noun_phrase(rng, _pick(rng, _GOODS + _ANIMALS), _ACCUSATIVE)]
    if kind == "ditransitive":
        complements.insert(0, _noun_phrase(rng, people.pop(), _DATIVE, before="to "))
    present, participle = _pick(rng, _DITRANSITIVE if kind == "ditransitive" else _TRANSITIVE)
    if rng.random() < 0.5:
        return _phrase(*present), complements, _TODAY + _AHEAD
    return _join(_phrase("hat", "has"), _phrase(*participle)), complements, _TODAY


def _way(rng: Random, people: list[_Noun]) -> list[_Phrase]:
    place = _pick(rng, _PLACES)
    to = _phrase("zur" if place.gender == "f" else "zum", "to the")
    way = [_join(to, _phrase(place.german, place.english))]
    if rng.random() < 0.5:
        company = _noun_phrase(rng, _pick(rng, (people.pop(), *_ANIMALS)), _DATIVE)
        way.insert(0, _join(_phrase("mit", "with"), company))
    return way


def _noun_phrase(rng: Random, noun: _Noun, case: int, before: str = "") -> _Phrase:
    """Article, perhaps an adjective, noun; ``before`` is a preposition that only English has."""
    article = _pick(rng, ("the", "the", "a"))
    parts = [_phrase(_ARTICLES[article][noun.gender].split()[case], before + article)]
    if rng.random() < 0.4:
        stem, english = _pick(rng, _OF_GOODS if noun in _GOODS else _OF_THE_LIVING)
        parts.append(_phrase(stem + _ENDINGS[article][noun.gender].split()[case], english))
    return _join(*parts, _phrase(noun.german, noun.english))


def _phrase(german: str, english: str) -> _Phrase:
    """Link word by word where the numbers of words are equal, else all with all."""
    tokens, words = tuple(map(_Token, german.split())), english.split()
    links = [(token,) for token in tokens] if len(tokens) == len(words) else [tokens] * len(words)
    return _Phrase(tokens, tuple(zip(words, links, strict=True)))


def _join(*phrases: _Phrase) -> _Phrase:
    german = tuple(token for phrase in phrases for token in phrase.german)
    return _Phrase(german, tuple(word for phrase in phrases for word in phrase.english))


def _shuffled(rng: Random, options: tuple[_Option, ...]) -> list[_Option]:
    return [option for _, option in sorted((rng.random(), option) for option in options)]
