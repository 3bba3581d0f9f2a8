"""One-to-one, reversed and sorted sequences: what is drawn, what comes out, and from where."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, strategies as st
from pydantic import ValidationError
from scipy import stats

from attnscope.data.batch import Batch
from attnscope.data.sequence_tasks import OneToOne, Reversed, SequenceTask, Sorting
from attnscope.data.source import Source
from attnscope.errors import UsageError
from cases import for_each

REPEATED = Sorting(drawn="repeated", letters=5, shortest=10, longest=15)
TASKS: list[SequenceTask] = [
    OneToOne(),
    OneToOne(words=5, shortest=2, longest=4),
    Reversed(),
    Reversed(shortest=15),
    Sorting(),
    REPEATED,
]
every = for_each("task", TASKS, ids=lambda task: task.dataset)
LEVEL = 0.01  # A chi-square test with a fixed seed passes always or never.


def many(task, count=3000):
    return task.training_batch(seed=3, step=0, size=count)


def equal(one, other):
    return all(
        getattr(one, name).equal(getattr(other, name)) for name in Batch.__dataclass_fields__
    )


def rows(task, batch):
    """Yield input words, output words and gold positions of each example, padding cut off."""
    for row in range(len(batch)):
        inp, out = int(batch.input_lengths[row]), int(batch.target_lengths[row])
        yield (
            task.input_words.decode(batch.inputs[row, :inp].tolist()),
            task.output_words.decode(batch.targets[row, :out].tolist()),
            batch.gold[row, :out].tolist(),
        )


@every
def test_a_sequence_is_words_and_one_end_word(task):
    for inputs, outputs, _ in rows(task, many(task, 200)):
        assert inputs.index("<eos>") == len(inputs) - 1
        assert outputs.index("<eos>") == len(outputs) - 1
        assert task.shortest <= len(inputs) - 1 <= task.longest
        assert "<sos>" not in outputs


@every
def test_what_follows_the_end_is_end_words_without_gold(task):
    batch = many(task, 200)
    assert batch.inputs.shape == batch.targets.shape == (200, task.longest + 1)
    assert (batch.inputs[~batch.input_mask] == task.end).all()
    assert (batch.targets[~batch.target_mask] == task.end).all()
    assert (batch.gold[~batch.target_mask] == -1).all()


@every
def test_the_decoder_reads_the_start_word_and_the_targets_shifted(task):
    batch = many(task, 50)
    start, _ = task.boundaries
    assert task.output_words.words[start] == "<sos>"
    assert (batch.decoder_inputs[:, 0] == start).all()
    assert batch.decoder_inputs[:, 1:].equal(batch.targets[:, :-1])


@every
def test_gold_is_a_permutation_that_leads_from_each_word_to_its_translation(task):
    translation = {**dict(task.pairs), "<eos>": "<eos>"}
    for inputs, outputs, gold in rows(task, many(task, 200)):
        assert sorted(gold) == list(range(len(inputs)))
        assert [translation[inputs[place]] for place in gold] == outputs


@pytest.mark.parametrize("task", TASKS[:2], ids=lambda task: task.dataset)
def test_one_to_one_keeps_every_position(task):
    for _, _, gold in rows(task, many(task, 100)):
        assert gold == list(range(len(gold)))


@pytest.mark.parametrize("task", TASKS[2:4], ids=lambda task: task.dataset)
def test_reversed_turns_the_words_and_leaves_the_end(task):
    for inputs, outputs, gold in rows(task, many(task, 100)):
        assert gold == [*range(len(inputs) - 2, -1, -1), len(inputs) - 1]
        assert [word[1:] for word in outputs[:-1]] == [word[1:] for word in inputs[-2::-1]]


@pytest.mark.parametrize("task", TASKS[4:], ids=lambda task: task.dataset)
def test_sorting_is_pythons(task):
    for inputs, outputs, gold in rows(task, many(task, 200)):
        letters = inputs[:-1]
        assert outputs[:-1] == sorted(letters)
        assert gold[:-1] == sorted(range(len(letters)), key=letters.__getitem__)


def test_letters_are_distinct_unless_they_may_repeat():
    for inputs, _, _ in rows(Sorting(), many(Sorting(), 200)):
        assert len(set(inputs)) == len(inputs)
    assert all(len(set(inputs)) < len(inputs) for inputs, _, _ in rows(REPEATED, many(REPEATED)))


@every
def test_every_length_is_as_likely(task):
    lengths = many(task).input_lengths - 1
    counts = torch.bincount(lengths - task.shortest, minlength=task.longest - task.shortest + 1)
    assert len(counts) == task.longest - task.shortest + 1
    assert len(counts) == 1 or stats.chisquare(counts).pvalue > LEVEL


@every
def test_every_word_is_as_likely_at_every_position(task):
    inputs = many(task).inputs
    for position in (0, task.shortest - 1):
        counts = torch.bincount(inputs[:, position], minlength=task.end)
        assert len(counts) == task.end
        assert stats.chisquare(counts).pvalue > LEVEL


def test_by_default_one_to_one_has_15_to_19_of_three_words_in_20_positions():
    batch = many(OneToOne())
    assert set((batch.input_lengths - 1).tolist()) == {15, 16, 17, 18, 19}
    assert OneToOne().input_words.words == ("I1", "I2", "I3", "<eos>")
    assert OneToOne().output_words.words == ("O1", "O2", "O3", "<eos>", "<sos>")
    assert batch.inputs.shape[1] == 20


def test_by_default_reversed_has_one_length_of_20():
    assert (many(Reversed(), 100).input_lengths == 20).all()


@every
def test_a_training_batch_is_a_pure_function_of_seed_and_step(task):
    batch = task.training_batch(5, 7, 16)
    torch.manual_seed(99)
    task.training_batch(5, 6, 16)
    assert equal(task.model_copy().training_batch(5, 7, 16), batch)
    for seed, step in [(5, 8), (6, 7), (7, 5)]:
        assert not task.training_batch(seed, step, 16).inputs.equal(batch.inputs)


@every
@given(st.integers(1, 130), st.integers(1, 130))
def test_more_evaluation_examples_extend_fewer(task, one, other):
    few, more = sorted((one, other))
    assert equal(task.evaluation_batch(more).rows(slice(few)), task.evaluation_batch(few))


@every
def test_a_task_is_read_back_from_its_configuration(task):
    assert Source.model_validate(task.model_dump(mode="json")) == task


def test_variants_have_names_of_their_own():
    names = [Reversed(), Reversed(shortest=15), Sorting(), Sorting(drawn="repeated"), OneToOne()]
    assert len({task.dataset for task in names}) == len(names)


@every
def test_a_generated_task_reads_no_sentence(task):
    with pytest.raises(UsageError, match=f"^{task.dataset} is not text"):
        task.encode("some words")


@for_each(
    ("task", "settings", "reason"),
    [
        (OneToOne, {"words": 1}, "greater than or equal to 2"),
        (OneToOne, {"shortest": 0}, "greater than or equal to 1"),
        (OneToOne, {"shortest": 20}, "shortest=20 is above longest=19"),
        (Sorting, {"longest": 11}, "11 distinct letters cannot be drawn of 10"),
        (Sorting, {"letters": 27}, "less than or equal to 26"),
        (Sorting, {"repeat": True}, "Extra inputs"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(task, settings, reason):
    with pytest.raises(ValidationError, match=reason):
        task(**settings)
