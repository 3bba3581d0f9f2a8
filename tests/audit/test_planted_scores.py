"""Scores on models whose answers are known in advance."""

from __future__ import annotations

import pytest
import torch

from attnscope.analysis.adversary import Search, find_adversaries
from attnscope.analysis.agreement import attention_entropy
from attnscope.analysis.faithfulness import faithfulness, random_score
from attnscope.scores.attention import Attention
from attnscope.scores.leave_one_out import LeaveOneOut
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.rollout import Rollout
from attnscope.scores.saliency import Saliency
from attnscope.scores.score import read_score
from attnscope.scores.value_norm import ValueNorm

KEYS = (5, 6)


def found_first(score) -> float:
    """Return the share of examples whose highest word is the keyword."""
    highest = score.values[:, 0].masked_fill(~score.mask[:, 0], -torch.inf).argmax(-1)
    words = score.batch.inputs.gather(1, highest[:, None])[:, 0]
    return float(torch.isin(words, torch.tensor(KEYS)).double().mean())


@pytest.mark.parametrize(
    "rule", [LexicalProbe(), LeaveOneOut(), Saliency(), Attention(), ValueNorm(), Rollout()]
)
def test_every_score_ranks_the_planted_keyword_first(keyword, labelled, rule):
    batch = keyword.batch(*labelled)
    assert found_first(read_score(rule, keyword, batch)) >= 0.99


def test_under_uniform_attention_probe_and_leave_one_out_still_find_the_keyword(uniform, labelled):
    batch = uniform.batch(*labelled)
    for rule in (LexicalProbe(), LeaveOneOut(), ValueNorm()):
        assert found_first(read_score(rule, uniform, batch)) >= 0.99
    weights = read_score(Attention(), uniform, batch)
    entropy = attention_entropy(weights.values, weights.input_mask)
    torch.testing.assert_close(entropy, torch.ones_like(entropy))


def test_the_planted_alignment_is_the_probe_the_leave_one_out_and_the_right_head(reverse, parallel):
    batch = reverse.batch(*parallel)
    lengths = batch.input_lengths[:, None]
    gold = lengths - 1 - torch.arange(batch.targets.shape[1])
    for rule in (LexicalProbe(), LeaveOneOut(), Attention(heads=1)):
        score = read_score(rule, reverse, batch)
        highest = score.values.masked_fill(~score.mask, -torch.inf).argmax(-1)
        assert (highest == gold)[batch.target_mask].all(), rule


def test_taking_the_keyword_out_is_all_there_is_to_take(keyword, labelled):
    batch = keyword.batch(*labelled)
    best = faithfulness(keyword, read_score(LeaveOneOut(), keyword, batch))
    chance = faithfulness(keyword, random_score(batch))
    # Without the keyword both labels are about even: the probability falls from 1 to about a half.
    assert best.comprehensiveness.mean() > 0.4
    assert best.sufficiency.mean().abs() < 0.01
    assert chance.comprehensiveness.mean() < 0.5 * best.comprehensiveness.mean()


def test_attention_that_the_output_ignores_is_replaceable_in_every_case(idle, labelled):
    batch = idle.batch(*labelled)
    found = find_adversaries(idle, batch, Search(restarts=1, steps=30, lr=0.5))
    assert (found.divergence > 0.35).all()
    assert (found.distance == 0).all()


def test_attention_that_carries_the_output_is_not_freely_replaceable(graded, labelled):
    texts, labels = labelled
    batch = graded.batch(texts[:10], labels[:10])
    found = find_adversaries(graded, batch, Search(restarts=1, steps=30, lr=0.1, own_start=True))
    assert (found.divergence < 0.35).all()
