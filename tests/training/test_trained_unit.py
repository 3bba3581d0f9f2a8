"""What is read off a trained unit: stored scores, weights of the last and best step, exports."""

from __future__ import annotations

import csv
import itertools

import numpy as np
import pytest
import torch

from attnscope.data.corpus import GrammarTranslation
from attnscope.data.tasks import KeywordTask
from attnscope.errors import UsageError, WorkspaceError
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.intervention import Uniform
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.training import loop
from attnscope.training.engine.workers import train_units
from attnscope.training.evaluation import evaluate
from attnscope.training.loaded import loaded_model
from attnscope.training.loop import train_unit
from attnscope.training.trained_unit import TrainedUnit

RULES = (Attention(), LexicalProbe())
TRANSLATOR = Seq2SeqSpec(embedding=8, hidden=8, embeddings="separate")


def trained(unit, workspace):
    return TrainedUnit(unit, train_unit(unit, workspace))


@pytest.fixture(params=["copying", "uniform", "translation", "classification"])
def unit(request, tiny):
    classifier = ClassifierSpec(embedding=8, encoder=Recurrent(hidden=8))
    settings = {
        "copying": {},
        "uniform": {"attention": {"cross": Uniform()}},
        "translation": {"source": GrammarTranslation(), "model": TRANSLATOR},
        "classification": {"source": KeywordTask(length=5), "model": classifier},
    }[request.param]
    return tiny(scores=RULES, **settings)


# torch may take another kernel for weights that need no gradient, which moves the last bit.
@pytest.mark.parametrize(("dtype", "close"), [("float32", 1e-6), ("float64", 1e-12)])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_stored_scores_are_those_of_the_stored_weights(unit, tmp_path, rule, dtype, close):
    training = unit.training.model_copy(update={"dtype": dtype})
    done = trained(unit.model_copy(update={"training": training}), tmp_path)
    stored, read = done.stored(rule.name), done.score(rule)
    torch.testing.assert_close(stored.values, read.values, rtol=0, atol=close)
    assert torch.equal(stored.input_mask, read.input_mask)
    assert stored.words(0) == read.words(0)


def test_stored_scores_change_as_the_model_learns(unit, tmp_path):
    done = trained(unit, tmp_path)
    first, last = (done.stored("lexical_probe", step).values for step in (0, 6))
    assert not torch.equal(first, last)


def test_logged_numbers_are_those_of_the_stored_weights(unit, tmp_path):
    done = trained(unit, tmp_path)
    examples = unit.source.evaluation_batch(unit.training.examples)
    row, _ = evaluate(done.model, examples, unit.source, unit.training)
    assert {key: done.log[-1][key] for key in row} == pytest.approx(row, rel=1e-6)


def test_stored_examples_are_the_first_evaluation_examples(unit, tmp_path):
    done = trained(unit, tmp_path)
    expected = unit.source.evaluation_batch(unit.training.examples).rows(slice(3))
    assert torch.equal(done.examples.ids, expected.ids)
    assert torch.equal(done.examples.inputs, expected.inputs)
    assert torch.equal(done.examples.targets, expected.targets)


def test_unit_read_from_its_folder_is_the_unit_that_was_trained(unit, tmp_path):
    done = trained(unit, tmp_path)
    again = TrainedUnit.read(done.folder.path)
    assert again.unit == unit
    assert torch.equal(again.stored("attention").values, done.stored("attention").values)


def test_folder_that_is_no_unit_is_named(tmp_path):
    with pytest.raises(WorkspaceError, match="is not a unit"):
        TrainedUnit.read(tmp_path)


def test_score_that_is_not_stored_is_answered_with_those_that_are(tiny, tmp_path):
    done = trained(tiny(), tmp_path)
    with pytest.raises(UsageError, match=r"did you mean 'attention'\? Valid: attention\."):
        done.stored("atention")
    with pytest.raises(UsageError, match="step-00000003"):
        done.stored("attention", 3)
    with pytest.raises(UsageError, match="lexical_probe"):
        done.score("lexical probe")


def test_best_weights_are_those_of_the_first_step_of_highest_accuracy(tiny, tmp_path, monkeypatch):
    accuracies = itertools.cycle([0.1, 0.7, 0.7, 0.3])

    def judged(model, batch, source, training, split):
        row, scores = evaluate(model, batch, source, training, split)
        return row | {"accuracy": next(accuracies)}, scores

    monkeypatch.setattr(loop, "evaluate", judged)
    done = trained(tiny(steps=6, evaluate_at=(2, 4)), tmp_path)
    monkeypatch.undo()
    assert done.folder.load_weights("best")[0] == 2
    there = trained(tiny(steps=2, evaluate_at=()), tmp_path)
    best, expected = dict(done.best_model.named_parameters()), there.model.named_parameters()
    assert all(torch.equal(best[name], parameter) for name, parameter in expected)
    last = done.model.named_parameters()
    assert not all(torch.equal(best[name], parameter) for name, parameter in last)
    # The same weights in a model that is built once for all units of its kind.
    for which, own in (("best", done.best_model), ("last", done.model)):
        shared = dict(loaded_model(done, which=which).named_parameters())
        assert all(
            torch.equal(shared[name], parameter) for name, parameter in own.named_parameters()
        )


def test_models_read_from_a_unit_are_ready_to_be_measured(tiny, tmp_path):
    model = trained(tiny(), tmp_path).model
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_double_precision_is_kept_in_weights_and_scores(tiny, tmp_path):
    done = trained(tiny(dtype="float64"), tmp_path)
    assert {parameter.dtype for parameter in done.model.parameters()} == {torch.float64}
    assert done.stored("attention").values.dtype == torch.float64


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_array_csv_and_npz_of_a_score_hold_the_same_numbers(unit, tmp_path, rule):
    score = trained(unit, tmp_path / "runs").stored(rule.name)
    array = score.array()
    score.to_npz(tmp_path / "score.npz")
    score.to_csv(tmp_path / "score.csv")

    held = np.load(tmp_path / "score.npz", allow_pickle=False)
    np.testing.assert_array_equal(held["values"], array)
    np.testing.assert_array_equal(held["ids"], score.batch.ids)
    real = held["target_mask"][:, :, None] & held["input_mask"][:, None]
    np.testing.assert_array_equal(np.isfinite(held["values"]), real)

    with open(tmp_path / "score.csv", newline="", encoding="utf8") as stream:
        rows = list(csv.DictReader(stream))
    place = {int(example): row for row, example in enumerate(score.batch.ids)}
    seen = np.full_like(array, np.nan)
    for row in rows:
        seen[place[int(row["example"])], int(row["t"]), int(row["l"])] = float(row[rule.name])
        inputs, outputs = score.words(place[int(row["example"])])
        assert (inputs[int(row["l"])], outputs[int(row["t"])]) == (row["input"], row["output"])
    np.testing.assert_array_equal(seen, array)
    assert len(rows) == real.sum()


def test_trained_units_come_in_the_order_asked_for(tiny, tmp_path):
    units = [tiny(seed=seed) for seed in (2, 0, 1)]
    assert [done.unit.seed for done in train_units(units, tmp_path)] == [2, 0, 1]
