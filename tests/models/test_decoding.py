"""Output of models built by hand, whose next word is known, and of small networks.

The reference for a search is the enumeration of every output that there can be.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch.nn.functional import one_hot, pad

from attnscope.data.batch import Example, collate
from attnscope.data.tasks import SampledCopy
from attnscope.models.decoding import TraceStepper, beam_search, greedy, respond, stepper
from attnscope.models.intervention import Permuted, Uniform
from attnscope.models.seq2seq import TRANSLATOR, Seq2SeqSpec
from attnscope.models.trace import Trace
from cases import for_each

START, END, TYPES = 8, 9, 10


class Scripted:
    """Says, after each word that it reads, the word that a function of it and the input gives."""

    def __init__(self, next_word, sharpness=1):
        self.next_word = next_word
        self.sharpness = sharpness

    def trace(self, batch, attention=None, generator=None):
        words = [
            [self.next_word(word, inputs) for word in read]
            for inputs, read in zip(
                batch.inputs.tolist(), batch.decoder_inputs.tolist(), strict=True
            )
        ]
        logits = self.sharpness * one_hot(torch.tensor(words), TYPES).float()
        states = torch.zeros(*batch.inputs.shape, 1)
        return Trace(batch, states, states, None, torch.zeros(*logits.shape[:2], 0), logits)

    def readout(self, context, query):
        raise NotImplementedError


def successor(word, inputs):
    """Copy the input, word by word: what follows a word there, END after the last one."""
    following = dict(zip([START, *inputs], [*inputs, END], strict=True))
    return following[word]


def test_a_copying_model_copies_and_stops_at_the_end_word():
    batch = respond(Scripted(successor), [4, 2, 7], (START, END))
    assert batch.inputs.tolist() == [[4, 2, 7]]
    assert batch.targets.tolist() == [[4, 2, 7, END]]
    assert batch.decoder_inputs.tolist() == [[START, 4, 2, 7]]


@for_each("limit", [1, 2, 5])
def test_a_model_that_never_ends_is_stopped_at_the_limit(limit):
    batch = respond(Scripted(lambda word, inputs: 3), [4, 2], (START, END), limit)
    assert batch.targets.tolist() == [[3] * limit]
    assert batch.decoder_inputs.tolist() == [[START, *[3] * (limit - 1)]]


def test_a_model_that_ends_at_once_says_the_end_word():
    assert respond(Scripted(lambda *_: END), [4], (START, END)).targets.tolist() == [[END]]


def test_a_classifier_answers_with_its_most_probable_label():
    batch = respond(Scripted(lambda _, inputs: inputs[0]), [6, 1], None)
    assert batch.targets.tolist() == [[6]]
    assert batch.inputs.tolist() == [[6, 1]]


@for_each("seed", range(5))
def test_a_response_is_what_the_model_finds_most_probable_word_by_word(seed):
    source = SampledCopy(length=4, vocabulary=6)
    model = Seq2SeqSpec(embedding=5, hidden=4).build(source, seed)
    batch = respond(model, [1, 2, 3, 6], source.boundaries, limit=12)
    assert model.trace(batch).logits.argmax(-1).equal(batch.targets)
    assert 6 not in batch.targets[0, :-1]
    assert not model.trace(batch).logits.isnan().any()


class Traced:
    """A network that offers its trace and no stepper, as a user's own does."""

    def __init__(self, model):
        self.model = model

    def trace(self, batch, attention=None, generator=None):
        return self.model.trace(batch, attention, generator)

    def readout(self, context, query):
        return self.model.readout(context, query)


TINY = SampledCopy(length=1, vocabulary=2)  # 4 types: two words, EOS 2, SOS 3.
SOURCE = SampledCopy(length=4, vocabulary=6)  # 8 types: six words, EOS 6, SOS 7.
SENTENCES = collate(
    [
        Example(number, inputs, [0], [0])
        for number, inputs in enumerate([[1, 2, 3, 6], [4, 6], [5, 0, 1, 2, 3, 6], [6], [0, 2, 6]])
    ]
)
SPECS = {
    "copying": Seq2SeqSpec(embedding=5, hidden=4),
    "gru": Seq2SeqSpec(embedding=5, hidden=4, cell="gru", heads=2, join="averaged"),
    "translator": TRANSLATOR.model_copy(update={"embedding": 5, "hidden": 4}),
}
networks = for_each("name", SPECS)
RULES = {"learned": {}, "uniform": {"cross": Uniform()}, "permuted": {"cross": Permuted(seed=1)}}
rules = for_each("attention", RULES.values(), ids=RULES)


def network(name, seed=0, source=SOURCE):
    """A network whose preferences are strong enough to matter."""
    model = SPECS[name].build(source, seed).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return model


@torch.no_grad()
def log_probabilities(model, inputs, outputs, attention):
    """Return log p of every output, of which nothing follows the last word."""
    start = TINY.boundaries[0]
    batch = collate([Example(0, inputs, [start, *words[:-1]], words) for words in outputs])
    table = model.trace(batch, attention).logits.log_softmax(-1)
    gained = table.gather(-1, batch.targets[..., None])[..., 0]
    return (gained * batch.target_mask).sum(1).tolist()


def every_output(types, end, limit):
    """Return all outputs: ended by the end word, or cut at the limit."""
    words = [word for word in range(types) if word != end]
    ended = [(*before, end) for length in range(limit) for before in product(words, repeat=length)]
    return ended + list(product(words, repeat=limit))


@networks
@rules
@for_each("seed", range(3))
def test_a_wide_enough_beam_finds_the_most_probable_of_all_outputs(name, attention, seed):
    model, (_, end), limit = network(name, seed, TINY), TINY.boundaries, 4
    inputs = [1, 0, 2]
    outputs = every_output(4, end, limit)
    scores = log_probabilities(model, inputs, outputs, attention)
    best = max(range(len(outputs)), key=scores.__getitem__)
    # As wide as there are hypotheses: nothing is ever left out.
    batch = collate([Example(0, inputs, [0], [0])])
    found = beam_search(model, batch, TINY.boundaries, len(outputs), limit, attention)
    assert found.words == [[word for word in outputs[best] if word != end]]
    assert found.scores == pytest.approx([scores[best]], abs=1e-9)


def plain_beam(model, inputs, boundaries, width, limit):
    """Beam search over one example as a textbook has it, until nothing can change any more."""
    start, end = boundaries
    beam = [((), 0.0)]
    for _ in range(limit):
        grown = []
        for words, score in beam:
            if words and words[-1] == end:
                grown.append((words, score))
                continue
            read = [start, *words]
            batch = collate([Example(0, inputs, read, read)])
            gains = model.trace(batch).logits[0, -1].log_softmax(-1).tolist()
            grown += [((*words, word), score + gain) for word, gain in enumerate(gains)]
        beam = sorted(grown, key=lambda pair: -pair[1])[:width]
    words, score = beam[0]
    return [word for word in words if word != end], score


@networks
@for_each("width", [1, 2, 3, 5])
@for_each("limit", [1, 3, 8])
def test_a_batched_beam_that_stops_early_is_the_plain_one_run_to_the_limit(name, width, limit):
    model = network(name)
    found = beam_search(model, SENTENCES, SOURCE.boundaries, width, limit)
    rows = zip(SENTENCES.inputs.tolist(), SENTENCES.input_lengths.tolist(), strict=True)
    for row, (inputs, length) in enumerate(rows):
        words, score = plain_beam(model, inputs[:length], SOURCE.boundaries, width, limit)
        assert found.words[row] == words
        assert found.scores[row] == pytest.approx(score, abs=1e-9)


@networks
def test_a_wider_beam_finds_something_else_on_these_sentences(name):
    # Otherwise the tests above would hold of a search that is not one.
    seen = [
        beam_search(network(name, seed), SENTENCES, SOURCE.boundaries, width, 8)
        for seed in range(5)
        for width in (1, 5)
    ]
    assert any(one.words != other.words for one, other in zip(seen[::2], seen[1::2], strict=True))


@networks
@rules
def test_a_beam_of_width_1_is_greedy_and_greedy_writes_the_most_probable_word(name, attention):
    model = network(name)
    written = greedy(model, SENTENCES, SOURCE.boundaries, 12, attention)
    assert written == beam_search(model, SENTENCES, SOURCE.boundaries, 1, 12, attention)
    start, end = SOURCE.boundaries
    for row, words in enumerate(written.words):
        full = [*words, end][:12]
        inputs = SENTENCES.inputs[row, : SENTENCES.input_lengths[row]].tolist()
        batch = collate([Example(row, inputs, [start, *full[:-1]], full)])
        assert model.trace(batch, attention).logits.argmax(-1).tolist() == [full]


@networks
@rules
def test_writing_step_by_step_gives_the_logits_of_the_trace(name, attention):
    model = network(name)
    own, traced = stepper(model, attention), stepper(Traced(model), attention)
    assert isinstance(traced, TraceStepper)
    assert not isinstance(own, TraceStepper)
    states = [each.begin(SENTENCES) for each in (own, traced)]
    order = torch.tensor([4, 0, 0, 2])
    for word in ([7] * 5, [1, 2, 3, 4, 5], [0, 1, 2, 3], [5, 5, 1, 0]):
        if len(word) == 4 and word[0] == 0:
            pairs = zip((own, traced), states, strict=True)
            states = [each.reorder(state, order) for each, state in pairs]
        words = torch.tensor(word)
        (one, first), (other, second) = own.step(words, states[0]), traced.step(words, states[1])
        states = [first, second]
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@networks
@rules
@for_each("width", [1, 4])
def test_a_model_without_a_stepper_writes_the_same(name, attention, width):
    model = network(name)
    own, traced = (
        beam_search(each, SENTENCES, SOURCE.boundaries, width, 8, attention)
        for each in (model, Traced(model))
    )
    assert own.words == traced.words
    assert own.scores == pytest.approx(traced.scores, abs=1e-9)


@networks
@rules
def test_neither_neighbours_nor_padding_change_what_is_written(name, attention):
    model = network(name)
    together = beam_search(model, SENTENCES, SOURCE.boundaries, 3, 8, attention)
    padded = replace(SENTENCES, inputs=pad(SENTENCES.inputs, (0, 4)))
    wide = beam_search(model, padded, SOURCE.boundaries, 3, 8, attention)
    assert wide.words == together.words
    for row in range(len(SENTENCES)):
        one = SENTENCES.rows(slice(row, row + 1)).trimmed()
        alone = beam_search(model, one, SOURCE.boundaries, 3, 8, attention)
        assert alone.words == together.words[row : row + 1]
        assert alone.scores == pytest.approx(together.scores[row : row + 1], abs=1e-9)


def test_an_intervention_changes_what_is_written():
    model = network("translator")
    learned, uniform = (
        greedy(model, SENTENCES, SOURCE.boundaries, 8, RULES[name])
        for name in ("learned", "uniform")
    )
    assert learned.scores != pytest.approx(uniform.scores)


@for_each("width", [1, 3, 20])
@for_each("limit", [1, 2, 6])
def test_a_search_in_a_model_that_never_ends_stops_at_the_limit(width, limit):
    model = Scripted(lambda word, inputs: 3, sharpness=50)
    written = beam_search(model, SENTENCES, (START, END), width, limit)
    assert written.words == [[3] * limit] * 5


@for_each("width", [1, 2, 20])
def test_examples_that_end_at_different_steps_keep_their_places(width):
    sentences = [[4, 2, 7, 1], [5], [0, 3, 6], [2, 1]]
    batch = collate([Example(n, words, [0], [0]) for n, words in enumerate(sentences)])
    following = {
        words[0]: dict(zip([START, *words], [*words, END], strict=True)) for words in sentences
    }
    model = Scripted(lambda word, inputs: following[inputs[0]].get(word, END), sharpness=50)
    assert beam_search(model, batch, (START, END), width, 10).words == sentences


def test_no_words_are_written_under_a_limit_of_0():
    assert greedy(network("copying"), SENTENCES, SOURCE.boundaries, 0).words == [[]] * 5


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@networks
@rules
def test_a_gpu_writes_the_same(name, attention):
    model = network(name)
    here = beam_search(model, SENTENCES, SOURCE.boundaries, 4, 8, attention)
    moved = SENTENCES.to("cuda")
    for there in (model.cuda(), Traced(model)):
        written = beam_search(there, moved, SOURCE.boundaries, 4, 8, attention)
        assert written.words == here.words
        assert written.scores == pytest.approx(here.scores, abs=1e-9)
