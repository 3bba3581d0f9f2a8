"""When a unit is evaluated, and on which data it trains."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch
from hypothesis import given, strategies as st

from attnscope.data.batch import Batch
from attnscope.data.corpus import GrammarSentiment, GrammarTranslation
from attnscope.data.randomness import generator
from attnscope.data.source import Source
from attnscope.data.tasks import KeywordTask, MixtureCopy, PermutationCopy
from attnscope.scores.attention import Attention
from attnscope.training.loop import build_model, train_unit
from attnscope.training.objective import negative_log_likelihood
from attnscope.training.optimizer import Adagrad
from attnscope.training.repeatable import repeatable
from attnscope.training.unit import Training, every, merged
from cases import for_each

SOURCES = (PermutationCopy(length=5), MixtureCopy(length=4), KeywordTask(), GrammarTranslation())


def same(one: Batch, two: Batch) -> bool:
    return all(torch.equal(getattr(one, f.name), getattr(two, f.name)) for f in fields(Batch))


@given(st.integers(0, 50), st.lists(st.integers(-5, 70)))
def test_schedule_has_the_first_and_the_last_step_and_what_lies_between(steps, asked):
    schedule = Training(steps=steps, batch_size=1, evaluate_at=tuple(asked)).schedule
    assert set(schedule) == {0, steps} | {step for step in asked if 0 <= step <= steps}
    assert list(schedule) == sorted(set(schedule))


def test_every_tenth_step_includes_both_ends():
    assert every(10, 30) == (0, 10, 20, 30)
    assert every(10, 35) == (0, 10, 20, 30)


def test_merged_schedules_are_in_order_without_repeats():
    assert merged((0, 10, 20), (5, 10), ()) == (0, 5, 10, 20)


def test_log_has_one_row_for_each_scheduled_step(tiny, tmp_path):
    unit = tiny(steps=6, evaluate_at=(1, 4, 99))
    folder = train_unit(unit, tmp_path)
    assert [row["step"] for row in folder.log] == [0, 1, 4, 6]
    assert folder.score_steps == [0, 1, 4, 6]


def test_unit_of_no_steps_is_evaluated_as_it_was_initialised(tiny, tmp_path):
    folder = train_unit(tiny(steps=0), tmp_path)
    assert [row["step"] for row in folder.log] == [0]
    assert folder.log[0]["training_loss"] is None


@for_each("held", [1, 3, 1000])
def test_training_loss_is_the_mean_over_all_steps_since_the_last_evaluation(
    tiny, tmp_path, monkeypatch, held
):
    losses = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0]
    monkeypatch.setattr("attnscope.training.loop._LOSSES_HELD", held)
    monkeypatch.setattr("attnscope.training.loop.total", lambda *_: next(made))
    weight = torch.zeros((), requires_grad=True)
    made = (weight * 0 + loss for loss in losses)
    folder = train_unit(tiny(steps=6, evaluate_at=(3,)), tmp_path)
    means = [row["training_loss"] for row in folder.log]
    assert means == [None, sum(losses[:3]) / 3, sum(losses[3:]) / 3]


@for_each("source", SOURCES, ids=lambda source: source.dataset)
def test_training_data_depends_on_seed_and_step_alone(source):
    first = source.training_batch(3, 7, 4)
    torch.manual_seed(0)
    for seed, step in ((3, 6), (4, 7), (0, 0)):
        assert not same(source.training_batch(seed, step, 4), first)
        source.evaluation_batch(5)
    torch.rand(3)
    assert same(source.training_batch(3, 7, 4), first)


@for_each("source", SOURCES, ids=lambda source: source.dataset)
def test_more_evaluation_data_begins_with_the_same_examples(source):
    few, many = source.evaluation_batch(20), source.evaluation_batch(70)
    torch.rand(3)
    assert same(source.evaluation_batch(20), few)
    assert torch.equal(many.ids[:20], few.ids)
    width = few.inputs.shape[1]
    assert torch.equal(many.inputs[:20, :width], few.inputs)


def test_each_update_trains_on_the_batch_of_its_step(tiny, tmp_path, monkeypatch):
    unit = tiny(seed=5, steps=4, batch_size=3)
    asked = []
    original = PermutationCopy.training_batch

    def watched(self: Source, seed: int, step: int, size: int) -> Batch:
        asked.append((seed, step, size))
        return original(self, seed, step, size)

    monkeypatch.setattr(PermutationCopy, "training_batch", watched)
    train_unit(unit, tmp_path)
    assert asked == [(5, step, 3) for step in range(4)]


def test_dropout_of_a_step_depends_on_the_seed_and_the_step(tiny, tmp_path, dropping):
    # With a learning rate that moves nothing, every step has the model as it was built.
    still = {"optimizer": Adagrad(lr=1e-300), "dtype": "float64", "steps": 2, "evaluate_at": (1,)}
    unit = tiny(GrammarSentiment(), dropping, 5, **still)
    model, log = build_model(unit), train_unit(unit, tmp_path).log
    for step in (0, 1):
        batch = unit.source.training_batch(5, step, 4)
        trace = model.trace(batch, None, generator("training", 5, step))
        expected = negative_log_likelihood(trace).mean().item()
        assert log[step + 1]["training_loss"] == pytest.approx(expected, rel=1e-12)


def test_state_of_the_global_generator_changes_nothing(tiny, tmp_path, numbers):
    results = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        results.append(numbers(train_unit(tiny(), tmp_path / str(seed)).path))
    assert results[0] == results[1]


def test_training_leaves_the_global_generator_alone(tiny, tmp_path):
    before = torch.get_rng_state()
    train_unit(tiny(), tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def test_training_leaves_threads_and_determinism_as_they_were(tiny, tmp_path):
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        train_unit(tiny(), tmp_path)
        assert torch.get_num_threads() == threads + 1
        assert not torch.are_deterministic_algorithms_enabled()
    finally:
        torch.set_num_threads(threads)


def test_two_scores_of_one_name_are_refused() -> None:
    scores = (Attention(heads=0), Attention(heads=1))
    with pytest.raises(ValueError, match="one name"):
        Training(steps=1, batch_size=1, evaluate_at=(), scores=scores)


def test_blocks_that_overlap_in_two_threads_leave_determinism_as_it_was():
    first, second = repeatable("cpu"), repeatable("cpu")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert torch.are_deterministic_algorithms_enabled()  # the second still trains
    second.__exit__(None, None, None)
    assert not torch.are_deterministic_algorithms_enabled()
