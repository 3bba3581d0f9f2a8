"""VED, AED and AO against their equations, computed in NumPy from their weights."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch.func import functional_call
from torch.nn.functional import pad

from attnscope.data.sequence_tasks import OneToOne
from attnscope.data.tasks import KeywordTask
from attnscope.errors import MissingCapability, UsageError
from attnscope.models.architectures import AED, AO, VED, Architecture, LearnedAttention
from attnscope.models.base import ModelSpec, parameter_count
from attnscope.models.cells import CELLS
from attnscope.models.contract import check_model
from attnscope.models.decoding import greedy
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.models.intervention import Given, Permuted, Uniform
from attnscope.models.positions import RotatedPositions
from attnscope.scores.attention import Attention
from attnscope.scores.saliency import Saliency
from attnscope.scores.score import read_score
from attnscope.training.objective import Likelihood
from cases import for_each

SOURCE = OneToOne(shortest=3, longest=6)  # 4 input and 5 output words with the boundaries.
START, END = SOURCE.boundaries
LEARNED = LearnedAttention(key=3)
WIDTH, HIDDEN = 7, 4
ARCHITECTURES = {
    "ved": VED(),
    "aed": AED(),
    "ao": AO(),
    "aed-learned": AED(attention=LEARNED),
    "ao-learned": AO(attention=LEARNED),
}
every = for_each("name", ARCHITECTURES)
with_a_site = for_each("name", [name for name in ARCHITECTURES if name != "ved"])


def spec(name, **settings):
    defaults = {"hidden": HIDDEN, "input_dimension": WIDTH}
    return EncoderDecoderSpec(architecture=ARCHITECTURES[name], **(defaults | settings))


def build(name, **settings):
    """A model in double precision, its biases and its first state drawn too."""
    model = spec(name, **settings).build(SOURCE, seed=2).double()
    stream = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.copy_(torch.randn(parameter.shape, generator=stream))
    return model


def batch(count=5):
    return SOURCE.evaluation_batch(count)


def array(tensor):
    return tensor.detach().numpy()


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


class ByHand:
    """One example at a time, one position at a time, without padding."""

    def __init__(self, model, name):
        self.model, self.name = model, name
        self.cut = name.startswith("ao")
        self.positions = np.zeros((20, WIDTH))
        if self.cut:
            self.positions = array(RotatedPositions(WIDTH, 20.0, 0).double()(0, 20))

    def states(self, reader, vectors, state):
        found = []
        for time, vector in enumerate(vectors):
            x = torch.from_numpy(vector + self.positions[time])
            following = reader.cell.step(reader.cell.drive(x), state)
            found.append(array(reader.cell.output(following)))
            state = state if self.cut else following
        return np.stack(found), state

    def __call__(self, inputs, decoder_inputs):
        model = self.model
        start = torch.zeros(model.encoder.cell.width, dtype=torch.float64)
        start = start if self.cut else model.initial
        one_hot, average = np.eye(WIDTH), np.full(WIDTH, 1 / WIDTH)
        encoded, last = self.states(model.encoder, one_hot[inputs], start)
        words = [average if word == START else one_hot[word] for word in decoder_inputs]
        decoded, _ = self.states(model.decoder, words, last)
        weight = array(model.output.weight)
        if self.name == "ved":
            return decoded @ weight.T, None
        queries, keys, values, scale = decoded, encoded, encoded, 1.0
        if self.name.endswith("learned"):
            maps = model.attention
            queries, keys = decoded @ array(maps.query_map).T, encoded @ array(maps.key_map).T
            values, scale = encoded @ array(maps.value_map).T, HIDDEN**-0.5
        weights = softmax(queries @ keys.T * scale)
        context = weights @ values
        taken = context if self.cut else np.concatenate([decoded, context], -1)
        return taken @ weight.T, weights


@for_each(
    ("name", "cell"), [*product(ARCHITECTURES, ["gru"]), *product(["ved", "aed", "ao"], CELLS)]
)
def test_the_model_is_its_equations(name, cell):
    model = build(name, cell=cell)
    examples = batch()
    trace = model.trace(examples)
    by_hand = ByHand(model, name)
    for row in range(len(examples)):
        inp, out = int(examples.input_lengths[row]), int(examples.target_lengths[row])
        inputs, read = examples.inputs[row, :inp], examples.decoder_inputs[row, :out]
        logits, weights = by_hand(inputs.tolist(), read.tolist())
        np.testing.assert_allclose(array(trace.logits[row, :out]), logits, atol=1e-12)
        if weights is not None:
            found = array(trace.sites["cross"].weights[row, 0, :out, :inp])
            np.testing.assert_allclose(found, weights, atol=1e-12)


@every
def test_a_network_that_reads_its_own_words_or_looks_up_rows_keeps_the_contract(name):
    # With the right words and products, it is under contract with all other models.
    for variant in ({"teacher_forcing": "off"}, {"words": "rows"}):
        report = check_model(build(name, **variant), batch())
        assert report.ok, f"\n{report}"


@every
def test_parameters_are_counted_by_the_formula(name):
    hidden, width, types, key = 128, 50, len(SOURCE.output_words), 32
    architecture = {
        "aed-learned": AED(attention=LearnedAttention()),
        "ao-learned": AO(attention=LearnedAttention()),
    }.get(name, ARCHITECTURES[name])
    model = EncoderDecoderSpec(architecture=architecture, input_dimension=width).build(SOURCE, 0)
    cells = 2 * 3 * hidden * (width + hidden + 1)
    maps = 2 * key * hidden + hidden * hidden if name.endswith("learned") else 0
    first_state = 0 if name.startswith("ao") else hidden
    readout = types * hidden * (2 if name.startswith("aed") else 1)
    assert parameter_count(model) == cells + maps + first_state + readout


def test_an_lstm_trains_its_memory_at_the_start_too():
    counts = [parameter_count(build("ved", cell=cell)) for cell in ("lstm", "gru")]
    gate = 2 * HIDDEN * (WIDTH + HIDDEN + 1)
    assert counts[0] - counts[1] == gate + HIDDEN


def test_the_first_state_starts_at_0_and_is_trained():
    model = spec("aed").build(SOURCE, 0)
    assert not model.initial.any()
    Likelihood()(model, batch(), model.trace(batch()), torch.Generator()).backward()
    assert model.initial.grad.any()


@pytest.mark.parametrize("name", ["ved", "aed"])
def test_the_encoders_state_stands_still_after_the_end(name):
    model, examples = build(name), batch()
    states = model.trace(examples).encoder_states
    for row, length in enumerate(examples.input_lengths.tolist()):
        assert (states[row, length - 1 :] == states[row, length - 1]).all()


def test_the_end_word_can_be_attended_to_and_what_follows_cannot():
    examples = batch()
    site = build("aed").trace(examples).sites["cross"]
    assert (examples.inputs[torch.arange(5), examples.input_lengths - 1] == END).all()
    for row, length in enumerate(examples.input_lengths.tolist()):
        assert (site.weights[row, ..., length - 1] > 0).all()
        assert not site.weights[row, ..., length:].any()


@with_a_site
def test_logits_are_queries_times_keys(name):
    site = build(name).trace(batch()).sites["cross"]
    torch.testing.assert_close(site.queries @ site.keys.transpose(-1, -2), site.logits)


def test_embeddings_are_one_hot_words_and_with_attention_only_their_positions():
    examples = batch()
    plain, placed = (build(name).trace(examples).embeddings.detach() for name in ("aed", "ao"))
    assert plain.argmax(-1).equal(examples.inputs)
    assert (plain.sum(-1) == 1).all()
    positions = RotatedPositions(WIDTH, 20.0, 0).double()(0, examples.inputs.shape[1])
    torch.testing.assert_close(placed - positions, plain)


def test_encoder_and_decoder_have_the_same_positions_whatever_the_seed():
    one, other = (spec("ao").build(SOURCE, seed) for seed in (0, 1))
    assert one.positions.rotation.equal(other.positions.rotation)
    turned = EncoderDecoderSpec(architecture=AO(rotation=1), input_dimension=WIDTH)
    assert not turned.build(SOURCE, 0).positions.rotation.equal(one.positions.rotation)


def test_with_attention_only_a_state_depends_on_its_own_word_and_position_alone():
    model, examples = build("ao"), batch()
    states = model.trace(examples).encoder_states
    changed = replace(examples, inputs=examples.inputs.clone())
    changed.inputs[:, 1] = (changed.inputs[:, 1] + 1) % 3
    differs = (model.trace(changed).encoder_states != states).any(-1).any(0)
    assert differs.tolist() == [False, True, *[False] * 5]


def test_looking_up_rows_gives_the_same_numbers_and_gradients():
    for name in ARCHITECTURES:
        models = [build(name, words=words) for words in ("products", "rows")]
        traces = [model.trace(batch()) for model in models]
        torch.testing.assert_close(traces[0].embeddings, traces[1].embeddings)
        torch.testing.assert_close(traces[0].logits, traces[1].logits)
        for trace in traces:
            trace.logits.square().sum().backward()
        for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
            torch.testing.assert_close(one.grad, other.grad)


FEW = len(SOURCE.output_words)  # words; a larger batch has each of them computed once at a place
without_recurrence = for_each(("name", "cell"), [*product(["ao", "ao-learned"], ["gru", "lstm"])])


@without_recurrence
def test_words_that_are_computed_once_have_the_gradients_of_all(name, cell):
    """Inside `torch.func`, as in a group of units; by itself a model computes every position."""
    model, examples = build(name, cell=cell), batch(FEW + 7)
    model.forward = model.trace
    parameters = dict(model.named_parameters())
    draw = torch.Generator().manual_seed(4)
    weights = torch.randn(*examples.targets.shape, FEW, generator=draw, dtype=torch.float64)

    def weighted(values):
        return (functional_call(model, values, (examples,)).logits * weights).sum()

    expected = torch.autograd.grad(
        (model.trace(examples).logits * weights).sum(), [*parameters.values()], allow_unused=True
    )
    found = torch.func.grad(weighted)({key: value.detach() for key, value in parameters.items()})
    for gradient, known in zip(found.values(), expected, strict=True):
        known = torch.zeros_like(gradient) if known is None else known
        torch.testing.assert_close(gradient, known, rtol=0, atol=1e-12)


@without_recurrence
@torch.no_grad()
def test_words_that_are_computed_once_have_the_states_of_texts_by_themselves(name, cell):
    examples = batch(FEW + 7)
    for forced in ("on", "off"):
        model = build(name, cell=cell, teacher_forcing=forced)
        together = model.trace(examples)
        for row in range(len(examples)):
            alone = model.trace(examples.rows(slice(row, row + 1)))
            for one, other in (
                (alone.encoder_states[0], together.encoder_states[row]),
                (alone.decoder_states[0], together.decoder_states[row]),
            ):
                torch.testing.assert_close(one, other[: len(one)], rtol=0, atol=1e-12)


@every
def test_a_model_reads_its_own_most_probable_words_without_teacher_forcing(name):
    model, examples = build(name, teacher_forcing="off"), batch()
    trace = model.trace(examples)
    read = trace.batch.decoder_inputs
    assert not trace.teacher_forced
    assert (read[:, 0] == START).all()
    assert read[:, 1:].equal(trace.logits.argmax(-1)[:, :-1])
    again = model.with_teacher_forcing("on").trace(replace(examples, decoder_inputs=read))
    assert again.teacher_forced
    torch.testing.assert_close(again.logits, trace.logits)
    torch.testing.assert_close(again.decoder_states, trace.decoder_states)


@every
def test_greedy_decoding_writes_the_models_own_words(name):
    # With few words and random weights some outputs end and some do not.
    model, examples = build(name), batch(8)
    limit = examples.targets.shape[1]
    own = model.with_teacher_forcing("off").trace(examples).logits.argmax(-1).tolist()
    until_the_end = [row[: row.index(END)] if END in row else row for row in own]
    assert greedy(model, examples, (START, END), limit).words == until_the_end


def test_the_right_words_change_nothing_without_teacher_forcing():
    model, examples = build("aed", teacher_forcing="off"), batch()
    others = replace(
        examples,
        targets=(examples.targets + 1) % 4,
        decoder_inputs=pad((examples.decoder_inputs[:, 1:] + 1) % 4, (1, 0), value=START),
    )
    assert model.trace(others).logits.equal(model.trace(examples).logits)


@for_each("rule", [Uniform(), Permuted(seed=3), "given"], ids=str)
@for_each("name", ["aed", "ao-learned"])
def test_own_words_are_those_written_under_the_intervention(name, rule):
    model, examples = build(name, teacher_forcing="off"), batch()
    if rule == "given":
        shape = (5, 1, examples.targets.shape[1], examples.inputs.shape[1])
        rule = Given(torch.rand(shape, generator=torch.Generator().manual_seed(1)).softmax(-1))
    trace = model.trace(examples, {"cross": rule})
    assert trace.batch.decoder_inputs[:, 1:].equal(trace.logits.argmax(-1)[:, :-1])


def test_a_copy_with_other_teacher_forcing_shares_the_parameters():
    model = build("aed")
    free = model.with_teacher_forcing("off")
    assert free.output.weight is model.output.weight
    assert model.trace(batch()).teacher_forced
    assert not free.trace(batch()).teacher_forced
    with pytest.raises(UsageError, match="valid: off, on"):
        model.with_teacher_forcing("maybe")


def test_a_model_without_attention_has_states_and_no_site():
    model, examples = build("ved"), batch()
    trace = model.trace(examples)
    assert trace.sites == {}
    assert trace.decoder_states is not None
    context = torch.randn(5, 7, 1, 3, dtype=torch.float64)
    assert model.readout(context, trace.query).equal(trace.logits)
    with pytest.raises(MissingCapability, match="no site 'cross'"):
        read_score(Attention(), model, examples)


def test_the_output_of_attention_only_depends_on_the_context_alone():
    trace = build("ao").trace(batch())
    assert trace.query.shape[-1] == 0
    assert trace.decoder_states.shape[-1] == HIDDEN


@every
def test_saliency_reaches_the_words(name):
    rule = Saliency()
    model = build(name)
    values = rule.values(model, rule.trace(model, batch()))
    assert values.shape == (5, 7, 7)
    assert values.any()


@for_each("name", ["ved", "aed", "ao"])
def test_eight_sequences_are_learned_by_heart(name):
    task = OneToOne(shortest=3, longest=5)
    settings = {"hidden": 32, "input_dimension": 16}
    model, examples = spec(name, **settings).build(task, 2), task.training_batch(0, 0, 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(120):
        optimizer.zero_grad()
        Likelihood()(model, examples, model.trace(examples), torch.Generator()).backward()
        optimizer.step()
    written = model.with_teacher_forcing("off").trace(examples).logits.argmax(-1)
    assert (written == examples.targets)[examples.target_mask].all()


def test_a_model_is_a_pure_function_of_its_seed():
    one, same, other = (spec("aed").build(SOURCE, seed) for seed in (3, 3, 4))
    pairs = zip(one.parameters(), same.parameters(), strict=True)
    assert all(a.equal(b) for a, b in pairs)
    assert not one.output.weight.equal(other.output.weight)


def test_the_width_of_words_is_by_default_that_of_the_larger_vocabulary():
    assert EncoderDecoderSpec().build(SOURCE, 0).encoder.cell.input_map.shape == (3 * 128, 5)


def test_readouts_and_maps_start_with_glorots_variance():
    attention = LearnedAttention(key=64)
    model = EncoderDecoderSpec(architecture=AED(attention=attention), hidden=256).build(SOURCE, 0)
    std = float(model.attention.query_map.detach().std())
    assert std == pytest.approx((2 / (64 + 256)) ** 0.5, rel=0.05)
    std = float(model.attention.value_map.detach().std())
    assert std == pytest.approx((2 / (256 + 256)) ** 0.5, rel=0.05)


def test_too_few_dimensions_are_told_with_the_number_needed():
    with pytest.raises(UsageError, match=r"input_dimension=4 .*set it to 5 or more"):
        EncoderDecoderSpec(input_dimension=4).build(SOURCE, 0)


def test_labels_are_no_sequences():
    with pytest.raises(UsageError, match="keyword-40 has labels"):
        EncoderDecoderSpec().build(KeywordTask(), 0)


@every
def test_a_specification_is_read_back_from_its_configuration(name):
    one = spec(name, cell="ugrnn", teacher_forcing="off")
    assert ModelSpec.model_validate(one.model_dump(mode="json")) == one


def test_an_unknown_architecture_is_told_with_the_known_ones():
    with pytest.raises(ValidationError, match=r"valid: aed, ao, .*ved"):
        Architecture.model_validate({"kind": "transformer"})
