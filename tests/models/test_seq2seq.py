"""The copying model and the translator against their equations, computed from their weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from attnscope.data.batch import Example, collate
from attnscope.data.tasks import KeywordTask, SampledCopy
from attnscope.errors import UsageError
from attnscope.models.base import parameter_count
from attnscope.models.intervention import Uniform
from attnscope.models.seq2seq import TRANSLATOR, Seq2SeqSpec
from attnscope.runs.spec import read_settings
from cases import for_each

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


@for_each("cell", ["lstm", "gru"])
@for_each("heads", [1, 3])
@for_each("join", ["summed", "averaged"])
@for_each("embeddings", ["shared", "separate"])
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


VARIANTS = [
    Seq2SeqSpec(
        embedding=5, hidden=4, layers=layers, directions=directions, readout=readout, cell=cell
    )
    for layers in (1, 2)
    for directions in (1, 2)
    for readout in ("tanh", "relu", "linear")
    for cell in ("lstm", "gru")
]
variants = for_each(
    "spec", VARIANTS, ids=lambda s: f"{s.cell}-{s.layers}-{s.directions}-{s.readout}"
)
SMALL = TRANSLATOR.model_copy(update={"embedding": 5, "hidden": 4})
UNEQUAL = collate(
    [EXAMPLE, Example(1, [1, 4], [7, 1, 4, 0], [1, 4, 0, 6]), Example(2, [3], [7], [6])]
)


def published_translator(readout="relu"):
    spec = TRANSLATOR.model_copy(update={"readout": readout})
    return spec.build(SampledCopy(length=4, vocabulary=7998), 0)  # 8000 types with EOS and SOS.


def test_the_translator_has_the_published_8180544_parameters_6132544_without_embeddings():
    model = published_translator()
    assert parameter_count(model) == 8_180_544
    assert parameter_count(model) - parameter_count(model.source_embedding) == 6_132_544


def test_the_linear_translator_lacks_the_hidden_layer_and_nothing_else():
    hidden = 512 * 256 + 256
    assert parameter_count(published_translator("linear")) == 8_180_544 - hidden


def pytorch_states(model, spec, example):
    """Return encoder and decoder states of PyTorch's own stacks with the model's weights."""

    def copied(ours, directions):
        cells = {"lstm": nn.LSTM, "gru": nn.GRU}
        theirs = cells[spec.cell](
            spec.embedding,
            spec.hidden,
            spec.layers,
            batch_first=True,
            bidirectional=directions == 2,
        ).double()
        own = [p for layer in (ours.layer, *ours.upper) for p in layer.parameters()]
        for one, other in zip(theirs.parameters(), own, strict=True):
            one.data.copy_(other)
        return theirs

    words = model.source_embedding(torch.tensor([example.inputs]))
    h, last = copied(model.encoder, spec.directions)(words)
    parts = last if isinstance(last, tuple) else (last,)
    means = [
        torch.stack([part[k : k + spec.directions].mean(0) for k in starts])
        for part in parts
        for starts in [range(0, spec.layers * spec.directions, spec.directions)]
    ]
    read = model.target_embedding(torch.tensor([example.decoder_inputs]))
    start = tuple(means) if isinstance(last, tuple) else means[0]
    return h[0], copied(model.decoder, 1)(read, start)[0][0]


@variants
def test_every_variant_is_that_of_the_equations(spec):
    model = spec.build(SOURCE, 0).double()
    trace = model.trace(collate([EXAMPLE]))
    h, s = pytorch_states(model, spec, EXAMPLE)
    torch.testing.assert_close(trace.encoder_states[0], h)
    torch.testing.assert_close(trace.decoder_states[0], s)
    h, s = array(h), array(s)
    alpha = softmax(affine(model.attention.query_maps[0], s) @ h.T)
    context = affine(model.attention.project, alpha @ h)
    joined = np.concatenate([s, context], -1)
    before = {
        "tanh": lambda: np.tanh(affine(model.hidden, joined)),
        "relu": lambda: np.maximum(affine(model.hidden, joined), 0),
        "linear": lambda: context + s,
    }[spec.readout]()
    np.testing.assert_allclose(array(trace.sites["cross"].weights)[0, 0], alpha, rtol=1e-10)
    np.testing.assert_allclose(array(trace.logits)[0], affine(model.output, before), rtol=1e-10)


def test_the_linear_variant_is_linear_in_the_attention():
    model = SMALL.model_copy(update={"readout": "linear"}).build(SOURCE, 0).double()
    trace = model.trace(collate([EXAMPLE]))
    states, weights = trace.encoder_states, trace.sites["cross"].weights[:, 0]
    query = trace.query[:, :, None].expand(-1, -1, states.shape[1], -1)
    everywhere = states[:, None, :, None].expand(-1, query.shape[1], -1, -1, -1)
    # Eq. 31: the output is the mean, under the attention, of the outputs at single positions.
    read = model.readout(everywhere, query)
    torch.testing.assert_close(trace.logits, (weights[..., None] * read).sum(2))


def test_training_drops_out_what_the_generator_says_and_measuring_drops_nothing():
    model = SMALL.build(SOURCE, 0).double()

    def output(seed):
        stream = None if seed is None else torch.Generator().manual_seed(seed)
        return model.trace(UNEQUAL, None, stream).logits

    assert output(1).equal(output(1))
    assert not output(1).equal(output(2))
    assert output(None).equal(output(None))
    assert not output(1).equal(output(None))


def test_dropout_is_drawn_apart_in_encoder_and_decoder():
    model = SMALL.build(SOURCE, 0).double()
    plain = model.trace(UNEQUAL)
    dropped = model.trace(UNEQUAL, None, torch.Generator().manual_seed(1))
    assert not dropped.encoder_states.equal(plain.encoder_states)
    model.encoder.dropout = 0.0
    decoder_alone = model.trace(UNEQUAL, None, torch.Generator().manual_seed(1))
    assert decoder_alone.encoder_states.equal(plain.encoder_states)
    assert not decoder_alone.decoder_states.equal(plain.decoder_states)


def test_dropout_without_a_second_layer_is_refused_in_one_sentence():
    with pytest.raises(UsageError, match="set layers=2 or more"):
        read_settings(Seq2SeqSpec, {"dropout": 0.5}, "model")


# What the copying model was before it could have layers, directions and other readouts, for
# seed 3: each parameter's Σ k·p_k over its numbers p_1, p_2, …, and some output logits. Stored
# units depend on them.
BEFORE = {
    "source_embedding.weight": -91.650978588,
    "encoder.layer.weight_ih_l0": 76.580574811,
    "encoder.layer.weight_hh_l0": -87.483528435,
    "encoder.layer.bias_ih_l0": -18.945148945,
    "encoder.layer.bias_hh_l0": -27.275430739,
    "decoder.layer.weight_ih_l0": 160.192418277,
    "decoder.layer.weight_hh_l0": 28.123252094,
    "decoder.layer.bias_ih_l0": 29.626948953,
    "decoder.layer.bias_hh_l0": 10.946226418,
    "attention.query_maps.0.weight": 24.783994019,
    "attention.query_maps.0.bias": -0.774067104,
    "attention.project.weight": 13.307682991,
    "attention.project.bias": 1.148347199,
    "hidden.weight": 25.8388406,
    "hidden.bias": 1.681792855,
    "output.weight": -12.83240211,
    "output.bias": 11.093357146,
}
LOGITS_BEFORE = [
    [0.127960174522, 0.45744409281, 0.292833892073, 0.014376383384],
    [0.266125974451, 0.336365769137, 0.276401486131, 0.025316985981],
]


def test_the_copying_model_is_the_one_it_always_was():
    model = Seq2SeqSpec(embedding=5, hidden=4).build(SOURCE, 3).double()
    sums = {
        name: float((parameter.detach().flatten() * torch.arange(1, parameter.numel() + 1)).sum())
        for name, parameter in model.named_parameters()
    }
    assert list(sums) == list(BEFORE)
    assert sums == pytest.approx(BEFORE, abs=1e-4)
    logits = model.trace(collate([EXAMPLE, Example(1, [1, 4], [7, 1], [1, 6])])).logits
    picked = [logits[0, 2, :4].tolist(), logits[1, 1, :4].tolist()]
    np.testing.assert_allclose(picked, LOGITS_BEFORE, atol=1e-6)
