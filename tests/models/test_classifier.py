"""The classifier against its equations (snell Eq. 7, 8), its sizes, its dropout, its labels."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from hypothesis import given, strategies as st
from scipy import stats
from torch import nn

from attnscope.data.batch import Example, collate
from attnscope.data.randomness import seeded
from attnscope.data.tasks import KeywordTask, PermutationCopy
from attnscope.errors import MissingCapability, UsageError
from attnscope.models.attentions import Additive, DotProduct, InstanceQuery, LearnedQuery
from attnscope.models.base import parameter_count
from attnscope.models.classifier import Classifier, ClassifierSpec, Output
from attnscope.models.embedding import RandomEmbeddings, VectorEmbeddings
from attnscope.models.encoders import Affine, Concat, Recurrent, Residual, WordStates
from attnscope.training.engine.vmapped import stack, stack_batches, stacked_losses
from attnscope.training.objective import Likelihood
from cases import for_each

SOURCE = KeywordTask(types=9)
BATCH = collate([Example(0, [3, 1, 4, 1, 5], [0], [1]), Example(1, [2, 7], [0], [0])])


def build(directions=2, seed=0):
    spec = ClassifierSpec(
        embedding=5,
        encoder=Recurrent(hidden=4, directions=directions),
        attention=Additive(hidden=3),
    )
    return spec.build(SOURCE, seed).double()


@pytest.mark.parametrize("directions", [1, 2])
def test_attention_logits_are_those_of_equation_7(directions):
    model = build(directions)
    trace = model.trace(BATCH)
    hidden, out = model.attention.hidden, model.attention.query
    q = torch.einsum("ji,bli->blj", hidden.weight, trace.encoder_states) + hidden.bias
    expected = q.clamp(min=0) @ out.weight[0] + out.bias
    torch.testing.assert_close(trace.sites["cross"].logits[:, 0, 0], expected)


def test_the_output_is_the_sigmoid_of_equation_8():
    model = build()
    trace = model.trace(BATCH)
    for row, length in enumerate(BATCH.input_lengths):
        powers = trace.sites["cross"].logits[row, 0, 0, :length].exp()
        context = (powers / powers.sum()) @ trace.encoder_states[row, :length]
        z = context @ model.output.weight[0] + model.output.bias[0]
        torch.testing.assert_close(trace.logits[row, 0].softmax(-1)[1], 1 / (1 + (-z).exp()))


@given(st.floats(-30, 30))
def test_a_softmax_of_zero_and_z_is_the_sigmoid_of_z(z):
    model = build()
    torch.nn.init.zeros_(model.output.weight)
    torch.nn.init.constant_(model.output.bias, z)
    logits = model.trace(BATCH).logits
    assert logits.shape == (2, 1, 2)
    torch.testing.assert_close(logits.softmax(-1)[..., 1], torch.sigmoid(logits[..., 1]))
    torch.testing.assert_close(logits[..., 1], torch.full((2, 1), z, dtype=torch.float64))
    assert not logits[..., 0].any()


def test_one_direction_knows_only_what_came_before_and_two_know_the_rest():
    early, late = Example(0, [3, 1, 4], [0], [1]), Example(1, [3, 1, 8], [0], [1])
    batch = collate([early, late])
    one = build(directions=1).trace(batch).encoder_states[:, :2]
    assert one[0].equal(one[1])
    both = build(directions=2).trace(batch).encoder_states[:, :2]
    assert both.shape[-1] == 8  # "dimension 256" is per direction.
    assert both[0, :, :4].equal(both[1, :, :4])
    assert not both[0, :, 4:].isclose(both[1, :, 4:]).any()


def test_a_source_without_labels_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="has no labels"):
        ClassifierSpec().build(PermutationCopy(length=3), seed=0)


@for_each("cell", ["lstm", "gru"])
@for_each("directions", [1, 2])
def test_a_seed_gives_snells_model_as_pytorch_draws_its_layers_one_after_the_other(
    cell, directions
):
    spec = ClassifierSpec(
        embedding=5,
        encoder=Recurrent(hidden=4, cell=cell, directions=directions),
        attention=Additive(hidden=3),
    )
    with seeded("model", 3):
        recurrence = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
        layers = [
            nn.Embedding(9, 5),
            recurrence(5, 4, bidirectional=directions == 2),
            nn.Linear(4 * directions, 3),
            nn.Linear(3, 1),
            nn.Linear(4 * directions, 1),
        ]
    expected = [parameter for layer in layers for parameter in layer.parameters()]
    found = list(spec.build(SOURCE, 3).parameters())
    assert len(found) == len(expected)
    assert all(one.equal(other) for one, other in zip(found, expected, strict=True))


def test_a_seed_still_gives_the_model_that_it_always_gave():
    spec = ClassifierSpec(embedding=5, encoder=Recurrent(hidden=4), attention=Additive(hidden=3))
    state = spec.build(SOURCE, 0).state_dict()
    # Sums of sizes before the start of the embeddings was a choice: stored units rest on them.
    pinned = {
        "embedding.weight": 36.0934357,
        "encoder.layer.weight_ih_l0": 20.3703189,
        "encoder.layer.weight_hh_l0_reverse": 15.0269809,
        "attention.hidden.weight": 3.2175790,
        "output.weight": 0.9193727,
    }
    for name, size in pinned.items():
        assert state[name].abs().sum().item() == pytest.approx(size, abs=1e-4)


def with_labels(labels, **parts):
    spec = ClassifierSpec(embedding=5, **{"encoder": WordStates(), **parts})
    with seeded("model", 0):
        table = spec.vectors.table(SOURCE.input_words, 5)
        return Classifier(spec, table, labels).double()


def test_more_than_two_labels_have_a_logit_each():
    model = with_labels(4)
    trace = model.trace(BATCH)
    context = trace.sites["cross"].context[:, :, 0]
    assert trace.logits.shape == (2, 1, 4)
    assert parameter_count(model.output) == 4 * (5 + 1)
    torch.testing.assert_close(
        trace.logits, context @ model.output.weight.T + model.output.bias, rtol=0, atol=1e-15
    )


def test_the_output_can_go_without_a_bias_and_start_from_other_weights():
    plain, wide = (with_labels(2, output=Output(bias="off", spread=s)) for s in (None, 1.0))
    assert plain.output.bias is None
    assert plain.output.weight.abs().max() <= 5**-0.5
    with seeded("test", 0):
        many = Output(spread=1.0).build(2000, 1).weight.detach().flatten()
    assert stats.kstest(many.numpy(), stats.uniform(-1, 2).cdf).pvalue > 0.01
    # What is drawn before the output layer does not depend on it.
    assert plain.attention.hidden.weight.equal(wide.attention.hidden.weight)


# Sizes of the papers' classifiers, embeddings left out, by hand.
LSTM = 2 * (4 * 150 * (300 + 150) + 8 * 150)  # both directions, two biases each
DEEPER = 2 * (4 * 150 * (300 + 150) + 8 * 150)  # reads the 300 states below
TUTEK_ADDITIVE = {"hidden": 150, "activation": "tanh", "output_bias": "off"}
SIZES = {
    "sunlu DP": (100, WordStates(), DotProduct(scale=10), "off", 100 + 100),
    "sunlu DP-A": (100, Affine(), DotProduct(scale=10), "off", 100 * 101 + 100 + 100),
    "sunlu AD": (
        100,
        WordStates(),
        Additive(hidden=100, activation="tanh", output_bias="off"),
        "off",
        100 * 101 + 100 + 100,
    ),
    "tutek additive": (
        300,
        Recurrent(hidden=150),
        Additive(**TUTEK_ADDITIVE),
        "on",
        LSTM + 150 * 301 + 150 + 301,
    ),
    "tutek dot": (300, Recurrent(hidden=150), DotProduct(scale="root"), "on", LSTM + 300 + 301),
    "tutek concat": (
        300,
        Concat(encoder=Recurrent(hidden=150)),
        Additive(**TUTEK_ADDITIVE),
        "on",
        LSTM + 150 * 601 + 150 + 601,
    ),
    "tutek residual": (
        300,
        Residual(encoder=Recurrent(hidden=150)),
        DotProduct(scale="root"),
        "on",
        LSTM + 300 + 301,
    ),
    "tutek 3 layers": (
        300,
        Recurrent(hidden=150, layers=3),
        DotProduct(),
        "on",
        LSTM + 2 * DEEPER + 300 + 301,
    ),
}


@for_each("name", SIZES)
def test_the_papers_classifiers_have_the_parameters_that_their_texts_count_up_to(name):
    width, encoder, attention, bias, expected = SIZES[name]
    spec = ClassifierSpec(
        embedding=width, encoder=encoder, attention=attention, output=Output(bias=bias)
    )
    model = spec.build(SOURCE, 0)
    assert parameter_count(model) - parameter_count(model.embedding) == expected


def stream(seed):
    return torch.Generator().manual_seed(seed)


def test_dropout_acts_on_embeddings_and_context_and_comes_from_the_generator():
    model = with_labels(2, dropout=0.5)
    trace, again, other = (model.trace(BATCH, None, stream(seed)) for seed in (1, 1, 2))
    assert trace.logits.equal(again.logits)
    assert not trace.logits[..., 1].isclose(other.logits[..., 1]).any()
    # A dropped number is 0, and all others are twice as great.
    ratio = trace.encoder_states / trace.embeddings
    assert set(ratio.unique().tolist()) == {0.0, 2.0}
    context = trace.sites["cross"].context
    possible = {0.0, 2.0}
    weights = model.output.weight[0] * context[:, 0, 0]
    sums = [
        [
            float((row * torch.tensor(kept)).sum() + model.output.bias.detach())
            for kept in product(possible, repeat=5)
        ]
        for row in weights.detach()
    ]
    for found, reachable in zip(trace.logits[:, 0, 1].tolist(), sums, strict=True):
        assert min(abs(found - value) for value in reachable) < 1e-12


def test_without_a_generator_nothing_is_dropped():
    model, plain = with_labels(2, dropout=0.5), with_labels(2)
    assert model.trace(BATCH).logits.equal(plain.trace(BATCH).logits)
    assert plain.trace(BATCH, None, stream(1)).logits.equal(plain.trace(BATCH).logits)


@for_each(
    ("encoder", "dropout", "vectorised", "recurrent"),
    [
        (WordStates(), 0.0, True, False),
        (Affine(), 0.0, True, False),
        (Concat(encoder=Affine()), 0.0, True, False),
        (WordStates(), 0.5, True, False),
        (Recurrent(), 0.5, True, True),
        (Recurrent(layers=2), 0.0, True, True),
        (Residual(encoder=Recurrent()), 0.0, True, True),
        (Recurrent(layers=2, dropout=0.5), 0.0, True, True),
        (Recurrent(cell="gru"), 0.0, True, True),
        (Concat(encoder=Recurrent(cell="gru")), 0.0, True, True),
    ],
)
def test_a_classifier_is_vectorised_and_recurrent_if_its_encoder_is(
    encoder, dropout, vectorised, recurrent
):
    spec = ClassifierSpec(encoder=encoder, dropout=dropout)
    assert (spec.vectorised, spec.recurrent) == (vectorised, recurrent)


LSTM = Recurrent(hidden=2, directions=1, layers=2)


@for_each(
    "encoder", [WordStates(), Affine(hidden=4), Concat(encoder=Affine()), Concat(encoder=LSTM)]
)
@for_each("attention", [DotProduct(scale=3.0), Additive(hidden=4)])
@for_each("query", [LearnedQuery(), InstanceQuery()])
def test_stacked_classifiers_have_each_its_own_loss(encoder, attention, query):
    spec = ClassifierSpec(
        embedding=5, encoder=encoder, attention=attention.model_copy(update={"query": query})
    )
    models = [spec.build(SOURCE, seed).double() for seed in range(3)]
    batches = [BATCH, BATCH.rows(torch.tensor([1, 0])), BATCH]
    together = stacked_losses(stack(models), stack_batches(batches), (Likelihood(),))
    alone = [
        Likelihood()(model, batch, model.trace(batch), stream(0))
        for model, batch in zip(models, batches, strict=True)
    ]
    torch.testing.assert_close(together, torch.stack(alone), rtol=1e-12, atol=0)


def test_directions_are_those_of_the_embeddings_where_states_are_an_affine_map_of_them():
    model = with_labels(2, encoder=Affine(hidden=4), attention=DotProduct(scale=7.0))
    both, m = model.directions(), model.encoder.map.weight
    v, w = model.attention.query.weight[0], model.output.weight
    torch.testing.assert_close(both.attention, m.T @ v)
    torch.testing.assert_close(both.output, w @ m)
    words = with_labels(3, attention=DotProduct()).directions()
    assert words.attention.shape == (5,)
    assert words.output.shape == (3, 5)


@pytest.mark.parametrize(
    ("attention", "sentence"),
    [
        (Additive(hidden=3), "Additive attention has no direction V"),
        (DotProduct(query=InstanceQuery()), "no single direction V"),
    ],
)
def test_attention_without_a_direction_says_so(attention, sentence):
    with pytest.raises(MissingCapability, match=sentence):
        with_labels(2, attention=attention).directions()


def test_a_configuration_from_before_starts_at_random():
    assert ClassifierSpec.model_validate({"kind": "classifier"}).vectors == RandomEmbeddings()


def test_word_vectors_change_the_embeddings_alone(tmp_path):
    (tmp_path / "vectors.txt").write_text("3 1 2 3 4 5\n7 5 4 3 2 1\n")
    spec = ClassifierSpec(embedding=5, encoder=Recurrent(hidden=4), attention=Additive(hidden=3))
    chosen = spec.model_copy(
        update={"vectors": VectorEmbeddings(path=str(tmp_path / "vectors.txt"))}
    )
    random, given = (s.build(SOURCE, 0).state_dict() for s in (spec, chosen))
    assert [name for name in random if not random[name].equal(given[name])] == ["embedding.weight"]
    three, seven = (SOURCE.input_words.id(word) for word in "37")
    assert given["embedding.weight"][three].tolist() == [1, 2, 3, 4, 5]
    assert given["embedding.weight"][seven].tolist() == [5, 4, 3, 2, 1]
