"""The objective is -log p of the real output words, by hand and by torch's binary loss."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from torch import Tensor

from attnscope.data.corpus import GrammarTranslation
from attnscope.data.tasks import KeywordTask, PermutationCopy
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.training.objective import Likelihood, Term, negative_log_likelihood, total

STREAM = torch.Generator()
TRANSLATOR = Seq2SeqSpec(embedding=8, hidden=8, embeddings="separate")


class Constant(Term):
    """A term of a known value."""

    kind: Literal["constant of a test"] = "constant of a test"
    value: float

    def __call__(self, model, batch, trace, generator) -> Tensor:
        """Return the value."""
        return torch.tensor(self.value, dtype=torch.float64)


@pytest.fixture(params=["copying", "translation of unequal lengths", "classification"])
def traced(request):
    """A model in double precision, and its trace of a batch."""
    source, spec = {
        "copying": (PermutationCopy(length=5), Seq2SeqSpec(embedding=8, hidden=8)),
        "translation of unequal lengths": (GrammarTranslation(), TRANSLATOR),
        "classification": (
            KeywordTask(length=5),
            ClassifierSpec(embedding=8, encoder=Recurrent(hidden=8)),
        ),
    }[request.param]
    model = spec.build(source, 0).double()
    return model, model.trace(source.training_batch(0, 0, 6))


def test_likelihood_is_the_mean_of_minus_log_p_over_real_positions(traced):
    model, trace = traced
    batch, logits = trace.batch, trace.logits.detach()
    by_hand = [
        -float(torch.log_softmax(logits[row, t], -1)[batch.targets[row, t]])
        for row in range(len(batch))
        for t in range(int(batch.target_lengths[row]))
    ]
    loss = Likelihood()(model, batch, trace, STREAM).detach()
    torch.testing.assert_close(float(loss), sum(by_hand) / len(by_hand), rtol=1e-12, atol=0)


def test_likelihood_is_zero_at_padding(traced):
    _, trace = traced
    assert not negative_log_likelihood(trace)[~trace.batch.target_mask].any()


def test_padding_gets_no_gradient(traced):
    model, trace = traced
    trace.logits.retain_grad()
    Likelihood()(model, trace.batch, trace, STREAM).backward()
    assert not trace.logits.grad[~trace.batch.target_mask].any()


def test_likelihood_of_two_classes_is_the_binary_cross_entropy():
    source = KeywordTask(length=5)
    model = ClassifierSpec(embedding=8, encoder=Recurrent(hidden=8)).build(source, 0).double()
    trace = model.trace(source.training_batch(0, 0, 16))
    context = trace.sites["cross"].context.squeeze(-2)
    expected = torch.nn.BCEWithLogitsLoss()(
        model.output(context).squeeze(-1), trace.batch.targets.double()
    )
    loss = Likelihood()(model, trace.batch, trace, STREAM)
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)


def test_total_is_the_weighted_sum_of_its_terms(traced):
    model, trace = traced
    terms = (Likelihood(weight=2.0), Constant(value=3.0, weight=0.5), Constant(value=-1.0))
    expected = 2 * Likelihood()(model, trace.batch, trace, STREAM) + 0.5
    torch.testing.assert_close(total(terms, model, trace, STREAM), expected)
