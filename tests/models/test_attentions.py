"""Attentions against their formulas, written out (snell Eq. 7; sunlu Eq. 1; tutek Eq. 11)."""

from __future__ import annotations

import pytest
import torch
from scipy import stats
from torch import nn

from attnscope.analysis.alignment_terms import CROSS, compute_alignment_terms, logit_scale
from attnscope.analysis.decomposition import decompose
from attnscope.data.batch import Example, collate
from attnscope.data.randomness import seeded
from attnscope.data.tasks import KeywordTask
from attnscope.errors import MissingCapability
from attnscope.models.attentions import (
    Additive,
    AttentionSpec,
    DotProduct,
    InstanceQuery,
    LearnedQuery,
)
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent, WordStates
from cases import for_each

EXAMPLES = [
    Example(0, [3, 1, 4, 1, 5], [0], [1]),
    Example(1, [2, 7], [0], [0]),
    Example(2, [6, 3, 2], [0], [1]),
]
BATCH = collate(EXAMPLES)
STATES = torch.randn(3, 5, 6, generator=torch.Generator().manual_seed(0)).double()
EXACT = {"rtol": 1e-12, "atol": 1e-14}


def built(spec: AttentionSpec, seed: int = 0):
    with seeded("attention", seed):
        return spec.build(6).double()


def site(attention, rule=None):
    return attention(BATCH, STATES, rule)


def logits(attention):
    return site(attention).logits[:, 0, 0].detach()


@for_each(("scale", "divisor"), [(1.0, 1.0), (0.001, 0.001), (10, 10.0), ("root", 6**0.5)])
@for_each("keys", ["states", "unit-length"])
def test_dot_attention_is_the_product_with_the_query_over_lambda(scale, divisor, keys):
    attention = built(DotProduct(scale=scale, keys=keys))
    (v,) = attention.parameters()
    length = STATES.square().sum(-1, keepdim=True).sqrt() if keys == "unit-length" else 1.0
    expected = torch.einsum("bli,i->bl", STATES / length, v[0].detach()) / divisor
    torch.testing.assert_close(logits(attention), expected, **EXACT)


@for_each("spec", [DotProduct(), Additive(hidden=4)])
@for_each("scale", [0.001, 3.7, "root"])
def test_lambda_is_a_buffer_beside_the_weights_and_divides_as_the_number_does(spec, scale):
    spec = spec.model_copy(update={"scale": scale})
    attention, undivided = (
        built(each).float() for each in (spec, spec.model_copy(update={"scale": 1.0}))
    )
    assert "divisor" not in attention.state_dict()
    assert attention.divisor.dtype is torch.float32
    number = spec.divisor(6 if spec.kind == "dot" else 4)
    found, whole = (each(BATCH, STATES.float(), None).logits for each in (attention, undivided))
    assert found.equal(whole / number)


@for_each("activation", ["relu", "tanh"])
@for_each("bias", ["on", "off"])
@for_each("output_bias", ["on", "off"])
def test_additive_attention_is_the_query_with_a_hidden_layer(activation, bias, output_bias):
    spec = Additive(hidden=4, activation=activation, bias=bias, output_bias=output_bias, scale=2.5)
    attention = built(spec)
    parts = {name: value.detach() for name, value in attention.named_parameters()}
    assert ("hidden.bias" in parts) == (bias == "on")
    assert ("query.bias" in parts) == (output_bias == "on")
    offset, last = (parts.get(f"{name}.bias", torch.zeros(1)) for name in ("hidden", "query"))
    hidden = torch.einsum("oi,bli->blo", parts["hidden.weight"], STATES) + offset
    hidden = hidden.tanh() if activation == "tanh" else hidden.clamp(min=0)
    expected = (torch.einsum("blo,o->bl", hidden, parts["query.weight"][0]) + last) / 2.5
    torch.testing.assert_close(logits(attention), expected, **EXACT)


@pytest.mark.parametrize("spec", [DotProduct(scale=3.0), Additive(hidden=4, output_bias="off")])
def test_a_query_of_the_text_is_a_map_of_the_mean_of_its_real_states(spec):
    attention = built(spec.model_copy(update={"query": InstanceQuery()}))
    w, b = attention.query.map.weight.detach(), attention.query.map.bias.detach()
    found = logits(attention)
    for row, length in enumerate(BATCH.input_lengths):
        real = STATES[row, :length]
        query = w @ real.mean(0) + b
        keys = real
        if spec.kind == "additive":
            layer = attention.hidden
            keys = (real @ layer.weight.T + layer.bias).clamp(min=0).detach()
        expected = keys @ query / spec.divisor(6)
        torch.testing.assert_close(found[row, :length], expected, **EXACT)


def test_a_query_of_the_text_with_no_map_is_the_learned_one():
    learned, own = built(DotProduct()), built(DotProduct(query=InstanceQuery()))
    with torch.no_grad():
        own.query.map.weight.zero_()
        own.query.map.bias.copy_(learned.query.weight[0])
    torch.testing.assert_close(logits(own), logits(learned), **EXACT)


def drawn(spec, width=3000):
    with seeded("attention", 0):
        return spec.build(width).query.weight.detach().flatten().numpy()


def test_a_query_starts_kaiming_uniform_or_standard_normal():
    bound = 3000**-0.5  # Kaiming-uniform with √5 is U(±1/√fan-in)
    default, normal = (
        drawn(DotProduct(query=LearnedQuery(initial=i))) for i in ("default", "normal")
    )
    assert stats.kstest(default, stats.uniform(-bound, 2 * bound).cdf).pvalue > 0.01
    assert stats.kstest(normal, stats.norm.cdf).pvalue > 0.01
    hidden = Additive(hidden=3000, query=LearnedQuery(initial="normal"))
    assert stats.kstest(drawn(hidden, 2), stats.norm.cdf).pvalue > 0.01


@for_each("spec", [DotProduct(), Additive(hidden=4)])
@for_each("query", [LearnedQuery(), InstanceQuery()])
def test_padding_and_neighbours_change_no_logit(spec, query):
    attention = built(spec.model_copy(update={"query": query}))
    found = logits(attention)
    for row, length in enumerate(BATCH.input_lengths):
        alone = attention(collate([EXAMPLES[row]]), STATES[row : row + 1, :length], None)
        torch.testing.assert_close(alone.logits[0, 0, 0].detach(), found[row, :length], **EXACT)


@for_each("query", [LearnedQuery(initial="normal"), InstanceQuery()])
@for_each("keys", ["states", "unit-length"])
@for_each("encoder", [WordStates(), Recurrent(hidden=3)])
def test_the_nine_terms_of_dot_attention_add_up_to_its_logits(query, keys, encoder):
    task = KeywordTask(length=6, types=5)
    attention = DotProduct(scale=4.0, keys=keys, query=query)
    model = ClassifierSpec(embedding=6, encoder=encoder, attention=attention).build(task, 0)
    with torch.no_grad():
        trace = model.double().trace(task.evaluation_batch(20))
    assert logit_scale(trace) == pytest.approx(1, abs=1e-12)
    (terms,) = compute_alignment_terms(trace, decompose([trace], CROSS))
    torch.testing.assert_close(terms.total, trace.sites["cross"].logits, rtol=0, atol=1e-12)


def test_additive_attention_gives_no_queries_and_keys():
    found = site(built(Additive(hidden=4)))
    assert found.queries is None
    assert found.keys is None


def test_only_a_learned_query_over_states_is_a_direction():
    attention = built(DotProduct())
    assert attention.direction.equal(attention.query.weight[0])
    for spec in (Additive(hidden=4), DotProduct(query=InstanceQuery())):
        with pytest.raises(MissingCapability, match=r"no (single )?direction V"):
            _ = built(spec).direction


def test_values_are_the_states_and_weights_the_softmax_over_real_positions():
    found = site(built(DotProduct()))
    assert found.values[:, 0].equal(STATES)
    for row, length in enumerate(BATCH.input_lengths):
        expected = nn.functional.softmax(found.logits[row, 0, 0, :length], -1)
        torch.testing.assert_close(found.weights[row, 0, 0, :length], expected)


@for_each(
    "spec",
    [
        DotProduct(scale="root", query=LearnedQuery(initial="normal")),
        DotProduct(scale=0.001, keys="unit-length", query=InstanceQuery()),
        Additive(hidden=7, activation="tanh", bias="off", output_bias="off", scale=50),
    ],
)
def test_an_attention_is_read_back_with_its_query(spec):
    assert AttentionSpec.model_validate(spec.model_dump(mode="json")) == spec


@for_each("scale", [0.0, -1.0, "square"])
def test_a_scale_that_divides_by_nothing_is_refused(scale):
    with pytest.raises(ValueError, match="scale"):
        DotProduct(scale=scale)
