"""The L2 penalty is c times the sum of squares, without a half."""

from __future__ import annotations

import pytest
import torch

from attnscope.data.sequence_tasks import OneToOne
from attnscope.errors import MissingCapability
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.training.objective import Likelihood, Term, total
from attnscope.training.regulariser import SquaredNorm

SOURCE = OneToOne(shortest=2, longest=3)
STREAM = torch.Generator()


@pytest.fixture
def traced():
    model = EncoderDecoderSpec(hidden=3).build(SOURCE, 0).double()
    return model, model.trace(SOURCE.training_batch(0, 0, 4))


def test_the_penalty_is_the_sum_of_squares_times_its_weight(traced):
    model, trace = traced
    squares = sum(float(x) ** 2 for p in model.parameters() for x in p.detach().flatten())
    found = total((SquaredNorm(weight=1e-3),), model, trace, STREAM)
    assert float(found.detach()) == pytest.approx(1e-3 * squares, rel=1e-12)


def test_its_gradient_is_twice_the_parameter(traced):
    model, trace = traced
    total((SquaredNorm(weight=0.5),), model, trace, STREAM).backward()
    for parameter in model.parameters():
        torch.testing.assert_close(parameter.grad, parameter.detach())


def test_it_stands_beside_the_likelihood(traced):
    model, trace = traced
    both = total((Likelihood(), SquaredNorm(weight=0.1)), model, trace, STREAM)
    parts = [
        term.weight * term(model, trace.batch, trace, STREAM)
        for term in (Likelihood(), SquaredNorm(weight=0.1))
    ]
    torch.testing.assert_close(both, parts[0] + parts[1])


def test_it_is_read_back_from_its_configuration():
    term = SquaredNorm(weight=1e-4)
    assert Term.model_validate(term.model_dump(mode="json")) == term


def test_a_model_without_parameters_of_its_own_is_told(traced):
    model, trace = traced

    class Wrapped:
        trace, readout = model.trace, model.readout

    with pytest.raises(MissingCapability, match="torch module"):
        SquaredNorm()(Wrapped(), trace.batch, trace, STREAM)
