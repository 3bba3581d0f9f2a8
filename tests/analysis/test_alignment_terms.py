"""The nine terms: they sum to the logit, whatever the maps of queries and keys are."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from attnscope.analysis import alignment_terms as module
from attnscope.analysis.alignment_terms import (
    CROSS,
    TERMS,
    QueriesAndKeys,
    compute_alignment_terms,
    logit_scale,
    temporal_agreement,
    temporal_attention,
)
from attnscope.analysis.decomposition import decompose
from attnscope.data.batch import Batch
from attnscope.data.tasks import KeywordTask, SampledCopy
from attnscope.errors import MissingCapability
from attnscope.models.attentions import Additive
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.seq2seq import Seq2Seq, Seq2SeqSpec
from attnscope.models.trace import Trace
from cases import for_each

COPYING = SampledCopy(length=6, vocabulary=8)
EXACT = {"rtol": 0, "atol": 1e-12}


def translator(heads: int = 3) -> Seq2Seq:
    spec = Seq2SeqSpec(embedding=4, hidden=5, layers=2, directions=2, heads=heads)
    return spec.build(COPYING, 0).double()


def copying_batch(count: int = 20) -> Batch:
    batch = COPYING.evaluation_batch(count)
    inp, out = torch.randint(2, 8, (2, count), generator=torch.Generator().manual_seed(1))
    return replace(batch, input_lengths=inp, target_lengths=out)


@torch.no_grad()
def trace_of(model: Seq2Seq) -> Trace:
    return model.trace(copying_batch().trimmed())


def with_site(trace: Trace, **changes: torch.Tensor | None) -> Trace:
    return replace(trace, sites={"cross": replace(trace.sites["cross"], **changes)})


@pytest.mark.parametrize("heads", [1, 3])
def test_nine_terms_sum_to_the_logit_of_every_head(heads: int) -> None:
    trace = trace_of(translator(heads))
    (terms,) = compute_alignment_terms(trace, decompose([trace], CROSS))
    assert terms.values.shape == (20, heads, 9, 7, 7)
    real = trace.batch.target_mask[:, :, None] & trace.batch.input_mask[:, None]
    assert terms.mask.equal(real)
    expected = trace.sites["cross"].logits.masked_fill(~real[:, None], 0.0)
    torch.testing.assert_close(terms.total, expected, **EXACT)


def test_each_term_is_the_product_of_the_parts_it_is_named_after() -> None:
    trace = trace_of(translator())
    components = decompose([trace], CROSS)
    (terms,) = compute_alignment_terms(trace, components)
    sides = CROSS(trace)
    assert components.decoder is not None
    assert sides.decoder is not None
    queries, keys = components.decoder.split(sides.decoder), components.encoder.split(sides.encoder)
    for term, (decoder, encoder) in enumerate(TERMS):
        q, k = getattr(queries, decoder)[3, 1], getattr(keys, encoder)[3, 0]
        by_head = (q * k).view(3, 10).sum(-1)
        torch.testing.assert_close(terms.values[3, :, term, 1, 0], by_head, **EXACT)


def test_decomposing_commutes_with_affine_maps_and_a_bias_belongs_to_the_temporal_part() -> None:
    model = translator()
    trace = trace_of(model)
    mapped, states = decompose([trace], CROSS).decoder, decompose([trace]).decoder
    assert mapped is not None
    assert states is not None
    head = model.attention.query_maps[1]
    with torch.no_grad():
        temporal, word = head(states.temporal), states.word @ head.weight.mT
    torch.testing.assert_close(mapped.temporal[:, 10:20], temporal, **EXACT)
    torch.testing.assert_close(mapped.word[:, 10:20], word, equal_nan=True, **EXACT)


def test_chunks_of_examples_change_no_term(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = trace_of(translator())
    components = decompose([trace], CROSS)
    (whole,) = compute_alignment_terms(trace, components)
    monkeypatch.setattr(module, "_CELLS", 9 * 3 * 7 * 7 * 8)
    parts = list(compute_alignment_terms(trace, components))
    assert [len(part.mask) for part in parts] == [8, 8, 4]
    torch.testing.assert_close(torch.cat([part.values for part in parts]), whole.values, **EXACT)
    assert torch.cat([part.mask for part in parts]).equal(whole.mask)


def test_padding_changes_no_term() -> None:
    model, batch = translator(), copying_batch()
    with torch.no_grad():
        long, short = model.trace(batch), model.trace(batch.rows(slice(3)).trimmed())
    components = decompose([long], CROSS)
    (whole,), (part,) = (compute_alignment_terms(trace, components) for trace in (long, short))
    out, inp = part.mask.shape[1:]
    torch.testing.assert_close(part.values, whole.values[:3, ..., :out, :inp], **EXACT)


def test_the_scale_of_the_logits_is_found() -> None:
    trace = trace_of(translator())
    assert logit_scale(trace) == pytest.approx(1, abs=1e-12)
    scaled = with_site(trace, logits=trace.sites["cross"].logits / 10**0.5)
    assert logit_scale(scaled) == pytest.approx(10**-0.5, abs=1e-12)
    masked = trace.sites["cross"].logits.masked_fill(~trace.batch.input_mask[:, None, None], -1e4)
    assert logit_scale(with_site(trace, logits=masked)) == pytest.approx(1, abs=1e-12)


@for_each("change", [torch.tanh, torch.neg, lambda logits: logits + 0.1])
def test_logits_that_are_no_multiple_of_the_product_are_refused(change) -> None:
    trace = trace_of(translator())
    with pytest.raises(MissingCapability, match="Logits at 'cross' are not a multiple of q·k"):
        logit_scale(with_site(trace, logits=change(trace.sites["cross"].logits)))


def test_additive_attention_has_no_terms_and_says_so() -> None:
    task = KeywordTask(length=6, types=5)
    model = ClassifierSpec(
        embedding=4, encoder=Recurrent(hidden=3), attention=Additive(hidden=2)
    ).build(task, 0)
    with torch.no_grad():
        trace = model.trace(task.evaluation_batch(5))
    with pytest.raises(MissingCapability, match="is not a product of queries and keys"):
        decompose([trace], CROSS)


def test_a_model_without_the_site_says_which_it_has() -> None:
    trace = trace_of(translator())
    with pytest.raises(MissingCapability, match=r"does not attend at 'self'; valid: cross"):
        decompose([trace], QueriesAndKeys("self"))
    with pytest.raises(MissingCapability, match=r"valid: \(none\)"):
        decompose([replace(trace, sites={})], CROSS)


def test_components_of_an_encoder_alone_have_no_alignment() -> None:
    trace = trace_of(translator())
    components = replace(decompose([trace], CROSS), decoder=None)
    with pytest.raises(MissingCapability, match="no decoder's side"):
        temporal_attention(components)


def test_in_self_attention_both_sides_are_grouped_by_the_same_words() -> None:
    trace = trace_of(translator())
    keys = trace.sites["cross"].keys
    assert keys is not None
    site = replace(trace.sites["cross"], queries=keys, logits=keys @ keys.mT)
    own = replace(trace, sites={"self": site})
    found = decompose([own], QueriesAndKeys("self", queries="encoder", keys="encoder"))
    assert found.decoder is not None
    torch.testing.assert_close(found.decoder.word, found.encoder.word, equal_nan=True, **EXACT)


def test_attention_of_temporal_components_is_the_softmax_over_input_positions() -> None:
    trace = trace_of(translator())
    found = decompose([trace], CROSS)
    assert found.decoder is not None
    attention = temporal_attention(found, heads=3, scale=0.5)
    torch.testing.assert_close(attention.sum(-1), torch.ones(3, 7).double(), **EXACT)
    logits = found.encoder.temporal[:, 10:20] @ found.decoder.temporal[4, 10:20]
    torch.testing.assert_close(attention[1, 4], (0.5 * logits).softmax(0), **EXACT)


def test_steps_that_no_example_reaches_get_no_attention_of_temporal_components() -> None:
    trace = trace_of(translator())
    batch = trace.batch
    lengths = batch.input_lengths.clamp(max=5), batch.target_lengths.clamp(max=4)
    short = replace(batch, input_lengths=lengths[0], target_lengths=lengths[1])
    site = replace(trace.sites["cross"], mask=short.input_mask)
    found = decompose([replace(trace, batch=short, sites={"cross": site})], CROSS)
    attention = temporal_attention(found, heads=3)
    assert attention.shape == (3, 7, 7)
    # The two last encoder steps are padding everywhere, and so are three decoder steps.
    assert attention[:, :4, 5:].eq(0).all()
    torch.testing.assert_close(attention[:, :4].sum(-1), torch.ones(3, 4).double(), **EXACT)
    assert attention[:, 4:].isnan().all()


def test_purely_temporal_queries_and_keys_agree_with_the_full_attention_everywhere() -> None:
    trace = trace_of(translator(1))
    generator = torch.Generator().manual_seed(0)
    queries, keys = torch.randn(2, 1, 1, 7, 4, generator=generator).double()
    queries, keys = (x.expand(20, -1, -1, -1) for x in (queries, keys))
    temporal = with_site(trace, queries=queries, keys=keys, logits=queries @ keys.mT)
    agreement = temporal_agreement(temporal, decompose([temporal], CROSS))
    assert agreement.isnan().equal(~trace.batch.target_mask[:, None])
    assert agreement.nanmean() == 1


def test_agreement_is_the_share_of_steps_whose_maxima_coincide() -> None:
    trace = trace_of(translator())
    found = decompose([trace], CROSS)
    agreement = temporal_agreement(trace, found)
    alignment = temporal_attention(found, heads=3).log()
    for example, head, step in ((0, 0, 0), (4, 1, 1), (9, 2, 0), (19, 0, 1)):
        length = int(trace.batch.input_lengths[example])
        full = trace.sites["cross"].logits[example, head, step, :length].argmax()
        same = alignment[head, step, :length].argmax() == full
        assert agreement[example, head, step] == float(same)
    assert 0 < agreement.nanmean() < 1
