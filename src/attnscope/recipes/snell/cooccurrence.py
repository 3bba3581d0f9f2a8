"""Information in the count table C (§4.2, §4.3, A.3; figures 1, 4, 5 and 8).

Copying: the table of a sample against its expectation, entry by entry, for the distributions of
figure 3. A sentence of the sample ends in EOS, as in training; the small alphabets of figures 4
and 8 have none, as in the paper's drawings. Text: C against IBM Model 1's first expected counts,
on the package's own corpora and on those named by ``corpus=``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

import altair as alt
import numpy as np
import torch
from pydantic import Field, field_validator
from scipy import stats

from attnscope.analysis.intervals import sentence_ratio_interval
from attnscope.claims.decide import SIGNIFICANT, Verdict, above, all_of, by_value, stays_within
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.claims.table import Cells, Claim, Needs, Part
from attnscope.data.grammar import sentiment_corpus, translation_corpus
from attnscope.data.known import GENERATED
from attnscope.data.tasks import MixtureCopy, PermutationCopy, SampledCopy
from attnscope.data.text import open_text
from attnscope.figures.charts import Axis, beside
from attnscope.figures.palette import GROUPS, NEUTRAL
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.plots import dots, matrix
from attnscope.recipes.kit.settings import Names, RecipeSettings
from attnscope.recipes.kit.sheet import Sheet, rng
from attnscope.recipes.recipe import Charts
from attnscope.runs.result import Matrix, Measurement, Record, Result
from attnscope.theory.copied_counts import CopiedCounts
from attnscope.theory.counted_text import CountedText

ROLES = ("permutations", "mixture", "control")
ROUNDING = 1e-9  # far above that of sums in float64, far below any standard error
LABELS = ("negative", "positive")
OWN_CORPORA = ("grammar-translation", "grammar-sentiment")


class Config(RecipeSettings):
    """Settings; the tasks are those of figure 3, the drawn alphabets as small as the paper's."""

    sentences: int = Field(10_000, ge=2)
    """Sequences of each copying task; 10,000 determine the counts to about 1 %."""
    length: int = Field(40, ge=2)
    """Words of a sequence, as in figure 3."""
    control_types: int = Field(60, validate_default=True)
    """Word types of the control task, as in figure 3; more than length."""
    letters: int = Field(4, ge=2, le=6)
    """Letters of the small alphabet that is drawn; so few that all sentences can be listed, which
    gives the exact expectation."""
    control_letters: int = Field(6, le=8, validate_default=True)
    """Letters of the small control alphabet; more than letters."""
    corpus: Names = ()
    """Corpora on which the counts are compared with the first counts of IBM Model 1, known ones by
    name and your own by folder; the claim needs two."""
    pieces: int = Field(2000, ge=10)
    """Subwords of a translation corpus; few, because the count tables are dense."""
    pairs: int = Field(2000, ge=1, le=2000)
    """Sentence pairs of the grammar that are counted; 2,000 are its whole training split."""
    reviews: int = Field(2000, ge=1, le=2000)
    """Reviews of the grammar that are counted; 2,000 are its whole training split."""
    example_pair: int = Field(1, ge=0, validate_default=True)
    """Sentence pair of figure 1; the first one without a repeated word."""
    example_review: int = Field(3, ge=0, validate_default=True)
    """Review of figure 5; a short one with two polar words."""
    shown_words: int = Field(6, ge=1)
    """Words of each group in figure 5."""
    polar_in: int = Field(20, ge=1)
    """Reviews that a word must occur in to be called polar; fewer are chance."""

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
TRAINS = False
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
    translation = CountedText.of((pair.source, pair.target) for pair in pairs)
    sentiment = CountedText.of((review.tokens, (LABELS[review.label],)) for review in reviews)
    texts = dict(zip(OWN_CORPORA, (translation, sentiment), strict=True))
    for name in config.corpus:
        source = open_text(name, translation={"pieces": config.pieces})
        texts[source.dataset] = CountedText.of_corpus(source)
    sheets = {dataset: Sheet(dataset, "train") for dataset in texts}
    own = [sheets[dataset] for dataset in OWN_CORPORA]
    return [
        *rows,
        *(ibm_difference(text, sheets[dataset]) for dataset, text in texts.items()),
        *example_tables(translation, config.example_pair, own[0]),
        *example_tables(sentiment, config.example_review, own[1]),
        *word_polarity(sentiment, config.shown_words, config.polar_in, own[1]),
    ]


def distributions(length: int, control_types: int) -> dict[str, CopiedCounts]:
    """Return the three distributions, by the part that they play."""
    tasks = (
        PermutationCopy(length=length),
        MixtureCopy(length=length),
        SampledCopy(length=length, vocabulary=control_types),
    )
    return {role: CopiedCounts(task) for role, task in zip(ROLES, tasks, strict=True)}


def sampled_table(copied: CopiedCounts, role: str, sentences: int) -> list[Measurement]:
    """Compare a sample's table with its expectation, and measure its structure."""
    types, sets = copied.task.types, copied.sets
    table, expected = copied.sampled(sentences, eos=True), copied.expected(sentences, eos=True)
    gap, random = (table - expected.table).abs(), expected.error > ROUNDING
    words = table[:-1, :-1]
    blocks = words.reshape(sets, types // sets, sets, types // sets)
    spread = (blocks.amax((1, 3)) - blocks.amin((1, 3))) / words.mean()
    between = blocks.amax((1, 3))[~torch.eye(sets, dtype=torch.bool)]
    own = words.diagonal() > words.clone().fill_diagonal_(0).amax(1) + ROUNDING

    sheet = Sheet(copied.task.dataset, axes={"role": role})
    rows = [
        sheet.point("fixed_entries_off", float(gap[~random].max()), n=sentences),
        sheet.point("spread_within_sets", float(spread.max()), n=sentences),
        sheet.rate("own_word_largest", int(own.sum()), types),
    ]
    if between.numel():
        rows.append(sheet.point("between_sets", float(between.max()), n=sentences))
    entries = int(random.sum())
    if entries:
        # Bonferroni's bound holds however the entries depend on each other, and they do.
        bound = float(stats.norm.isf(SIGNIFICANT / 2 / entries))
        largest = float((gap[random] / expected.error[random]).max())
        rows.append(sheet.point("largest_z", largest, {"bound": bound}, entries))
    return rows


def small_table(copied: CopiedCounts, role: str, sentences: int) -> list[Record]:
    """List all sentences of a small alphabet, then sample some for the figures; without EOS."""
    expected = copied.expected(sentences, eos=False)
    off = float((copied.listed() - expected.table).abs().max())
    table, error = copied.sampled(sentences, eos=False), 1.96 * expected.error
    types, sheet = range(copied.task.types), Sheet(copied.task.dataset, axes={"role": role})
    drawn = sheet.matrix(
        "count_per_sentence",
        table.tolist(),
        rows=types,
        columns=types,
        low=(table - error).tolist(),
        high=(table + error).tolist(),
        row_axis="input",
        column_axis="output",
        n=sentences,
    )
    return [sheet.point("listed_sentences_off", off, n=len(copied.every_sentence())), drawn]


def ibm_difference(text: CountedText, sheet: Sheet) -> Measurement:
    """Return the largest relative difference of C (Eq. 16) from IBM Model 1's first counts."""
    return sheet.point("ibm_difference", text.model1_difference(), n=len(text.pairs.inputs))


def example_tables(text: CountedText, number: int, sheet: Sheet) -> list[Matrix]:
    """Return C, Trans (Eq. 17) and the alignment (Eq. 19) for the words of one example."""
    rows, columns, tables = text.example(number)
    labels: dict[str, Any] = {"rows": rows, "columns": columns}
    labels |= {"row_axis": "input", "column_axis": "output", "n": len(text.pairs.inputs)}
    return [sheet.matrix(name, table.tolist(), **labels) for name, table in tables.items()]


def word_polarity(text: CountedText, shown: int, least: int, sheet: Sheet) -> list[Measurement]:
    """Return Trans(positive | word) of the most polar and of the most frequent words.

    There are ``shown`` words of each group; polar ones are in at least ``least`` examples.
    """
    shares, positive = text.shares(), text.outputs.id(LABELS[1])
    labelled = (text.pairs.targets == positive).numpy()
    rows: list[Measurement] = []
    for group, words in text.polar_words(LABELS[1], shown, least).items():
        columns, stream = shares.index_select(1, words).to_dense().numpy(), rng()
        for word, share in zip(text.inputs.decode(words.tolist()), columns.T, strict=True):
            inside = share > 0
            weight = share[inside, None]
            interval = sentence_ratio_interval(
                weight * labelled[inside], weight, np.ones_like(weight, bool), rng=stream
            )
            rows.append(sheet.row("polarity", interval, {"word": word, "group": group}))
    return rows


_WITHIN = by_value(stays_within)


def _none(name: str, **more: Any) -> Part:
    """Return the check that a number is 0, up to rounding."""
    return Part(name, name, _WITHIN, ROUNDING, **more)


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
            _none("listed_sentences_off"),
            _none("fixed_entries_off"),
            _none("spread_within_sets", decides_on={"role": ("permutations", "mixture")}),
            _none("between_sets", decides_on={"role": "mixture"}),
            Part(
                "largest_z",
                "largest_z",
                _WITHIN,
                lambda row: float(row.axes["bound"]),
                decides_on={"role": ("mixture", "control")},
            ),
            # More than one word of all types has its own entry as its row's largest.
            Part(
                "own_word_largest",
                "own_word_largest",
                above,
                lambda row: 1 / row.n,
                decides_on={"role": "control"},
            ),
        ),
        Needs(each={"role": ROLES}),
        note="largest_z is compared with Bonferroni's bound at 5 % for all entries of a table",
    ),
    "snell.counts-are-ibm": counts_are_ibm,
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw figures 1, 4, 5 and 8."""
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
    panels = {
        "count": ("Count table, C (Eq. 16)", "count", ".1f"),
        "translation": ("Translation table, Trans(output | input) (Eq. 17)", "share", ".2f"),
        "alignment": ("Alignment of each output (Eq. 19)", "alignment", ".2f"),
    }
    drawn = [
        matrix(
            result.picture(Matrix, name, OWN_CORPORA[0]),
            title=title,
            value_title=value_title,
            x_title="English output word",
            y_title="German input word",
            value_format=digits,
            cell=38,
        )
        for name, (title, value_title, digits) in panels.items()
    ]
    return beside(*drawn)


def _letters(result: Result, role: str, title: str, highest: float) -> Any:
    """Draw the table of a small alphabet; tables next to each other have the same colours."""
    table = result.picture(Matrix, "count_per_sentence", role=role)
    names = tuple(ascii_uppercase[: len(table.rows)])
    lettered = {"rows": names, "columns": tuple(f"{name}′" for name in names)}
    drawn = matrix(
        table.model_copy(update=lettered),
        x_title="output word",
        y_title="input word",
        value_title="count C per sentence",
        domain=(0, highest),
        value_format=".3f",
        cell=40,
    )
    subtitle = f"a sample of {table.n:,} sentences".replace(",", "\N{NO-BREAK SPACE}")
    return drawn.properties(title=alt.TitleParams(title, subtitle=subtitle))


def _polarities(result: Result) -> Any:
    """Draw the polarity of words."""
    groups = GROUPS | {"frequent": NEUTRAL}
    words = dots(
        result.select("polarity"),
        Axis(
            "share of positive reviews, Trans(positive | word)",
            domain=(-0.03, 1.03),
            ticks=(0, 0.2, 0.4, 0.6, 0.8, 1),
        ),
        label=lambda row: str(row.axes["word"]),
        colour=lambda row: groups[str(row.axes["group"])],
    )
    shown = result.config["shown_words"]
    subtitle = f"{shown} most positive, frequent and negative words; 95 % intervals"
    return words.properties(title=alt.TitleParams("Word polarity (Eq. 17)", subtitle=subtitle))


def _review(result: Result) -> Any:
    """Draw the alignment of one review's label."""
    aligned = result.picture(Matrix, "alignment", OWN_CORPORA[1])
    return matrix(
        aligned.transposed,
        title="Alignment of a review's label (Eq. 19)",
        x_title="word of a review",
        y_title="label",
        value_format=".2f",
        cell=35,
    )
