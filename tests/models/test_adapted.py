"""Adapting hand-written models: every way of writing attention is seen, named and replaceable."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attnscope.data.batch import Batch, Example, collate
from attnscope.errors import MissingCapability, UsageError
from attnscope.models.adapter import adapt
from attnscope.models.contract import check_model
from attnscope.models.intervention import Given, Permuted, Uniform
from cases import for_each

TYPES, WIDTH = 20, 12
LABELLED = collate(
    [Example(n, range(1, 1 + length), [0], [n % 2]) for n, length in enumerate((7, 5, 4))]
)
WRITTEN = collate(
    [
        Example(n, range(1, 1 + length), range(3, 3 + out), range(4, 4 + out))
        for n, (length, out) in enumerate(((7, 4), (5, 5), (4, 2)))
    ]
)


class Words(nn.Module):
    """A classifier over word embeddings and a recurrent layer; ``attend`` makes the context."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embedding = nn.Embedding(TYPES, WIDTH, padding_idx=0)
        self.states = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.score = nn.Linear(WIDTH, 1)
        self.query = nn.Parameter(torch.randn(WIDTH))
        self.multi = nn.MultiheadAttention(WIDTH, 3, batch_first=True)
        self.output = nn.Linear(WIDTH, 2)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.6)

    def forward(self, ids):
        states, _ = self.states(self.embedding(ids))
        return self.output(self.attend(states, ids > 0))

    def attend(self, states, mask):
        raise NotImplementedError


class Additive(Words):
    def attend(self, states, mask):
        logits = self.score(torch.tanh(states)).squeeze(-1).masked_fill(~mask, -1e9)
        weights = torch.softmax(logits, 1)
        return (weights.unsqueeze(-1) * states).sum(1)


class AdditiveWithLastAxis(Words):
    def attend(self, states, mask):
        logits = self.score(torch.tanh(states)).masked_fill(~mask[..., None], -torch.inf)
        return (nn.functional.softmax(logits, dim=1) * states).sum(1)


class TimeFirst(Words):
    def attend(self, states, mask):
        states = states.transpose(0, 1)
        logits = self.score(torch.tanh(states)).squeeze(-1).masked_fill(~mask.T, -1e4)
        return (logits.softmax(0).unsqueeze(-1) * states).sum(0)


class LearnedQuery(Words):
    def attend(self, states, mask):
        logits = (states @ self.query).masked_fill(~mask, -1e30)
        return torch.bmm(logits.softmax(-1).unsqueeze(1), states).squeeze(1)


class InstanceQuery(Words):
    def attend(self, states, mask):
        logits = torch.bmm(states, states[:, :1].mT).masked_fill(~mask[..., None], -1e30)
        return torch.bmm(states.mT, logits.softmax(1)).squeeze(-1)


class ByLetters(Words):
    def attend(self, states, mask):
        logits = torch.einsum("bld,bd->bl", states, states[:, 0]).masked_fill(~mask, -1e30)
        return torch.einsum("bl,bld->bd", logits.softmax(-1), states)


class MultiHead(Words):
    def attend(self, states, mask):
        context, _ = self.multi(states, states, states, key_padding_mask=~mask)
        return context[:, 0]


class MultiHeadWithoutWeights(Words):
    def attend(self, states, mask):
        mixed = self.multi(states, states, states, key_padding_mask=~mask, need_weights=False)[0]
        return (mixed * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


class Decoder(nn.Module):
    """A recurrent decoder with dot-product attention, one softmax per output word."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.source = nn.Embedding(TYPES, WIDTH, padding_idx=0)
        self.target = nn.Embedding(TYPES, WIDTH)
        self.cell = nn.GRUCell(2 * WIDTH, WIDTH)
        self.output = nn.Linear(2 * WIDTH, TYPES)

    def forward(self, source, target):
        states, mask = self.source(source), source > 0
        state = context = states.new_zeros(len(source), WIDTH)
        written = []
        for step in range(target.shape[1]):
            state = self.cell(torch.cat([self.target(target[:, step]), context], -1), state)
            logits = (states @ state.unsqueeze(-1)).squeeze(-1).masked_fill(~mask, -1e9)
            context = (logits.softmax(-1).unsqueeze(1) @ states).squeeze(1)
            written.append(self.output(torch.cat([state, context], -1)))
        return torch.stack(written, 1)


class Translator(nn.Module):
    """nn.Transformer with its masks."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.source, self.target = nn.Embedding(TYPES, WIDTH), nn.Embedding(TYPES, WIDTH)
        self.network = nn.Transformer(WIDTH, 3, 2, 2, 24, batch_first=True)
        self.output = nn.Linear(WIDTH, TYPES)

    def forward(self, source, target):
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        states = self.network(
            self.source(source),
            self.target(target),
            tgt_mask=causal,
            src_key_padding_mask=source == 0,
            memory_key_padding_mask=source == 0,
        )
        return self.output(states)


def write(module: nn.Module, batch: Batch) -> torch.Tensor:
    return module(batch.inputs, batch.decoder_inputs)


CLASSIFIERS = [
    Additive,
    AdditiveWithLastAxis,
    TimeFirst,
    LearnedQuery,
    InstanceQuery,
    ByLetters,
]


@for_each("kind", CLASSIFIERS)
def test_hand_written_attention_of_a_classifier_keeps_the_contract(kind):
    model = adapt(kind(), example=LABELLED)
    assert model.places.names == ["cross"]
    report = check_model(model, LABELLED)
    assert report.ok, report


@pytest.mark.parametrize("kind", [MultiHead, MultiHeadWithoutWeights])
def test_multi_head_attention_of_pytorch_is_a_site(kind):
    model = adapt(kind(), example=LABELLED)
    assert model.places.names == ["encoder.1.self"]
    assert model.places[0].reads == ("first" if kind is MultiHead else "all")
    report = check_model(model, LABELLED)
    assert report.ok, report


def test_weights_of_pytorchs_multi_head_attention_are_those_that_it_returns():
    class Alone(MultiHead):
        def attend(self, states, mask):
            context, self.kept = self.multi(
                states, states, states, key_padding_mask=~mask, average_attn_weights=False
            )
            return context[:, 0]

    alone = Alone()
    model = adapt(alone, example=LABELLED)
    with torch.no_grad():
        trace = model.trace(LABELLED)
        alone(LABELLED.inputs)
    torch.testing.assert_close(trace.sites["encoder.1.self"].weights, alone.kept)


def test_a_decoder_in_a_loop_is_one_site_with_a_row_for_each_word():
    model = adapt(Decoder(), call=write, example=WRITTEN)
    assert model.places.names == ["cross"]
    assert model.places[0].steps
    report = check_model(model, WRITTEN)
    assert report.ok, report
    with torch.no_grad():
        trace = model.trace(WRITTEN)
        assert trace.sites["cross"].weights.shape == (3, 1, 5, 7)
        own = model.trace(WRITTEN, {"cross": Given(trace.sites["cross"].weights)})
        assert own.logits.equal(trace.logits)
        shuffled = model.trace(WRITTEN, {"cross": Permuted(seed=3)}).sites["cross"]
    # Each word has a permutation of its own.
    whole = Permuted(seed=3)(shuffled.logits, shuffled.mask, WRITTEN.ids)
    torch.testing.assert_close(shuffled.weights, whole)


def test_pytorchs_transformer_has_all_its_sites():
    model = adapt(Translator(), call=write, example=WRITTEN)
    assert model.places.names == [
        "encoder.1.self",
        "encoder.2.self",
        "decoder.1.self",
        "cross.1",
        "decoder.2.self",
        "cross.2",
    ]
    assert model.places.aliases == {"cross": "cross.2", "last": "cross.2"}
    assert model.places.named("cross").name == "cross.2"
    report = check_model(model, WRITTEN)
    assert report.ok, report


def test_a_model_without_attention_is_refused_in_one_sentence():
    class Bag(Words):
        def attend(self, states, mask):
            return states.mean(1)

    with pytest.raises(MissingCapability, match="No attention was seen in Bag"):
        adapt(Bag(), example=LABELLED)


def test_a_softmax_that_weighs_no_sequence_is_no_site():
    class Routed(Additive):
        def attend(self, states, mask):
            chosen = self.output(states).softmax(-1).argmax(-1)
            return super().attend(states, mask) + 0 * chosen.sum()

    assert adapt(Routed(), example=LABELLED).places.names == ["cross"]


def test_an_unknown_site_lists_the_known_ones():
    model = adapt(Additive(), example=LABELLED)
    with pytest.raises(UsageError, match=r"no site 'encoder\.1\.self'; valid: cross"):
        model.trace(LABELLED, {"encoder.1.self": Uniform()})


def test_texts_without_a_tokeniser_are_refused_in_one_sentence():
    model = adapt(Additive(), example=LABELLED)
    with pytest.raises(UsageError, match="has no tokeniser"):
        model.batch(["a text"], [0])


def test_labels_out_of_range_are_refused_in_one_sentence():
    model = adapt(Additive(), tokenizer=lambda text: [1, 2, 3], example=LABELLED)
    with pytest.raises(UsageError, match="Label 2 is out of range: the model has 2 labels"):
        model.batch(["a text"], [2])


def test_a_stochastic_pass_that_cannot_be_reproduced_is_refused():
    class Noisy(Additive):
        def attend(self, states, mask):
            return super().attend(states, mask) + torch.randn(WIDTH)

    with pytest.raises(MissingCapability, match="is not the model's own"):
        adapt(Noisy(), example=LABELLED)


def test_a_plain_module_is_told_to_be_adapted():
    import inspect

    from attnscope.scores.attention import Attention
    from attnscope.scores.score import read_scores

    plain = inspect.unwrap(read_scores)  # Types, enforced in tests, would object first.
    with pytest.raises(UsageError, match=r"Additive cannot be traced: .* attnscope\.adapt"):
        plain([Attention()], Additive(), LABELLED)
