"""The contract of a model: every model of the package keeps it, and a broken promise is named."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnscope.data.batch import Example, collate
from attnscope.errors import AttnscopeError
from attnscope.models.base import ModelSpec
from attnscope.models.contract import check_model
from attnscope.models.trace import Trace, attend
from cases import for_each


def test_every_kind_of_model_is_under_contract(listed_models):
    kinds = {
        kind
        for kind, spec in ModelSpec.variants.items()
        if spec.__module__.startswith("attnscope.")
    }
    assert listed_models.keys() == kinds


def test_every_model_keeps_the_contract_on_any_lengths_and_is_left_without_gradients(case, dtype):
    model = case.build(dtype)
    for examples in (case.examples, [case.examples[0]] * 3):
        report = check_model(model, collate(examples))
        assert report.ok, f"\n{report}"
    assert all(parameter.grad is None for parameter in model.parameters())


class OwnModel(nn.Module):
    """A user's classifier that keeps the contract; each model below breaks one promise of it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(9, 6)
        self.encoder = nn.LSTM(6, 5, batch_first=True, bidirectional=True)
        self.attention = nn.Linear(10, 1)
        self.output = nn.Linear(10, 3)

    def states(self, batch, embeddings):
        packed = pack_padded_sequence(
            embeddings, batch.input_lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = self.encoder(packed)
        return pad_packed_sequence(states, batch_first=True, total_length=batch.inputs.shape[1])[0]

    def site(self, batch, logits, values, rule):
        return attend(batch, logits, values, rule)

    def trace(self, batch, attention=None, generator=None):
        embeddings = self.embedding(batch.inputs)
        states = self.states(batch, embeddings)
        logits = self.attention(states).transpose(1, 2)[:, None]
        site = self.site(batch, logits, states[:, None], (attention or {}).get("cross"))
        query = states.new_zeros(len(batch), 1, 0)
        output = self.readout(site.context, query)
        return Trace(batch, embeddings, states, None, query, output, {"cross": site})

    def readout(self, context, query):
        return self.output(context.squeeze(-2))


class IgnoresTheMask(OwnModel):
    def site(self, batch, logits, values, rule):
        site = attend(batch, logits, values, rule)
        return site if rule else replace(site, weights=logits.softmax(-1))


class IgnoresInterventions(OwnModel):
    def site(self, batch, logits, values, rule):
        return attend(batch, logits, values)


class ShowsAnInterventionWithoutFollowingIt(OwnModel):
    def trace(self, batch, attention=None, generator=None):
        shown = super().trace(batch, attention)
        return replace(shown, logits=super().trace(batch).logits)


class ReadsOutOtherwise(OwnModel):
    def trace(self, batch, attention=None, generator=None):
        trace = super().trace(batch, attention)
        return replace(trace, logits=trace.logits.tanh())


class LeaksPadding(OwnModel):
    def states(self, batch, embeddings):
        return self.encoder(embeddings)[0]


class DetachesGivenWeights(OwnModel):
    def site(self, batch, logits, values, rule):
        site = super().site(batch, logits, values, rule)
        return replace(site, weights=site.weights.detach()) if rule else site


class RunsWithoutGradients(OwnModel):
    @torch.no_grad()
    def trace(self, batch, attention=None, generator=None):
        return super().trace(batch, attention)


class LeavesDropoutOn(OwnModel):
    def states(self, batch, embeddings):
        return nn.functional.dropout(super().states(batch, embeddings), 0.5)


class LooksAtItsNeighbours(OwnModel):
    def states(self, batch, embeddings):
        return super().states(batch, embeddings - embeddings.mean(0, keepdim=True))


class LosesAnInputPosition(OwnModel):
    def trace(self, batch, attention=None, generator=None):
        trace = super().trace(batch, attention)
        states = trace.encoder_states[:, 1:]
        return replace(trace, embeddings=trace.embeddings[:, 1:], encoder_states=states)


def _examples(lengths):
    return [
        Example(n, [(3 * n + 2 * k) % 9 for k in range(length)], [0], [n % 3])
        for n, length in enumerate(lengths)
    ]


UNEQUAL = collate(_examples([3, 6, 1, 5]))
EQUAL = collate(_examples([4, 4, 4]))


def broken_promises(model, batch):
    return "\n".join(c.promise for c in check_model(model, batch).checks if not c.kept)


def own(model_class, dtype=torch.float64):
    torch.manual_seed(3)
    return model_class().to(dtype)


def test_a_users_own_model_can_keep_the_contract(dtype):
    assert broken_promises(own(OwnModel, dtype), UNEQUAL) == ""
    assert broken_promises(own(OwnModel, dtype), EQUAL) == ""


@for_each(
    ("model_class", "promise"),
    [
        (IgnoresTheMask, "is a distribution over real positions"),
        (IgnoresInterventions, "can be made uniform"),
        (ShowsAnInterventionWithoutFollowingIt, "gradients flow through attention given"),
        (ReadsOutOtherwise, "the readout of the context is the output"),
        (LeaksPadding, "padding changes no output"),
        (DetachesGivenWeights, "gradients flow through attention given"),
        (RunsWithoutGradients, "gradients flow through attention given"),
        (LeavesDropoutOn, "gives the same output twice"),
        (LooksAtItsNeighbours, "other examples of the batch change no output"),
        (LosesAnInputPosition, "one row per output and per input position"),
    ],
)
def test_a_broken_promise_is_named(model_class, promise):
    assert promise in broken_promises(own(model_class), UNEQUAL)


@pytest.mark.parametrize("model_class", [IgnoresTheMask, LeaksPadding])
def test_padding_is_tried_even_where_the_batch_has_none(model_class):
    assert "padding changes no output" in broken_promises(own(model_class), EQUAL)


def test_a_model_whose_parameters_do_not_train_is_checked_too():
    good, bad = own(OwnModel).requires_grad_(False), own(DetachesGivenWeights).requires_grad_(False)
    assert broken_promises(good, UNEQUAL) == ""
    assert "gradients flow through attention given" in broken_promises(bad, UNEQUAL)


def test_a_report_prints_one_line_per_promise_and_marks_the_broken_ones():
    lines = str(check_model(own(LeaksPadding), UNEQUAL)).splitlines()
    assert any(line.startswith("BROKEN  padding changes no output") for line in lines)
    assert any(line.startswith("kept    the readout of the context") for line in lines)


def test_one_example_alone_cannot_be_checked():
    with pytest.raises(AttnscopeError, match="at least two examples"):
        check_model(own(OwnModel), UNEQUAL.rows(slice(1)))
