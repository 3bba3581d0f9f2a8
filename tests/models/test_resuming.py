"""Passes that start at a site run only what comes after it, and only where that is the same."""

from __future__ import annotations

import torch
from torch import nn

from attnscope.data.batch import Batch, Example, collate
from attnscope.models.adapter import adapt
from attnscope.models.intervention import Given, Permuted, Uniform
from attnscope.models.resuming import Finished, outermost_before
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.score import read_score

TYPES, WIDTH = 20, 8


class Layer(nn.Module):
    """Self-attention over words; counts its passes, and adds its states to a list."""

    def __init__(self) -> None:
        super().__init__()
        self.queries, self.keys = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.passes = 0

    def forward(
        self, states: torch.Tensor, real: torch.Tensor, noted: list[torch.Tensor]
    ) -> torch.Tensor:
        self.passes += 1
        logits = self.queries(states) @ self.keys(states).mT
        states = states + logits.masked_fill(~real[:, None], -1e9).softmax(-1) @ states
        noted.append(states)
        return states


class Stack(nn.Module):
    """Three layers; the output reads the last one, or with ``aside`` the list of all of them."""

    def __init__(self, *, aside: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(TYPES, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(3))
        self.output = nn.Linear(WIDTH, 2)
        self.aside = aside

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        states, real = self.embedding(ids), ids > 0
        noted: list[torch.Tensor] = []
        for layer in self.layers:
            states = layer(states, real, noted)
        read = torch.stack(noted).sum(0) if self.aside else states
        return self.output(read[:, 0])

    @property
    def passes(self) -> list[int]:
        return [layer.passes for layer in self.layers]


def batch_of(count: int = 4) -> Batch:
    stream = torch.Generator().manual_seed(1)
    rows = [torch.randint(1, TYPES, (5 + n,), generator=stream).tolist() for n in range(count)]
    return collate([Example(n, row, [0], [0]) for n, row in enumerate(rows)])


SITES = ["encoder.1.self", "encoder.2.self", "encoder.3.self"]


@torch.no_grad()
def test_layers_below_a_site_run_once_and_the_others_every_time():
    module, batch = Stack(), batch_of()
    model = adapt(module)
    assert model.places.names == SITES
    with model.resuming(batch, SITES[1]):
        before = module.passes
        for seed in range(5):
            model.outputs(batch, {SITES[1]: Permuted(seed=seed)})
        assert [now - then for now, then in zip(module.passes, before, strict=True)] == [0, 5, 5]
    model.outputs(batch, {SITES[1]: Uniform()})
    assert module.passes[0] == before[0] + 1


@torch.no_grad()
def test_a_model_whose_layers_leave_something_aside_is_run_as_a_whole():
    batch = batch_of()
    model = adapt(Stack(aside=True))
    rules = {SITES[2]: Uniform()}
    whole = model.outputs(batch, rules)
    with model.resuming(batch, "last"):
        for _ in range(3):
            assert model.outputs(batch, rules).equal(whole)


class Added(nn.Module):
    """Attention whose output is added in place to what the encoder returned."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.encoder = nn.Embedding(TYPES, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        words = self.embedding(ids)
        states = self.encoder(words)
        logits = (words @ words.mT).masked_fill(ids[:, None] == 0, -1e9)
        states += logits.softmax(-1) @ words
        return self.output(states[:, 0])


@torch.no_grad()
def test_a_model_that_changes_states_in_place_is_run_as_a_whole():
    batch, model = batch_of(), adapt(Added())
    rules = {"last": Uniform()}
    whole = model.outputs(batch, rules)
    with model.resuming(batch, "last"):
        for _ in range(3):
            assert model.outputs(batch, rules).equal(whole)


class Decoder(nn.Module):
    """A decoder in a loop: the cell, then attention over the inputs, for every output word."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.cell = nn.Embedding(TYPES, WIDTH), nn.GRUCell(WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, TYPES)

    def forward(self, ids: torch.Tensor, decoder_input_ids: torch.Tensor) -> torch.Tensor:
        inputs, words = self.embedding(ids), self.embedding(decoder_input_ids)
        state, logits = inputs.mean(1), []
        for word in words.unbind(1):
            state = self.cell(word, state)
            scores = (inputs @ state[:, :, None])[:, :, 0].masked_fill(ids == 0, -1e9)
            read = (scores.softmax(-1)[:, None] @ inputs)[:, 0]
            logits.append(self.output(state + read))
        return torch.stack(logits, 1)


@torch.no_grad()
def test_a_loop_over_output_words_is_run_as_a_whole_though_it_was_compared_on_one_word():
    def pairs(words: int) -> Batch:
        rows = [([1 + n, 2, 3, 4], [5 + n] * words) for n in range(3)]
        return collate([Example(n, row, [1, *out[:-1]], out) for n, (row, out) in enumerate(rows)])

    def call(module: nn.Module, batch: Batch) -> torch.Tensor:
        return module(batch.inputs, batch.decoder_inputs)

    model = adapt(Decoder(), call=call, example=pairs(3))
    rules = {"last": Uniform()}
    for words in (1, 4):
        batch = pairs(words)
        whole = model.outputs(batch, rules)
        with model.resuming(batch, "last"):
            for _ in range(3):
                assert model.outputs(batch, rules).equal(whole)


@torch.no_grad()
def test_another_batch_and_an_earlier_site_are_run_as_a_whole():
    batch, other = batch_of(), batch_of(2)
    model = adapt(Stack())
    both = {SITES[0]: Uniform(), SITES[2]: Uniform()}
    expected = model.outputs(batch, both), model.outputs(other, {"last": Uniform()})
    with model.resuming(batch, "last"):
        assert model.outputs(batch, both).equal(expected[0])
        assert model.outputs(other, {"last": Uniform()}).equal(expected[1])


def test_gradients_of_given_weights_are_those_of_a_whole_pass():
    batch, model = batch_of(), adapt(Stack())
    with torch.no_grad():
        own = model.trace(batch).sites["last"].weights
    found = []
    for resumed in (False, True):
        weights = own.clone().requires_grad_()
        with model.resuming(batch, "last"):
            outputs = (model if resumed else adapt(Stack())).outputs(
                batch, {"last": Given(weights)}
            )
        found.append(torch.autograd.grad(outputs.square().sum(), weights)[0])
    torch.testing.assert_close(*found)


def test_the_probe_runs_lower_layers_as_often_for_many_words_as_for_few():
    module = Stack()
    model = adapt(module)
    rule = LexicalProbe(site="last")
    read_score(rule, model, batch_of())  # the first time it is compared with whole passes
    counts = []
    for count in (1, 4):
        before = module.passes[0]
        read_score(rule, model, batch_of(count))
        counts.append(module.passes[0] - before)
    assert counts[0] == counts[1]


def test_outermost_modules_that_finish_before_and_are_called_once():
    ends = [
        Finished("embedding", 0),
        Finished("layers.0.keys", 0),
        Finished("layers.0", 1),
        Finished("shared", 1),
        Finished("layers.1.keys", 1),
        Finished("layers.1", 2),
        Finished("shared", 2),
        Finished("", 2),
    ]
    assert outermost_before(ends, 0) == ("embedding", "layers.0.keys")
    assert outermost_before(ends, 1) == ("embedding", "layers.0", "layers.1.keys")
