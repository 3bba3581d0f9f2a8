"""The units behind snell's tables on text: a reference run, and the runs it is compared with.

For every corpus there is a reference (seed 20), comparison runs of other seeds, as many runs under
uniform attention, and the proxy; tables 10 and 11, the optimal attention and the alignments use the
same ones, so nothing is trained twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from attnscope.claims.table import least
from attnscope.data.corpus import Corpus
from attnscope.data.known import definitions
from attnscope.data.text import open_text
from attnscope.data.vectors import find_vectors
from attnscope.errors import UsageError
from attnscope.models.attentions import Additive
from attnscope.models.base import ModelSpec
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.embedding import embeddings_of
from attnscope.models.encoders import Recurrent
from attnscope.models.intervention import Uniform
from attnscope.models.proxy import ProxySpec
from attnscope.models.seq2seq import TRANSLATOR
from attnscope.recipes.kit.corpora import is_classification
from attnscope.recipes.kit.lab import Lab
from attnscope.recipes.kit.settings import CorporaSettings, Names, Tokens, cut_by
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.saliency import Saliency
from attnscope.training.bleu import Bleu
from attnscope.training.optimizer import Adam
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Training, Unit, every, merged

CLASSIFICATION = ("sst", "imdb", "ag_news", "newsgroups", "amazon", "yelp", "sms")
# Multi30k in the code's direction and in the text's; Tatoeba stands in for IWSLT14 and for News.
TRANSLATION = ("multi30k-de-en", "multi30k-en-de", "tatoeba-de-en", "tatoeba-en-nl")

# The authors' seeds come first: 20, five comparison runs, and one under uniform attention.
REFERENCE, PROXY = 20, 0
COMPARISONS = (13, 14, 15, 16, 17, 18, 19, 21, 22, 23, 24)
UNIFORM = (12, 8, 9, 10, 11, 7, 6, 5, 4, 3, 2)
# The authors train the proxy of the corpora with longer texts more slowly.
_PROXY_RATES = {"imdb": 5e-5, "yelp": 5e-5, "amazon": 5e-5}
# The authors' epochs of translation; a corpus that stands in has those of the one it stands for.
_EPOCHS = {
    "multi30k-de-en": 20,
    "multi30k-en-de": 20,
    "tatoeba-en-nl": 40,
    "helpdocs-en-nl": 40,
    "bible-it-pt": 40,
}
_OTHER_EPOCHS = 30


class TextConfig(CorporaSettings):
    """Settings that all recipes on text share; the defaults are the paper's."""

    corpus: Names = Field(CLASSIFICATION + TRANSLATION, min_length=1)
    """Corpora, known ones by name and your own by folder."""
    tokens: Tokens = ""
    """How labelled texts are cut: empty as the corpus' definition says, which is by words; pieces,
    or pieces-2000 for as many, where words have no blanks between them."""
    seeds: int = Field(5, ge=1, le=len(COMPARISONS))
    """Comparison runs of a classifier, and as many under uniform attention. Five, because attention
    varies much from seed to seed."""
    translation_seeds: int = Field(1, ge=1, le=len(COMPARISONS))
    """Comparison runs of a translator, and as many under uniform attention; the paper has one."""

    embedding: int = Field(300, ge=1)
    """Embedding size of the classifier, the paper's."""
    hidden: int = Field(256, ge=1)
    """LSTM size of the classifier per direction, and the size of its attention's hidden layer."""
    vectors: str = ""
    """Word vectors to start from, such as glove_100d. Empty: random, as in the released code; the
    paper's text has GloVe in 300 dimensions, which is not available here."""
    listed: str = "glove_100d"
    """Word vectors whose words are known however rare, on the paper's corpora. The authors keep a
    word that occurs more than twice or is in their vectors' file. Empty: counts alone."""
    bucket: int = Field(1, ge=1)
    """Batches of labelled texts that are sorted by length together; 1 draws them at random, as the
    authors do. More is faster, because a batch takes as long as its longest text."""
    grid: int = Field(25, ge=0)
    """Evaluate a classifier every so many of its first 500 steps, next to the paper's steps, so
    that it shows whether probe or attention comes first; 0 leaves this out."""
    steps: int = Field(4000, ge=1)
    """Training steps of a classifier, the paper's."""
    batch_size: int = Field(32, ge=1)
    """Texts in a training batch of a classifier, the paper's."""

    pieces: int = Field(8000, ge=10)
    """Subwords of a translation corpus, both languages together; the paper's."""
    translation_hidden: int = Field(256, ge=1)
    """Size of embeddings and LSTM states of the translator, the paper's."""
    translation_steps: int | None = Field(None, ge=1)
    """Training steps of a translator; by default the authors' epochs: 20 of Multi30k, which are
    36,260 steps, 40 of News En-Nl, and 30 of others."""
    translation_batch: int = Field(16, ge=1)
    """Sentence pairs in a training batch of a translator."""

    examples: int = Field(4000, ge=2)
    """Examples of each split that are evaluated, at most; the paper's number."""
    max_length: int | None = Field(1000, ge=3)
    """Longest text that is used, in words with the two boundary marks; longer ones are left out and
    counted. The paper cuts nothing, but a batch takes as long as its longest text, and a few
    newsgroup messages have 11,000 words."""
    proxy_dimension: int = Field(256, ge=1)
    """Embedding size of the bag-of-words proxy, the paper's."""
    proxy_epochs: int = Field(60, ge=1)
    """Epochs of the proxy on labelled texts, the authors' number."""
    proxy_translation_epochs: int = Field(30, ge=1)
    """Epochs of the proxy on translations, with at most translation_steps steps."""


class LabelledConfig(TextConfig):
    """Settings of the tables that have no translation."""

    corpus: Names = Field(CLASSIFICATION, min_length=1)
    """Labelled corpora, known ones by name and your own by folder; the paper's table has no
    translation."""

    def demand_labels(self, recipe: str) -> None:
        """Raise an error for a corpus that has no labels, before anything is trained."""
        for name in self.corpus:
            if not is_classification(open_corpus(self, name)):
                raise UsageError(f"{recipe} is about classification; {name} has no labels.")


QUICK = {
    "corpus": "grammar-sentiment,grammar-translation",
    "seeds": 2,
    "embedding": 32,
    "hidden": 16,
    "steps": 150,
    "grid": 0,
    "translation_hidden": 32,
    "translation_steps": 300,
    "examples": 100,
    "proxy_dimension": 32,
    "proxy_epochs": 10,
    "proxy_translation_epochs": 10,
}
QUICK_LABELLED = QUICK | {"corpus": "grammar-sentiment"}
_SIZES = ("steps", "hidden", "embedding", "translation_hidden", "examples")
FULL_SIZE = least(TextConfig, *_SIZES) | {"translation_steps": 36_000}
"""The least sizes of a run that decides a claim."""


@dataclass(frozen=True)
class SnellUnits:
    """The trained units of one corpus."""

    source: Corpus
    reference: TrainedUnit
    comparisons: Sequence[TrainedUnit]
    uniforms: Sequence[TrainedUnit]
    proxy: TrainedUnit

    @property
    def references(self) -> list[TrainedUnit]:
        """All runs that attend: what is measured of the reference is measured of each."""
        return [self.reference, *self.comparisons]


def open_corpus(config: TextConfig, corpus: str) -> Corpus:
    """Return a corpus as these settings read it."""
    settings = {"max_length": config.max_length}
    labelled = {"vectors": _word_list(config, corpus), "bucket_size": config.bucket}
    return open_text(
        corpus,
        classification=settings | labelled | cut_by(config.tokens),
        translation=settings | {"pieces": config.pieces},
    )


def _word_list(config: TextConfig, corpus: str) -> str:
    """Return the vectors whose words are known: those that train, or on known corpora the list."""
    if config.vectors or not config.listed or config.tokens or str(corpus) not in definitions():
        return config.vectors
    try:
        find_vectors(config.listed)
    except UsageError as error:
        text = str(error).partition(";")[0]
        raise UsageError(f"{text}; listed= with nothing after it counts words alone.") from error
    return config.listed


def model_of(config: TextConfig, source: Corpus, readout: str = "relu") -> ModelSpec:
    """Return the paper's classifier or translator."""
    if is_classification(source):
        return ClassifierSpec(
            embedding=config.embedding,
            vectors=embeddings_of(config.vectors),
            encoder=Recurrent(hidden=config.hidden),
            attention=Additive(hidden=config.hidden),
        )
    size, joint = config.translation_hidden, source.input_words == source.output_words
    words = "shared" if joint else "separate"
    own = {"embedding": size, "hidden": size, "readout": readout, "embeddings": words}
    return TRANSLATOR.model_copy(update=own)


_GRID_UNTIL = 500


def translation_steps(config: TextConfig, source: Corpus) -> int:
    """Return the training steps of a translator: those given, or the authors' epochs."""
    if config.translation_steps is not None:
        return config.translation_steps
    epoch = math.ceil(len(source.training_examples) / config.translation_batch)
    return _EPOCHS.get(source.dataset, _OTHER_EPOCHS) * epoch


def training_of(config: TextConfig, source: Corpus, **settings: Any) -> Training:
    """Return the paper's way of training on a corpus, with its steps of evaluation (A.8)."""
    if is_classification(source):
        steps, size = config.steps, config.batch_size
        schedule = merged((10, 50, 100, 150, 200, 250), every(250, steps))
        if config.grid:
            schedule = merged(schedule, every(config.grid, min(steps, _GRID_UNTIL)))
    else:
        steps, size = translation_steps(config, source), config.translation_batch
        frequent = every(2000, min(steps, 20_000))
        schedule = merged((50, 100, 500, 1000, 1500), frequent, every(4000, steps))
    return Training(
        steps=steps,
        batch_size=size,
        evaluate_at=schedule,
        examples=config.examples,
        stored=config.examples,
        splits=("val", "train"),
        **settings,
    )


def units_of(config: TextConfig, source: Corpus) -> dict[str, Any]:
    """Return the units of a corpus, as `SnellUnits` has them."""
    model = model_of(config, source)
    metrics = () if is_classification(source) else (Bleu(),)
    count = config.seeds if is_classification(source) else config.translation_seeds
    both = (Attention(), LexicalProbe())

    def unit(seed: int, **settings: Any) -> Unit:
        training = training_of(config, source, **settings)
        return Unit(source=source, model=model, training=training, seed=seed)

    return {
        "reference": unit(REFERENCE, scores=both, final_scores=(Saliency(),), metrics=metrics),
        # The first comparison's probe is what the authors' code compares attention with.
        "comparisons": [
            unit(seed, scores=both if seed == COMPARISONS[0] else (Attention(),), metrics=metrics)
            for seed in COMPARISONS[:count]
        ],
        "uniforms": [
            unit(seed, scores=(LexicalProbe(),), attention={"cross": Uniform()})
            for seed in UNIFORM[:count]
        ],
        "proxy": proxy_unit(config, source),
    }


def proxy_unit(config: TextConfig, source: Corpus) -> Unit:
    """Return the proxy as the authors' code trains it: the epoch with the lowest loss counts."""
    batch = 64
    epoch = math.ceil(len(source.training_examples) / batch)
    if is_classification(source):
        steps, rate = config.proxy_epochs * epoch, _PROXY_RATES.get(source.dataset, 1.5e-4)
    else:
        # A corpus with many more sentences than Multi30k gets no more updates than the translator.
        steps = min(config.proxy_translation_epochs * epoch, translation_steps(config, source))
        rate = 1e-3
    return Unit(
        source=source,
        model=ProxySpec(embedding=config.proxy_dimension, initialisation="code"),
        training=Training(
            steps=steps,
            batch_size=batch,
            evaluate_at=every(epoch, steps),
            optimizer=Adam(lr=rate),
            examples=config.examples,
            stored=0,
            scores=(),
            best_by="loss",
        ),
        seed=PROXY,
    )


def train_corpora(config: TextConfig, lab: Lab) -> list[SnellUnits]:
    """Train, or reuse, the units of all corpora."""
    sources = [open_corpus(config, name) for name in config.corpus]
    trained = lab.train([units_of(config, source) for source in sources], "text")
    return [SnellUnits(source, **units) for source, units in zip(sources, trained, strict=True)]
