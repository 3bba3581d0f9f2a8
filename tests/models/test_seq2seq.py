"""The copying model against its equations, computed from its weights by hand in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope.data.batch import Example, collate
from attnscope.data.tasks import KeywordTask, SampledCopy
from attnscope.errors import UsageError
from attnscope.models.intervention import Uniform
from attnscope.models.seq2seq import Seq2SeqSpec

SOURCE = SampledCopy(length=4, vocabulary=6)  # 8 types with EOS and SOS.
EXAMPLE = Example(0, [2, 5, 0, 3, 6], [7, 2, 5], [2, 5, 0])


def array(parameter):
    return parameter.detach().numpy()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def affine(layer, x):
    return x @ array(layer.weight).T + array(layer.bias)


def lstm(layer, inputs, state):
    """The LSTM of Hochreiter and Schmidhuber with a forget gate; gates in PyTorch's order."""
    hidden, cell = state
    states = []
    for x in inputs:
        gates = array(layer.weight_ih_l0) @ x + array(layer.bias_ih_l0)
        gates = gates + array(layer.weight_hh_l0) @ hidden + array(layer.bias_hh_l0)
        i, f, g, o = np.split(gates, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        states.append(hidden)
    return np.stack(states), (hidden, cell)


def gru(layer, inputs, state):
    """The GRU of Cho et al., with the reset gate inside the candidate's recurrent term."""
    (hidden,) = state
    states = []
    for x in inputs:
        given = array(layer.weight_ih_l0) @ x + array(layer.bias_ih_l0)
        kept = array(layer.weight_hh_l0) @ hidden + array(layer.bias_hh_l0)
        (r_x, z_x, n_x), (r_h, z_h, n_h) = np.split(given, 3), np.split(kept, 3)
        reset, update = sigmoid(r_x + r_h), sigmoid(z_x + z_h)
        hidden = (1 - update) * np.tanh(n_x + reset * n_h) + update * hidden
        states.append(hidden)
    return np.stack(states), (hidden,)


def by_hand(model, spec, example):
    """Return attention logits and weights per head, and output logits (Eq. 1, 2, 20, 21)."""
    cell, start = {
        "lstm": (lstm, (np.zeros(spec.hidden),) * 2),
        "gru": (gru, (np.zeros(spec.hidden),)),
    }[spec.cell]
    source, target = array(model.source_embedding.weight), array(model.target_embedding.weight)
    h, last = cell(model.encoder.layer, source[list(example.inputs)], start)
    s, _ = cell(model.decoder.layer, target[list(example.decoder_inputs)], last)
    a = [affine(layer, s) @ h.T for layer in model.attention.query_maps]
    alpha = [softmax(logits) for logits in a]
    contexts = [weights @ h for weights in alpha]
    if spec.join == "summed":
        context = affine(model.attention.project, sum(contexts))
    else:
        maps = model.attention.value_maps
        context = np.mean([affine(m, c) for m, c in zip(maps, contexts, strict=True)], 0)
    hidden = np.tanh(affine(model.hidden, np.concatenate([s, context], -1)))
    return np.stack(a), np.stack(alpha), affine(model.output, hidden)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("join", ["summed", "averaged"])
@pytest.mark.parametrize("embeddings", ["shared", "separate"])
def test_the_model_is_that_of_the_equations(cell, heads, join, embeddings):
    spec = Seq2SeqSpec(
        embedding=5, hidden=4, cell=cell, heads=heads, join=join, embeddings=embeddings
    )
    model = spec.build(SOURCE, 0).double()
    trace = model.trace(collate([EXAMPLE]))
    logits, weights, output = by_hand(model, spec, EXAMPLE)
    site = trace.sites["cross"]
    np.testing.assert_allclose(array(site.logits)[0], logits, rtol=1e-12)
    np.testing.assert_allclose(array(site.weights)[0], weights, rtol=1e-12)
    np.testing.assert_allclose(array(trace.logits)[0], output, rtol=1e-12)


def test_logits_are_the_product_of_the_sites_queries_and_keys():
    model = Seq2SeqSpec(embedding=5, hidden=4, heads=2).build(SOURCE, 0).double()
    site = model.trace(collate([EXAMPLE])).sites["cross"]
    expected = torch.einsum("bktd,bkld->bktl", site.queries, site.keys)
    torch.testing.assert_close(site.logits, expected)


def test_the_context_of_summed_heads_is_the_sum_of_the_contexts_of_single_heads():
    head_seeds = (3, 1, 4)
    spec = Seq2SeqSpec(embedding=5, hidden=4, base_seed=2, head_seeds=head_seeds)
    model, batch = spec.build(SOURCE, 0).double(), collate([EXAMPLE])
    singles = [
        spec.model_copy(update={"head_seeds": (seed,)}).build(SOURCE, 0).double()
        for seed in head_seeds
    ]
    contexts = [single.trace(batch).sites["cross"].context.squeeze(2) for single in singles]
    trace = model.trace(batch)
    total = torch.stack(contexts).sum(0)
    torch.testing.assert_close(trace.sites["cross"].context.sum(2), total)
    # Eq. 21: the output is N of that sum; a single head's readout takes it as its one context.
    output = singles[0].readout(total[:, :, None], trace.query)
    torch.testing.assert_close(trace.logits, output)


def test_under_uniform_attention_k_summed_heads_read_k_times_the_mean_state():
    model = Seq2SeqSpec(embedding=5, hidden=4, heads=3).build(SOURCE, 0).double()
    trace = model.trace(collate([EXAMPLE]), {"cross": Uniform()})
    total = trace.sites["cross"].context.sum(2)
    expected = 3 * trace.encoder_states.mean(1, keepdim=True)
    torch.testing.assert_close(total, expected.expand_as(total))


def test_the_trace_holds_the_embeddings_and_states_that_it_names():
    model = Seq2SeqSpec(embedding=5, hidden=4).build(SOURCE, 0).double()
    trace = model.trace(collate([EXAMPLE]))
    words = array(model.source_embedding.weight)
    h, last = lstm(model.encoder.layer, words[EXAMPLE.inputs], (np.zeros(4),) * 2)
    s, _ = lstm(model.decoder.layer, words[EXAMPLE.decoder_inputs], last)
    np.testing.assert_allclose(array(trace.encoder_states)[0], h, rtol=1e-12)
    np.testing.assert_allclose(array(trace.decoder_states)[0], s, rtol=1e-12)
    np.testing.assert_allclose(array(trace.query)[0], s, rtol=1e-12)
    assert trace.embeddings[0].equal(model.source_embedding.weight[EXAMPLE.inputs])
    assert trace.teacher_forced


def test_separate_embeddings_are_two_tables_and_shared_ones_are_one():
    shared, separate = (
        Seq2SeqSpec(embedding=5, hidden=4, embeddings=kind).build(SOURCE, 0)
        for kind in ("shared", "separate")
    )
    assert shared.source_embedding is shared.target_embedding
    assert not separate.source_embedding.weight.equal(separate.target_embedding.weight)


def test_a_table_cannot_be_shared_between_different_words():
    with pytest.raises(UsageError, match="embeddings=separate"):
        Seq2SeqSpec().build(KeywordTask(), 0)
