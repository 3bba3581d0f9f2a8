"""Extended SCAN: SCAN's own commands, how they are put in a row, and where outputs come from."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from scipy import stats

from attnscope.data.batch import Batch
from attnscope.data.escan import SEPARATOR, VERBS, ExtendedScan, escan_phrases, scan_commands
from attnscope.data.source import Source
from attnscope.errors import UsageError
from cases import for_each

TASKS = [
    ExtendedScan(),
    ExtendedScan(shortest_output=10, longest_output=15),
    ExtendedScan(drawing="shape"),
    ExtendedScan(separator="marked", longest_input=40),
    ExtendedScan(longest_input=20),
    ExtendedScan(longest_output=16),
]
NAMES = ["usual", "short", "shape", "marked", "short inputs", "one output length"]
every = for_each("task", TASKS, ids=NAMES)
LEVEL = 0.01  # A chi-square test with a fixed seed passes always or never.


def many(task, count=300):
    return task.training_batch(seed=1, step=0, size=count)


def rows(task, batch):
    """Yield input words, output words and gold of each example, end words cut off."""
    for row in range(len(batch)):
        inp, out = int(batch.input_lengths[row]) - 1, int(batch.target_lengths[row]) - 1
        yield (
            task.input_words.decode(batch.inputs[row, :inp].tolist()),
            task.output_words.decode(batch.targets[row, :out].tolist()),
            batch.gold[row, :out].tolist(),
        )


def interpret(words):
    """Carry out a row of commands, clause by clause; ``and`` and separators end a clause."""
    done = []
    place = 0
    while place < len(words):
        word, following = words[place], words[place + 1 : place + 2]
        if word in VERBS:
            action = word.upper()
            done += {"left": ["LTURN", action], "twice": [action] * 2}.get(
                "".join(following), [action]
            )
        elif word == SEPARATOR:
            done.append(word)
        place += 1
    return done


@for_each(
    ("command", "outputs", "gold"),
    [
        ("run", "RUN", [0]),
        ("walk left", "LTURN WALK", [1, 0]),
        ("jump twice", "JUMP JUMP", [0, 1]),
        ("run and jump left", "RUN LTURN JUMP", [0, 3, 2]),
        ("walk twice and walk twice", "WALK WALK WALK WALK", [0, 1, 3, 4]),
    ],
)
def test_a_phrase_has_its_outputs_and_their_gold_positions(command, outputs, gold):
    (found,) = (p for p in escan_phrases() if " ".join(p.inputs) == command)
    assert " ".join(found.outputs) == outputs
    assert list(found.gold) == gold


def test_there_are_156_commands_and_90_phrases_of_12_shapes():
    commands = [" ".join(p.inputs) for p in scan_commands()]
    phrases = [" ".join(p.inputs) for p in escan_phrases()]
    assert len(commands) == len(set(commands)) == 156
    assert len(phrases) == len(set(phrases)) == 90
    assert sum("and" in p for p in phrases) == 81
    assert len({p.shape for p in escan_phrases()}) == 12
    assert set(phrases) == {c for c in commands if "left twice" not in c}


@pytest.mark.skipif(
    not os.environ.get("ATTNSCOPE_DATA"), reason="needs ATTNSCOPE_DATA: real corpora"
)
def test_the_commands_are_scans_own():
    folder = Path(os.environ["ATTNSCOPE_DATA"]) / "scan"

    def lines(name):
        with gzip.open(folder / name, "rt", encoding="utf8", newline="\n") as file:
            return file.read().splitlines()

    ours = {
        " ".join(p.inputs): " ".join(
            {"LTURN": "I_TURN_LEFT"}.get(word, f"I_{word}") for word in p.outputs
        )
        for p in scan_commands()
    }
    known = {"run", "walk", "jump", "left", "and", "twice"}
    scan = dict(zip(lines("all.in.gz"), lines("all.out.gz"), strict=True))
    assert {c: out for c, out in scan.items() if set(c.split()) <= known} == ours


@every
def test_outputs_are_what_the_commands_say(task):
    for inputs, outputs, _ in rows(task, many(task)):
        assert outputs == interpret(inputs)


@every
def test_gold_leads_to_the_verb_or_to_the_word_that_asks_for_the_output(task):
    for inputs, outputs, gold in rows(task, many(task)):
        assert len(set(gold)) == len(gold)
        assert {word for n, word in enumerate(inputs) if n not in gold} <= {"and"}
        for output, place in zip(outputs, gold, strict=True):
            word = inputs[place]
            verb = inputs[place - 1] if word == "twice" else word
            expected = {"left": "LTURN", SEPARATOR: SEPARATOR}.get(verb, verb.upper())
            assert output == expected


@every
def test_limits_count_the_end_word(task):
    batch = many(task)
    assert (batch.target_lengths - 1 >= task.shortest_output).all()
    assert (batch.target_lengths <= task.longest_output).all()
    assert (batch.input_lengths <= task.longest_input).all()
    assert batch.inputs.shape[1] == task.longest_input
    assert batch.targets.shape[1] == task.longest_output


@every
def test_the_end_word_comes_from_the_end_word_and_padding_from_nowhere(task):
    batch = many(task, 50)
    start, end = task.boundaries
    ends = batch.target_lengths[:, None] - 1
    assert (batch.targets.gather(1, ends) == end).all()
    assert batch.gold.gather(1, ends).squeeze(1).equal(batch.input_lengths - 1)
    assert (batch.gold[~batch.target_mask] == -1).all()
    assert (batch.targets[~batch.target_mask] == end).all()
    last = batch.inputs.gather(1, batch.input_lengths[:, None] - 1)
    assert (last == task.input_words.id("<eos>")).all()
    assert (batch.decoder_inputs[:, 0] == start).all()
    assert batch.decoder_inputs[:, 1:].equal(batch.targets[:, :-1])


def phrases_of(inputs):
    """Cut a marked input into its phrases."""
    return [text.strip() for text in " ".join(inputs).split(SEPARATOR)[:-1]]


@pytest.mark.parametrize("drawing", ["phrase", "shape"])
def test_first_phrases_are_drawn_evenly_by_phrase_or_by_shape(drawing):
    # Marked, so that a phrase can be told from its neighbour; the first one always fits.
    task = ExtendedScan(drawing=drawing, separator="marked", longest_input=60)
    firsts = Counter(phrases_of(inputs)[0] for inputs, _, _ in rows(task, many(task, 3000)))
    shapes = {" ".join(p.inputs): p.shape for p in escan_phrases()}
    assert firsts.keys() == shapes.keys()
    sizes = Counter(shapes.values())
    chance = {"phrase": lambda p: 1 / 90, "shape": lambda p: 1 / 12 / sizes[shapes[p]]}[drawing]
    expected = [3000 * chance(phrase) for phrase in shapes]
    assert stats.chisquare([firsts[p] for p in shapes], expected).pvalue > LEVEL


def test_a_phrase_is_added_only_while_the_output_is_short():
    task = TASKS[3]
    known = {" ".join(p.inputs): len(p.outputs) + 1 for p in escan_phrases()}
    for inputs, outputs, _ in rows(task, many(task)):
        widths = [known[phrase] for phrase in phrases_of(inputs)]
        assert sum(widths) == len(outputs)
        assert sum(widths[:-1]) < task.shortest_output


def test_the_authors_recorded_offsets_are_those_of_marked_phrases_of_10_to_15_outputs():
    # Their line: offset(i) = #{and in x_<=i} + 1[x_i+1 = left], over inputs of more than i words.
    recorded = [
        *(0.34, 0.31, 1.00, 1.14, 0.99, 1.16, 1.37, 1.64),
        *(1.96, 2.00, 2.08, 2.30, 2.61, 2.97, 3.06),
    ]
    task = ExtendedScan(shortest_output=10, longest_output=15, separator="marked")
    batch = many(task, 20000)
    left_follows = batch.inputs[:, 1:] == task.input_words.id("left")
    ands = (batch.inputs == task.input_words.id("and")).cumsum(1)[:, :-1]
    long_enough = batch.input_mask[:, 1:]
    offsets = ((ands + left_follows) * long_enough).sum(0) / long_enough.sum(0)
    assert offsets[:15].tolist() == pytest.approx(recorded, abs=0.05)


def test_outputs_share_the_end_of_their_subphrase():
    task = ExtendedScan()
    batch = many(task, 100)
    ends = task.subphrase_ends(batch)
    for row, (inputs, outputs, gold) in enumerate(rows(task, batch)):
        for s in range(len(outputs)):
            after = gold[s] + 1
            modified = inputs[after : after + 1] in (["left"], ["twice"])
            assert int(ends[row, s]) == gold[s] + modified
    assert (
        ends.gather(1, batch.target_lengths[:, None] - 1).squeeze(1).equal(batch.input_lengths - 1)
    )
    assert (ends[~batch.target_mask] == -1).all()


def equal(one, other):
    return all(
        getattr(one, name).equal(getattr(other, name)) for name in Batch.__dataclass_fields__
    )


@every
def test_a_batch_is_a_pure_function_of_seed_and_step(task):
    batch = task.training_batch(5, 7, 16)
    torch.manual_seed(9)
    assert equal(task.model_copy().training_batch(5, 7, 16), batch)
    assert not task.training_batch(6, 7, 16).inputs.equal(batch.inputs)
    assert not task.training_batch(5, 8, 16).inputs.equal(batch.inputs)
    assert equal(task.evaluation_batch(120).rows(slice(70)), task.evaluation_batch(70))


@every
def test_a_task_is_read_back_from_its_configuration(task):
    assert Source.model_validate(task.model_dump(mode="json")) == task


def test_the_longest_input_of_the_usual_lengths_is_27_words():
    # Seven times "v and v" give 14 outputs, and "v left and v left" may follow: 26 and EOS.
    assert ExtendedScan().longest_input == 7 * 3 + 5 + 1
    assert ExtendedScan().longest_output >= 7 * 2 + 4 + 1


def test_limits_that_may_leave_no_phrase_are_refused():
    with pytest.raises(ValidationError, match=r"longest_output=15 .* it must be 16 or more"):
        ExtendedScan(shortest_output=15, longest_output=15)
    with pytest.raises(ValidationError, match="it must be 17 or more"):
        ExtendedScan(shortest_output=15, longest_output=16, separator="marked")


def test_an_input_limit_that_no_sequence_keeps_is_told():
    task = ExtendedScan(longest_input=10)
    with pytest.raises(UsageError, match="longest_input=10"):
        many(task, 4)
