"""Penalties by hand: the sum of squares without a half, tying, and the product of V and W."""

from __future__ import annotations

import pytest
import torch

from attnscope.data.batch import Example, collate
from attnscope.data.sequence_tasks import OneToOne
from attnscope.data.tasks import KeywordTask
from attnscope.errors import MissingCapability, UsageError
from attnscope.models.attentions import Additive, DotProduct, InstanceQuery
from attnscope.models.classifier import Classifier, ClassifierSpec
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.models.encoders import Affine, Concat, Recurrent, Residual, WordStates
from attnscope.training.engine.vmapped import stack, stack_batches, stacked_losses
from attnscope.training.objective import Likelihood, Term, total
from attnscope.training.penalties import DirectionProduct, SquaredNorm
from attnscope.training.tying import Tying
from cases import for_each

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


TEXTS = KeywordTask(types=9)
BATCH = collate(
    [Example(0, [3, 1, 4, 1, 5], [0], [1]), Example(1, [2, 7], [0], [0]), Example(2, [6], [0], [1])]
)


def classifier(encoder=None, attention=None, labels=2):
    spec = ClassifierSpec(
        embedding=6,
        encoder=encoder or Recurrent(hidden=3),
        attention=attention or DotProduct(scale=2.0),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Classifier(spec, spec.vectors.table(TEXTS.input_words, 6), labels).double()


def value(term, model, batch=BATCH):
    return float(term(model, batch, model.trace(batch), STREAM).detach())


@for_each(
    ("encoder", "parts"),
    [
        (Affine(hidden=4), ("encoder",)),
        (Recurrent(hidden=3), ("encoder",)),
        (None, ("attention.query", "output.weight")),
    ],
)
def test_a_penalty_of_some_parts_leaves_the_others_alone(encoder, parts):
    model = classifier(encoder)
    chosen = {name: p for name, p in model.named_parameters() if name.startswith(parts)}
    squares = sum(float(p.detach().square().sum()) for p in chosen.values())
    loss = SquaredNorm(parts=parts)(model, BATCH, model.trace(BATCH), STREAM)
    assert float(loss.detach()) == pytest.approx(squares, rel=1e-12)
    loss.backward()
    assert {name for name, p in model.named_parameters() if p.grad is not None} == set(chosen)


def test_a_part_that_does_not_exist_is_told_with_the_nearest_name():
    with pytest.raises(UsageError, match=r"starts with 'encoder.mop'; did you mean 'encoder.map"):
        value(SquaredNorm(parts=("encoder.mop",)), classifier(Affine(hidden=4)))


@pytest.mark.parametrize("encoder", [Recurrent(hidden=3), Residual(encoder=Recurrent(hidden=3))])
def test_tying_is_the_mean_distance_of_real_states_and_their_words(encoder):
    model = classifier(encoder)
    squared, plain = [], []
    for row, length in enumerate(BATCH.input_lengths.tolist()):
        alone = collate([Example(0, BATCH.inputs[row, :length].tolist(), [0], [0])])
        trace = model.trace(alone)
        for state, word in zip(trace.encoder_states[0], trace.embeddings[0], strict=True):
            distance = float(((state - word) ** 2).sum().detach())
            squared.append(distance)
            plain.append(distance**0.5)
    assert len(squared) == 8
    assert value(Tying(), model) == pytest.approx(sum(squared) / 8, rel=1e-12)
    assert value(Tying(power=1), model) == pytest.approx(sum(plain) / 8, rel=1e-12)


@pytest.mark.parametrize("power", [1, 2])
def test_states_that_are_the_words_are_tied_for_nothing_and_without_a_nan(power):
    model = classifier(WordStates())
    loss = Tying(power=power)(model, BATCH, model.trace(BATCH), STREAM)
    loss.backward()
    assert float(loss.detach()) == 0
    assert not model.embedding.weight.grad.any()


@pytest.mark.parametrize("power", [1, 2])
def test_tying_teaches_the_encoder_and_padding_learns_nothing_from_it(power):
    model = classifier()
    Tying(power=power)(model, BATCH, model.trace(BATCH), STREAM).backward()
    assert all(parameter.grad.any() for parameter in model.encoder.parameters())
    # Word 0 pads the batch and stands nowhere in it.
    assert not model.embedding.weight.grad[0].any()
    assert model.embedding.weight.grad[3].any()


def test_states_of_another_width_cannot_be_tied():
    with pytest.raises(MissingCapability, match="they have 12 and 6 numbers"):
        value(Tying(), classifier(Concat(encoder=Recurrent(hidden=3))))


@pytest.mark.parametrize("labels", [2, 4])
def test_the_product_of_directions_is_that_of_v_and_w(labels):
    for encoder in (WordStates(), Recurrent(hidden=3)):
        model = classifier(encoder, labels=labels)
        v, w = model.attention.query.weight[0], model.output.weight
        by_hand = sum(abs(float((row * v).sum().detach())) for row in w)
        assert value(DirectionProduct(), model) == pytest.approx(by_hand, rel=1e-12)


def test_of_an_affine_encoder_it_is_the_product_of_what_embeddings_are_multiplied_with():
    model = classifier(Affine(hidden=4))
    m, v, w = model.encoder.map.weight, model.attention.query.weight[0], model.output.weight[0]
    by_hand = abs(float(((m.T @ w) @ (m.T @ v)).detach()))
    assert value(DirectionProduct(), model) == pytest.approx(by_hand, rel=1e-12)
    loss = DirectionProduct()(model, BATCH, model.trace(BATCH), STREAM)
    loss.backward()
    moved = {name for name, p in model.named_parameters() if p.grad is not None}
    assert moved == {"encoder.map.weight", "attention.query.weight", "output.weight"}


@pytest.mark.parametrize(
    ("attention", "sentence"),
    [(Additive(hidden=3), "use a model with dot"), (DotProduct(query=InstanceQuery()), "learned")],
)
def test_attention_without_a_direction_has_no_such_product(attention, sentence):
    with pytest.raises(MissingCapability, match=sentence):
        value(DirectionProduct(), classifier(attention=attention))


def test_a_model_without_directions_says_what_has_them(traced):
    model, trace = traced
    with pytest.raises(MissingCapability, match=r"needs a model with directions\(\)"):
        DirectionProduct()(model, trace.batch, trace, STREAM)


@for_each("term", [SquaredNorm(parts=("encoder",)), Tying(), DirectionProduct()])
def test_penalties_of_stacked_models_are_those_of_each(term):
    specs = ClassifierSpec(embedding=6, encoder=Affine(hidden=6), attention=DotProduct())
    models = [specs.build(TEXTS, seed).double() for seed in range(3)]
    together = stacked_losses(stack(models), stack_batches([BATCH] * 3), (term,))
    alone = torch.tensor([value(term, model) for model in models], dtype=torch.float64)
    torch.testing.assert_close(together.detach(), alone, rtol=1e-12, atol=0)


@pytest.mark.parametrize("term", [Tying(power=1, weight=3.0), DirectionProduct(weight=1e-4)])
def test_a_term_is_read_back_from_its_configuration(term):
    assert Term.model_validate(term.model_dump(mode="json")) == term
