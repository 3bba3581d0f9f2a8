"""The bag-of-words proxy (snell Eq. 5, 6, 13; the initialisations of §4.1 and of the code)."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, strategies as st
from scipy import stats
from torch.utils._python_dispatch import TorchDispatchMode

from attnscope.data.batch import Example, collate
from attnscope.data.tasks import KeywordTask, PermutationCopy, SampledCopy
from attnscope.models import proxy
from attnscope.models.base import parameter_count
from attnscope.models.proxy import ProxySpec
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.lexicon import proxy_lexicon
from attnscope.scores.score import read_score

SOURCE = SampledCopy(length=4, vocabulary=6)  # 8 types with EOS and SOS.
MODEL = ProxySpec(embedding=5).build(SOURCE, 0).double()
words = st.lists(st.integers(0, 7), min_size=1, max_size=9)


def example(inputs, targets):
    return Example(0, inputs, [7, *targets[:-1]], targets)


@given(words, words)
def test_the_output_is_the_softmax_of_the_mean_of_the_words_logits(inputs, targets):
    logits = MODEL.trace(collate([example(inputs, targets)])).logits[0]
    per_word = [MODEL.output.weight @ MODEL.embedding.weight[word] for word in inputs]
    powers = (torch.stack(per_word).sum(0) / len(inputs)).exp()
    expected = (powers / powers.sum()).expand(len(targets), 8)
    torch.testing.assert_close(logits.softmax(-1), expected)


@given(words, words, st.randoms(use_true_random=False))
def test_the_output_depends_on_the_bag_of_input_words_alone(inputs, targets, random):
    shuffled, other = random.sample(inputs, len(inputs)), random.sample(targets, len(targets))
    one = MODEL.trace(collate([example(inputs, targets)])).logits
    torch.testing.assert_close(MODEL.trace(collate([example(shuffled, other)])).logits, one)


@given(words, words)
def test_the_probe_of_a_proxy_is_its_lexicon_looked_up(inputs, targets):
    batch = collate([example(inputs, targets), example([1], [2, 3])])
    probe = read_score(LexicalProbe(reading="probability"), MODEL, batch)
    looked_up = proxy_lexicon(MODEL).score(batch)
    torch.testing.assert_close(probe.values, looked_up.values)
    for t, target in enumerate(targets):
        for place, word in enumerate(inputs):
            powers = (MODEL.output.weight @ MODEL.embedding.weight[word]).exp()
            torch.testing.assert_close(
                looked_up.values[0, t, place], (powers[target] / powers.sum()).detach()
            )


def test_a_lexicons_rows_are_distributions_over_output_words():
    table = MODEL.lexicon()
    assert table.shape == (8, 8)
    torch.testing.assert_close(table.sum(-1), torch.ones(8, dtype=torch.float64))


def test_embeddings_and_weights_are_drawn_from_a_normal_of_variance_one_over_d():
    model = ProxySpec(embedding=100).build(PermutationCopy(length=98), 0)
    for weight in (model.embedding.weight, model.output.weight):
        drawn = weight.detach().flatten().numpy()
        assert stats.kstest(drawn, stats.norm(scale=0.1).cdf).pvalue > 0.01


def test_a_seed_still_gives_the_model_that_it_always_gave():
    state = ProxySpec(embedding=5).build(SOURCE, 0).state_dict()
    assert list(state) == ["embedding.weight", "output.weight"]
    # Sums and first entries when only §4.1's initialisation existed: stored units rest on them.
    pinned = {"embedding.weight": (-6.953854, 0.710536), "output.weight": (-0.842944, 0.668177)}
    for name, (total, first) in pinned.items():
        assert state[name].sum().item() == pytest.approx(total, abs=1e-4)
        assert state[name][0, 0].item() == pytest.approx(first, abs=1e-5)


def test_the_authors_code_starts_from_pytorchs_own_initialisation():
    model = ProxySpec(embedding=100, initialisation="code").build(PermutationCopy(length=98), 0)
    drawn = model.embedding.weight.detach().flatten().numpy()
    assert stats.kstest(drawn, stats.norm().cdf).pvalue > 0.01
    # Linear: weights and bias uniform within 1 / sqrt(100).
    for part in (model.output.weight, model.output.bias):
        values = part.detach().flatten().numpy()
        assert stats.kstest(values, stats.uniform(-0.1, 0.2).cdf).pvalue > 0.01


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (KeywordTask(types=9), 9 * 256 + 256 + 1),  # Two labels: one logit.
        (PermutationCopy(length=40), 42 * 256 + 42 * 256 + 42),
    ],
    ids=["classifying", "translating"],
)
def test_the_authors_code_has_a_bias_and_one_logit_for_two_labels(source, expected):
    assert parameter_count(ProxySpec(initialisation="code").build(source, 0)) == expected


@given(words, words)
def test_the_authors_bias_is_in_the_output_and_not_in_the_lexicon(inputs, targets):
    model = ProxySpec(embedding=5, initialisation="code").build(SOURCE, 0).double()
    weight, bias, rows = model.output.weight, model.output.bias, model.embedding.weight
    assert bias.abs().min() > 0
    logits = model.trace(collate([example(inputs, targets)])).logits[0, 0]
    torch.testing.assert_close(logits, rows[inputs].mean(0) @ weight.T + bias)
    torch.testing.assert_close(model.lexicon(), (rows @ weight.T).softmax(-1).detach())


def test_for_two_labels_the_lexicon_is_the_sigmoid_of_one_signed_logit():
    model = ProxySpec(embedding=5, initialisation="code").build(KeywordTask(types=9), 0).double()
    gamma = (model.embedding.weight @ model.output.weight[0]).detach()
    expected = torch.stack([torch.sigmoid(-gamma), torch.sigmoid(gamma)], 1)
    torch.testing.assert_close(model.lexicon(), expected)
    trace = model.trace(collate([Example(0, [3, 1], [0], [1])]))
    z = gamma[[3, 1]].mean() + model.output.bias[0]
    torch.testing.assert_close(trace.logits[0, 0, 1], z)
    assert trace.logits[0, 0, 0] == 0


class Allocated(TorchDispatchMode):
    """Records the size of every tensor that an operation makes, views of older ones left out."""

    def __init__(self):
        super().__init__()
        self.sizes = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            size = made.untyped_storage().nbytes() // made.element_size()
            self.sizes.setdefault(made.untyped_storage().data_ptr(), size)
        return made


@pytest.mark.parametrize("initialisation", ["theory", "code"])
def test_a_lexicon_holds_its_table_and_little_else(monkeypatch, initialisation):
    spec = ProxySpec(embedding=2, initialisation=initialisation)
    model = spec.build(SampledCopy(length=4, vocabulary=198), 0)
    expected = (model.embedding.weight @ model.output.weight.T).softmax(-1).detach()
    monkeypatch.setattr(proxy, "_CHUNK", 1000)
    with Allocated() as allocated:
        table = model.lexicon()
    torch.testing.assert_close(table, expected)
    sizes = sorted(allocated.sizes.values())
    assert sizes[-1] == 200 * 200
    assert all(size <= 1000 for size in sizes[:-1])


@pytest.mark.parametrize(("inputs", "outputs"), [(8000, 8000), (60_000, 2)])
def test_a_lexicon_of_a_real_vocabulary_can_be_looked_up(inputs, outputs):
    embedding = torch.nn.Embedding(inputs, 4)
    model = proxy.Proxy(embedding, proxy.OutputMap(4, outputs))
    batch = collate([Example(0, [inputs - 1, 0, 7], [0], [outputs - 1])])
    score = proxy_lexicon(model).score(batch)
    logits = embedding.weight[[inputs - 1, 0, 7]] @ model.output.weight.T
    expected = logits.softmax(-1)[:, -1].detach()
    torch.testing.assert_close(score.values[0, 0], expected)


@pytest.mark.parametrize("source", [SOURCE, KeywordTask(length=4, types=6)])
def test_log_odds_keep_the_order_of_words_whose_probability_rounds_to_one(source):
    model = ProxySpec(embedding=5, initialisation="code").build(source, 0)
    with torch.no_grad():
        model.embedding.weight.mul_(100)
    assert (model.lexicon() == 1).sum() > 1
    logits = model.output.without_bias(model.embedding.weight).double()
    types = range(logits.shape[1])
    rest = [logits[:, [k for k in types if k != o]].logsumexp(-1) for o in types]
    expected = logits - torch.stack(rest, 1)
    torch.testing.assert_close(model.log_odds().double(), expected, rtol=1e-5, atol=1e-4)
    assert model.log_odds().isfinite().all()
