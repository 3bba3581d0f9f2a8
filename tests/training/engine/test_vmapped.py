"""Several models trained as one are the models trained one after the other."""

from __future__ import annotations

import pytest
import torch

from attnscope.data.corpus import GrammarSentiment
from attnscope.data.sequence_tasks import OneToOne
from attnscope.errors import UsageError
from attnscope.models.architectures import AED, AO, VED, LearnedAttention
from attnscope.models.attentions import Additive, DotProduct
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.models.encoders import Recurrent, WordStates
from attnscope.models.intervention import Uniform
from attnscope.training.engine.vmapped import (
    Gradients,
    clip_each,
    stack,
    stack_batches,
    stacked_losses,
)
from attnscope.training.objective import Likelihood, total
from attnscope.training.penalties import SquaredNorm

SOURCE = OneToOne(shortest=3, longest=5)
SEEDS = (4, 0, 9)
TERMS = (Likelihood(), SquaredNorm(weight=1e-3))
SPECS = {
    **{f"aed-{cell}": EncoderDecoderSpec(cell=cell, hidden=5) for cell in ("lstm", "gru", "ugrnn")},
    "aed-gru-reset-after": EncoderDecoderSpec(cell="gru-reset-after", hidden=5),
    "aed-learned": EncoderDecoderSpec(
        architecture=AED(attention=LearnedAttention(key=3)), hidden=5
    ),
    "ved": EncoderDecoderSpec(architecture=VED(), hidden=5),
    "ao-tanh": EncoderDecoderSpec(architecture=AO(), cell="tanh", hidden=5, input_dimension=8),
    "aed-rows": EncoderDecoderSpec(hidden=5, words="rows"),
    "aed-own-words": EncoderDecoderSpec(hidden=5, teacher_forcing="off"),
}
every = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)


def built(spec):
    return [spec.build(SOURCE, seed).double() for seed in SEEDS]


def batches(step, size=6):
    return [SOURCE.training_batch(seed, step, size) for seed in SEEDS]


def adam(parameters):
    # The authors' settings: with eps = 0.1 an update depends on the size of the gradient.
    return torch.optim.Adam(parameters, lr=0.1, betas=(0.9, 0.99), eps=0.1)


def train_one_by_one(models, steps, clip):
    losses = []
    for number, model in enumerate(models):
        optimizer = adam(model.parameters())
        for step in range(steps):
            optimizer.zero_grad()
            trace = model.trace(batches(step)[number])
            loss = total(TERMS, model, trace, torch.Generator())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            losses.append(loss.detach())
    return torch.stack(losses).view(len(models), steps).T


def train_stacked(models, steps, clip):
    stacked = stack(models)
    optimizer = adam(stacked.parameters.values())
    gradients, losses = Gradients(stacked, TERMS), []
    for step in range(steps):
        losses.append(gradients(stack_batches(batches(step))))
        clip_each(stacked, clip)
        optimizer.step()
    stacked.write_back(models)
    return torch.stack(losses)


@every
def test_stacked_training_equals_training_one_by_one(spec):
    # The norm of a gradient here is 1 to 2: every one is clipped.
    one_by_one, together = built(spec), built(spec)
    expected = train_one_by_one(one_by_one, 5, 0.5)
    torch.testing.assert_close(train_stacked(together, 5, 0.5), expected, rtol=0, atol=1e-12)
    for one, other in zip(one_by_one, together, strict=True):
        for name, parameter in one.named_parameters():
            found = other.get_parameter(name)
            torch.testing.assert_close(found, parameter, rtol=0, atol=1e-12)


def test_gradients_are_left_as_they_are_without_a_limit():
    one_by_one, together = built(SPECS["ved"]), built(SPECS["ved"])
    expected = train_one_by_one(one_by_one, 2, float("inf"))
    found = train_stacked(together, 2, float("inf"))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(together[2].output.weight, one_by_one[2].output.weight)


def test_training_moved_the_models():
    trained, fresh = built(SPECS["aed-gru"]), built(SPECS["aed-gru"])
    train_stacked(trained, 2, float("inf"))
    for one, other in zip(trained, fresh, strict=True):
        assert not one.output.weight.equal(other.output.weight)


def test_a_diverged_model_leaves_the_others_alone():
    healthy, one_sick = built(SPECS["aed-gru"]), built(SPECS["aed-gru"])
    with torch.no_grad():
        one_sick[1].output.weight.fill_(float("nan"))
    train_stacked(healthy, 2, 0.5)
    losses = train_stacked(one_sick, 2, 0.5)
    assert losses[:, 1].isnan().all()
    for number in (0, 2):
        for name, parameter in healthy[number].named_parameters():
            assert one_sick[number].get_parameter(name).equal(parameter)


def test_batches_of_unequal_width_are_padded_without_effect():
    models = built(SPECS["aed-gru"])
    wide = OneToOne(shortest=3, longest=9)
    unequal = [SOURCE.training_batch(1, 0, 6), wide.training_batch(1, 0, 6), *batches(0)[:1]]
    found = stacked_losses(stack(models), stack_batches(unequal), TERMS)
    expected = [
        total(TERMS, model, model.trace(batch), torch.Generator())
        for model, batch in zip(models, unequal, strict=True)
    ]
    torch.testing.assert_close(found, torch.stack(expected), rtol=0, atol=1e-12)


def test_models_that_read_one_batch_have_the_losses_of_one_each():
    models, given = built(SPECS["aed-gru"]), batches(0)
    found = stacked_losses(stack(models, [1, 0, 1]), stack_batches(given[:2]), TERMS)
    own = stacked_losses(stack(models), stack_batches([given[1], given[0], given[1]]), TERMS)
    assert found.equal(own)


@pytest.mark.parametrize("attention", [DotProduct(), Additive(hidden=4)])
def test_models_that_differ_in_lambda_divide_by_their_own(attention):
    source = GrammarSentiment()
    attentions = [attention.model_copy(update={"scale": scale}) for scale in (0.001, "root", 7.0)]
    specs = [
        ClassifierSpec(embedding=5, encoder=WordStates(), attention=each) for each in attentions
    ]
    models = [spec.build(source, 3).double() for spec in specs]
    batch = source.training_batch(3, 0, 6)
    found = stacked_losses(stack(models, [0, 0, 0]), stack_batches([batch]), TERMS)
    expected = [total(TERMS, model, model.trace(batch), torch.Generator()) for model in models]
    torch.testing.assert_close(found, torch.stack(expected), rtol=0, atol=1e-12)
    assert len(set(found.tolist())) == 3


def test_batches_of_unequal_size_cannot_be_stacked():
    with pytest.raises(UsageError, match="batches of one size"):
        stack_batches([SOURCE.training_batch(0, 0, 4), SOURCE.training_batch(0, 0, 5)])
    with pytest.raises(UsageError, match="batches of one size"):
        stack_batches([])


def test_an_intervention_holds_for_every_model():
    models, uniform = built(SPECS["aed-gru"]), {"cross": Uniform()}
    found = stacked_losses(stack(models), stack_batches(batches(0)), TERMS, uniform)
    expected = [
        total(TERMS, model, model.trace(batch, uniform), torch.Generator())
        for model, batch in zip(models, batches(0), strict=True)
    ]
    torch.testing.assert_close(found, torch.stack(expected), rtol=0, atol=1e-12)


def test_clipping_returns_every_models_own_norm():
    models = built(SPECS["aed-gru"])
    stacked = stack(models)
    stacked_losses(stacked, stack_batches(batches(0)), TERMS).sum().backward()
    norms = clip_each(stacked, 0.5)
    for number, (model, batch) in enumerate(zip(models, batches(0), strict=True)):
        total(TERMS, model, model.trace(batch), torch.Generator()).backward()
        expected = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        torch.testing.assert_close(norms[number], expected)


def test_stacking_copies():
    models = built(SPECS["aed-gru"])
    stacked = stack(models)
    assert len(stacked) == 3
    with torch.no_grad():
        stacked.parameters["output.weight"].zero_()
    assert models[0].output.weight.any()


def test_models_of_different_shapes_cannot_be_stacked():
    other = EncoderDecoderSpec(hidden=6).build(SOURCE, 0)
    with pytest.raises(UsageError, match="one shape"):
        stack([built(SPECS["aed-gru"])[0], other])
    with pytest.raises(UsageError, match="one shape"):
        stack([])


def test_clipping_scales_parameters_that_are_added_up_once():
    source = GrammarSentiment()
    spec = ClassifierSpec(embedding=4, encoder=Recurrent(hidden=3))
    stacked = stack([spec.build(source, seed).double() for seed in range(2)])
    Gradients(stacked, (Likelihood(),))(
        stack_batches([source.training_batch(seed, 0, 6) for seed in range(2)])
    )
    before = {name: p.grad.clone() for name, p in stacked.parameters.items()}
    norms = clip_each(stacked, 1e-3)
    assert (norms > 1e-3).all()
    for name, parameter in stacked.parameters.items():
        scales = (1e-3 / (norms + 1e-6)).view(-1, *[1] * (parameter.ndim - 1))
        torch.testing.assert_close(parameter.grad, before[name] * scales)
