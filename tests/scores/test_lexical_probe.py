"""The lexical probe and its readings against closed forms (snell Eq. 4, 9, 12)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, strategies as st

from attnscope.data.batch import Example, collate
from attnscope.data.tasks import KeywordTask, SampledCopy
from attnscope.models.attentions import Additive
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.proxy import ProxySpec
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.scores import lexical_probe as probe
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe, log_odds, log_probability, probability
from attnscope.scores.score import read_score
from cases import for_each

COPYING, CLASSIFYING = SampledCopy(length=4, vocabulary=6), KeywordTask(types=9)
REVIEWS = collate([Example(0, [3, 1, 4, 1, 5], [0], [1]), Example(1, [2, 7], [0], [0])])
SENTENCES = collate(
    [Example(0, [1, 2, 3, 6], [7, 1, 2], [1, 2, 6]), Example(5, [4, 0], [7, 4], [4, 6])]
)
logits = st.lists(st.floats(-20, 20), min_size=2, max_size=6)


def classifier():
    spec = ClassifierSpec(embedding=5, encoder=Recurrent(hidden=4), attention=Additive(hidden=3))
    return spec.build(CLASSIFYING, 0).double()


def copier(heads=1, join="summed"):
    return Seq2SeqSpec(embedding=5, hidden=4, heads=heads, join=join).build(COPYING, 0).double()


def tensors(row, word):
    return torch.tensor(row, dtype=torch.float64), torch.tensor(word)


@given(logits, st.data())
def test_readings_are_the_probability_its_logarithm_and_its_log_odds(row, data):
    word = data.draw(st.integers(0, len(row) - 1))
    given_logits = tensors(row, word)
    own = math.exp(row[word])
    others = math.fsum(math.exp(x) for place, x in enumerate(row) if place != word)
    assert probability(*given_logits).item() == pytest.approx(own / (own + others))
    assert log_probability(*given_logits).item() == pytest.approx(
        math.log(own) - math.log(own + others), abs=1e-12
    )
    assert log_odds(*given_logits).item() == pytest.approx(
        math.log(own) - math.log(others), abs=1e-12
    )


@given(st.integers(2, 6), st.data())
def test_readings_order_positions_in_the_same_way(types, data):
    rows = st.lists(st.floats(-5, 5, width=16), min_size=types, max_size=types)
    table = torch.tensor(data.draw(st.lists(rows, min_size=2, max_size=8)), dtype=torch.float64)
    words = torch.full((len(table),), data.draw(st.integers(0, types - 1)))
    beta = probability(table, words)
    # As functions of one another: log β, and log β - log(1 - β).
    torch.testing.assert_close(log_probability(table, words), beta.log())
    torch.testing.assert_close(log_odds(table, words), beta.log() - (-beta).log1p())
    rise = beta[:, None] - beta > 1e-9
    for reading in (log_probability, log_odds):
        values = reading(table, words)
        assert (values[:, None] > values)[rise].all()


def test_log_odds_tell_apart_what_probabilities_in_single_precision_cannot():
    sure, surer = torch.tensor([[0.0, 20.0], [0.0, 28.0]])
    words = torch.tensor(1)
    assert probability(sure, words) == probability(surer, words)
    assert log_odds(surer, words) - log_odds(sure, words) == 8


@given(st.floats(-1e6, 1e6), st.integers(0, 1))
def test_log_odds_of_two_classes_are_the_signed_logit_exactly(z, label):
    assert log_odds(*tensors([0.0, z], label)).item() == (2 * label - 1) * z


def test_a_classifiers_log_odds_are_the_signed_logit_of_each_state():
    model = classifier()
    trace = model.trace(REVIEWS)
    score = LexicalProbe().read(model, trace)
    for row, label in enumerate([1, 0]):
        length = REVIEWS.input_lengths[row]
        gamma = trace.encoder_states[row, :length] @ model.output.weight[0] + model.output.bias
        torch.testing.assert_close(score.values[row, 0, :length], (2 * label - 1) * gamma)


def test_a_classifier_is_right_as_its_attention_weighs_its_probes():
    model = classifier()
    alpha = read_score(Attention(), model, REVIEWS).values
    beta = read_score(LexicalProbe(reading="probability"), model, REVIEWS)
    # Eq. 12: p = σ(Σ_l α_l σ⁻¹(β_l)).
    total = (alpha * beta.values.logit().masked_fill(~beta.mask, 0.0)).sum(-1)
    right = model.trace(REVIEWS).logits.softmax(-1).gather(-1, REVIEWS.targets[..., None])
    torch.testing.assert_close(torch.sigmoid(total), right.squeeze(-1))


def test_the_probe_of_the_copying_model_is_that_of_equation_4():
    model = copier()
    trace = model.trace(SENTENCES)
    score = LexicalProbe(reading="probability").read(model, trace)
    for t, word in enumerate([1, 2, 6]):
        for place in range(4):
            h, s = trace.encoder_states[0, place], trace.decoder_states[0, t]
            mapped = model.attention.project.weight @ h + model.attention.project.bias
            hidden = model.hidden.weight @ torch.cat([s, mapped]) + model.hidden.bias
            powers = (model.output.weight @ hidden.tanh() + model.output.bias).exp()
            torch.testing.assert_close(score.values[0, t, place], powers[word] / powers.sum())


@for_each("chunk", [1, 200, 700])
@for_each("reading", ["log_odds", "log_probability", "probability"])
@for_each(
    ("model", "batch"),
    [
        (copier(), SENTENCES),
        (copier(heads=3, join="averaged"), SENTENCES),
        (classifier(), REVIEWS),
        (ProxySpec(embedding=5).build(COPYING, 0).double(), SENTENCES),
    ],
    ids=["seq2seq", "seq2seq-3", "classifier", "proxy"],
)
def test_probing_in_chunks_changes_nothing(monkeypatch, model, batch, reading, chunk):
    rule, probed = LexicalProbe(reading=reading), []
    whole = read_score(rule, model, batch)
    readout, trace = model.readout, model.trace(batch)

    def counted(context, query):
        probed.append((len(context), max(context[0].numel() + query.shape[-1], types)))
        return readout(context, query)

    types = trace.logits.shape[-1]
    monkeypatch.setattr(probe, "_CHUNK", chunk)
    monkeypatch.setattr(model, "readout", counted)
    chunked = rule.read(model, trace).values
    torch.testing.assert_close(chunked, whole.values, rtol=0, atol=1e-12)
    # Every real pair of positions is probed once, and nothing else is.
    assert sum(cells for cells, _ in probed) == whole.mask.sum()
    assert all(cells == 1 or cells * numbers <= chunk for cells, numbers in probed)
    assert len(probed) > 1 or chunk >= probed[0][1] * whole.mask.sum()


@for_each("reading", ["log_odds", "log_probability", "probability"])
@for_each("heads", [1, 3])
def test_probing_real_pairs_gives_what_probing_all_pairs_gives(reading, heads):
    model = copier(heads=heads)
    trace = model.trace(SENTENCES)
    batch, out, inp = *SENTENCES.targets.shape, SENTENCES.inputs.shape[1]
    values = trace.sites["cross"].values.transpose(1, 2)
    context = values[:, None].expand(batch, out, -1, -1, -1)
    query = trace.query[:, :, None].expand(-1, -1, inp, -1)
    words = SENTENCES.targets[:, :, None].expand(batch, out, inp)
    rectangle = probe.READINGS[reading](model.readout(context, query), words)
    score = LexicalProbe(reading=reading).read(model, trace)
    torch.testing.assert_close(score.values[score.mask], rectangle[score.mask])


def test_gradients_flow_through_a_probe():
    model = copier()
    LexicalProbe().values(model, model.trace(SENTENCES)).sum().backward()
    assert all(p.grad.any() for p in (model.output.weight, model.attention.project.weight))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA: the same probe on a GPU")
def test_a_probe_on_a_gpu_is_that_on_the_cpu():
    model = copier()
    expected = read_score(LexicalProbe(), model, SENTENCES).values
    found = read_score(LexicalProbe(), model.cuda(), SENTENCES.to("cuda")).values
    torch.testing.assert_close(found.cpu(), expected)


def test_a_model_without_a_readout_is_run_again_to_the_same_values():
    model = copier()
    with torch.no_grad():
        trace = model.trace(SENTENCES)
        read, again = (
            LexicalProbe().read(model, each).values for each in (trace, replace(trace, query=None))
        )
    torch.testing.assert_close(again, read, rtol=0, atol=1e-10)


@for_each("spread", [1.0, 30.0, 1e4])
def test_the_fused_logsumexp_is_pytorchs(spread):
    logits = spread * torch.randn(5, 3, 40, generator=torch.Generator().manual_seed(0)).double()
    logits[..., 7] = -torch.inf
    torch.testing.assert_close(
        probe.fused_logsumexp(logits), logits.logsumexp(-1), rtol=1e-14, atol=1e-12
    )
