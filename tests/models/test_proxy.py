"""The bag-of-words proxy (snell Eq. 5, 6, 13; initialisation of §4.1)."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attnscope.data.batch import Example, collate
from attnscope.data.tasks import PermutationCopy, SampledCopy
from attnscope.models.proxy import ProxySpec
from attnscope.scores.lexicon import proxy_lexicon
from attnscope.scores.probe import LexicalProbe
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
