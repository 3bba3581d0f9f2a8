"""What a run says about one corpus, in sentences with numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from attnscope.claims.published import published
from attnscope.claims.wording import number
from attnscope.data.known import definitions
from attnscope.runs.result import Measurement, Result

_MOST_UNKNOWN, _LEAST_LENGTH = 20.0, 3.0  # percent, tokens


@dataclass(frozen=True)
class About:
    """A run's answer about one corpus.

    Attributes
    ----------
    dataset
        The corpus.
    warnings
        Reasons for which the rest says little.
    found
        The numbers, in words.
    means
        What they mean, next to the paper's.
    next
        What to look at next.
    """

    dataset: str
    warnings: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    means: tuple[str, ...] = ()
    next: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {name: _plain(getattr(self, name)) for name in self.__dataclass_fields__}


def _plain(value: str | tuple[str, ...]) -> Any:
    return value if isinstance(value, str) else list(value)


class CorpusNumbers:
    """The measurements of one corpus in a result."""

    def __init__(self, result: Result, dataset: str) -> None:
        self.result, self.dataset = result, dataset

    def all(self, name: str, **axes: Any) -> list[Measurement]:
        """Return the measurements of a name that have a value; ``split`` may be among the axes."""
        split = axes.pop("split", None)
        rows = self.result.select(name, self.dataset, **axes)
        return [row for row in rows if row.value is not None and split in (None, row.split)]

    def one(self, name: str, **axes: Any) -> Measurement | None:
        """Return the first of them, or None."""
        return next(iter(self.all(name, **axes)), None)

    @property
    def warnings(self) -> list[str]:
        """What is wrong with how the texts were read."""
        unknown, length = self.one("unknown_share"), self.one("tokens_per_text")
        if unknown is None or length is None:
            return []
        if unknown.number <= _MOST_UNKNOWN and length.number >= _LEAST_LENGTH:
            return []
        return [
            f"{shown(unknown.number)} % of the tokens are unknown and the median text has "
            f"{shown(length.number)} of them, so that the tokens are hardly words; where words "
            "have no blanks between them, tokens=pieces cuts them."
        ]


AboutRule = Callable[[CorpusNumbers], About]


def shown(value: float) -> str:
    """Return a number as a sentence has it: whole from 10 on, else with one digit."""
    return f"{value:.0f}" if abs(value) >= 9.95 else number(round(value, 1))


def ends(row: Measurement, *more: str) -> str:
    """Return an interval and further remarks in brackets: " (29 to 39; chance 8)".

    An agreement is a percentage: its interval over few seeds may pass 0 or 100, and is cut there.
    """
    low, high = row.low, row.high or 0.0
    if low is not None and row.name.startswith("A("):
        low, high = _cut(low), _cut(high)
    interval = [] if low is None else [f"{shown(low)} to {shown(high)}"]
    parts = "; ".join([*interval, *filter(None, more)])
    return f" ({parts})" if parts else ""


def in_percent(row: Measurement) -> Measurement:
    """Return a share as a percentage, its interval too, cut at 0 and 100."""
    low, high = (None if end is None else _cut(100 * end) for end in (row.low, row.high))
    return row.model_copy(update={"value": 100 * row.number, "low": low, "high": high})


def _cut(percentage: float) -> float:
    return min(max(percentage, 0.0), 100.0)


def accuracy_sentence(numbers: CorpusNumbers, accuracy: Measurement) -> str:
    """Return how often the model is right, next to the majority and a bag of words."""
    others = {"majority": "always the most frequent label", "bag_of_words": "bag of words"}
    known = {words: numbers.one(name) for name, words in others.items()}
    told = [f"{words}: {shown(row.number)} %" for words, row in known.items() if row is not None]
    beside = f" ({', '.join(told)})" if told else ""
    return f"The model is right in {shown(accuracy.number)} % of the held-out texts{beside}."


def accuracy_warnings(numbers: CorpusNumbers, accuracy: Measurement) -> list[str]:
    """Return a warning where a model does not beat the majority, or a bag of words."""
    words = numbers.one("bag_of_words")
    if not learned(numbers, accuracy):
        return [
            "The model is not clearly better than always answering the most frequent label: it has "
            "learned nothing that these texts show, and its attention says nothing, whatever it "
            "agrees with."
        ]
    if words is not None and accuracy.number <= words.number:
        return [
            "The model is not better than a bag of words: what it knows can be had from single "
            "words, without order and attention."
        ]
    return []


def translator_warnings(numbers: CorpusNumbers, accuracy: Measurement) -> list[str]:
    """Return a warning where a translator does not beat the previous token."""
    if learned(numbers, accuracy):
        return []
    return [
        "The translator is not better than guessing each token from the one before it: it has "
        "learned nothing from the sentences that it reads, and its attention says nothing, "
        "whatever it agrees with."
    ]


def learned(numbers: CorpusNumbers, accuracy: Measurement) -> bool:
    """Return whether the lower end of a model's accuracy is above what needs no learning.

    That is the most frequent label's, or, of a translator, that of the previous token alone.
    """
    floor = numbers.one("majority") or numbers.one("previous_token")
    low = accuracy.number if accuracy.low is None else accuracy.low
    return floor is None or low > floor.number


NOTHING = "So nothing follows from how its attention agrees with other scores."


def printed_values(paper: str, table: str, metric: str, **variant: str) -> list[float]:
    """Return the numbers that a paper prints of a metric, over its corpora."""
    wanted = set(variant.items())
    rows = [row for row in published(paper) if (row.table, row.metric) == (table, metric)]
    return [row.value for row in rows if wanted <= set(row.variant)]


def printed_corpora(task: str) -> set[str]:
    """Return the papers' names of their corpora for classification, or for translation."""
    known = [each for each in definitions().values() if each.task == task]
    return {each.published for each in known if each.published is not None}


def like_paper(row: Measurement, printed: Iterable[float], unit: str = " %") -> str:
    """Return how a number compares with the range that a paper prints.

    "As in the paper" if its interval, or the number itself without one, reaches into the range.
    """
    values = sorted(printed)
    if not values:
        return ""
    low, high = (row.number if end is None else end for end in (row.low, row.high))
    word = "less than" if high < values[0] else "more than" if low > values[-1] else "as"
    first, last = shown(values[0]), shown(values[-1])
    span = first if first == last else f"{first} to {last}"
    return f"{word} in the paper (published: {span}{unit})"


def above_chance(row: Measurement, chance: Measurement | None) -> bool:
    """Return whether the lower end of an agreement is above chance."""
    low = row.number if row.low is None else row.low
    return chance is None or low > chance.number


REPORT = "`attnscope report` shows single texts with attention and probe, and how both moved."
