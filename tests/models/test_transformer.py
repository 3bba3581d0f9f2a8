"""The Transformer against PyTorch's own, and what its sites promise."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from attnscope.analysis.alignment_terms import CROSS, QueriesAndKeys, compute_alignment_terms
from attnscope.analysis.decomposition import decompose, states_of
from attnscope.data.randomness import generator
from attnscope.data.sequence_tasks import OneToOne
from attnscope.data.tasks import KeywordTask
from attnscope.errors import UsageError
from attnscope.models.decoding import greedy
from attnscope.models.intervention import Given, Uniform
from attnscope.models.transformer import TransformerSpec
from cases import for_each

SOURCE = OneToOne(shortest=3, longest=6)
WIDTH, HEADS, HIDDEN = 12, 3, 20
SITES = ("encoder.1.self", "encoder.2.self", "decoder.1.self", "cross.1", "decoder.2.self", "cross")
every_site = for_each("name", SITES)


def build(**settings):
    """A model in double precision, its biases and norms drawn too."""
    defaults = {"width": WIDTH, "heads": HEADS, "layers": 2, "feed_forward": HIDDEN}
    model = TransformerSpec(**(defaults | settings)).build(SOURCE, seed=2).double()
    stream = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                drawn = torch.randn(parameter.shape, generator=stream, dtype=torch.float64)
                parameter.add_(0.3 * drawn)
    return model


def batch(count=5):
    return SOURCE.evaluation_batch(count)


def near(a, b, tolerance=1e-12):
    torch.testing.assert_close(a, b, rtol=0, atol=tolerance)


def copied(own, theirs):
    """Give PyTorch's module the weights of one of ours, by the names of both."""
    theirs.load_state_dict({name: value.clone() for name, value in own.items()})


def attention_weights(attention, name):
    maps = (attention.query, attention.key, attention.value)
    return {
        f"{name}.in_proj_weight": torch.cat([part.weight for part in maps]),
        f"{name}.in_proj_bias": torch.cat([part.bias for part in maps]),
        f"{name}.out_proj.weight": attention.merge.weight,
        f"{name}.out_proj.bias": attention.merge.bias,
    }


def layer_weights(layer, *parts):
    """Name a layer's weights as PyTorch does; ``parts`` are its attentions, in order."""
    found = {}
    for (name, attention), number in zip(parts, (1, 2, 3), strict=False):
        found |= attention_weights(attention, name)
        found |= {f"norm{number}.{k}": v for k, v in attention.norm.state_dict().items()}
    feed = layer.feed_forward
    for name, module in (
        (f"norm{len(parts) + 1}", feed.norm),
        ("linear1", feed.hidden),
        ("linear2", feed.output),
    ):
        found |= {f"{name}.{k}": v for k, v in module.state_dict().items()}
    return found


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_the_output_is_that_of_pytorchs_own_pre_norm_transformer():
    model, given = build(), batch()
    theirs = nn.Transformer(
        WIDTH, HEADS, 2, 2, HIDDEN, dropout=0.0, batch_first=True, norm_first=True
    ).double()
    for own, other in zip(model.encoder, theirs.encoder.layers, strict=True):
        copied(layer_weights(own, ("self_attn", own.attention)), other)
    for own, other in zip(model.decoder, theirs.decoder.layers, strict=True):
        parts = ("self_attn", own.attention), ("multihead_attn", own.cross)
        copied(layer_weights(own, *parts), other)
    copied(model.encoder_norm.state_dict(), theirs.encoder.norm)
    copied(model.decoder_norm.state_dict(), theirs.decoder.norm)

    def placed(embedding, ids):
        places, half = torch.arange(ids.shape[1]).double(), torch.arange(WIDTH // 2).double()
        angles = places[:, None] / 10_000 ** (2 * half / WIDTH)
        position = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        return embedding(ids) * WIDTH**0.5 + position

    out = given.targets.shape[1]
    expected = model.output(
        theirs(
            placed(model.source_embedding, given.inputs),
            placed(model.target_embedding, given.decoder_inputs),
            tgt_mask=torch.ones(out, out).triu(1).bool(),
            src_key_padding_mask=~given.input_mask,
            memory_key_padding_mask=~given.input_mask,
            tgt_key_padding_mask=~given.target_mask,
        )
    )
    found = model.trace(given).logits
    near(found[given.target_mask], expected[given.target_mask])


def test_every_attention_is_a_site_with_all_heads():
    sites = build().trace(batch()).sites
    assert set(sites) == set(SITES)
    assert {site.weights.shape[1] for site in sites.values()} == {HEADS}
    for name, site in sites.items():
        read = batch().target_mask if name.startswith("decoder") else batch().input_mask
        assert site.mask.equal(read)
    deep = build(layers=3).trace(batch()).sites
    assert {"cross.1", "cross.2", "cross", "encoder.3.self", "decoder.3.self"} <= set(deep)


@pytest.mark.parametrize("layers", [1, 3])
def test_the_readout_of_the_last_cross_site_is_the_output(layers):
    model = build(layers=layers)
    trace = model.trace(batch())
    assert trace.logits.equal(model.readout(trace.sites["cross"].context, trace.query))


def test_with_another_attention_at_cross_the_query_stays_and_the_readout_is_still_the_output():
    model = build()
    plain, changed = model.trace(batch()), model.trace(batch(), {"cross": Uniform()})
    near(changed.query, plain.query, 0.0)
    assert changed.logits.equal(model.readout(changed.sites["cross"].context, plain.query))
    assert not torch.allclose(changed.logits, plain.logits)


@every_site
def test_attention_can_be_replaced_at_every_site_and_changes_the_output(name):
    model, given = build(), batch()
    plain = model.trace(given)
    changed = model.trace(given, {name: Uniform()})
    assert (changed.logits - plain.logits)[given.target_mask].abs().max() > 1e-3
    again = model.trace(given, {name: Given(plain.sites[name].weights)})
    near(again.logits[given.target_mask], plain.logits[given.target_mask])


@every_site
def test_logits_are_the_products_of_queries_and_keys_and_decide_the_weights(name):
    site = build().trace(batch()).sites[name]
    open_ = site.logits.isfinite()
    near((site.queries @ site.keys.mT)[open_], site.logits[open_])
    closed = ~site.mask[:, None, None]
    near(site.weights, site.logits.masked_fill(closed, -torch.inf).softmax(-1))


def test_words_that_come_later_change_nothing():
    model, given = build(), batch()
    plain = model.trace(given)
    for step in (1, 3):
        words = given.decoder_inputs.clone()
        words[:, step:] = (words[:, step:] + 1) % 4
        other = model.trace(replace(given, decoder_inputs=words))
        near(other.logits[:, :step], plain.logits[:, :step])
        assert not torch.allclose(other.logits[:, step], plain.logits[:, step])


def test_writing_word_by_word_gives_the_words_that_the_trace_prefers():
    model, given = build(), batch(3)
    written = greedy(model, given, SOURCE.boundaries, limit=5).words
    for row, words in enumerate(written):
        words = words[:3]
        read = torch.tensor([[SOURCE.boundaries[0], *words[:-1]]])
        one = replace(
            given.rows(slice(row, row + 1)),
            decoder_inputs=read,
            targets=read,
            gold=read,
            target_lengths=torch.tensor([read.shape[1]]),
        )
        assert model.trace(one).logits.argmax(-1)[0, : len(words)].tolist() == words


def test_queries_keys_and_values_at_cross_are_affine_maps_of_the_states():
    model = build()
    trace = model.trace(batch())
    site, cross = trace.sites["cross"], model.decoder[-1].cross
    side_by_side = {k: getattr(site, k).transpose(1, 2).flatten(2) for k in ("keys", "values")}
    near(side_by_side["keys"], cross.key(trace.encoder_states))
    near(side_by_side["values"], cross.value(trace.encoder_states))
    queries = site.queries.transpose(1, 2).flatten(2)
    near(queries * (WIDTH / HEADS) ** 0.5, cross.query(trace.decoder_states))


@for_each("name", ["cross", "cross.1", "encoder.2.self"])
def test_the_nine_terms_of_every_head_sum_to_its_logits(name):
    model = build()
    view = (
        QueriesAndKeys(name, "encoder", "encoder")
        if "encoder" in name
        else replace(CROSS, site=name)
    )
    trace = model.trace(batch())
    components = decompose([trace], view)
    (terms,) = compute_alignment_terms(trace, components, view)
    real = terms.mask[:, None].expand_as(terms.total)
    near(terms.total[real], trace.sites[name].logits[real])


def test_the_three_components_sum_to_encoder_and_decoder_states():
    trace = build().trace(batch())
    components, sides = decompose([trace]), states_of(trace)
    for side, of in ((sides.encoder, components.encoder), (sides.decoder, components.decoder)):
        parts = of.split(side)
        total = parts.temporal + parts.word + parts.delta
        near(total[parts.mask], side.states[side.mask])


def test_dropout_comes_from_the_generator_alone():
    model, given = build(dropout=0.3), batch()
    plain = model.trace(given).logits
    one, same, other = (model.trace(given, None, generator("d", k)).logits for k in (0, 0, 1))
    assert one.equal(same)
    assert not torch.allclose(one, other)
    assert not torch.allclose(one, plain)
    assert model.trace(given).logits.equal(plain)
    none = build()
    assert none.trace(given, None, generator("d", 0)).logits.equal(none.trace(given).logits)


def test_the_seed_decides_the_weights():
    spec = TransformerSpec(width=8, heads=2)
    one, same, other = (spec.build(SOURCE, seed).state_dict() for seed in (0, 0, 1))
    assert all(value.equal(same[name]) for name, value in one.items())
    assert not one["output.weight"].equal(other["output.weight"])


def test_heads_that_do_not_share_the_width_are_refused():
    with pytest.raises(ValidationError, match="width=10 cannot be shared by heads=4"):
        TransformerSpec(width=10, heads=4)


def test_a_source_of_labels_is_refused():
    with pytest.raises(UsageError, match="has labels"):
        TransformerSpec().build(KeywordTask(), 0)
