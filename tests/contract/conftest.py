"""Every model of the package in small, on examples of unequal lengths.

Models are listed by the kind under which they are registered, so that a new kind without an entry
here is noticed (`test_every_kind_of_model_is_under_contract`).
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

import pytest
import torch

from attnscope.data.batch import Example
from attnscope.data.source import Source
from attnscope.data.tasks import KeywordTask, SampledCopy
from attnscope.data.vocabulary import Vocabulary
from attnscope.models.architectures import AED, AO, DotAttention, LearnedAttention
from attnscope.models.attentions import (
    Additive,
    AttentionSpec,
    DotProduct,
    InstanceQuery,
    LearnedQuery,
)
from attnscope.models.base import ModelSpec
from attnscope.models.classifier import ClassifierSpec, Output
from attnscope.models.embedding import UniformEmbeddings
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.models.encoders import (
    Affine,
    Concat,
    EncoderSpec,
    Recurrent,
    Residual,
    WordStates,
)
from attnscope.models.proxy import ProxySpec
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.models.transformer import TransformerSpec
from attnscope.training.registry import import_kinds

import_kinds()


class ThreeLabels(KeywordTask):
    """A source with more labels than two; its examples are never drawn."""

    kind: Literal["three labels of a test"] = "three labels of a test"

    @property
    def output_words(self) -> Vocabulary:
        """Three labels."""
        return Vocabulary(("one", "two", "three"))


COPYING = SampledCopy(length=4, vocabulary=7)
CLASSIFYING, THREE_LABELS = KeywordTask(types=9), ThreeLabels(types=9)


@dataclass(frozen=True)
class Case:
    """A model and a source whose types it knows; the examples are not the source's own."""

    name: str
    spec: ModelSpec
    source: Source

    def build(self, dtype: torch.dtype) -> torch.nn.Module:
        return self.spec.build(self.source, seed=0).to(dtype)

    @property
    def examples(self) -> list[Example]:
        return _examples(self.source)


def _examples(source: Source) -> list[Example]:
    """Inputs of 1 to 9 distinct words with targets of 1 to 6 words, or a label.

    Distinct, because a proxy's probes of a repeated word are equal up to rounding alone.
    """
    random = Random(5)
    lengths = [(4, 3), (9, 1), (1, 4), (6, 6), (2, 2), (7, 5)]
    examples = []
    for number, (length, words) in enumerate(lengths):
        out = 1 if source.boundaries is None else words
        inputs = random.sample(range(len(source.input_words)), k=length)
        targets = random.choices(range(len(source.output_words)), k=out)
        gold = random.choices(range(-1, length), k=out)
        examples.append(Example(11 * number + 3, inputs, [0, *targets[:-1]], targets, gold))
    return examples


# Every pair of values of two columns stands in some row, as far as it is valid: dropout acts
# between layers.
_SEQ2SEQ = """
    lstm  1  summed    shared    1  1  0.0  tanh
    lstm  1  summed    separate  2  2  0.5  relu
    lstm  3  averaged  shared    1  2  0.0  linear
    lstm  3  averaged  separate  2  1  0.5  tanh
    gru   1  averaged  shared    2  1  0.5  relu
    gru   1  averaged  separate  1  2  0.0  linear
    gru   3  summed    shared    2  2  0.0  relu
    gru   3  summed    separate  1  1  0.0  tanh
    lstm  1  averaged  shared    2  2  0.5  linear
"""


def _seq2seq() -> list[Case]:
    cases = []
    for row in _SEQ2SEQ.strip().splitlines():
        cell, heads, join, embeddings, layers, directions, dropout, readout = row.split()
        spec = Seq2SeqSpec(
            embedding=6,
            hidden=8,
            cell=cell,
            heads=int(heads),
            join=join,
            embeddings=embeddings,
            layers=int(layers),
            directions=int(directions),
            dropout=float(dropout),
            readout=readout,
        )
        cases.append(Case("-".join(["seq2seq", *row.split()]), spec, COPYING))
    return cases


# Snell's, sunlu's and tutek's encoders and attentions, and what can be chosen of them.
_LSTM = Recurrent(hidden=3)
_ENCODERS: dict[str, EncoderSpec] = {
    "words": WordStates(),
    "affine": Affine(hidden=8),
    "affine-no-bias": Affine(hidden=8, bias="off"),
    "lstm": _LSTM,
    "lstm-orthogonal": Recurrent(hidden=3, initial="orthogonal"),
    "lstm-3-layers": Recurrent(hidden=3, layers=3, dropout=0.5),
    "gru": Recurrent(hidden=3, cell="gru"),
    "lstm-forward": Recurrent(hidden=6, directions=1),
    "concat": Concat(encoder=_LSTM),
    "residual": Residual(encoder=_LSTM),
}
_NORMAL = LearnedQuery(initial="normal")
_ATTENTIONS: dict[str, AttentionSpec] = {
    "mlp": Additive(hidden=5),
    "tanh": Additive(hidden=5, activation="tanh", output_bias="off"),
    "tanh-scaled": Additive(
        hidden=5, activation="tanh", bias="off", output_bias="off", scale=0.5, query=_NORMAL
    ),
    "dot": DotProduct(scale=0.5, query=_NORMAL),
    "dot-root": DotProduct(scale="root"),
    "dot-unit": DotProduct(keys="unit-length", query=_NORMAL),
    "dot-instance": DotProduct(query=InstanceQuery()),
    "tanh-instance": Additive(hidden=5, activation="tanh", query=InstanceQuery()),
}


def _classifiers() -> list[Case]:
    """Return every encoder under snell's attention, and every attention over one of them."""
    pairs = [(encoder, "mlp") for encoder in _ENCODERS]
    over = ["words", "lstm", "affine", "lstm", "concat", "residual", "words", "lstm"]
    pairs += list(zip(over, _ATTENTIONS, strict=True))[1:]
    plain = [
        Case(
            f"classifier-{encoder}-{attention}",
            ClassifierSpec(
                embedding=6, encoder=_ENCODERS[encoder], attention=_ATTENTIONS[attention]
            ),
            CLASSIFYING,
        )
        for encoder, attention in pairs
    ]
    dropping = ClassifierSpec(
        embedding=6,
        vectors=UniformEmbeddings(spread=0.5),
        encoder=WordStates(),
        attention=_ATTENTIONS["dot"],
        output=Output(bias="off", spread=1.0),
        dropout=0.5,
    )
    return [
        *plain,
        Case("classifier-sunlu", dropping, CLASSIFYING),
        Case("classifier-sunlu-three-labels", dropping, THREE_LABELS),
        Case("classifier-lstm-three-labels", plain[3].spec, THREE_LABELS),
    ]


def _proxies() -> list[Case]:
    return [
        Case(f"proxy-{task}-{start}", ProxySpec(embedding=8, initialisation=start), source)
        for start in ("theory", "code")
        for task, source in (("translating", COPYING), ("classifying", CLASSIFYING))
    ]


def _encoder_decoders() -> list[Case]:
    # VED has no site, and no score of a position.
    dot, learned = DotAttention(), LearnedAttention(key=4)
    variants = [
        (AED(attention=dot), "gru"),
        (AED(attention=learned), "lstm"),
        (AED(attention=dot), "ugrnn"),
        (AO(attention=dot), "gru"),
        (AO(attention=learned), "gru"),
    ]
    return [
        Case(
            f"{architecture.kind}-{architecture.attention.kind}-{cell}",
            EncoderDecoderSpec(architecture=architecture, cell=cell, hidden=8),
            COPYING,
        )
        for architecture, cell in variants
    ]


def _transformers() -> list[Case]:
    return [
        Case(
            f"transformer-{layers}-{heads}",
            TransformerSpec(width=8, heads=heads, layers=layers, feed_forward=12, dropout=0.5),
            COPYING,
        )
        for layers, heads in ((1, 1), (2, 2))
    ]


MODELS: dict[str, list[Case]] = {
    "encoder-decoder": _encoder_decoders(),
    "seq2seq": _seq2seq(),
    "classifier": _classifiers(),
    "proxy": _proxies(),
    "transformer": _transformers(),
}
CASES = [case for cases in MODELS.values() for case in cases]
# Double precision for every model, single precision for one of each kind.
IN_PRECISION = [(case, torch.float64) for case in CASES]
IN_PRECISION += [(cases[0], torch.float32) for cases in MODELS.values()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test each model, in the precisions it asks for."""
    asked = {"case", "dtype"} & set(metafunc.fixturenames)
    if asked == {"case", "dtype"}:
        names = [f"{case.name}-{str(dtype).partition('.')[2]}" for case, dtype in IN_PRECISION]
        metafunc.parametrize(("case", "dtype"), IN_PRECISION, ids=names)
    elif asked == {"case"}:
        metafunc.parametrize("case", CASES, ids=[case.name for case in CASES])
    elif asked == {"dtype"}:
        metafunc.parametrize("dtype", [torch.float32, torch.float64], ids=["single", "double"])


@pytest.fixture(params=MODELS["classifier"], ids=lambda case: case.name)
def classifying(request) -> Case:
    """Each classifier in turn."""
    return request.param


@pytest.fixture
def turn(case: Case) -> int:
    """The number of a model in the list, for what models take in turn."""
    return CASES.index(case)


@pytest.fixture
def listed_models() -> dict[str, list[Case]]:
    """All models, by kind."""
    return MODELS
