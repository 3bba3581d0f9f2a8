import pytest
import torch

from attnscope.data.batch import Example, collate
from attnscope.report.stored_scores import StoredScores, agreement
from attnscope.scores.score import Score
from attnscope.training.trained_unit import TrainedUnit
from cases import for_each


@pytest.fixture(scope="module")
def unit(trained):
    (path,) = (trained / "units").glob("grammar-translation*")
    return TrainedUnit.read(path)


@for_each("count", [1, 3, 8, 100])
@for_each("name", ["attention", "lexical_probe"])
def test_the_first_examples_are_those_of_the_whole_file(unit, name, count):
    step = unit.folder.score_steps[3]
    score, whole = StoredScores(unit, count).score(name, step), unit.stored(name, step)
    first = min(count, len(whole.batch))
    assert score.batch.ids.equal(whole.batch.ids[:first])
    out, inp = score.values.shape[1:]
    assert score.values.equal(whole.values[:first, :out, :inp])
    assert score.input_mask.equal(whole.input_mask[:first, :inp])


def test_what_is_not_stored_is_none(unit):
    stored = StoredScores(unit, 2)
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
    assert agreement(*scores) == 100.0
    assert agreement(*scores[::-1]) == 0.0


def test_scores_of_other_examples_do_not_compare(unit):
    stored = StoredScores(unit, 3)
    attention = stored.last("attention")
    batch = collate([Example(10**6, range(4), [0], [0])])
    assert agreement(attention, Score("x", torch.zeros(1, 1, 4), batch.input_mask, batch)) is None
    assert agreement(attention, None) is None
