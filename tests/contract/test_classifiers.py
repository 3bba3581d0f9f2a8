"""One number under three names: snell's probe, sunlu's polarity, tutek's per-token logit (Eq. 9).

Of every classifier, the logits are the attention-weighted mean of the logits of single states,
because its output is affine and attention sums to 1.
"""

from __future__ import annotations

import pytest
import torch

from attnscope.data.batch import collate
from attnscope.models.attentions import AttentionSpec, QuerySpec
from attnscope.models.encoders import EncoderSpec
from attnscope.models.intervention import Learned, Permuted, Uniform
from attnscope.scores.lexical_probe import LexicalProbe
from cases import for_each

EXACT = {"rtol": 0, "atol": 1e-12}


@pytest.fixture
def classifier(classifying):
    """Each classifier in double precision."""
    return classifying.build(torch.float64).requires_grad_(False)


def per_token_logits(model, trace):
    """Return the readout of every state, as if all attention were on it."""
    states = trace.sites["cross"].values.transpose(1, 2)  # batch, inp, heads, value
    return model.readout(states, trace.query.expand(-1, states.shape[1], -1))


@for_each("rule", [Learned(), Uniform(), Permuted(seed=3)], ids=lambda r: r.kind)
def test_the_logits_are_the_attention_weighted_mean_of_those_of_single_tokens(
    classifier, classifying, rule
):
    trace = classifier.trace(collate(classifying.examples), {"cross": rule})
    weights = trace.sites["cross"].weights[:, 0, 0]
    mean = torch.einsum("bl,blk->bk", weights, per_token_logits(classifier, trace))
    torch.testing.assert_close(mean, trace.logits[:, 0], **EXACT)


def test_the_logits_of_single_tokens_are_the_probes_and_the_polarity(classifier, classifying):
    trace = classifier.trace(collate(classifying.examples))
    tokens, real = per_token_logits(classifier, trace), trace.batch.input_mask

    # sunlu: s = Wᵀh of each word's state, plus the bias where there is one.
    polarity = trace.encoder_states @ classifier.output.weight.T
    if classifier.output.bias is not None:
        polarity = polarity + classifier.output.bias
    rows = polarity.shape[-1]
    torch.testing.assert_close(tokens[..., -rows:], polarity, **EXACT)

    # snell: β of the right label, here as its logarithm.
    probe = LexicalProbe(reading="log_probability").read(classifier, trace).values[:, 0]
    labels = trace.batch.targets[:, :, None].expand(-1, tokens.shape[1], -1)
    expected = tokens.log_softmax(-1).gather(-1, labels).squeeze(-1)
    torch.testing.assert_close(probe[real], expected[real], **EXACT)


def test_with_two_labels_the_probe_is_the_signed_polarity(listed_models):
    for case in listed_models["classifier"]:
        if len(case.source.output_words) != 2:
            continue
        model = case.build(torch.float64).requires_grad_(False)
        trace = model.trace(collate(case.examples))
        probe = LexicalProbe().read(model, trace).values[:, 0]
        expected = (2 * trace.batch.targets - 1) * per_token_logits(model, trace)[..., 1]
        real = trace.batch.input_mask
        torch.testing.assert_close(probe[real], expected[real], **EXACT)


@for_each("root", [EncoderSpec, AttentionSpec, QuerySpec])
def test_every_part_of_a_classifier_is_under_contract(listed_models, root):
    specs = [case.spec for case in listed_models["classifier"]]
    parts = {
        EncoderSpec: {spec.encoder.kind for spec in specs},
        AttentionSpec: {spec.attention.kind for spec in specs},
        QuerySpec: {spec.attention.query.kind for spec in specs},
    }
    kinds = {k for k, c in root.variants.items() if c.__module__.startswith("attnscope.")}
    assert parts[root] == kinds
