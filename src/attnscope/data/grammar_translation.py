"""The grammar of the German-English sentence pairs.

A phrase carries both languages, so that a construction only gives the order of phrases. Everything
is singular and in the third person.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from attnscope.data.randomness import pick, shuffled


class _Token:
    """A German token; compared by identity, since a word may occur twice in a sentence."""

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


def draw_pair(rng: Random) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[int, int], ...]]:
    """Draw source tokens, target tokens, and their links (target index, source index)."""
    while True:
        german, english = _join(_period(rng), _phrase(".", "."))
        if max(len(german), len(english)) <= _LONGEST:
            place = {token: position for position, token in enumerate(german)}
            links = sorted((t, place[g]) for t, (_, tokens) in enumerate(english) for g in tokens)
            source = tuple(token.text for token in german)
            return source, tuple(word for word, _ in english), tuple(links)


def _period(rng: Random) -> _Phrase:
    people = shuffled(rng, _PEOPLE)  # so that nobody is in a sentence twice
    if rng.random() < 0.6:
        return _clause(rng, people, subordinate=False)
    verb, conjunction = pick(rng, _OPENINGS)
    comma = _Phrase((_Token(","),), ())  # English has none here
    opening = _join(_phrase(*verb), comma, _phrase(*conjunction))
    subject = _noun_phrase(rng, people.pop(), _NOMINATIVE)
    return _join(subject, opening, _clause(rng, people, subordinate=True))


def _clause(rng: Random, people: list[_Noun], subordinate: bool) -> _Phrase:
    """Order a clause in both languages.

    German has the finite verb second and the rest of the verb last in a main clause, and both
    last in a subordinate one. English keeps the verb whole and reverses the words between.
    """
    subject = _noun_phrase(rng, people.pop(), _NOMINATIVE)
    verb, complements, times = _predicate(rng, people, subordinate)
    time = [_phrase(*pick(rng, times))] if rng.random() < 0.5 else []
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
    kind = pick(rng, ("separable", "motion", "ditransitive", "transitive", "transitive"))
    if kind == "separable":
        apart, joined, english = pick(rng, _SEPARABLE)
        return _phrase(joined if subordinate else apart, english), [], _TODAY + _AHEAD
    if kind == "motion":
        return _phrase(*pick(rng, _MOTION)), _way(rng, people), _TODAY + _AHEAD
    complements = [_noun_phrase(rng, pick(rng, _GOODS + _ANIMALS), _ACCUSATIVE)]
    if kind == "ditransitive":
        complements.insert(0, _noun_phrase(rng, people.pop(), _DATIVE, before="to "))
    present, participle = pick(rng, _DITRANSITIVE if kind == "ditransitive" else _TRANSITIVE)
    if rng.random() < 0.5:
        return _phrase(*present), complements, _TODAY + _AHEAD
    return _join(_phrase("hat", "has"), _phrase(*participle)), complements, _TODAY


def _way(rng: Random, people: list[_Noun]) -> list[_Phrase]:
    place = pick(rng, _PLACES)
    to = _phrase("zur" if place.gender == "f" else "zum", "to the")
    way = [_join(to, _phrase(place.german, place.english))]
    if rng.random() < 0.5:
        company = _noun_phrase(rng, pick(rng, (people.pop(), *_ANIMALS)), _DATIVE)
        way.insert(0, _join(_phrase("mit", "with"), company))
    return way


def _noun_phrase(rng: Random, noun: _Noun, case: int, before: str = "") -> _Phrase:
    """Article, perhaps an adjective, noun; ``before`` is a preposition that only English has."""
    article = pick(rng, ("the", "the", "a"))
    parts = [_phrase(_ARTICLES[article][noun.gender].split()[case], before + article)]
    if rng.random() < 0.4:
        stem, english = pick(rng, _OF_GOODS if noun in _GOODS else _OF_THE_LIVING)
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
