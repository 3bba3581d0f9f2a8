"""Saliency against finite differences, a closed form, and the removal of words (snell §5.1)."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attnscope.data.batch import Example, collate
from attnscope.data.corpus import GrammarSentiment
from attnscope.data.tasks import KeywordTask, SampledCopy
from attnscope.errors import MissingCapability
from attnscope.models.attentions import Additive
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.intervention import Frozen, Learned, Uniform
from attnscope.models.proxy import ProxySpec
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.models.trace import Trace
from attnscope.scores.attention import Attention
from attnscope.scores.saliency import Saliency
from attnscope.scores.score import read_score, read_scores
from cases import for_each

COPYING, CLASSIFYING = SampledCopy(length=4, vocabulary=6), KeywordTask(types=9)
# No word twice in a sentence: to scale a word's embedding is then to scale one position.
SENTENCES = collate(
    [Example(0, [1, 2, 3, 6], [7, 1, 2], [1, 2, 6]), Example(5, [4, 0], [7, 4], [4, 6])]
)
REVIEWS = collate([Example(0, [3, 1, 4, 5], [0], [1]), Example(1, [2, 7], [0], [0])])


def copier():
    return Seq2SeqSpec(embedding=5, hidden=4, embeddings="separate").build(COPYING, 0).double()


def classifier():
    spec = ClassifierSpec(embedding=5, encoder=Recurrent(hidden=4), attention=Additive(hidden=3))
    return spec.build(CLASSIFYING, 0).double()


def gains(model, batch, attention):
    """Return log p of the right words."""
    with torch.no_grad():
        logits = model.trace(batch, attention).logits.log_softmax(-1)
    return logits.gather(-1, batch.targets[..., None]).squeeze(-1)


@for_each("rule", [Learned(), Uniform()], ids=lambda rule: rule.kind)
@for_each(
    ("model", "batch", "name"),
    [(copier(), SENTENCES, "source_embedding"), (classifier(), REVIEWS, "embedding")],
    ids=["seq2seq", "classifier"],
)
def test_saliency_is_the_derivative_by_a_scalar_on_each_embedding(model, batch, name, rule):
    score = read_score(Saliency(), model, batch, {"cross": rule})
    table, step = getattr(model, name).weight.data, 1e-6
    for row in range(len(batch)):
        for place in range(batch.input_lengths[row]):
            word = batch.inputs[row, place]
            kept = table[word].clone()
            sides = []
            for sign in (1, -1):
                table[word] = kept * (1 + sign * step)
                sides.append(gains(model, batch, {"cross": rule})[row])
            table[word] = kept
            real = batch.target_mask[row]
            expected = (sides[0] - sides[1]) / (2 * step)
            torch.testing.assert_close(
                score.values[row, real, place], expected[real], rtol=1e-6, atol=1e-8
            )


@pytest.mark.parametrize("initialisation", ["theory", "code"])
def test_saliency_of_a_proxy_is_its_closed_form(initialisation):
    model = ProxySpec(embedding=5, initialisation=initialisation).build(COPYING, 0).double()
    score = read_score(Saliency(), model, SENTENCES)
    p = model.trace(SENTENCES).logits.softmax(-1)
    for row, (length, words) in enumerate([(4, 3), (2, 2)]):
        logits = model.embedding.weight[SENTENCES.inputs[row, :length]] @ model.output.weight.T
        for t in range(words):
            # ∂ log p_y / ∂z = onehot(y) − p, and z is the mean of the words' logits.
            target = SENTENCES.targets[row, t]
            expected = (logits[:, target] - logits @ p[row, t]) / length
            torch.testing.assert_close(score.values[row, t, :length], expected.detach())


def trained_on_sentiment(steps=80):
    source = GrammarSentiment()
    model = ClassifierSpec(
        embedding=16, encoder=Recurrent(hidden=16), attention=Additive(hidden=8)
    ).build(source, 0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(steps):
        batch = source.training_batch(0, step, 32)
        optimizer.zero_grad()
        logits = model.trace(batch).logits[:, 0]
        nn.functional.cross_entropy(logits, batch.targets[:, 0]).backward()
        optimizer.step()
    return source, model


def test_removing_the_most_salient_word_hurts_more_than_removing_the_least_salient():
    source, model = trained_on_sentiment()
    batch = source.evaluation_batch(200)
    score = read_score(Saliency(), model, batch)
    real = batch.input_mask
    places = {
        "most": score.values[:, 0].masked_fill(~real, float("-inf")).argmax(-1),
        "least": score.values[:, 0].masked_fill(~real, float("inf")).argmin(-1),
    }
    rows = zip(batch.inputs.tolist(), batch.input_lengths.tolist(), strict=True)
    texts = [row[:length] for row, length in rows]
    before = gains(model, batch, None).exp()
    loss = {}
    for name, place in places.items():
        shorter = [
            Example(n, [*text[:p], *text[p + 1 :]], [0], [int(batch.targets[n, 0])])
            for n, (text, p) in enumerate(zip(texts, place.tolist(), strict=True))
        ]
        loss[name] = (before - gains(model, collate(shorter), None).exp())[:, 0]
    assert before.mean() > 0.7  # Something was learned.
    assert loss["most"].mean() > 0.1
    assert loss["least"].mean() < 0  # What speaks against the label is better left out.
    assert (loss["most"] > loss["least"]).double().mean() > 0.9


@for_each("mode", [True, False], ids=["training", "evaluating"])
@for_each("fixed", [(), ("embedding",), ("",)], ids=["none", "some", "all"])
def test_reading_leaves_the_model_as_it_was_and_gives_the_same(mode, fixed):
    model = classifier()
    expected = read_score(Saliency(), model, REVIEWS).values
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.startswith(fixed or ("-",)))
    model.train(mode)
    before = [parameter.requires_grad for parameter in model.parameters()]
    with torch.no_grad():
        score = read_score(Saliency(), model, REVIEWS)
    assert score.values.equal(expected)
    assert not score.values.requires_grad
    assert [parameter.requires_grad for parameter in model.parameters()] == before
    assert all(module.training is mode for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_model_is_left_as_it_was_even_when_it_fails():
    class Failing(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.LSTM(2, 2)

        def trace(self, batch, attention=None, generator=None):
            assert self.encoder.training
            assert self.encoder.weight_hh_l0.requires_grad
            raise RuntimeError("out of memory")

        def readout(self, context, query):
            raise AssertionError

    model = Failing().eval().requires_grad_(False)
    with pytest.raises(RuntimeError, match="out of memory"):
        Saliency().trace(model, REVIEWS)
    assert not model.encoder.training
    assert not model.encoder.weight_hh_l0.requires_grad


def test_a_recurrence_with_dropout_of_its_own_stays_in_evaluation():
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(9, 3).double()
            self.encoder = nn.LSTM(3, 2, 2, batch_first=True, dropout=0.5).double()

        def trace(self, batch, attention=None, generator=None):
            assert not self.encoder.training
            assert not torch.backends.cudnn.enabled
            embeddings = self.embedding(batch.inputs)
            states, _ = self.encoder(embeddings)
            return Trace(batch, embeddings, states, None, states[:, :1], states[:, -1:])

        def readout(self, context, query):
            raise AssertionError

    model, equal = (
        Deep().eval(),
        collate([Example(0, [3, 1], [0], [1]), Example(1, [2, 7], [0], [0])]),
    )
    enabled = torch.backends.cudnn.enabled
    once, twice = (read_score(Saliency(), model, equal).values for _ in range(2))
    assert once.equal(twice)
    assert once.any()
    assert torch.backends.cudnn.enabled is enabled


def test_frozen_attention_lets_gradients_through_the_values_alone():
    model = classifier()
    learned, frozen = (
        read_score(Saliency(), model, REVIEWS, {"cross": rule}) for rule in (Learned(), Frozen())
    )
    assert frozen.values[frozen.mask].all()
    assert not learned.values.isclose(frozen.values)[learned.mask].any()


def test_scores_read_together_are_those_read_alone_and_share_a_pass():
    model, passes = classifier(), []
    forward = model.trace
    rules = [Attention(), Saliency(), Attention(heads="max")]
    alone = [read_score(rule, model, REVIEWS).values for rule in rules]
    model.trace = lambda *args: passes.append(1) or forward(*args)
    together = read_scores(rules, model, REVIEWS)
    assert all(a.equal(score.values) for a, score in zip(alone, together, strict=True))
    assert len(passes) == 2


class Detached(nn.Module):
    """A model that returns a copy of its embeddings, apart from the graph."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def trace(self, batch, attention=None, generator=None):
        t = self.model.trace(batch, attention)
        copy = t.embeddings.detach().clone().requires_grad_()
        return Trace(batch, copy, t.encoder_states, None, t.query, t.logits, t.sites)

    def readout(self, context, query):
        return self.model.readout(context, query)


def test_embeddings_apart_from_the_graph_are_one_sentence():
    with pytest.raises(MissingCapability, match=r"^Saliency needs a trace .* that it uses\.$"):
        read_score(Saliency(), Detached(classifier()), REVIEWS)


def test_a_trace_without_a_graph_is_one_sentence():
    model = classifier()
    with torch.no_grad():
        trace = model.trace(REVIEWS)
        with pytest.raises(MissingCapability, match="make it with Saliency"):
            Saliency().read(model, trace)


def test_reading_frees_the_graph():
    model = copier()
    trace = Saliency().trace(model, SENTENCES)
    Saliency().read(model, trace)
    with pytest.raises(RuntimeError, match="second time"):
        trace.logits.sum().backward()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA: cuDNN's backward pass")
@pytest.mark.parametrize(("build", "batch"), [(copier, SENTENCES), (classifier, REVIEWS)])
def test_saliency_on_a_gpu_is_that_on_the_cpu(build, batch):
    expected = read_score(Saliency(), build().eval(), batch).values
    model = build().cuda().eval().requires_grad_(False)
    found = read_score(Saliency(), model, batch.to("cuda")).values
    torch.testing.assert_close(found.cpu(), expected)
