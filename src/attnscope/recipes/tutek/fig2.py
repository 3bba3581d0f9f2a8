"""Figures 2–7: the label that each word of a sentence alone would have the models predict (Eq. 9).

``sentence="…"`` draws any sentence; without one, four of the held-out texts are chosen by rule. The
share of words that carry the decision by themselves is measured over all held-out texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
from pydantic import Field
from scipy import stats

from attnscope.analysis.logit_identity import logit_differences
from attnscope.analysis.token_probabilities import (
    SentenceProbabilities,
    TokenProbabilities,
    sentence_probabilities,
)
from attnscope.claims.decide import above, verdict
from attnscope.claims.table import Cell, Cells, Claim, Finding, Needs, Part
from attnscope.data.batch import Batch, Example, collate
from attnscope.data.corpus import Corpus
from attnscope.errors import UsageError
from attnscope.figures.charts import beside
from attnscope.figures.palette import CLASSIFIERS
from attnscope.figures.word_curves import word_curves
from attnscope.models.attentions import Additive, AttentionSpec, DotProduct, LearnedQuery
from attnscope.models.classifier import ClassifierSpec, Output
from attnscope.models.embedding import UniformEmbeddings
from attnscope.models.encoders import Affine, EncoderSpec, Recurrent, WordStates
from attnscope.recipes.kit import plots
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.settings import Names
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.recipe import Charts
from attnscope.recipes.tutek.evaluation import LABELS, SIGNS, held_out, read_tokens, sheet_of
from attnscope.recipes.tutek.units import (
    SIZES,
    SMALL,
    Attentions,
    ModelVariant,
    TutekConfig,
    TutekUnits,
    deviations,
    model_of,
    open_corpus,
    train_corpora,
    variants,
)
from attnscope.runs.result import Matrix, Measurement, Record, Result
from attnscope.training.loaded import loaded_model

# The words of a sentence for a figure: fewer show nothing, more do not fit.
_READABLE = (6, 30)
# Of the three ways to a logit: the largest difference in float64, and the texts it is taken over.
EXACT, _EXAMPLES = 1e-12, 64


class Config(TutekConfig):
    """Settings of the figures."""

    corpus: Names = Field(("tutek-sst",), min_length=1)
    """Labelled corpora, known ones by name and your own by folder; the paper's figures are of SST.
    """
    attention: Attentions = Field(("additive",), min_length=1, max_length=1)
    """Attention to train; the paper's figures have additive."""
    sentence: str = ""
    """A sentence of yours, drawn in place of held-out ones."""

    @property
    def parts(self) -> list[str]:
        """A user's sentence has a folder next to the figures'."""
        return super().parts + ["sentence"] * bool(self.sentence)


QUICK = SMALL
HEADLINE = ("token_share", "token_share_difference", "leakage_spearman")

Probabilities = Mapping[str, Sequence[TokenProbabilities]]


def measure(config: Config, lab: Lab) -> list[Record]:
    """Read base, tying and masked-word models word by word."""
    if config.sentence:
        for name in config.corpus:  # One that cannot be read is refused before training.
            _given(open_corpus(config, name), config.sentence)
    rows: list[Record] = []
    for runs in train_corpora(config, lab, variants(config, ("base", "tying", "mlm"))):
        found = {v.model: read_tokens(units, lab.device) for v, units in runs.units.items()}
        rows += _leakage_rows(config, runs, found)
        rows += _sentences(config, runs, found, lab.device)
        rows += identity_rows(config, runs.source)
    return rows


def _leakage_rows(config: Config, runs: TutekUnits, found: Probabilities) -> list[Measurement]:
    sheet = sheet_of(runs.source, range(config.seeds))
    shares = {
        name: np.stack([one.token_share.numpy() for one in each]) for name, each in found.items()
    }
    rows = [sheet.crossed("token_share", shares[v.model], v.axes) for v in runs.units]
    for variant in runs.units:
        if variant.model == "base":
            continue
        less = shares["base"] - shares[variant.model]
        rows.append(sheet.crossed("token_share_difference", less, variant.axes))
        pairs = zip(found["base"], found[variant.model], strict=True)
        trends = [_leakage_trend(base, own) for base, own in pairs]
        rows.append(sheet.mean("leakage_spearman", trends, variant.axes))
    return rows


def _leakage_trend(base: TokenProbabilities, own: TokenProbabilities) -> float:
    """Return whether words carry the less of a decision, the surer the base model is of it."""
    less = (base.token_mean - own.token_mean).numpy()
    return float(stats.spearmanr(base.confidence.numpy(), less).statistic)


def _sentences(config: Config, runs: TutekUnits, found: Probabilities, device: str) -> list[Record]:
    """Return the numbers of the figures: each model's confidence, and its words'."""
    source, sheet = runs.source, sheet_of(runs.source, (0,))
    if config.sentence:
        chosen = {"given": _given(source, config.sentence)}
    else:
        chosen = chosen_sentences(source, found)
    rows: list[Record] = []
    for variant, units in runs.units.items():
        model = loaded_model(units[0], device)
        for title, batch in chosen.items():
            here = batch.to(device)
            read = sentence_probabilities(model, here, source.input_words, source.output_words)[0]
            rows += _one_sentence(sheet, {**variant.axes, "sentence": title}, read)
    return rows


def _given(source: Corpus, sentence: str) -> Batch:
    ids = source.encode(sentence)
    if len(ids) == len(source.encode("")):
        raise UsageError(f"sentence={sentence!r} has no word that {source.dataset} would read.")
    return collate([Example(0, ids, [0], [0])])


def _one_sentence(
    sheet: Sheet, axes: Mapping[str, str], read: SentenceProbabilities
) -> list[Record]:
    rows: list[Record] = [
        sheet.point("confidence", read.confidence, axes, found={"label": read.label})
    ]
    words = {"word_probability": read.probabilities, "word_attention": read.attention}
    for name, values in words.items():
        rows.append(
            sheet.matrix(
                name,
                [values],
                axes,
                rows=[read.label],
                columns=read.words,
                row_axis="label",
                column_axis="word",
            )
        )
    return rows


def chosen_sentences(source: Corpus, found: Probabilities) -> dict[str, Batch]:
    """Return held-out sentences for the figures, as the paper's are described.

    The one that the base model is surest of among those it has right (figures 2, 4), the longest
    readable one (5), the one it is least sure of (6), and the one where the tied model is surer of
    the right label by most (7); seed 0, and of equals the first.
    """
    batch = held_out(source).batch
    base, tied = found["base"][0], found["tying"][0]
    lengths = batch.input_lengths.numpy()
    readable = (lengths >= _READABLE[0]) & (lengths <= _READABLE[1])
    right = (base.correct & tied.correct).numpy()
    able = readable & right if (readable & right).any() else np.ones_like(right)
    confidence, other = base.confidence.numpy(), tied.confidence.numpy()
    wanted = {
        "sure": confidence,
        "long": lengths.astype(float),
        "unsure": -confidence,
        "regularised surer": other - confidence,
    }
    chosen = {}
    for title, value in wanted.items():
        place = int(np.where(able, value, -np.inf).argmax())
        chosen[title] = batch.rows(slice(place, place + 1)).trimmed()
    return chosen


def classifiers(config: TutekConfig) -> dict[str, ClassifierSpec]:
    """Return all classifiers of the three papers, by name."""
    width = config.hidden
    specs = {
        f"tutek {name}, {attention}": model_of(config, ModelVariant(name, attention))
        for name in LABELS
        for attention in SIGNS
    }
    specs["snell"] = ClassifierSpec(embedding=2 * width, encoder=Recurrent(hidden=width))
    normal = LearnedQuery(initial="normal")
    dot = DotProduct(scale=10.0, query=normal)
    additive = Additive(hidden=width, activation="tanh", output_bias="off", query=normal)
    sunlu: dict[str, tuple[EncoderSpec, AttentionSpec]] = {
        "DP": (WordStates(), dot),
        "DP-A": (Affine(hidden=width), dot),
        "DP-L": (Recurrent(hidden=width, initial="orthogonal"), dot),
        "AD": (WordStates(), additive),
    }
    for name, (encoder, attention) in sunlu.items():
        specs[f"sunlu {name}"] = ClassifierSpec(
            embedding=2 * width,
            vectors=UniformEmbeddings(),
            encoder=encoder,
            attention=attention,
            output=Output(bias="off"),
        )
    return specs


def identity_rows(config: TutekConfig, source: Corpus) -> list[Measurement]:
    """Return how far three ways to a logit are apart, on classifiers that are not trained."""
    sheet, batch = sheet_of(source, (0,)), held_out(source).batch.spread(_EXAMPLES)
    rows = []
    for name, spec in classifiers(config).items():
        for way, off in logit_differences(spec.build(source, 0).double(), batch).items():
            rows.append(sheet.point("identity", off, {"classifier": name, "way": way}, _EXAMPLES))
    return rows


def _agrees(cell: Cell) -> Finding:
    """Check that one way to a logit agrees with the model's own on every classifier."""
    rows = cell.select("identity")
    largest = max(math.inf if row.value is None else row.value for row in rows)
    names = sorted({str(row.axes["classifier"]) for row in rows})
    evidence = {"largest relative difference": largest, "classifiers": ", ".join(names)}
    return Finding(verdict(largest <= EXACT, True), evidence)


CLAIMS = {
    "tutek.leakage": Claim(
        Cells("token_share_difference", ("dataset", "attention"), {"model": "tying"}),
        (
            Part("share, base less tying", "token_share_difference", above),
            Part("Spearman", "leakage_spearman", above),
            Part("share of words,", "token_share", given={"model": None}, each="model"),
        ),
        Needs(seeds=5, sizes=SIZES),
        deviation=deviations,
    ),
    "tutek.identity": Claim(Cells("identity", ("way",)), (_agrees,)),
}

_TITLES = {
    "sure": "a sentence that the base model is sure of",
    "long": "a long sentence",
    "unsure": "a sentence that the base model is not sure of",
    "regularised surer": "a sentence that the tied model is surer of",
    "given": "the sentence given",
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw a corpus' sentences one below the other; dotted lines are the models' probabilities."""

    def sentences(dataset: str) -> alt.ConcatChart:
        titles = plots.axis_values(result.select("confidence", dataset), "sentence")
        panels = [_sentence(result, dataset, title) for title in titles]
        return beside(*panels, columns=1, title=dataset)

    return plots.per_dataset(result, "confidence", sentences, "fig2")


def _sentence(result: Result, dataset: str, title: str) -> alt.LayerChart:
    own = result.select("confidence", dataset, sentence=title)
    words = result.select_pictures(Matrix, "word_probability", dataset, sentence=title)
    labels = {str(row.found["label"]) for row in own}
    names = {}
    for row in own:
        # The predicted label is named where the models differ in it.
        differs = f" ({row.found['label']})" if len(labels) > 1 else ""
        names[row.axes["model"]] = LABELS[str(row.axes["model"])] + differs
    return word_curves(
        [str(word) for word in words[0].columns],
        {names[matrix.axes["model"]]: matrix.values[0] for matrix in words},
        {names[row.axes["model"]]: row.number for row in own},
        {name: CLASSIFIERS[str(model)] for model, name in names.items()},
        y_title="probability of the predicted label",
        title=_TITLES[title],
        subtitle="dotted: the whole model",
    )
