"""The units behind all of tutek's tables and figures, trained once and shared.

For every corpus and attention there are the base model, concat, residual, tying and the one with
masked words, five seeds each. δ and η are chosen on seed 0 by validation F1 under the model's own
attention; the fragility of a model has no part in the choice. What chooses is never measured: where
a corpus has no test part, a quarter of its validation part chooses, and the rest is measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from attnscope.analysis.choice import Grid, best_weight, read_grid
from attnscope.claims.pool import Pool
from attnscope.claims.table import corpus_deviations, least
from attnscope.data.corpus import Corpus
from attnscope.data.jain_wallace import jain_wallace
from attnscope.data.reading import parts
from attnscope.models.attentions import (
    Additive,
    AttentionSpec,
    DotProduct,
    InstanceQuery,
    LearnedQuery,
)
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.embedding import embeddings_of
from attnscope.models.encoders import Concat, EncoderSpec, Recurrent, Residual
from attnscope.recipes.kit.corpora import open_labelled
from attnscope.recipes.kit.lab import Lab
from attnscope.recipes.kit.settings import EachOnce, LabelledSettings, Names, Several
from attnscope.training.masked_lm import MaskedWords
from attnscope.training.objective import Likelihood, Term
from attnscope.training.optimizer import ClippedAdam
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.tying import Tying
from attnscope.training.unit import Training, Unit, every

# Whole texts: the paper's mean lengths are theirs, not those under Jain and Wallace's limits.
CORPORA = ("tutek-sst", "tutek-imdb-uncut", "tutek-ag-news", "tutek-20news-uncut")
# The settings that list the weights which some models choose from.
GRIDS = {"tying": "deltas", "mlm": "etas"}
_EMBEDDINGS = {"frozen": "frozen in every model", "trained": "trained but for masked words"}
_WRAPPED = {"concat": Concat, "residual": Residual}
CHOOSING_SEED = 0
# Validation examples that choose, at most: an evaluation must not take longer than its steps.
_CHOOSING = 2000
_EVALUATIONS = 8  # of each unit, as many as Jain and Wallace's epochs; the best one counts

Weights = Annotated[tuple[Annotated[float, Field(gt=0)], ...], Several, EachOnce]
Attentions = Annotated[tuple[Literal["additive", "dot"], ...], Several, EachOnce]


class TutekConfig(LabelledSettings):
    """Settings that all of tutek's recipes share; the defaults are the paper's unless they say."""

    corpus: Names = Field(CORPORA, min_length=1)
    """Labelled corpora, known ones by name and your own by folder; tutek-imdb and tutek-20news have
    Jain and Wallace's limits of 400 and 500 words. The paper's MIMIC may not be shared."""
    vocabulary: Literal["known", "jain-wallace"] = "known"
    """Words of the paper's corpora: those that the vectors know or that occur three times; or Jain
    and Wallace's tokens and vocabulary, by the number of texts that have a word. Table 5 prints
    neither's sizes."""
    attention: Attentions = Field(("additive", "dot"), min_length=1)
    """Attentions to train: additive, dot or both."""
    seeds: int = Field(5, ge=1)
    """Runs of each model; the paper has "averages over five runs"."""

    hidden: int = Field(150, ge=1)
    """LSTM size per direction, and the size of additive attention's layer; states and embeddings
    are twice as wide, because masked words, tying and residual models need them alike."""
    vectors: str = "glove_100d"
    """Word vectors. The paper's have 300 numbers; these have 100, and one fixed orthonormal map
    makes them as wide as the states. Empty: random."""
    vector_length: float | None = Field(None, gt=0)
    """Mean length that the vectors are brought to; none leaves them as they are. GloVe's here have
    4.6, spaCy's 44."""
    embeddings: Literal["frozen", "trained"] = "frozen"
    """Word vectors in training: frozen in every model, because tying could otherwise move the words
    instead of the states; or trained in all but the masked words' model, the only one of which the
    paper says that they are frozen. Jain and Wallace train them."""
    concat_attention: Literal["half-state", "as-base"] = "half-state"
    """Width of additive attention in the concat model: half of its state, which is twice the base
    model's, as Jain and Wallace and the authors' later code have it; or as in the base model."""
    dot: Literal["scaled", "unit-length"] = "scaled"
    """Dot attention: scaled is Eq. 11 with the query of appendix C; unit-length is the authors'
    later code, keys of length 1 and no scale."""
    tying: Literal["squared", "norm"] = "squared"
    """Tying penalty: squared is Eq. 4; the authors' later code has the norm itself."""
    masked_words: Literal["sum", "mean"] = "sum"
    """Reduction of the masked words' loss; sum as in footnote 5, where more masked words weigh
    more, so that η must fall with length."""
    deltas: Weights = Field((1, 10, 20, 30), min_length=1)
    """Weights δ of tying that are tried (§3.1; table 4 leaves out the 1)."""
    etas: Weights = Field((0.1, 0.3, 1, 3, 5), min_length=1)
    """Weights η of masked words that are tried (table 4)."""

    lr: float = Field(1e-3, gt=0)
    """Learning rate of Adam."""
    batch_size: int = Field(32, ge=1)
    """Texts in a training batch."""
    epochs: int = Field(8, ge=1)
    """Epochs of training, Jain and Wallace's; the paper gives none."""
    most_steps: int = Field(2000, ge=1)
    """Training steps at most, a deviation: eight epochs are 1,736 steps of SST, and over 4,000 of
    IMDB and AG News. The authors' later code has five epochs."""
    edges: Literal["bare", "marked"] = "bare"
    """Boundary marks around a text. Jain and Wallace's LSTM reads such marks, and their attention
    leaves them out; bare texts have a word at every position."""
    longest: int = Field(4000, ge=3)
    """Longest text that is used, in words; longer ones are left out and counted. Jain and Wallace's
    bound for their longest texts."""

    @property
    def parts(self) -> list[str]:
        """Attention that a recipe does not have by default has a folder of its own."""
        return super().parts + self._further

    @property
    def in_part(self) -> tuple[str, ...]:
        """One attention that is not among the default's is a part of its own."""
        return (*super().in_part, *["attention"] * (self._further == [*self.attention]))

    @property
    def _further(self) -> list[str]:
        default = type(self).model_fields["attention"].default
        return [name for name in self.attention if name not in default]


# Settings of --quick. The package's own corpus needs no download, and has no words that vectors
# would know; a higher rate shows in seconds what the paper's shows in minutes.
SMALL: dict[str, Any] = {
    "corpus": "grammar-sentiment",
    "vectors": "",
    "attention": "additive",
    "seeds": 2,
    "hidden": 16,
    "lr": 0.01,
    "most_steps": 120,
    "deltas": [0.1, 1],
    "etas": [0.1, 1],
}
# Sizes of a run that decides a claim.
SIZES = least(TutekConfig, "hidden", "epochs", "most_steps")


def deviations(pool: Pool, datasets: Sequence[str]) -> str:
    """Return how corpora, embeddings and training of a run differ from the paper's."""
    config = pool.config()
    vectors = config.get("vectors") or "random"
    return corpus_deviations(
        sorted(datasets),
        f"embeddings: {vectors}, {_EMBEDDINGS[config.get('embeddings', 'frozen')]}",
        f"at most {config.get('most_steps', SIZES['most_steps'])} steps, the best of eight "
        "validation losses",
    )


@dataclass(frozen=True)
class ModelVariant:
    """A model of the paper: a column of table 1, an attention, layers and the initial query."""

    model: str
    attention: str
    layers: int = 1
    initial: Literal["default", "normal"] = "normal"  # of dot attention's query (appendix C)

    @property
    def axes(self) -> dict[str, str]:
        """The axes of its cell in the tables."""
        return {"attention": self.attention, "model": self.model}


def variants(config: TutekConfig, models: Sequence[str]) -> list[ModelVariant]:
    """Return some columns of the tables under every attention that is asked for."""
    return [ModelVariant(name, attention) for attention in config.attention for name in models]


def model_of(config: TutekConfig, variant: ModelVariant) -> ClassifierSpec:
    """Return a model of the paper."""
    encoder: EncoderSpec = Recurrent(hidden=config.hidden, layers=variant.layers)
    if variant.model in _WRAPPED:
        encoder = _WRAPPED[variant.model](encoder=encoder)
    return ClassifierSpec(
        embedding=2 * config.hidden,
        vectors=embeddings_of(config.vectors, config.vector_length),
        encoder=encoder,
        attention=_attention_of(config, variant),
    )


def _attention_of(config: TutekConfig, variant: ModelVariant) -> AttentionSpec:
    own = InstanceQuery() if variant.model == "instance" else None
    if variant.attention == "additive":
        query = own or LearnedQuery()
        wide = variant.model == "concat" and config.concat_attention == "half-state"
        hidden = config.hidden * (2 if wide else 1)
        return Additive(hidden=hidden, activation="tanh", output_bias="off", query=query)
    query = own or LearnedQuery(initial=variant.initial)
    if config.dot == "unit-length":
        return DotProduct(scale=1.0, keys="unit-length", query=query)
    return DotProduct(scale="root", query=query)


def _objective_of(
    config: TutekConfig, variant: ModelVariant, weight: float | None
) -> tuple[Term, ...]:
    if variant.model not in GRIDS:
        return (Likelihood(),)
    assert weight is not None
    if variant.model == "tying":
        return Likelihood(), Tying(weight=weight, power=2 if config.tying == "squared" else 1)
    return Likelihood(), MaskedWords(weight=weight, reduction=config.masked_words)


def open_corpus(config: TutekConfig, corpus: str) -> Corpus:
    """Return a labelled corpus as these settings read it."""
    reading: dict[str, Any] = {"vectors": config.vectors, **config.cut}
    if config.vocabulary == "jain-wallace":
        reading = jain_wallace(corpus)
    bounds = {"max_length": config.longest, "edges": config.edges}
    return open_labelled(corpus, "tutek's recipes", **bounds, **reading)


def training_of(config: TutekConfig, source: Corpus, objective: tuple[Term, ...]) -> Training:
    """Return the way of training that all models share; the best validation loss counts."""
    steps = min(config.epochs * source.epoch(config.batch_size), config.most_steps)
    frozen = config.embeddings == "frozen" or any(isinstance(t, MaskedWords) for t in objective)
    return Training(
        steps=steps,
        batch_size=config.batch_size,
        evaluate_at=every(max(1, round(steps / _EVALUATIONS)), steps),
        optimizer=ClippedAdam(lr=config.lr),
        objective=objective,
        frozen=("embedding",) if frozen else (),
        examples=choosing_count(source),
        stored=0,
        scores=(),
        best_by="loss",
    )


def unit_of(
    config: TutekConfig,
    source: Corpus,
    variant: ModelVariant,
    seed: int,
    weight: float | None = None,
) -> Unit:
    """Return a unit; ``weight`` is δ or η for the models that have one."""
    training = training_of(config, source, _objective_of(config, variant, weight))
    return Unit(source=source, model=model_of(config, variant), training=training, seed=seed)


def units_of(
    config: TutekConfig, source: Corpus, variant: ModelVariant, weight: float | None = None
) -> list[Unit]:
    """Return the units of all seeds."""
    return [unit_of(config, source, variant, seed, weight) for seed in range(config.seeds)]


def choosing_count(source: Corpus) -> int:
    """Return how many validation examples choose."""
    count = len(source.validation_examples)
    return min(count, _CHOOSING) if "test" in parts(source) else max(1, count // 4)


@dataclass(frozen=True)
class TutekUnits:
    """The trained units of one corpus: those of each model by seed, and the grids of δ and η."""

    source: Corpus
    units: Mapping[ModelVariant, Sequence[TrainedUnit]]
    grids: Mapping[ModelVariant, Grid] = field(default_factory=dict)

    def weight(self, variant: ModelVariant) -> float | None:
        """Return the weight that was chosen for a model, None for one without a weight."""
        grid = self.grids.get(variant)
        return best_weight(grid) if grid else None


def train_corpora(
    config: TutekConfig, lab: Lab, models: Sequence[ModelVariant]
) -> list[TutekUnits]:
    """Train, or reuse, some models on all corpora; δ and η are chosen on the way."""
    sources = [open_corpus(config, name) for name in config.corpus]
    # Before anything is chosen: models without a weight, and the grids of the others.
    first = []
    for source in sources:
        plain = {key: units_of(config, source, key) for key in models if key.model not in GRIDS}
        tried = {key: _grid(config, source, key) for key in models if key.model in GRIDS}
        first.append((plain, tried))
    runs = []
    for source, (units, tried) in zip(sources, lab.train(first, "tutek"), strict=True):
        grids = {key: read_grid(grid, lab.device) for key, grid in tried.items()}
        runs.append(TutekUnits(source, units, grids))
    chosen = [
        {key: units_of(config, run.source, key, run.weight(key)) for key in run.grids}
        for run in runs
    ]
    complete = []
    for run, rest in zip(runs, lab.train(chosen, "tutek"), strict=True):
        trained = {**run.units, **rest}
        complete.append(replace(run, units={key: trained[key] for key in models}))
    return complete


def _grid(config: TutekConfig, source: Corpus, variant: ModelVariant) -> dict[float, Unit]:
    """Return the units that choose a model's weight."""
    weights = getattr(config, GRIDS[variant.model])
    return {weight: unit_of(config, source, variant, CHOOSING_SEED, weight) for weight in weights}
