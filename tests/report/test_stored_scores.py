from itertools import pairwise

import pytest
import torch

from attnscope.data.batch import Example, collate
from attnscope.report.stored_scores import COMPARED, StoredScores, agreement, compared_rows
from attnscope.scores.score import Score
from attnscope.training.trained_unit import TrainedUnit
from cases import for_each


@pytest.fixture(scope="module")
def unit(trained):
    (path,) = (trained / "units").glob("grammar-translation*")
    return TrainedUnit.read(path)


@for_each("rows", [[0], [0, 1, 2], [1, 4, 6], [7], range(8)])
@for_each("name", ["attention", "lexical_probe"])
def test_chosen_examples_are_those_of_the_whole_file(unit, name, rows):
    step, rows = unit.folder.score_steps[3], list(rows)
    score, whole = StoredScores(unit, rows).score(name, step), unit.stored(name, step)
    assert len(whole.batch) == 8
    assert score.batch.ids.equal(whole.batch.ids[rows])
    out, inp = score.values.shape[1:]
    assert score.values.equal(whole.values[rows, :out, :inp])
    assert score.input_mask.equal(whole.input_mask[rows, :inp])


def test_all_examples_are_compared_or_evenly_chosen_ones():
    assert compared_rows(344) == list(range(344))
    some = compared_rows(4000)
    assert (some[0], some[-1], len(some)) == (0, 3999, COMPARED)
    gaps = {after - before for before, after in pairwise(some)}
    assert gaps == {8, 9}  # 3999 steps over 499 gaps


def test_what_is_not_stored_is_none(unit):
    stored = StoredScores(unit, [0, 1])
    assert stored.score("attention", 7) is None
    assert stored.score("saliency", 0) is None
    assert stored.last("attention") is not None


def test_agreement_asks_whether_the_peak_of_attention_is_among_the_top_of_the_other():
    # 40 positions: the top 5 % are two. Attention's peak is the other's second, not the reverse.
    batch = collate([Example(0, range(40), [0], [0])])
    attention, other = torch.zeros(1, 1, 40), torch.zeros(1, 1, 40)
    attention[0, 0, :3] = torch.tensor([9.0, 8.0, 7.0])
    other[0, 0, :4] = torch.tensor([8.0, 1.0, 2.0, 9.0])
    scores = [Score("x", values, batch.input_mask, batch) for values in (attention, other)]
    assert agreement(*scores, [0]) == 100.0
    assert agreement(*scores[::-1], [0]) == 0.0


def test_scores_of_other_examples_do_not_compare(unit):
    stored = StoredScores(unit, [0, 1, 2])
    attention = stored.last("attention")
    ids = attention.batch.ids.tolist()
    batch = collate([Example(10**6, range(4), [0], [0])])
    other = Score("x", torch.zeros(1, 1, 4), batch.input_mask, batch)
    assert agreement(attention, other, ids) is None
    assert agreement(attention, None, ids) is None
