"""Adapting hand-written models: every way of writing attention is seen, named and replaceable."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from attnscope.data.batch import Batch, Example, collate
from attnscope.errors import MissingCapability, UsageError
from attnscope.models.adapter import adapt
from attnscope.models.contract import check_model
from attnscope.models.intervention import Given, Permuted, Uniform
from attnscope.scores.attention import Attention
from attnscope.scores.saliency import Saliency
from attnscope.scores.score import read_score
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


class Parallel(nn.Module):
    """All output words at once; ``weigh`` makes weights [batch, out, inp] of logits."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(6)
        self.source = nn.Embedding(TYPES, WIDTH, padding_idx=0)
        self.target = nn.Embedding(TYPES, WIDTH)
        self.output = nn.Linear(2 * WIDTH, TYPES)

    def forward(self, source, target):
        states, queries = self.source(source), self.target(target)
        logits = (queries @ states.mT).masked_fill((source == 0)[:, None], -1e9)
        return self.output(torch.cat([queries, self.weigh(logits) @ states], -1))


class OutputFirst(Parallel):
    def weigh(self, logits):
        return logits.transpose(0, 1).softmax(-1).transpose(0, 1)


class OneAxis(Parallel):
    def weigh(self, logits):
        return logits.flatten(0, 1).softmax(-1).view_as(logits)


def test_rows_and_examples_are_told_apart_whatever_the_size_of_the_batch():
    for kind in (OutputFirst, OneAxis):
        model = adapt(kind(), call=write, example=WRITTEN)
        with torch.no_grad():
            whole = model.trace(WRITTEN).sites["cross"].weights
            assert whole.shape == (3, 1, 5, 7)
            # Four output words and two examples, two words and one: each divides the other.
            for rows in ([0, 2], [2]):
                some = WRITTEN.rows(torch.tensor(rows)).trimmed()
                found = model.trace(some).sites["cross"].weights
                out, inp = found.shape[2:]
                assert (out, inp) == (some.targets.shape[1], some.inputs.shape[1])
                torch.testing.assert_close(found, whole[rows][:, :, :out, :inp])


def test_a_softmax_whose_axes_cannot_be_told_apart_is_refused_in_one_sentence():
    class OutputFirstOneAxis(Parallel):
        def weigh(self, logits):
            swapped = logits.transpose(0, 1)
            return swapped.flatten(0, 1).softmax(-1).view_as(swapped).transpose(0, 1)

    with pytest.raises(MissingCapability, match="No attention of OutputFirstOneAxis can be meas"):
        adapt(OutputFirstOneAxis(), call=write, example=WRITTEN)


class Fused(Words):
    """Fused attention of three heads with a bias by head and distance, as ALiBi has it."""

    def attend(self, states, mask):
        size, length, _ = states.shape
        heads = states.view(size, length, 3, -1).transpose(1, 2)
        places = torch.arange(length)
        slopes = torch.tensor([1.0, 0.5, 0.25])[:, None, None]
        bias = -slopes * (places - places[:, None]).abs()
        mixed = nn.functional.scaled_dot_product_attention(heads, heads, heads, attn_mask=bias)
        return mixed[:, :, 0].flatten(1)


class FusedInGroups(Words):
    """The same function over five axes: groups of heads that share keys and values."""

    def attend(self, states, mask):
        size, length, _ = states.shape
        queries = states.view(size, length, 2, 2, 3).permute(0, 2, 3, 1, 4)
        keys = queries[:, :, :1]
        seen = mask[:, None, None, None]
        mixed = nn.functional.scaled_dot_product_attention(queries, keys, keys, attn_mask=seen)
        return mixed[:, :, :, 0].flatten(1)


@for_each("kind", [Fused, FusedInGroups])
def test_fused_attention_is_the_models_own_whatever_the_size_of_the_batch(kind):
    model = adapt(kind(), example=LABELLED)
    for size in (1, 2, 3):
        batch = LABELLED.rows(slice(0, size))
        with torch.no_grad():
            watched, native = model.trace(batch).logits[:, 0], model.module(batch.inputs)
        torch.testing.assert_close(watched, native, rtol=1e-5, atol=1e-5)


def test_weights_next_to_a_sink_are_given_back_bit_for_bit():
    class Sink(Words):
        def attend(self, states, mask):
            logits = (states @ self.query).masked_fill(~mask, -1e30)
            with_sink = torch.cat([logits, logits.new_zeros(len(logits), 1)], -1)
            return torch.bmm(with_sink.softmax(-1)[:, None, :-1], states)[:, 0]

    model = adapt(Sink(), example=LABELLED)
    assert model.places[0].sinks == 1
    with torch.no_grad():
        own = model.trace(LABELLED)
        weights = own.sites["cross"].weights
        assert model.outputs(LABELLED, {"cross": Given(weights)}).equal(own.logits)
        # Weights of a sum of 1 share out what the sink leaves.
        even = model.trace(LABELLED, {"cross": Uniform()}).sites["cross"].weights
    torch.testing.assert_close(even.sum(-1), weights.sum(-1))


def test_a_model_that_reads_its_inputs_time_first_has_embeddings():
    class Transposed(Additive):
        def forward(self, ids):
            states = self.embedding(ids.T).transpose(0, 1)
            return self.output(self.attend(states, ids > 0))

    class Plain(Additive):
        def forward(self, ids):
            return self.output(self.attend(self.embedding(ids), ids > 0))

    scores = [
        read_score(Saliency(), adapt(kind(), example=LABELLED), LABELLED).values
        for kind in (Transposed, Plain)
    ]
    torch.testing.assert_close(*scores)


@for_each("reentrant", [True, False])
def test_a_pass_that_is_run_again_in_backward_passes_is_refused_in_one_sentence(reentrant):
    class Recomputed(Additive):
        def attend(self, states, mask):
            return checkpoint(super().attend, states, mask, use_reentrant=reentrant)

    with pytest.raises(MissingCapability, match="Recomputed is run again in backward passes"):
        adapt(Recomputed(), example=LABELLED)


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


def test_a_single_output_is_no_choice_between_labels():
    class One(Additive):
        def forward(self, ids):
            return super().forward(ids)[:, :1]

    model = adapt(One(), tokenizer=lambda text: [1] * len(text), example=LABELLED)
    with pytest.raises(MissingCapability, match="a single output and no labels"):
        model.batch(["abc"], [0])


class Continuing(nn.Module):
    """Says a word at every position, from what it sees before it or on both sides."""

    def __init__(self, causal):
        super().__init__()
        torch.manual_seed(4)
        self.causal, self.embedding = causal, nn.Embedding(TYPES, WIDTH)
        self.output = nn.Linear(WIDTH, TYPES)

    def forward(self, ids):
        states = self.embedding(ids)[:, None]
        context = nn.functional.scaled_dot_product_attention(
            states, states, states, is_causal=self.causal
        )
        return self.output(context[:, 0])


def test_a_model_that_sees_the_words_it_would_predict_writes_no_text():
    letters = [ord(letter) - 96 for letter in "abcdefg"]
    for causal in (True, False):
        model = adapt(Continuing(causal), tokenizer=lambda text: letters[: len(text)])
        assert model.sees_ahead != causal
    with pytest.raises(MissingCapability, match="Continuing reads the words"):
        model.batch(["abc", "ab"])
    adapt(Continuing(True), tokenizer=lambda text: letters[: len(text)]).batch(["abc", "ab"])


class Reading(Continuing):
    """A classifier that reads from left to right and speaks at the last word."""

    def forward(self, ids):
        last = (ids > 0).sum(1) - 1
        return super().forward(ids)[torch.arange(len(ids)), last, :2]


def test_a_causal_classifier_attends_to_its_inputs_from_the_last_word():
    model = adapt(Reading(True), tokenizer=lambda text: [ord(each) - 96 for each in text])
    (place,) = model.places
    assert (place.name, place.keys, place.reads) == ("decoder.1.self", "source", "last")
    assert model.places.aliases["last"] == place.name
    batch = model.batch(["abcd", "bca"], [0, 1])
    weights = model.trace(batch).sites["last"].weights
    score = read_score(Attention(site="last"), model, batch)
    torch.testing.assert_close(score.values[0, 0], weights[0, 0, 3])
    torch.testing.assert_close(score.values[1, 0, :3], weights[1, 0, 2, :3])


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
