"""Interventions: what each does to a row of attention, under any mask."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, strategies as st

from attnscope.data.batch import Example, collate
from attnscope.data.tasks import KeywordTask, SampledCopy
from attnscope.models.attentions import Additive
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.intervention import Frozen, Given, Intervention, Learned, Permuted, Uniform
from attnscope.models.seq2seq import Seq2SeqSpec
from cases import for_each

SOURCE = SampledCopy(length=4, vocabulary=6)
BATCH = collate(
    [Example(0, [1, 2, 3, 6], [7, 1, 2], [1, 2, 6]), Example(5, [4, 0], [7, 4], [4, 6])]
)


@st.composite
def attention(draw):
    """Return logits, a mask with at least one real position a row, and ids."""
    batch, heads, out, inp = (draw(st.integers(1, n)) for n in (4, 3, 4, 8))
    rows = st.lists(st.booleans(), min_size=inp, max_size=inp).filter(any)
    mask = torch.tensor(draw(st.lists(rows, min_size=batch, max_size=batch)))
    ids = torch.tensor(draw(st.lists(st.integers(0, 10**9), min_size=batch, max_size=batch)))
    stream = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    logits = 3 * torch.randn(batch, heads, out, inp, dtype=torch.float64, generator=stream)
    return logits, mask, ids


def multiset(row):
    return sorted(row.tolist())


@for_each("rule", [Learned(), Uniform(), Permuted(), Frozen()], ids=lambda r: r.kind)
@given(attention())
def test_every_rule_gives_a_distribution_over_real_positions(rule, given_attention):
    logits, mask, ids = given_attention
    weights = rule(logits, mask, ids)
    assert weights.shape == logits.shape
    assert (weights >= 0).all()
    assert not weights.masked_fill(mask[:, None, None], 0.0).any()
    torch.testing.assert_close(weights.sum(-1), torch.ones(logits.shape[:3], dtype=torch.float64))


@given(attention())
def test_learned_attention_is_the_softmax_over_the_real_positions_alone(given_attention):
    logits, mask, ids = given_attention
    weights = Learned()(logits, mask, ids)
    for row, real in enumerate(mask):
        expected = torch.softmax(logits[row][..., real], -1)
        torch.testing.assert_close(weights[row][..., real], expected)


@given(attention())
def test_uniform_attention_is_one_over_the_number_of_real_positions(given_attention):
    logits, mask, ids = given_attention
    weights = Uniform()(logits, mask, ids)
    for row, real in enumerate(mask.tolist()):
        shares = [1 / sum(real) if here else 0.0 for here in real]
        expected = torch.tensor(shares, dtype=torch.float64).expand_as(weights[row])
        torch.testing.assert_close(weights[row], expected, rtol=1e-15, atol=0)


@given(attention(), st.integers(0, 100))
def test_permuted_attention_keeps_the_weights_of_each_row(given_attention, seed):
    logits, mask, ids = given_attention
    learned, permuted = Learned()(logits, mask, ids), Permuted(seed=seed)(logits, mask, ids)
    rows = zip(learned.flatten(0, 2), permuted.flatten(0, 2), strict=True)
    assert all(multiset(one) == multiset(other) for one, other in rows)


@given(attention(), st.integers(0, 3), st.integers(0, 5))
def test_a_permutation_does_not_depend_on_padding_or_on_the_rest_of_the_batch(parts, more, out):
    logits, mask, ids = parts
    together = Permuted(seed=1)(logits, mask, ids)
    wide = torch.nn.functional.pad(logits, (0, more, 0, out), value=5.0)
    longer = torch.nn.functional.pad(mask, (0, more))
    inp = logits.shape[-1]
    for row in range(len(ids)):
        one = slice(row, row + 1)
        alone = Permuted(seed=1)(wide[one], longer[one], ids[one])
        torch.testing.assert_close(alone[0, :, : logits.shape[2], :inp], together[row])


def order_of(rule, example=0, heads=1, out=1, inp=12):
    """Return where each weight of strictly falling logits comes to stand, per head and output."""
    logits = -torch.arange(inp, dtype=torch.float64).expand(1, heads, out, inp)
    mask = torch.ones(1, inp, dtype=torch.bool)
    return rule(logits, mask, torch.tensor([example])).argsort(-1, descending=True)[0]


def test_permutations_differ_between_seeds_examples_heads_and_output_positions():
    orders = [order_of(Permuted(seed=seed)).flatten() for seed in range(4)]
    orders += [order_of(Permuted(seed=0), example=example).flatten() for example in range(1, 4)]
    orders += order_of(Permuted(seed=0), heads=3, out=4).flatten(0, 1)[1:].unbind()
    assert len({tuple(order.tolist()) for order in orders}) == len(orders)


def test_every_permutation_of_three_positions_is_as_likely_as_every_other():
    logits = torch.tensor([0.0, -1.0, -2.0]).expand(6000, 1, 1, 3)
    weights = Permuted(seed=3)(logits, torch.ones(6000, 3, dtype=torch.bool), torch.arange(6000))
    orders = weights.argsort(-1, descending=True).flatten(0, 2)
    _, counts = orders.unique(dim=0, return_counts=True)
    assert len(counts) == 6
    # Chi-square with 5 degrees of freedom exceeds 20.5 once in a thousand draws.
    assert ((counts - 1000) ** 2 / 1000).sum() < 20.5


def gradients(model, rule, given_batch=BATCH):
    logits = model.trace(given_batch, {"cross": rule}).logits
    logits.log_softmax(-1)[..., 0].sum().backward()
    return {
        name: 0.0 if parameter.grad is None else float(parameter.grad.abs().sum())
        for name, parameter in model.named_parameters()
    }


@pytest.mark.parametrize("heads", [1, 3])
def test_frozen_attention_passes_no_gradient_to_its_parameters_but_all_others_learn(heads):
    spec = Seq2SeqSpec(embedding=5, hidden=4, heads=heads)
    frozen = gradients(spec.build(SOURCE, 0).double(), Frozen())
    learned = gradients(spec.build(SOURCE, 0).double(), Learned())
    assert all(learned.values())
    assert {n for n, size in frozen.items() if not size} == {
        name for name in frozen if "query_maps" in name
    }


def test_a_classifiers_frozen_attention_passes_no_gradient_to_its_parameters():
    spec = ClassifierSpec(embedding=5, encoder=Recurrent(hidden=4), attention=Additive(hidden=3))
    batch = collate([Example(0, [1, 2, 3], [0], [1]), Example(1, [4, 0], [0], [0])])
    grads = gradients(spec.build(KeywordTask(types=9), 0).double(), Frozen(), batch)
    assert {n for n, size in grads.items() if not size} == {
        name for name in grads if name.startswith("attention.")
    }


def test_frozen_attention_weighs_as_the_learned_one():
    model = Seq2SeqSpec(embedding=5, hidden=4).build(SOURCE, 0)
    one, other = (model.trace(BATCH, {"cross": rule}).logits for rule in (Learned(), Frozen()))
    assert one.equal(other)


def test_given_weights_are_the_weights_and_decide_the_output():
    model = Seq2SeqSpec(embedding=5, hidden=4, heads=2).build(SOURCE, 0).double()
    learned = model.trace(BATCH)
    site = learned.sites["cross"]
    again = model.trace(BATCH, {"cross": Given(site.weights)})
    assert again.sites["cross"].weights.equal(site.weights)
    assert again.logits.equal(learned.logits)
    first = torch.zeros_like(site.weights)
    first[..., 0] = 1.0
    moved = model.trace(BATCH, {"cross": Given(first)})
    assert moved.sites["cross"].weights.equal(first)
    assert not moved.logits.isclose(learned.logits).any()
    context = moved.encoder_states[:, None, None, 0].expand(-1, 3, 2, -1)
    torch.testing.assert_close(moved.sites["cross"].context, context)


def test_gradients_flow_into_given_weights():
    model = Seq2SeqSpec(embedding=5, hidden=4).build(SOURCE, 0)
    weights = torch.full((2, 1, 3, 4), 0.25, requires_grad=True)
    model.trace(BATCH, {"cross": Given(weights)}).logits[BATCH.target_mask].sum().backward()
    real = BATCH.target_mask[:, None, :, None] & BATCH.input_mask[:, None, None]
    assert weights.grad is not None
    assert weights.grad[real].all()


@for_each("rule", [Learned(), Uniform(), Permuted(seed=4), Frozen()])
def test_a_rule_is_read_back_from_its_configuration(rule):
    assert Intervention.model_validate(rule.model_dump(mode="json")) == rule
