"""Evaluation: the numbers of a split do not depend on batching, and stored scores come back."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
import torch

from attnscope.data.batch import Batch
from attnscope.data.corpus import GrammarSentiment, GrammarTranslation
from attnscope.data.tasks import PermutationCopy
from attnscope.errors import UsageError
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.intervention import Uniform
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.saliency import Saliency
from attnscope.scores.score import read_score
from attnscope.training.evaluation import (
    evaluate,
    example_arrays,
    example_batch,
    padded_score,
)
from attnscope.training.loop import train_unit
from attnscope.training.metric import Metric
from attnscope.training.objective import Likelihood
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Training, Unit
from cases import for_each

TRANSLATOR = Seq2SeqSpec(embedding=8, hidden=8, embeddings="separate")
SCORES = (Attention(), LexicalProbe())


@pytest.fixture(params=["copying", "translation", "classification"])
def case(request):
    """A source, a model in double precision, and a batch (of unequal lengths but for copying)."""
    source, spec = {
        "copying": (PermutationCopy(length=5), Seq2SeqSpec(embedding=8, hidden=8)),
        "translation": (GrammarTranslation(), TRANSLATOR),
        "classification": (
            GrammarSentiment(),
            ClassifierSpec(embedding=8, encoder=Recurrent(hidden=8)),
        ),
    }[request.param]
    return source, spec.build(source, 0).double(), source.training_batch(0, 0, 9)


def settings(**given) -> Training:
    return Training(steps=0, batch_size=4, evaluate_at=(), **given)


@for_each("positions", [1, 40, 10_000])
def test_evaluation_is_the_same_however_the_examples_are_batched(case, positions):
    source, model, batch = case
    training = settings(scores=SCORES, stored=7)
    row, scores = evaluate(model, batch, source, training)
    other, other_scores = evaluate(model, batch, source, training, positions=positions)
    torch.testing.assert_close(other, row, rtol=1e-12, atol=1e-12)
    for name, values in scores.items():
        np.testing.assert_allclose(other_scores[name], values, rtol=0, atol=1e-12)


def test_scores_of_all_examples_are_read_off_the_pass_that_gives_the_loss(case, monkeypatch):
    source, model, batch = case
    under = {"cross": Uniform()}
    passes, trace = [], model.trace
    monkeypatch.setattr(
        model, "trace", lambda *given: passes.append(len(given[0])) or trace(*given)
    )
    row, scores = evaluate(model, batch, source, settings(scores=SCORES, stored=9, attention=under))
    assert sum(passes) == len(batch)
    alone, _ = evaluate(model, batch, source, settings(scores=(), attention=under))
    assert row == alone
    for rule in SCORES:
        expected = read_score(rule, model, batch, under)
        score = padded_score(rule.name, scores, batch)
        torch.testing.assert_close(score.values, expected.values, rtol=0, atol=1e-12)


def test_accuracy_and_loss_count_real_positions_alone(case):
    source, model, batch = case
    trace = model.trace(batch)
    right = [
        int(trace.logits[row, t].argmax()) == int(batch.targets[row, t])
        for row in range(len(batch))
        for t in range(int(batch.target_lengths[row]))
    ]
    row, _ = evaluate(model, batch, source, settings())
    assert row["accuracy"] == pytest.approx(sum(right) / len(right), abs=1e-15)
    loss = Likelihood()(model, batch, trace, torch.Generator())
    assert row["loss"] == pytest.approx(float(loss.detach()))


def test_padding_that_is_predicted_where_padding_stands_is_not_counted_as_right():
    source = GrammarTranslation()
    model = TRANSLATOR.build(source, 0)
    batch = source.evaluation_batch(6)
    assert not batch.target_mask.all()
    assert not batch.targets[~batch.target_mask].any()  # Padding has id 0, which no word has.
    with torch.no_grad():
        model.output.bias[0] = 1e6
    row, _ = evaluate(model, batch, source, settings())
    assert row["accuracy"] == 0


def test_stored_scores_come_back_as_they_were_read(case):
    source, model, batch = case
    _, arrays = evaluate(model, batch, source, settings(scores=SCORES, stored=5))
    kept = example_batch(example_arrays(batch.rows(slice(5))))
    trace = model.trace(batch.rows(slice(5)))
    for rule in SCORES:
        expected, score = rule.read(model, trace), padded_score(rule.name, arrays, kept)
        inp, out = kept.inputs.shape[1], kept.targets.shape[1]
        assert score.input_mask.equal(expected.input_mask[:, :inp])
        torch.testing.assert_close(score.values, expected.values[:, :out, :inp], rtol=0, atol=1e-12)


def test_stored_scores_hold_no_padding():
    source = GrammarTranslation()
    batch = source.evaluation_batch(20)
    _, arrays = evaluate(TRANSLATOR.build(source, 0), batch, source, settings(stored=20))
    assert len(arrays["attention"]) == int((batch.input_lengths * batch.target_lengths).sum())


def test_examples_come_back_as_they_were(case):
    _, _, batch = case
    again, wanted = example_batch(example_arrays(batch)), batch.trimmed()
    for name in Batch.__dataclass_fields__:
        assert getattr(again, name).equal(getattr(wanted, name)), name


class Answer(Metric):
    """A metric of a known value that remembers what it was given."""

    kind: Literal["answer of a test"] = "answer of a test"

    @property
    def name(self) -> str:
        return "answer"

    def __call__(self, model, batch, source, split, attention=None) -> float:
        return {"val": 1.0, "train": 2.0}[split] + len(batch)


class Answers(Answer):
    """A metric with several columns."""

    kind: Literal["answers of a test"] = "answers of a test"

    def __call__(self, model, batch, source, split, attention=None) -> dict[str, float]:
        return {"answer.one": 1.0, "answer.two": 2.0}


def test_a_metric_with_several_columns_is_logged_under_each_of_their_names(tmp_path):
    training = Training(
        steps=1, batch_size=4, evaluate_at=(), splits=("val", "train"), metrics=(Answers(),)
    )
    unit = Unit(source=GrammarTranslation(), model=TRANSLATOR, training=training)
    for row in train_unit(unit, tmp_path).log:
        assert (row["answer.one"], row["train.answer.two"]) == (1.0, 2.0)
        assert "answer" not in row


def test_every_split_is_logged_and_its_scores_are_stored(tmp_path):
    training = Training(
        steps=2,
        batch_size=4,
        evaluate_at=(),
        examples=6,
        stored=6,
        splits=("val", "train"),
        metrics=(Answer(),),
    )
    unit = Unit(source=GrammarTranslation(), model=TRANSLATOR, training=training)
    trained = TrainedUnit(unit, train_unit(unit, tmp_path))
    row = trained.log[-1]
    assert {"loss", "accuracy", "train.loss", "train.accuracy"} <= row.keys()
    assert (row["answer"], row["train.answer"]) == (7.0, 8.0)
    val, train = (trained.stored("attention", split=split) for split in ("val", "train"))
    assert val.batch.ids.equal(unit.source.evaluation_batch(6).ids)
    assert train.batch.ids.tolist() != val.batch.ids.tolist()
    known = {tuple(example.inputs) for example in unit.source.training_examples}
    rows = zip(train.batch.inputs.tolist(), train.batch.input_lengths.tolist(), strict=True)
    assert all(tuple(words[:length]) in known for words, length in rows)


def test_a_generated_task_has_no_training_part_to_be_evaluated_on():
    with pytest.raises(UsageError, match="no split 'train'"):
        PermutationCopy(length=5).evaluation_batch(3, "train")


@pytest.mark.parametrize(("best_by", "sign"), [("accuracy", 1), ("loss", -1)])
def test_the_best_weights_are_those_of_the_first_best_step(tmp_path, best_by, sign):
    training = Training(
        steps=8,
        batch_size=8,
        evaluate_at=range(9),
        examples=20,
        best_by=best_by,
        optimizer={"kind": "adam", "lr": 0.1},
    )
    unit = Unit(source=GrammarTranslation(), model=TRANSLATOR, training=training)
    trained = TrainedUnit(unit, train_unit(unit, tmp_path))
    values = [sign * row[best_by] for row in trained.log]
    assert trained.best_step == trained.log[values.index(max(values))]["step"]
    assert trained.folder.load_weights("best")[0] == trained.best_step


def test_final_scores_are_read_off_the_last_and_off_the_best_weights(tmp_path):
    training = Training(
        steps=6,
        batch_size=8,
        evaluate_at=range(7),
        examples=10,
        stored=4,
        splits=("val", "train"),
        final_scores=(Saliency(),),
        optimizer={"kind": "adam", "lr": 0.3},
    )
    unit = Unit(source=GrammarTranslation(), model=TRANSLATOR, training=training)
    trained = TrainedUnit(unit, train_unit(unit, tmp_path))
    assert trained.best_step < 6
    for which, model in (("last", trained.model), ("best", trained.best_model)):
        for split in ("val", "train"):
            stored = trained.stored("saliency", which, split)
            read = read_score(Saliency(), model, trained.examples_of(split))
            torch.testing.assert_close(stored.values, read.values, rtol=1e-4, atol=1e-6)
