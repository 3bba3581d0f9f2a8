"""Shares of terms against their definition, step by step, and what must not change them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from attnscope.analysis.alignment_terms import CROSS, TERMS, AlignmentTerms, compute_alignment_terms
from attnscope.analysis.decomposition import decompose
from attnscope.analysis.term_shares import compute_term_shares, row_centred
from attnscope.data.batch import Batch
from attnscope.data.tasks import SampledCopy
from attnscope.errors import MissingCapability, UsageError
from attnscope.models.seq2seq import Seq2Seq, Seq2SeqSpec
from attnscope.models.trace import Trace

COPYING = SampledCopy(length=6, vocabulary=8)
EXACT = {"rtol": 0, "atol": 1e-12}


def model_of(heads: int = 2) -> Seq2Seq:
    return Seq2SeqSpec(embedding=4, hidden=5, heads=heads).build(COPYING, 0).double()


def copying_batch(count: int = 20) -> Batch:
    batch = COPYING.evaluation_batch(count)
    inp, out = torch.randint(2, 8, (2, count), generator=torch.Generator().manual_seed(1))
    return replace(batch, input_lengths=inp, target_lengths=out)


@torch.no_grad()
def traces_of(model: Seq2Seq, size: int = 20) -> list[Trace]:
    batch = copying_batch()
    return [model.trace(batch.rows(slice(at, at + size)).trimmed()) for at in range(0, 20, size)]


def by_definition(terms: AlignmentTerms, chosen: AlignmentTerms, head: int) -> np.ndarray:
    """Loop over samples and steps as details 4.4 say it: [step, term], means over samples."""
    steps = []
    for step in range(terms.mask.shape[1]):
        samples = []
        for sample in range(len(terms.mask)):
            real = terms.mask[sample, step].nonzero()[:, 0].tolist()
            if not real:
                continue
            alignment = chosen.total[sample, head, step]
            top = sorted(real, key=lambda t: -float(alignment[t]))[:5]
            sizes = terms.values[sample, head, :, step, top].abs().numpy()
            samples.append((sizes / sizes.sum(0)).mean(1))
        steps.append(np.mean(samples, 0))
    return np.array(steps)


@pytest.mark.parametrize("form", ["raw", "centred"])
def test_shares_are_those_of_the_definition(form: str) -> None:
    traces = traces_of(model_of())
    components = decompose(traces, CROSS)
    (terms,) = compute_alignment_terms(traces[0], components)
    changed = {"raw": terms, "centred": row_centred(terms)}[form]
    found = compute_term_shares(traces, components)[form]
    for head in range(2):
        expected = by_definition(changed, terms, head)
        np.testing.assert_allclose(found.per_step[head].T, expected, **EXACT)
        np.testing.assert_allclose(found.mean[head], expected.mean(0), **EXACT)


def test_shares_of_a_step_and_of_an_example_sum_to_one() -> None:
    traces = traces_of(model_of())
    for shares in compute_term_shares(traces, decompose(traces, CROSS)).values():
        for values in (shares.per_step.sum(1), shares.per_example.sum(-1), shares.mean.sum(-1)):
            torch.testing.assert_close(values, torch.ones_like(values), **EXACT)
        lengths = copying_batch().target_lengths
        assert shares.counts.tolist() == [int((lengths > step).sum()) for step in range(7)]


def test_batching_and_padding_change_no_share() -> None:
    model = model_of()
    whole = traces_of(model)
    components = decompose(whole, CROSS)
    streamed = compute_term_shares(traces_of(model, 3), components)
    for form, stored in compute_term_shares(whole, components).items():
        torch.testing.assert_close(streamed[form].per_step, stored.per_step, **EXACT)
        torch.testing.assert_close(streamed[form].per_example, stored.per_example, **EXACT)
        assert streamed[form].counts.equal(stored.counts)


def with_products(trace: Trace, queries: Tensor, keys: Tensor) -> Trace:
    site = replace(trace.sites["cross"], queries=queries, keys=keys, logits=queries @ keys.mT)
    return replace(trace, sites={"cross": site})


def test_purely_temporal_alignment_is_all_temporal() -> None:
    (trace,) = traces_of(model_of(1))
    queries, keys = torch.randn(2, 1, 1, 7, 4, generator=torch.Generator().manual_seed(0)).double()
    temporal = with_products(trace, queries.expand(20, -1, -1, -1), keys.expand(20, -1, -1, -1))
    shares = compute_term_shares([temporal], decompose([temporal], CROSS))
    for form in ("raw", "centred"):
        assert float(shares[form].mean[0, TERMS.index(("temporal", "temporal"))]) > 1 - 1e-9


def test_a_part_of_the_keys_that_is_the_same_everywhere_has_no_centred_share() -> None:
    # μ^E is one large constant vector, so that every product with it is constant over positions.
    (trace,) = traces_of(model_of(1))
    generator = torch.Generator().manual_seed(0)
    queries, words = torch.randn(2, 20, 1, 7, 4, generator=generator).double()
    mask = trace.batch.input_mask[:, None, :, None]
    words = words - (words * mask).sum(0) / mask.sum(0)
    trace = with_products(trace, queries, words + 100)
    shares = compute_term_shares([trace], decompose([trace], CROSS))
    constant = [term for term, (_, encoder) in enumerate(TERMS) if encoder == "temporal"]
    assert float(shares["raw"].mean[0, constant].sum()) > 0.8
    assert float(shares["centred"].mean[0, constant].sum()) < 1e-9


def test_row_centred_terms_sum_to_zero_over_real_positions_and_are_zero_elsewhere() -> None:
    (trace,) = traces_of(model_of())
    (terms,) = compute_alignment_terms(trace, decompose([trace], CROSS))
    centred = row_centred(terms)
    assert float(centred.values.sum(-1).abs().max()) < 1e-12
    assert not centred.values[~terms.mask[:, None, None].expand_as(terms.values)].any()


def test_the_scale_of_the_logits_changes_no_share() -> None:
    (trace,) = traces_of(model_of())
    site = trace.sites["cross"]
    scaled = replace(trace, sites={"cross": replace(site, logits=site.logits / 8)})
    components = decompose([trace], CROSS)
    expected = compute_term_shares([trace], components)["raw"].mean
    torch.testing.assert_close(
        compute_term_shares([scaled], components)["raw"].mean, expected, **EXACT
    )


def test_a_single_position_has_raw_shares_and_no_centred_ones() -> None:
    model = model_of()
    batch = replace(copying_batch(), input_lengths=torch.ones(20, dtype=torch.long)).trimmed()
    with torch.no_grad():
        trace = model.trace(batch)
    shares = compute_term_shares([trace], decompose([trace], CROSS))
    assert shares["raw"].mean.isfinite().all()
    assert shares["centred"].mean.isnan().all()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_gives_the_same_shares() -> None:
    model = model_of()
    traces = traces_of(model)
    expected = compute_term_shares(traces, decompose(traces, CROSS))
    with torch.no_grad():
        on_gpu = model.cuda().trace(traces[0].batch.to("cuda"))
    found = compute_term_shares([on_gpu], decompose([on_gpu], CROSS))
    for form, shares in expected.items():
        torch.testing.assert_close(found[form].per_step, shares.per_step, rtol=0, atol=1e-9)


def test_logits_that_terms_do_not_sum_to_are_refused_and_so_is_nothing() -> None:
    (trace,) = traces_of(model_of())
    site = trace.sites["cross"]
    other = replace(trace, sites={"cross": replace(site, logits=site.logits.tanh())})
    components = decompose([trace], CROSS)
    with pytest.raises(MissingCapability, match="not a multiple of q·k"):
        compute_term_shares([other], components)
    with pytest.raises(UsageError, match="give at least one batch"):
        compute_term_shares([], components)
