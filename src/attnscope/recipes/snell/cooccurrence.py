"""Information in the count table C (§4.2, §4.3, A.3; figures 1, 4, 5 and 8).

Copying: the table of a sample against its expectation, entry by entry, for the distributions of
figure 3. Text: C against IBM Model 1's first expected counts, on the package's own corpora and on
those named by ``corpus=``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

from pydantic import Field, field_validator

from attnscope.claims.decide import Verdict, above, all_of, by_value, stays_within
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.claims.table import Bound, Cells, Claim, Needs, Part, Rule
from attnscope.data.grammar import sentiment_corpus, translation_corpus
from attnscope.data.known import GENERATED
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.settings import Names
from attnscope.recipes.recipe import Charts
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
from attnscope.runs.result import Matrix, Record, Result
from attnscope.runs.spec import Settings

LABELS = ("negative", "positive")
OWN_CORPORA = ("grammar-translation", "grammar-sentiment")


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


def measure(config: Config, lab: Lab) -> list[Record]:
    """Count words; nothing is trained."""
    rows: list[Record] = []
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


def _for_roles(name: str, roles: Sequence[str], rule: Rule, bound: Bound) -> tuple[Part, Part]:
    """Return what decides for some distributions, and is shown for the others."""
    others = tuple(role for role in ROLES if role not in roles)
    return (
        Part(name, name, rule, bound, only={"role": tuple(roles)}),
        Part(name, name, only={"role": others}),
    )


_WITHIN = by_value(stays_within)
_REAL_CORPORA = 2  # the claim speaks of corpora


def counts_are_ibm(pool: Pool) -> Decision:
    """Decide snell.counts-are-ibm: other counts on any corpus refute it, real ones confirm it."""
    rows = {row.dataset: row for row in pool.select("ibm_difference")}
    equal = all_of([_WITHIN(interval_of(row), ROUNDING) for row in rows.values()])
    real = rows.keys() - set(GENERATED)
    if equal is Verdict.HOLDS and len(real) < pool.needed(_REAL_CORPORA):
        note = f"needs {_REAL_CORPORA} real corpora (corpus=sst,multi30k-de-en); has {len(real)}"
        return undecided(note, rows)
    return Decision(equal, rows)


CLAIMS = {
    "snell.table-uninformative": Claim(
        Cells("fixed_entries_off", by=("role",)),
        (
            Part("listed_sentences_off", "listed_sentences_off", _WITHIN, ROUNDING),
            Part("fixed_entries_off", "fixed_entries_off", _WITHIN, ROUNDING),
            *_for_roles("spread_within_sets", ("permutations", "mixture"), _WITHIN, ROUNDING),
            *_for_roles("between_sets", ("mixture",), _WITHIN, ROUNDING),
            *_for_roles(
                "largest_z", ("mixture", "control"), _WITHIN, lambda row: float(row.axes["bound"])
            ),
            # More than one word of all types has its own entry as its row's largest.
            *_for_roles("own_word_largest", ("control",), above, lambda row: 1 / row.n),
        ),
        Needs(each={"role": ROLES}),
        note="largest_z is compared with Bonferroni's bound at 5 % for all entries of a table",
    ),
    "snell.counts-are-ibm": counts_are_ibm,
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw figures 1, 4, 5 and 8."""
    from attnscope.figures.charts import beside

    letters, types = result.config["letters"], result.config["control_letters"]
    sets = f"Permutations of one of two sets of {letters} words"
    return {
        "fig1": _translated_pair(result),
        "fig4": beside(
            _letters(result, "permutations", f"Permutations of {letters} words", 1 / letters),
            _letters(result, "control", f"Control: {letters} of {types} words", 1 / letters),
        ),
        "fig5": beside(_polarities(result), _review(result), columns=1),
        "fig8": _letters(result, "mixture", sets, 1 / (2 * letters)),
    }


def _translated_pair(result: Result) -> Any:
    """Draw what becomes of the counts in one sentence pair: C, Trans, alignment."""
    from attnscope.figures.charts import beside
    from attnscope.recipes.kit.plots import matrix

    panels = {
        "count": ("Count table C (Eq. 16)", "C", ".1f"),
        "translation": ("Trans(output | input) (Eq. 17)", "Trans", ".2f"),
        "alignment": ("Alignment of each output (Eq. 19)", "alignment", ".2f"),
    }
    drawn = [
        matrix(
            result.picture(Matrix, name, OWN_CORPORA[0]),
            title=title,
            value_title=value_title,
            x_title="English output word",
            y_title="German input word",
            value_format=value_format,
            cell=38,
        )
        for name, (title, value_title, value_format) in panels.items()
    ]
    return beside(*drawn)


def _letters(result: Result, role: str, title: str, highest: float) -> Any:
    """Draw the table of a small alphabet; tables next to each other have the same colours."""
    import altair as alt

    from attnscope.figures.charts import heatmap

    table = result.picture(Matrix, "count_per_sentence", role=role)
    names = ascii_uppercase[: len(table.rows)]
    drawn = heatmap(
        table.values,
        columns=[f"{name}′" for name in names],
        rows=list(names),
        x_title="output word",
        y_title="input word",
        value_title="C per sentence",
        domain=(0, highest),
        value_format=".3f",
        cell=40,
    )
    subtitle = f"a sample of {table.n:,} sentences".replace(",", "\N{NO-BREAK SPACE}")
    return drawn.properties(title=alt.TitleParams(title, subtitle=subtitle))


def _polarities(result: Result) -> Any:
    """Draw the polarity of words."""
    import altair as alt

    from attnscope.figures.charts import Axis
    from attnscope.figures.palette import GROUPS, NEUTRAL
    from attnscope.recipes.kit.plots import dots

    groups = GROUPS | {"frequent": NEUTRAL}
    words = dots(
        result.select("polarity"),
        Axis("Trans(positive | word)", domain=(-0.03, 1.03), ticks=(0, 0.2, 0.4, 0.6, 0.8, 1)),
        label=lambda row: str(row.axes["word"]),
        colour=lambda row: groups[str(row.axes["group"])],
    )
    shown = result.config["shown_words"]
    subtitle = f"{shown} most positive, frequent and negative words; 95 % intervals"
    return words.properties(title=alt.TitleParams("Word polarity (Eq. 17)", subtitle=subtitle))


def _review(result: Result) -> Any:
    """Draw the alignment of one review's label."""
    from attnscope.figures.charts import heatmap

    aligned = result.picture(Matrix, "alignment", OWN_CORPORA[1])
    return heatmap(
        [[line[0] for line in aligned.values]],
        columns=[str(word) for word in aligned.rows],
        rows=[str(aligned.columns[0])],
        x_title="word of a review",
        y_title="label",
        value_title="alignment",
        title="Alignment of a review's label (Eq. 19)",
        value_format=".2f",
        cell=35,
    )
