"""Generated tasks: their distributions, boundaries, and what decides a batch (snell §3.3, §6)."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from itertools import product

import pytest
import torch
from hypothesis import given, strategies as st
from pydantic import ValidationError
from scipy import stats

from attnscope.data.batch import Batch
from attnscope.data.source import Source
from attnscope.data.tasks import (
    GeneratedTask,
    KeywordTask,
    MixtureCopy,
    PermutationCopy,
    ReorderedCopy,
    SampledCopy,
)
from attnscope.errors import UsageError
from cases import for_each

PERMUTATIONS, SAMPLED, MIXTURE = PermutationCopy(), SampledCopy(), MixtureCopy()
CONTROL = SampledCopy(vocabulary=80)
REORDERED, KEYWORD = ReorderedCopy(), KeywordTask()
COPYING = [PERMUTATIONS, SAMPLED, CONTROL, MIXTURE, REORDERED]
TASKS: list[GeneratedTask] = [*COPYING, KEYWORD]
copying = for_each("task", COPYING, ids=lambda task: task.dataset)
every = for_each("task", TASKS, ids=lambda task: task.dataset)

# A chi-square test with a fixed seed either passes always or never; this is how sure it is.
LEVEL = 0.01


def many(task: GeneratedTask, count: int = 4000) -> Batch:
    return task.training_batch(seed=3, step=0, size=count)


def uniform(values, types: int) -> bool:
    counts = torch.bincount(values.flatten(), minlength=types)
    assert len(counts) == types
    return stats.chisquare(counts).pvalue > LEVEL


def equal(one: Batch, other: Batch) -> bool:
    return all(
        getattr(one, name).equal(getattr(other, name)) for name in Batch.__dataclass_fields__
    )


def test_every_generated_task_of_the_package_is_listed():
    kinds = {
        kind
        for kind, task in Source.variants.items()
        if task.__module__ == GeneratedTask.__module__
    }
    assert kinds == {task.model_dump()["kind"] for task in TASKS}


def test_a_permutation_has_every_type_once():
    words = many(PERMUTATIONS).inputs[:, :-1]
    assert words.sort(-1).values.equal(torch.arange(40).expand(4000, 40))


@pytest.mark.parametrize("length", [3, 4])
def test_every_permutation_is_as_likely_as_every_other(length):
    words = many(PermutationCopy(length=length), 6000).inputs[:, :-1]
    found, counts = words.unique(dim=0, return_counts=True)
    assert len(found) == {3: 6, 4: 24}[length]
    assert stats.chisquare(counts).pvalue > LEVEL


@for_each(("task", "types"), [(SAMPLED, 60), (CONTROL, 80), (REORDERED, 60)])
def test_sampled_words_are_distinct_and_cover_all_types(task, types):
    words = many(task).inputs[:, :-1]
    assert words.shape == (4000, 40)
    assert (words.sort(-1).values.diff() > 0).all()
    assert words.unique().equal(torch.arange(types))


@for_each(("task", "types"), [(SAMPLED, 60), (CONTROL, 80), (REORDERED, 60)])
@for_each("place", [0, 20, 39])
def test_sampled_words_are_uniform_at_every_position(task, types, place):
    assert uniform(many(task).inputs[:, place], types)


def test_every_set_of_sampled_words_is_as_likely_as_every_other():
    words = many(SampledCopy(length=2, vocabulary=4), 6000).inputs[:, :-1]
    found, counts = words.unique(dim=0, return_counts=True)
    assert len(found) == 12
    assert stats.chisquare(counts).pvalue > LEVEL


def test_a_mixture_is_wholly_a_permutation_of_one_of_two_sets_either_half_the_time():
    words = many(MIXTURE).inputs[:, :-1].sort(-1).values
    second = words[:, 0] == 40
    assert words.equal(torch.arange(40) + 40 * second[:, None])
    assert stats.binomtest(int(second.sum()), 4000, 0.5).pvalue > LEVEL


@copying
def test_eos_ends_input_and_target_and_sos_starts_the_decoders_input(task):
    batch = many(task, 50)
    start, end = task.boundaries
    assert task.output_words.decode([start, end]) == ["<sos>", "<eos>"]
    assert batch.inputs.shape == batch.targets.shape == batch.decoder_inputs.shape == (50, 41)
    assert (batch.inputs[:, -1] == end).all()
    assert (batch.targets[:, -1] == end).all()
    assert (batch.decoder_inputs[:, 0] == start).all()
    assert batch.decoder_inputs[:, 1:].equal(batch.targets[:, :-1])
    for side in (batch.inputs, batch.targets):
        assert (side[:, :-1] < min(start, end)).all()
    assert (batch.input_lengths == 41).all()
    assert (batch.target_lengths == 41).all()


@for_each(
    ("task", "types"),
    [(PERMUTATIONS, 40), (SAMPLED, 60), (CONTROL, 80), (MIXTURE, 80), (REORDERED, 60)],
)
def test_a_vocabulary_has_the_words_counted_from_1_and_the_two_boundaries(task, types):
    words = task.input_words
    assert words == task.output_words
    assert words.words == (*map(str, range(1, types + 1)), "<eos>", "<sos>")


@copying
def test_gold_points_at_the_copied_word_at_every_position(task):
    batch = many(task, 200)
    assert batch.inputs.gather(1, batch.gold).equal(batch.targets)


@for_each("task", [PERMUTATIONS, SAMPLED, CONTROL, MIXTURE])
def test_plain_copies_keep_the_order_of_the_words(task):
    batch = many(task, 50)
    assert batch.targets.equal(batch.inputs)


def test_a_reordered_copy_permutes_positions_in_one_way_for_all_examples_seeds_and_steps():
    first = REORDERED.training_batch(0, 0, 1)
    inputs, targets = first.inputs[0].tolist(), first.targets[0].tolist()
    order = [inputs.index(word) for word in targets]  # Words are distinct.
    assert sorted(order) == list(range(41))
    assert order != sorted(order)
    batches = [REORDERED.training_batch(seed, step, 20) for seed in (0, 1) for step in (0, 5)]
    for batch in [*batches, REORDERED.evaluation_batch(60)]:
        assert batch.targets.equal(batch.inputs[:, order])
        assert batch.gold.equal(torch.tensor(order).expand(len(batch), 41))


def test_another_seed_draws_another_reordering():
    orders = {tuple(ReorderedCopy(permutation=seed).order.tolist()) for seed in range(5)}
    assert len(orders) == 5


def test_the_keyword_is_once_in_positives_and_never_in_negatives():
    batch = many(KEYWORD)
    assert KEYWORD.input_words.words[0] == "1"
    assert (batch.inputs == 0).sum(1).equal(batch.targets[:, 0])
    assert KEYWORD.output_words.words == ("absent", "present")


def test_positives_and_negatives_are_balanced():
    assert stats.binomtest(int(many(KEYWORD).targets.sum()), 4000, 0.5).pvalue > LEVEL


def test_the_keyword_stands_anywhere_with_equal_probability_and_gold_says_where():
    batch = many(KEYWORD)
    positive = batch.targets[:, 0] == 1
    places = (batch.inputs == 0).to(torch.uint8).argmax(1)
    assert batch.gold[positive, 0].equal(places[positive])
    assert (batch.gold[~positive] == -1).all()
    assert uniform(places[positive], 40)


@pytest.mark.parametrize("label", [0, 1])
def test_other_words_are_uniform_in_positives_and_negatives(label):
    batch = many(KEYWORD, 1000)
    words = batch.inputs[batch.targets[:, 0] == label]
    assert uniform(words[words != 0] - 1, 39)


def test_a_label_is_one_output_position_without_boundaries():
    batch = many(KEYWORD, 10)
    assert KEYWORD.boundaries is None
    assert batch.inputs.shape == (10, 40)
    assert batch.targets.shape == batch.decoder_inputs.shape == batch.gold.shape == (10, 1)
    assert (batch.input_lengths == 40).all()
    assert (batch.target_lengths == 1).all()


@every
def test_a_training_batch_is_a_pure_function_of_seed_and_step(task):
    batch = task.training_batch(5, 7, 16)
    torch.manual_seed(99)
    task.training_batch(5, 6, 16)
    again = task.model_copy().training_batch(5, 7, 16)
    assert equal(batch, again)
    for seed, step in [(5, 8), (6, 7), (7, 5)]:
        assert not task.training_batch(seed, step, 16).inputs.equal(batch.inputs)


@every
def test_ids_are_never_repeated_within_a_seed(task):
    ids = torch.cat([task.training_batch(1, step, 8).ids for step in range(5)])
    assert len(ids.unique()) == 40


@every
@given(st.integers(1, 130), st.integers(1, 130))
def test_more_evaluation_examples_extend_fewer(task, one, other):
    few, more = sorted((one, other))
    batch = task.evaluation_batch(few)
    assert len(batch) == few
    assert batch.ids.tolist() == list(range(few))
    assert equal(task.evaluation_batch(more).rows(slice(few)), batch)


@every
def test_evaluation_examples_are_drawn_apart_from_training_examples(task):
    held_out = {tuple(row) for row in task.evaluation_batch(150).inputs.tolist()}
    assert len(held_out) == 150
    for seed, step in product(range(3), range(10)):
        trained = task.training_batch(seed, step, 50).inputs.tolist()
        assert held_out.isdisjoint(map(tuple, trained))


def digest(configurations: list[dict]) -> str:
    """Return a hash of the batches of tasks; it runs here and, as its own source, elsewhere."""
    import hashlib

    import attnscope.data.tasks  # noqa: F401
    from attnscope.data.source import Source

    found = hashlib.sha256()
    for task in map(Source.model_validate, configurations):
        for batch in (task.training_batch(2, 3, 16), task.evaluation_batch(60)):
            for name in type(batch).__dataclass_fields__:
                found.update(getattr(batch, name).numpy().tobytes())
    return found.hexdigest()


def test_batches_are_the_same_in_every_process():
    configurations = [task.model_dump(mode="json") for task in TASKS]
    found = subprocess.run(
        [sys.executable, "-c", f"{inspect.getsource(digest)}\nprint(digest({configurations}))"],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == digest(configurations)


@for_each(
    ("task", "settings"),
    [
        (PermutationCopy, {"length": 0}),
        (MixtureCopy, {"length": 0}),
        (SampledCopy, {"length": 0}),
        (SampledCopy, {"length": 5, "vocabulary": 4}),
        (SampledCopy, {"vocabulary": 0, "length": 0}),
        (ReorderedCopy, {"length": 61}),
        (KeywordTask, {"length": 0}),
        (KeywordTask, {"types": 1}),
        (PermutationCopy, {"length": -3}),
        (PermutationCopy, {"lenght": 3}),
    ],
)
def test_sizes_that_make_no_sense_are_refused(task, settings):
    with pytest.raises(ValidationError):
        task(**settings)


def test_too_few_types_are_told_in_words():
    with pytest.raises(ValidationError, match="5 distinct words need at least as many types"):
        SampledCopy(length=5, vocabulary=4)


@every
def test_a_generated_task_reads_no_sentence(task):
    with pytest.raises(UsageError, match=f"^{task.dataset} is not text"):
        task.encode("some words")


@every
def test_a_task_is_read_back_from_its_configuration(task):
    assert Source.model_validate(task.model_dump(mode="json")) == task
