"""Table 2: mutual information between words' embeddings and their states, in nats.

Occurrences are those of the training part, as a thousand word types have too few elsewhere. The
estimate for shuffled pairs, which share no information, is given with each value: it is the
estimate's bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pydantic import Field

from attnscope.analysis.information import (
    CLUSTERS,
    SAMPLES,
    TYPES,
    Clustering,
    Information,
    mutual_informations,
    occurrences,
    training_part,
    word_counts,
)
from attnscope.analysis.intervals import paired_difference_interval
from attnscope.claims.decide import above, all_of, below, share_of
from attnscope.claims.pool import interval_of
from attnscope.claims.table import Cell, Cells, Claim, Finding, Needs
from attnscope.data.corpus import Corpus
from attnscope.data.tokens import SPECIALS
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.recipe import Charts
from attnscope.recipes.tutek.evaluation import dot_tables, sheet_of
from attnscope.recipes.tutek.units import (
    SIZES,
    SMALL,
    Attentions,
    ModelVariant,
    TutekConfig,
    TutekUnits,
    deviations,
    train_corpora,
    variants,
)
from attnscope.runs.result import Measurement, Result
from attnscope.training.loaded import loaded_model

# "It is not possible for concat": its states are wider than its words.
_MODELS = ("base", "residual", "tying", "mlm")
_NAMES = {"most-frequent": "mi_mf", "unigram-sample": "mi_rs"}
# Larger and smaller; the claim is base < MLM < tying, tying ≤ residual + .25.
_ORDERINGS = (("mlm", "base"), ("tying", "mlm"), ("tying", "residual"))


class Config(TutekConfig):
    """Settings of table 2."""

    attention: Attentions = Field(("additive",), min_length=1)
    """Attentions to train; the paper shows additive alone."""
    words: int = Field(TYPES, ge=2)
    """Word types in a sample."""
    clusters: int = Field(CLUSTERS, ge=2)
    """Clusters of embeddings and states."""
    clustering: Clustering = "shared"
    """Embeddings and states clustered together, or each by itself as Voita et al. have it. The
    paper can give no value for concat because its states are wider than its words, which is an
    obstacle for a shared clustering alone."""
    occurrences: int = Field(1_000_000, ge=2)
    """Occurrences of words at most, the paper's "at most 1M". With fewer, shuffled pairs have more
    information: .4 to 1.3 nats with 200,000."""


QUICK = SMALL | {"words": 60, "clusters": 40, "occurrences": 1000}
HEADLINE = (
    "mi_mf",
    "mi_mf_shuffled",
    "mi_mf_corrected",
    "mi_rs",
    "mi_rs_shuffled",
    "mi_rs_corrected",
)


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Cluster words and states of every model, seed by seed."""
    rows: list[Measurement] = []
    for runs in train_corpora(config, lab, variants(config, _MODELS)):
        rows += _rows(config, runs.source, _informations(config, runs, lab))
    return rows


Informations = dict[tuple[ModelVariant, str], list[Information]]


def _informations(config: Config, runs: TutekUnits, lab: Lab) -> Informations:
    """Return the estimates by model and sample, one a seed."""
    batch = training_part(runs.source, 2 * config.occurrences)
    words = runs.source.input_words.words
    specials = [words.index(word) for word in SPECIALS if word in words]
    counts = word_counts(batch, len(words), specials)
    batch = batch.to(lab.device)
    found: Informations = {}
    for sample, draw_types in SAMPLES.items():
        types = draw_types(counts, config.words, 0)
        for seed in range(config.seeds):
            models = (loaded_model(units[seed], lab.device) for units in runs.units.values())
            limit = config.occurrences
            read = [occurrences(model, batch, types, limit=limit) for model in models]
            every = mutual_informations(
                [(one.embeddings, one.states) for one in read],
                clusters=config.clusters,
                clustering=config.clustering,
                seed=seed,
                jobs=lab.workers.jobs,
            )
            for variant, information in zip(runs.units, every, strict=True):
                found.setdefault((variant, sample), []).append(information)
    return found


def _rows(config: Config, source: Corpus, found: Informations) -> list[Measurement]:
    sheet = sheet_of(source, range(config.seeds), "table2")
    rows = []
    for (variant, sample), each in found.items():
        name, counted = _NAMES[sample], {"occurrences": each[0].n}
        values = {
            name: [one.value for one in each],
            f"{name}_shuffled": [one.shuffled for one in each],
            f"{name}_corrected": [one.value - one.shuffled for one in each],
            f"{name}_entropy": [one.entropy for one in each],
        }
        for label, numbers in values.items():
            rows.append(sheet.mean(label, numbers, variant.axes, found=counted, split="train"))
    for attention in config.attention:
        for sample, name in _NAMES.items():
            for pair in _ORDERINGS:
                both = [found[ModelVariant(model, attention), sample] for model in pair]
                values_of = [[one.value for one in seeds] for seeds in both]
                difference = paired_difference_interval(*values_of)
                axes = {"attention": attention, "larger": pair[0], "smaller": pair[1]}
                rows.append(sheet.row(f"{name}_difference", difference, axes, split="train"))
    return rows


_SLACK = 0.25


def _ordered(cell: Cell) -> Finding:
    """Check the order of the models for one sample of a corpus' words."""
    name = str(cell.given["name"])
    level = name.removesuffix("_difference")
    differences = [cell.one(name, larger=more, smaller=less) for more, less in _ORDERINGS]
    first, second, third = map(interval_of, differences)
    shown = {str(row.axes["model"]): row for row in cell.select(level, name=None)}
    return Finding(all_of([above(first), above(second), below(third, _SLACK)]), shown)


CLAIMS = {
    "tutek.information": Claim(
        Cells(
            tuple(f"{name}_difference" for name in _NAMES.values()),
            ("dataset", "name"),
            {"attention": "additive"},
        ),
        (_ordered,),
        Needs(seeds=5, sizes=SIZES, datasets=4),
        over=partial(share_of, share=3 / 4),
        deviation=deviations,
    )
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw both samples of every corpus, with the estimates for shuffled pairs."""
    columns = {
        "mi_mf": "information on frequent words, MI (nats)",
        "mi_rs": "information on drawn words, MI (nats)",
        "mi_mf_shuffled": "MI of shuffled pairs, frequent words (nats)",
        "mi_rs_shuffled": "MI of shuffled pairs, drawn words (nats)",
    }
    return dot_tables(result, "table2", columns, alike=list(columns), across=2)
