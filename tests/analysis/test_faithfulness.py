"""Faithfulness against values computed by hand."""

from __future__ import annotations

import torch

from attnscope.analysis.faithfulness import asked, faithfulness, faithfulness_of_all
from attnscope.data.batch import Example, collate
from attnscope.data.removal import without, word_groups
from attnscope.data.tokenised import TokenisedBatch
from attnscope.scores.score import Score


class Counting:
    """A model that says label 1 with probability (number of 9s) / 10."""

    def trace(self, batch, attention=None, generator=None):
        raise AssertionError("only outputs are asked for")

    def readout(self, context, query):
        raise AssertionError

    def outputs(self, batch, attention=None):
        share = ((batch.inputs == 9) & batch.input_mask).sum(1) / 10
        return torch.stack([1 - share, share], -1).clamp(min=1e-9).log()[:, None]


BATCH = collate([Example(3, [9, 1, 9, 2, 9, 3, 4, 5, 6, 7], [0], [1])])


def test_the_fall_without_the_highest_words_and_with_them_alone():
    values = (BATCH.inputs == 9).float()[:, None]
    score = Score("nines", values, BATCH.input_mask, BATCH)
    found = faithfulness(Counting(), score, shares=(0.1, 0.3))
    # Of three 9s one goes, then all three; with one of them alone .1 is left, with three all.
    torch.testing.assert_close(found.comprehensiveness, torch.tensor([(0.1 + 0.3) / 2]))
    torch.testing.assert_close(found.sufficiency, torch.tensor([(0.2 + 0.0) / 2]))


def test_fewer_positions_at_once_are_more_runs_with_the_same_answer():
    sizes = []

    class Noting(Counting):
        def outputs(self, batch, attention=None):
            sizes.append(batch.inputs.numel())
            return super().outputs(batch, attention)

    values = (BATCH.inputs == 9).float()[:, None]
    scores = [Score("nines", sign * values, BATCH.input_mask, BATCH) for sign in (1, -1)]
    at_once = faithfulness_of_all(Noting(), scores)
    assert len(sizes) == 1
    one_by_one = faithfulness_of_all(Noting(), scores, positions=10)
    assert len(sizes) > 2
    assert max(sizes[1:]) <= 10
    for one, other in zip(at_once, one_by_one, strict=True):
        assert one.comprehensiveness.equal(other.comprehensiveness)
        assert one.sufficiency.equal(other.sufficiency)


def test_all_pieces_of_a_word_go_together():
    parts = {name: getattr(BATCH, name) for name in BATCH.__dataclass_fields__}
    words = torch.tensor([[0, 0, 1, 2, 2, 2, 3, 3, 4, -1]])
    pieces = TokenisedBatch(**parts, input_words=words, target_words=torch.zeros(1, 1).long())
    groups = word_groups(pieces)
    left = without(pieces, groups == 2)
    assert left.inputs[0, : int(left.input_lengths)].tolist() == [9, 1, 9, 4, 5, 6, 7]
    assert left.input_words[0, : int(left.input_lengths)].tolist() == [0, 0, 1, 3, 3, 4, -1]


def test_groups_have_no_gaps():
    parts = {name: getattr(BATCH, name) for name in BATCH.__dataclass_fields__}
    words = torch.tensor([[-1, 0, 0, 3, 3, 4, 7, 7, 8, -1]])
    pieces = TokenisedBatch(**parts, input_words=words, target_words=torch.zeros(1, 1).long())
    assert word_groups(pieces).tolist() == [[-1, 0, 0, 1, 1, 2, 3, 3, 4, -1]]


def test_an_example_never_loses_its_last_word():
    left = without(BATCH, torch.ones_like(BATCH.inputs, dtype=torch.bool))
    assert left.inputs.equal(BATCH.inputs)


def test_a_language_models_words_are_replaced_where_they_stand():
    batch = collate([Example(0, [1, 2, 3], [1, 2, 3], [2, 3, 4])])
    left = without(batch, torch.tensor([[False, True, False]]), fill=8)
    assert left.inputs.tolist() == left.decoder_inputs.tolist() == [[1, 8, 3]]
    assert left.targets.equal(batch.targets)


def test_output_words_are_asked_about_evenly():
    batch = collate([Example(0, [1], range(9), range(9)), Example(1, [1], [1], [1])])
    example, position = asked(batch, 3)
    assert example.tolist() == [0, 0, 0, 1]
    assert position.tolist() == [2, 4, 6, 0]
