"""Attention as a score: which heads are read, and what is said where there is nothing to read."""

from __future__ import annotations

import pytest
import torch

from attnscope.data.batch import Example, collate
from attnscope.data.tasks import SampledCopy
from attnscope.errors import AttnscopeError, MissingCapability, UsageError
from attnscope.models.intervention import Given
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.models.trace import Trace
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.score import read_score
from cases import for_each

SOURCE = SampledCopy(length=4, vocabulary=6)
MODEL = Seq2SeqSpec(embedding=5, hidden=4, heads=3).build(SOURCE, 0).double()
BATCH = collate([Example(0, [1, 2, 6], [7, 1], [1, 6])])
# Three heads, two output positions, three input positions.
WEIGHTS = torch.tensor(
    [
        [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]],
        [[0.25, 0.5, 0.25], [1.0, 0.0, 0.0]],
        [[0.75, 0.0, 0.25], [0.5, 0.0, 0.5]],
    ],
    dtype=torch.float64,
)


def read(heads):
    rule = Attention(heads=heads)
    return read_score(rule, MODEL, BATCH, {"cross": Given(WEIGHTS[None])}).values[0]


def test_heads_can_be_averaged():
    expected = torch.tensor([[0.5, 0.25, 0.25], [0.5, 1 / 3, 1 / 6]], dtype=torch.float64)
    torch.testing.assert_close(read("mean"), expected)


def test_the_largest_head_can_be_taken_position_by_position():
    expected = torch.tensor([[0.75, 0.5, 0.25], [1.0, 1.0, 0.5]], dtype=torch.float64)
    assert read("max").equal(expected)


@for_each("head", [0, 1, 2, -1, -3])
def test_one_head_can_be_taken_counted_from_either_end(head):
    assert read(head).equal(WEIGHTS[head])


@for_each("head", [3, -4, 100])
def test_a_head_that_is_not_there_is_one_sentence(head):
    with pytest.raises(UsageError, match=f"^heads={head}: the site has 3 heads\\.$"):
        read(head)


@pytest.mark.parametrize("rule", [Attention(site="crosss"), LexicalProbe(site="crosss")])
def test_a_site_that_is_not_there_is_one_sentence_with_the_nearest_name(rule):
    with pytest.raises(MissingCapability) as caught:
        read_score(rule, MODEL, BATCH)
    assert str(caught.value) == (
        "The model has no site 'crosss'; did you mean 'cross'? Valid: cross."
    )


class WithoutAttention:
    """An encoder-decoder that has states and no site."""

    def trace(self, batch, attention=None, generator=None):
        states = torch.zeros(*batch.inputs.shape, 1)
        out = torch.zeros(*batch.targets.shape, 1)
        return Trace(batch, states, states, out, out, torch.zeros(*batch.targets.shape, 8))

    def readout(self, context, query):
        raise AssertionError("There is nothing to read.")


@pytest.mark.parametrize("rule", [Attention(), LexicalProbe()], ids=lambda rule: rule.kind)
def test_a_model_without_attention_is_one_sentence(rule):
    with pytest.raises(AttnscopeError, match=r"^The model has no site 'cross'; valid: \(none\)\.$"):
        read_score(rule, WithoutAttention(), BATCH)
