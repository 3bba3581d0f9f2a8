"""BLEU of models built by hand, whose translations are known, against sacrebleu called directly."""

from __future__ import annotations

import re
from typing import Literal

import pytest
import sacrebleu
import torch
from torch.nn.functional import one_hot

from attnscope.data.batch import Example, collate
from attnscope.data.source import Source
from attnscope.data.tasks import KeywordTask, SampledCopy
from attnscope.data.vocabulary import Vocabulary
from attnscope.errors import UsageError
from attnscope.models.decoding import beam_search, greedy
from attnscope.models.intervention import Uniform
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.models.trace import Trace
from attnscope.training import bleu
from attnscope.training.bleu import Bleu
from attnscope.training.metric import Metric
from cases import for_each

SENTENCES = [
    "the small dog sees a red ball .",
    "a man reads .",
    "the old woman gives the small dog a very old red ball !",
    "the ball , the dog and a man .",
    "a red dog sees the old man .",
]
WORDS = ("<bos>", "<eos>", *sorted({word for text in SENTENCES for word in text.split()}))


class Sentences(Source):
    """The sentences above, to be copied; references are written without blanks before marks."""

    kind: Literal["bleu-test-sentences"] = "bleu-test-sentences"

    @property
    def dataset(self):
        return "sentences"

    @property
    def input_words(self):
        return Vocabulary(WORDS)

    @property
    def output_words(self):
        return Vocabulary(WORDS)

    @property
    def boundaries(self):
        return 0, 1

    def training_batch(self, seed, step, size):
        raise NotImplementedError

    def evaluation_batch(self, count, split="val"):
        examples = [
            Example(number, self.input_words.encode(text.split()), [0], [1])
            for number, text in enumerate(SENTENCES)
        ]
        return collate(examples[:count], pad=1)

    def sentence(self, ids):
        return re.sub(r" ([.,!])", r"\1", " ".join(self.output_words.decode(ids)))

    def references(self, split, count):
        assert split == "val"
        return [re.sub(r" ([.,!])", r"\1", text) for text in SENTENCES[:count]]


class Copier:
    """Writes the input, each word replaced by what a table says, then the end word."""

    def __init__(self, replaced=None):
        words = Vocabulary(WORDS)
        self.replaced = {words.id(a): words.id(b) for a, b in (replaced or {}).items()}

    def trace(self, batch, attention=None, generator=None):
        rows = [[self.replaced.get(word, word) for word in row] for row in batch.inputs.tolist()]
        width = batch.decoder_inputs.shape[1]
        said = [[*row, 1, *[1] * width][:width] for row in rows]
        logits = 50 * one_hot(torch.tensor(said), len(WORDS)).double()
        states = torch.zeros(*batch.inputs.shape, 1)
        return Trace(batch, states, states, None, torch.zeros(*logits.shape[:2], 0), logits)

    def readout(self, context, query):
        raise NotImplementedError


SOURCE = Sentences()
BATCH = SOURCE.evaluation_batch(5)


def test_a_perfect_translation_has_100():
    assert Bleu()(Copier(), BATCH, SOURCE, "val") == pytest.approx(100)


@for_each("replaced", [{"dog": "man"}, {"a": "the", "old": "small"}])
@for_each("count", [2, 5])
def test_bleu_is_sacrebleus_of_detokenised_text_over_the_whole_corpus(replaced, count):
    texts = [" ".join(replaced.get(word, word) for word in text.split()) for text in SENTENCES]
    said, meant = (
        [re.sub(r" ([.,!])", r"\1", text) for text in each[:count]] for each in (texts, SENTENCES)
    )
    expected = sacrebleu.corpus_bleu(said, [meant]).score
    assert 0 < expected < 100
    batch = SOURCE.evaluation_batch(count)
    assert Bleu()(Copier(replaced), batch, SOURCE, "val") == pytest.approx(expected)


@for_each("positions", [1, 100, 10**6])
def test_decoding_in_parts_gives_every_example_its_own_text(monkeypatch, positions):
    monkeypatch.setattr(bleu, "_POSITIONS", positions)
    assert Bleu().translate(Copier(), BATCH, SOURCE) == SOURCE.references("val", 5)


def test_an_output_is_cut_at_the_limit():
    texts = Bleu(limit=3).translate(Copier(), BATCH, SOURCE)
    assert texts[:2] == ["the small dog", "a man reads"]


@for_each("width", [1, 2, 5])
def test_the_width_and_the_attention_are_those_of_the_search(width):
    source = SampledCopy(length=4, vocabulary=6)
    batch, boundaries = source.evaluation_batch(20), source.boundaries
    assert boundaries is not None
    model = Seq2SeqSpec(embedding=5, hidden=4).build(source, 0).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    for attention in ({}, {"cross": Uniform()}):
        searched = beam_search(model, batch, boundaries, width, 8, attention)
        if width == 1:
            assert searched == greedy(model, batch, boundaries, 8, attention)
        texts = Bleu(width=width, limit=8).translate(model, batch, source, attention)
        assert texts == [source.sentence(words) for words in searched.words]


def test_the_signature_is_sacrebleus():
    signature = Bleu().signature()
    assert f"version:{sacrebleu.__version__}" in signature
    assert {"nrefs:1", "case:mixed", "tok:13a", "smooth:exp"} <= set(signature.split("|"))


def test_labels_have_no_bleu():
    source = KeywordTask(length=4)
    with pytest.raises(UsageError, match="labels, not sentences"):
        Bleu()(Copier(), source.evaluation_batch(2), source, "val")


def test_the_name_tells_settings_apart():
    assert Bleu().name == "bleu"
    names = {Bleu(width=w, limit=m).name for w in (1, 5) for m in (50, 100)}
    assert names == {"bleu", "bleu-width1", "bleu-limit50", "bleu-width1-limit50"}


def test_a_configuration_names_it_by_its_kind():
    read = Metric.model_validate({"kind": "bleu", "width": 1})
    assert read == Bleu(width=1)
