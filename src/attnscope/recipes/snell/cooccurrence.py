"""What the count table C knows (§4.2, §4.3, A.3; figures 1, 4, 5 and 8).

Copying: the table of a sample against its expectation, entry by entry, for the distributions of
figure 3. Text: C against IBM Model 1's first expected counts, on the package's own corpora and on
those named by ``corpus=``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pydantic import Field, field_validator

from attnscope.claims.decide import Verdict, above, all_of, verdict
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.data.grammar import sentiment_corpus, translation_corpus
from attnscope.recipes.options import Names
from attnscope.recipes.recipe import Charts, Lab, Logged
from attnscope.recipes.snell.cooccurrence_copying import (
    ROLES,
    ROUNDING,
    distributions,
    sampled_table,
    small_table,
)
from attnscope.recipes.snell.cooccurrence_text import (
    example_tables,
    ibm_difference,
    read_corpus,
    read_text,
    word_polarity,
)
from attnscope.runs.result import Measurement, Result
from attnscope.runs.spec import Settings

LABELS = ("negative", "positive")
OWN_CORPORA = ("grammar-translation", "grammar-sentiment")
_REAL_CORPORA = 2  # the claim speaks of corpora


class Config(Settings):
    """Settings; the tasks are those of figure 3, the drawn alphabets as small as the paper's."""

    sentences: int = Field(10_000, ge=2)  # of each copying task: entries are known to about 1 %
    length: int = Field(40, ge=2)
    control_types: int = Field(60, validate_default=True)
    # So few that a table can be read, and that every sentence can be listed: the exact expectation.
    letters: int = Field(4, ge=2, le=6)
    control_letters: int = Field(6, le=8, validate_default=True)
    # Real corpora to compare C with IBM Model 1's first counts on; the claim asks for two.
    corpus: Names = ()
    pieces: int = Field(2000, ge=10)  # of a translation corpus: the tables are dense here
    pairs: int = Field(2000, ge=1, le=2000)  # the whole training split
    reviews: int = Field(2000, ge=1, le=2000)  # likewise
    # Figure 1: the first pair that has no word twice. Figure 5: short, with two polar words.
    example_pair: int = Field(1, ge=0, validate_default=True)
    example_review: int = Field(3, ge=0, validate_default=True)
    shown_words: int = Field(6, ge=1)  # of each group of figure 5
    polar_in: int = Field(20, ge=1)  # reviews that a word must be in to be called polar

    @field_validator("control_types", "control_letters")
    @classmethod
    def _more_types_than_words(cls, value: int, info: Any) -> int:
        words = {"control_types": "length", "control_letters": "letters"}[str(info.field_name)]
        if value <= info.data.get(words, 0):
            raise ValueError(f"it must be larger than {words}={info.data[words]}")
        return value

    @field_validator("example_pair", "example_review")
    @classmethod
    def _among_those_read(cls, value: int, info: Any) -> int:
        read = {"example_pair": "pairs", "example_review": "reviews"}[str(info.field_name)]
        if value >= info.data.get(read, math.inf):
            raise ValueError(f"it must be smaller than {read}={info.data[read]}")
        return value


QUICK = {
    "sentences": 1000,
    "length": 12,
    "control_types": 18,
    "pairs": 400,
    "reviews": 500,
    "polar_in": 8,
}
HEADLINE = ("own_word_largest", "spread_within_sets", "largest_z", "ibm_difference")


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Count words; nothing is trained."""
    rows: list[Measurement] = []
    for role, distribution in distributions(config.length, config.control_types).items():
        rows += sampled_table(distribution, role, config.sentences)
    for role, distribution in distributions(config.letters, config.control_letters).items():
        rows += small_table(distribution, role, config.sentences)
    pairs = translation_corpus()["train"][: config.pairs]
    reviews = sentiment_corpus()["train"][: config.reviews]
    translation = read_text(OWN_CORPORA[0], [(pair.source, pair.target) for pair in pairs])
    labelled = [(review.tokens, (LABELS[review.label],)) for review in reviews]
    sentiment = read_text(OWN_CORPORA[1], labelled)
    real = (read_corpus(name, config.pieces) for name in config.corpus)
    return [
        *rows,
        *(ibm_difference(text) for text in (translation, sentiment, *real)),
        *example_tables(translation, config.example_pair),
        *example_tables(sentiment, config.example_review),
        *word_polarity(sentiment, LABELS[1], config.shown_words, config.polar_in),
    ]


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw figures 1, 4, 5 and 8."""
    from attnscope.recipes.snell.cooccurrence_figures import fig1, fig4, fig5, fig8

    return {"fig1": fig1(result), "fig4": fig4(result), "fig5": fig5(result), "fig8": fig8(result)}


def table_uninformative(pool: Pool) -> Decision:
    """Decide snell.table-uninformative."""
    parts: list[Verdict] = []
    evidence: dict[str, dict[str, float | None]] = {}
    for name, (roles, rule) in _RULES.items():
        rows = pool.select(name)
        evidence[name] = {row.dataset: row.value for row in rows}
        if not {row.axes["role"] for row in rows}.issuperset(roles):
            return undecided(f"needs {name} for {', '.join(roles)}", evidence)
        parts += [rule(row) for row in rows if row.axes["role"] in roles]
    note = "largest_z is compared with Bonferroni's bound at 5 % for all entries of a table"
    return Decision(all_of(parts), evidence, note=note)


def _is_zero(row: Measurement) -> Verdict:
    return _at_most(row, ROUNDING)


def _within_bound(row: Measurement) -> Verdict:
    return _at_most(row, float(row.axes["bound"]))


def _at_most(row: Measurement, bound: float) -> Verdict:
    return Verdict.UNDECIDED if row.value is None else verdict(row.value <= bound, True)


def _above_chance(row: Measurement) -> Verdict:
    """Decide whether more words than 1 of all types have their own entry as their row's largest."""
    return above(interval_of(row), 1 / row.n)


_RULES = {
    "listed_sentences_off": (ROLES, _is_zero),
    "fixed_entries_off": (ROLES, _is_zero),
    "spread_within_sets": (("permutations", "mixture"), _is_zero),
    "between_sets": (("mixture",), _is_zero),
    "largest_z": (("mixture", "control"), _within_bound),
    "own_word_largest": (("control",), _above_chance),
}


def counts_are_ibm(pool: Pool) -> Decision:
    """Decide snell.counts-are-ibm."""
    rows = pool.select("ibm_difference")
    evidence = {
        "largest relative difference": {row.dataset: row.value for row in rows},
        "sentences": {row.dataset: row.n for row in rows},
    }
    equal = all_of([_is_zero(row) for row in rows])
    real = {row.dataset for row in rows} - set(OWN_CORPORA)
    if equal is Verdict.HOLDS and len(real) < pool.needed(_REAL_CORPORA):
        note = (
            f"needs {_REAL_CORPORA} real corpora (corpus=sst,multi30k-de-en); measured on "
            f"{len(real)}, beside the package's own"
        )
        return undecided(note, evidence)
    return Decision(equal, evidence)


CLAIMS = {
    "snell.table-uninformative": table_uninformative,
    "snell.counts-are-ibm": counts_are_ibm,
}
