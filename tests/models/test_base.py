"""Sizes against the numbers that the paper prints (snell A.8), and how a seed decides a model."""

from __future__ import annotations

import pytest
import torch

from attnscope.data.tasks import KeywordTask, PermutationCopy, SampledCopy
from attnscope.models.attentions import Additive
from attnscope.models.base import parameter_count
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.proxy import ProxySpec
from attnscope.models.seq2seq import Seq2SeqSpec
from cases import for_each

SMALL = [
    (Seq2SeqSpec(embedding=6, hidden=5), SampledCopy(length=3, vocabulary=4)),
    (
        Seq2SeqSpec(embedding=6, hidden=5, cell="gru", heads=3, join="averaged"),
        PermutationCopy(length=3),
    ),
    (
        ClassifierSpec(embedding=6, encoder=Recurrent(hidden=5), attention=Additive(hidden=4)),
        KeywordTask(types=5),
    ),
    (ProxySpec(embedding=6), SampledCopy(length=3, vocabulary=4)),
]
small = for_each(("spec", "source"), SMALL, ids=["seq2seq", "seq2seq-gru", "classifier", "proxy"])


def test_the_copying_model_has_the_authors_1337130_parameters():
    assert parameter_count(Seq2SeqSpec().build(PermutationCopy(length=40), 0)) == 1_337_130


def test_the_classifier_has_the_published_parameters_without_embeddings():
    model = ClassifierSpec().build(KeywordTask(types=10), 0)
    assert parameter_count(model) - parameter_count(model.embedding) == 1_274_882


@pytest.mark.parametrize(
    ("words", "published"),
    [
        pytest.param(60_338, 19_376_282, id="IMDB"),
        pytest.param(31_065, 10_594_382, id="AG News"),
        pytest.param(12_488, 5_021_282, id="20 Newsgroups"),
        pytest.param(11_022, 4_581_482, id="SST"),
        pytest.param(41_368, 13_685_282, id="Yelp"),
        pytest.param(37_110, 12_407_882, id="Amazon"),
        pytest.param(4_691, 2_682_182, id="SMS"),
    ],
)
def test_the_classifier_has_the_published_parameters_on_every_corpus(words, published):
    assert parameter_count(ClassifierSpec().build(KeywordTask(types=words), 0)) == published


def test_the_proxy_has_an_embedding_and_one_map_without_bias():
    # 42 words of 256 numbers on either side (snell Eq. 5).
    assert parameter_count(ProxySpec().build(PermutationCopy(length=40), 0)) == 2 * 42 * 256


def test_shared_parameters_are_counted_once():
    source, sizes = PermutationCopy(length=3), {"embedding": 6, "hidden": 5}
    shared = Seq2SeqSpec(embeddings="shared", **sizes).build(source, 0)
    separate = Seq2SeqSpec(embeddings="separate", **sizes).build(source, 0)
    assert parameter_count(separate) - parameter_count(shared) == 5 * 6


@small
def test_the_same_seed_gives_the_same_model(spec, source):
    one = spec.build(source, 7).state_dict()
    torch.rand(3)  # What was drawn before plays no part.
    other = spec.build(source, 7).state_dict()
    assert all(one[name].equal(other[name]) for name in one)


@small
def test_another_seed_gives_another_model_in_every_part(spec, source):
    one, other = (spec.build(source, seed).state_dict() for seed in (7, 8))
    assert not any(one[name].equal(other[name]) for name in one)


@small
def test_building_a_model_leaves_the_global_stream_alone(spec, source):
    before = torch.get_rng_state()
    spec.build(source, 7)
    assert torch.get_rng_state().equal(before)
