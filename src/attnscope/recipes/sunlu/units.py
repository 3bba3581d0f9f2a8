"""The units behind sunlu's tables and figures.

Table 2's grid has all that figures 2 to 5 look at, apart from further seeds and the penalty on
VᵀW; a unit is trained once, whichever recipe asks for it first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PositiveFloat

from attnscope.claims.decide import above
from attnscope.claims.pool import Pool
from attnscope.claims.table import Cells, Claim, Needs, Part, corpus_deviations, least
from attnscope.data.corpus import Corpus
from attnscope.data.token_groups import GroupRule
from attnscope.models.attentions import Additive, AttentionSpec, DotProduct, LearnedQuery
from attnscope.models.classifier import ClassifierSpec, Output
from attnscope.models.embedding import UniformEmbeddings
from attnscope.models.encoders import Affine, EncoderSpec, Recurrent, WordStates
from attnscope.recipes.kit.corpora import open_labelled
from attnscope.recipes.kit.lab import Lab
from attnscope.recipes.kit.settings import LabelledSettings, Names, Several
from attnscope.training.objective import Likelihood, Term
from attnscope.training.optimizer import Adagrad
from attnscope.training.penalties import DirectionProduct, SquaredNorm
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Training, Unit, every

SST, IMDB, NEWS_1, NEWS_2 = "sunlu-sst", "sunlu-imdb", "sunlu-20news-1", "sunlu-20news-2"
CORPORA = (SST, IMDB, NEWS_1, NEWS_2)
SCALES = (0.001, 1.0, 10.0, 20.0, 50.0, 100.0, 10_000.0)
Model = Literal["DP", "DP-L", "DP-A", "AD"]
MODELS: tuple[Model, ...] = ("DP", "DP-L", "DP-A", "AD")
PAPERS_RULE = GroupRule()
_ALL = 10**6  # examples of a split, at most: all of it
Scales = Annotated[
    tuple[PositiveFloat, ...],
    Several,
    AfterValidator(lambda scales: tuple(sorted(set(scales)))),
]
Models = Annotated[tuple[Model, ...], Several]


class SunluConfig(LabelledSettings):
    """Settings that all recipes on text share; the defaults are the paper's."""

    corpus: Names = Field(CORPORA, min_length=1)
    """Labelled corpora, known ones by name and your own by folder."""
    seeds: int = Field(10, ge=1)
    """Runs of each model; the paper has one, and intervals over three are wide."""

    embedding: int = Field(100, ge=1)
    """Embedding size d, the paper's."""
    hidden: int = Field(100, ge=1)
    """Size of the affine map's output and of additive attention's hidden layer."""
    lstm_hidden: int = Field(50, ge=1)
    """LSTM size per direction; the paper does not give it. With 50 the states are as wide as the
    words, so that λ = 10 is √d for every model."""
    dropout: float = Field(0.5, ge=0, lt=1)
    """Dropout of words and of the context."""
    l2: float = Field(5e-4, ge=0)
    """L2 penalty of the LSTM, the affine map or the hidden layer; the paper does not give it. The
    authors' settings have a weight decay of .001, which .0005·Σθ² equals."""

    epochs: int = Field(40, ge=1)
    """Epochs of training."""
    batch_size: int = Field(100, ge=1)
    """Texts in a training batch."""
    bucket: int = Field(20, ge=1)
    """Batches that are sorted by length together. The authors' are not sorted; newsgroup messages
    differ in length a hundredfold, and a batch takes as long as its longest text."""
    max_length: int | None = Field(None, ge=3)
    """Longest text that is used, in words with the two boundary marks; longer ones are left out and
    counted. The paper cuts nothing, though a few messages have more than 10,000 words."""
    spread: float = Field(0.1, gt=0)
    """Embeddings are drawn between -spread and spread; the paper's figure 1 has U(-1, 1)."""

    group_polar: float = Field(PAPERS_RULE.polar, ge=-1, lt=1)
    """Words of a label have an association γ with it above this (Eq. 28); the paper's."""
    group_minimum: int = Field(PAPERS_RULE.minimum, ge=0)
    """Words of a label have more occurrences in its texts than this; the paper's."""
    group_neutral: float = Field(PAPERS_RULE.neutral, gt=0)
    """Neutral words differ between labels by a share of their occurrences below this (footnote 9);
    with many labels no word may be that even, and a larger share is needed."""
    group_difference: int = Field(PAPERS_RULE.difference, ge=1)
    """Neutral words differ between labels by fewer occurrences than this (footnote 9)."""

    @property
    def rule(self) -> GroupRule:
        """The rule that groups words."""
        return GroupRule(
            polar=self.group_polar,
            minimum=self.group_minimum,
            neutral=self.group_neutral,
            difference=self.group_difference,
        )


# Sizes of runs that decide a claim, on text and on synthetic data.
SIZES = least(SunluConfig, "embedding", "hidden", "lstm_hidden", "epochs")
SYNTHETIC_SIZES: dict[str, float] = {"embedding": 100, "epochs": 500, "texts": 6000}


def deviations(pool: Pool, datasets: Sequence[str]) -> str:
    """Return how corpora and settings differ from the paper's."""
    longest = pool.config().get("max_length", 1000)  # of results before it was a setting
    return corpus_deviations(
        datasets,
        "L2 as a weight decay of .001 and 50 LSTM units a direction, neither of which the paper "
        "gives; batches of like length",
        "" if longest is None else f"texts of more than {longest} tokens left out",
    )


# eᵀe' > 0 within a polarity and < 0 across (§4), which text and synthetic data decide together.
DOT_PRODUCTS = Claim(
    Cells("dot_sign", given={"model": "DP", "lambda": 10.0}),
    (Part("", "dot_sign", above, 0.5, each="pair"),),
    Needs(3, {"sunlu/scores": SIZES, "sunlu/synthetic": SYNTHETIC_SIZES}, datasets=2),
    deviation=lambda pool, datasets: corpus_deviations(datasets),
)


@dataclass(frozen=True)
class Variant:
    """A cell of the grid: which model, at which λ, with which penalty on |VᵀW|."""

    model: str
    scale: float
    penalty: float = 0.0

    @property
    def axes(self) -> dict[str, str | int | float]:
        """The axes of its measurements."""
        return {"model": self.model, "lambda": self.scale, "penalty": self.penalty}


def open_corpus(config: SunluConfig, corpus: str) -> Corpus:
    """Return a labelled corpus as the authors read one: every word known, no boundaries."""
    return open_labelled(
        corpus,
        "sunlu",
        min_count=1,
        vocabulary="all",
        edges="bare",
        max_length=config.max_length,
        bucket_size=config.bucket,
        **config.cut,
    )


def model_of(config: SunluConfig, variant: Variant) -> ClassifierSpec:
    """Return one of the paper's four models (details of the authors' code in its settings)."""
    query, hidden = LearnedQuery(initial="normal"), config.hidden
    attention: AttentionSpec = DotProduct(scale=variant.scale, query=query)
    if variant.model == "AD":
        attention = Additive(
            hidden=hidden, activation="tanh", output_bias="off", scale=variant.scale, query=query
        )
    encoders: Mapping[str, EncoderSpec] = {
        "DP-A": Affine(hidden=hidden),
        "DP-L": Recurrent(hidden=config.lstm_hidden, initial="orthogonal"),
    }
    return ClassifierSpec(
        embedding=config.embedding,
        vectors=UniformEmbeddings(spread=config.spread),
        encoder=encoders.get(variant.model, WordStates()),
        attention=attention,
        output=Output(bias="off"),
        dropout=config.dropout,
    )


# Parameters that L2 is on, by their names; DP has none.
_PENALISED = {"DP-A": "encoder", "DP-L": "encoder", "AD": "attention.hidden"}


def objective_of(config: SunluConfig, variant: Variant) -> tuple[Term, ...]:
    """Return the likelihood, and L2 and the penalty where they apply."""
    terms: list[Term] = [Likelihood()]
    if variant.model in _PENALISED and config.l2:
        terms.append(SquaredNorm(weight=config.l2, parts=(_PENALISED[variant.model],)))
    if variant.penalty:
        terms.append(DirectionProduct(weight=variant.penalty))
    return tuple(terms)


def unit_of(config: SunluConfig, source: Corpus, variant: Variant, seed: int) -> Unit:
    """Return a cell's unit: evaluated after every epoch, the best epoch's weights kept."""
    epoch = source.epoch(config.batch_size)
    return Unit(
        source=source,
        model=model_of(config, variant),
        training=Training(
            steps=config.epochs * epoch,
            batch_size=config.batch_size,
            evaluate_at=every(epoch, config.epochs * epoch),
            optimizer=Adagrad(),
            objective=objective_of(config, variant),
            examples=_ALL,
            stored=0,
            scores=(),
        ),
        seed=seed,
    )


Plan = Mapping[Variant, int]
"""Cells, and how many seeds each has."""


def planned(config: SunluConfig, source: Corpus, plan: Plan) -> dict[Variant, list[Unit]]:
    """Return the units of a plan on one corpus, by cell."""
    return {
        cell: [unit_of(config, source, cell, seed) for seed in range(seeds)]
        for cell, seeds in plan.items()
    }


@dataclass(frozen=True)
class SunluUnits:
    """The trained units of one corpus, by cell."""

    source: Corpus
    cells: Mapping[Variant, Sequence[TrainedUnit]]


def train(config: SunluConfig, plan: Plan, lab: Lab) -> list[SunluUnits]:
    """Train, or reuse, a plan's units on every corpus."""
    sources = [open_corpus(config, name) for name in config.corpus]
    trained = lab.train([planned(config, source, plan) for source in sources], "classifiers")
    return [SunluUnits(source, cells) for source, cells in zip(sources, trained, strict=True)]
