"""What the count table C knows (§4.2, §4.3, A.3; figures 1, 4, 5 and 8).

Copying: the table of a sample against its expectation, entry by entry, for the distributions of
figure 3. Text: C against IBM Model 1's first expected counts, on the package's own corpora.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, permutations
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from scipy import stats
from torch import Tensor

from attnscope.analysis.intervals import Interval, rate_interval
from attnscope.claims.decide import SIGNIFICANT, Verdict, above, all_of, verdict
from attnscope.claims.pool import Decision, Pool, undecided
from attnscope.data.grammar import sentiment_corpus, translation_corpus
from attnscope.data.tasks import CopyTask, MixtureCopy, PermutationCopy, SampledCopy
from attnscope.recipes.recipe import Charts, Lab, Logged
from attnscope.recipes.snell.cooccurrence_text import (
    example_tables,
    ibm_difference,
    read_text,
    word_polarity,
)
from attnscope.runs.result import Measurement, Result, measured
from attnscope.runs.spec import Settings
from attnscope.theory.counts import (
    append_eos,
    count_table,
    expected_mixture_table,
    expected_permutation_table,
    expected_sampled_table,
    standard_error,
)

LABELS = ("negative", "positive")
OWN_CORPORA = ("grammar-translation", "grammar-sentiment")
ROLES = ("permutations", "mixture", "control")
_REAL_CORPORA = 2  # the claim speaks of corpora
_ROUNDING = 1e-9  # far above that of sums in float64, far below any standard error


class Config(Settings):
    """Settings; the tasks are those of figure 3, the drawn alphabets as small as the paper's."""

    sentences: int = Field(20_000, ge=2)  # of each copying task: entries are known to about 1 %
    length: int = Field(40, ge=2)
    control_types: int = Field(60, ge=3)
    # So few that a table can be read, and that every sentence can be listed: the exact expectation.
    letters: int = Field(4, ge=2, le=6)
    control_letters: int = Field(6, ge=3, le=8)
    pairs: int = Field(2000, ge=1, le=2000)  # the whole training split
    reviews: int = Field(2000, ge=1, le=2000)  # likewise
    example_pair: int = Field(1, ge=0)  # figure 1: the first pair that has no word twice
    example_review: int = Field(3, ge=0)  # figure 5: short, with two polar words
    shown_words: int = Field(6, ge=1)  # of each group of figure 5
    polar_in: int = Field(20, ge=1)  # reviews that a word must be in to be called polar

    @model_validator(mode="after")
    def _examples_are_read(self) -> Config:
        if self.example_pair >= self.pairs or self.example_review >= self.reviews:
            raise ValueError("an example must be among the pairs or reviews that are read")
        return self


QUICK = {
    "sentences": 1000,
    "length": 12,
    "control_types": 18,
    "pairs": 400,
    "reviews": 500,
    "polar_in": 8,
}
HEADLINE = ("own_word_largest", "spread_within_sets", "largest_z", "ibm_difference")


class Distribution(NamedTuple):
    """A copying task, its expected table per sentence, its number of word sets, its sentences."""

    task: CopyTask
    expected: Float[Tensor, "input_type output_type"]
    sets: int
    support: Callable[[], Iterable[tuple[int, ...]]]


def distributions(length: int, control_types: int) -> dict[str, Distribution]:
    """Return the three distributions, by the part that they play."""

    def orders(start: int) -> Iterable[tuple[int, ...]]:
        return permutations(range(start, start + length))

    every = (
        Distribution(
            PermutationCopy(length=length),
            expected_permutation_table(length),
            sets=1,
            support=lambda: orders(0),
        ),
        Distribution(
            MixtureCopy(length=length),
            expected_mixture_table(length),
            sets=2,
            support=lambda: chain(orders(0), orders(length)),
        ),
        Distribution(
            SampledCopy(length=length, vocabulary=control_types),
            expected_sampled_table(length, control_types),
            sets=1,
            support=lambda: permutations(range(control_types), length),
        ),
    )
    return dict(zip(ROLES, every, strict=True))


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Count words; nothing is trained."""
    rows: list[Measurement] = []
    for role, distribution in distributions(config.length, config.control_types).items():
        rows += _sampled(distribution, role, config.sentences)
    for role, distribution in distributions(config.letters, config.control_letters).items():
        rows += _small(distribution, role, config.sentences)
    pairs = translation_corpus()["train"][: config.pairs]
    reviews = sentiment_corpus()["train"][: config.reviews]
    translation, sentiment = (
        read_text(OWN_CORPORA[0], [(pair.source, pair.target) for pair in pairs]),
        read_text(OWN_CORPORA[1], [(text.tokens, (LABELS[text.label],)) for text in reviews]),
    )
    return [
        *rows,
        *(ibm_difference(text) for text in (translation, sentiment)),
        *example_tables(translation, config.example_pair),
        *example_tables(sentiment, config.example_review),
        *word_polarity(sentiment, LABELS[1], config.shown_words, config.polar_in),
    ]


def _copied(words: Int[Tensor, "batch word"], types: int) -> Float[Tensor, "type type"]:
    """Return C per sentence when every word is copied."""
    mask = torch.ones_like(words, dtype=torch.bool)
    return count_table(words, mask, words, mask, types, types) / len(words)


def _sampled(distribution: Distribution, role: str, sentences: int) -> list[Measurement]:
    """Compare a sample's table with its expectation, and say what structure it has."""
    task, sets = distribution.task, distribution.sets
    table = _copied(task.training_batch(0, 0, sentences).inputs, task.types + 1)  # EOS is last
    expected = append_eos(distribution.expected, task.length)
    error = standard_error(expected, task.length + 1, sentences)
    gap, random = (table - expected).abs(), error > _ROUNDING
    words = table[:-1, :-1]
    blocks = words.reshape(sets, task.types // sets, sets, task.types // sets)
    spread = (blocks.amax((1, 3)) - blocks.amin((1, 3))) / words.mean()
    between = blocks.amax((1, 3))[~torch.eye(sets, dtype=torch.bool)]
    others = words.clone().fill_diagonal_(0).amax(1)
    own = words.diagonal() > others + _ROUNDING

    def row(name: str, value: float, n: int = sentences, **axes: float) -> Measurement:
        interval = Interval(value, value, value, n)
        return measured(name, task.dataset, interval, {"role": role, **axes})

    rows = [
        row("fixed_entries_off", float(gap[~random].max())),
        row("spread_within_sets", float(spread.max())),
        measured(
            "own_word_largest",
            task.dataset,
            rate_interval(int(own.sum()), task.types),
            {"role": role},
        ),
    ]
    if sets > 1:
        rows.append(row("between_sets", float(between.max())))
    entries = int(random.sum())
    if entries:
        # Bonferroni's bound holds whatever the entries' dependence, which is strong.
        bound = float(stats.norm.isf(SIGNIFICANT / 2 / entries))
        rows.append(row("largest_z", float((gap[random] / error[random]).max()), entries, bound=bound))
    return rows


def _small(distribution: Distribution, role: str, sentences: int) -> list[Measurement]:
    """List all sentences of a small alphabet, then sample some for the figures; without EOS."""
    task = distribution.task
    listed = torch.tensor(list(distribution.support()))
    off = float((_copied(listed, task.types) - distribution.expected).abs().max())
    exact = Interval(off, off, off, len(listed))
    table = _copied(task.training_batch(0, 0, sentences).inputs[:, :-1], task.types)
    error = 1.96 * standard_error(distribution.expected, task.length, sentences)
    entries = torch.stack([table, table - error, table + error], -1).tolist()
    return [
        measured("listed_sentences_off", task.dataset, exact, {"role": role}),
        *(
            measured(
                "count_per_sentence",
                task.dataset,
                Interval(*entry, sentences),
                {"role": role, "input": i, "output": o},
            )
            for i, line in enumerate(entries)
            for o, entry in enumerate(line)
        ),
    ]


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw figures 1, 4, 5 and 8."""
    from attnscope.recipes.snell.cooccurrence_figures import fig1, fig4, fig5, fig8

    return {"fig1": fig1(result), "fig4": fig4(result), "fig5": fig5(result), "fig8": fig8(result)}


def table_uninformative(pool: Pool) -> Decision:
    """Decide snell.table-uninformative."""
    found = {name: pool.select(name) for name in MEASURED}
    for name, roles in MEASURED.items():
        if {row.axes["role"] for row in found[name]} != set(roles):
            return undecided(f"needs {name} of {', '.join(roles)}")
    evidence = {name: {row.dataset: row.value for row in rows} for name, rows in found.items()}
    evidence["bound on largest_z"] = {row.dataset: row.axes["bound"] for row in found["largest_z"]}
    exact = ("listed_sentences_off", "fixed_entries_off", "spread_within_sets", "between_sets")
    zeros = [row for name in exact for row in found[name] if row.axes["role"] in _FLAT[name]]
    own = [row for row in found["own_word_largest"] if row.axes["role"] == "control"]
    parts = [
        *(_at_most(row.value, _ROUNDING) for row in zeros),
        *(_at_most(row.value, float(row.axes["bound"])) for row in found["largest_z"]),
        *(_above_chance(row) for row in own),
    ]
    return Decision(all_of(parts), evidence)


def counts_are_ibm(pool: Pool) -> Decision:
    """Decide snell.counts-are-ibm."""
    rows = pool.select("ibm_difference")
    evidence = {
        "largest relative difference": {row.dataset: row.value for row in rows},
        "sentences": {row.dataset: row.n for row in rows},
    }
    equal = all_of([_at_most(row.value, _ROUNDING) for row in rows])
    real = {row.dataset for row in rows} - set(OWN_CORPORA)
    if equal is Verdict.HOLDS and len(real) < pool.needed(_REAL_CORPORA):
        return undecided(
            f"needs {_REAL_CORPORA} real corpora, and only the package's own are read so far"
            if not real
            else f"needs {_REAL_CORPORA} real corpora, and {len(real)} was measured",
            evidence,
        )
    return Decision(equal, evidence)


def _at_most(value: float | None, bound: float) -> Verdict:
    return Verdict.UNDECIDED if value is None else verdict(value <= bound, True)


CLAIMS = {
    "snell.table-uninformative": table_uninformative,
    "snell.counts-are-ibm": counts_are_ibm,
}
