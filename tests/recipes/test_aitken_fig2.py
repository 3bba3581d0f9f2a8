"""Figure 2's units, its numbers on networks whose geometry is known, and its predicates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from attnscope.analysis.dictionary import context_readout, without_state_readout
from attnscope.analysis.measures import attention, components
from attnscope.analysis.measures.numbers import Numbers
from attnscope.analysis.network import Network, fresh
from attnscope.analysis.temporal_attention import temporal_weights
from attnscope.claims.decide import Verdict
from attnscope.claims.pool import Pool
from attnscope.data.batch import Batch
from attnscope.data.sequence_tasks import OneToOne, Reversed, SequenceTask, Sorting
from attnscope.errors import UsageError
from attnscope.models import encoder_decoder
from attnscope.models.architectures import AO
from attnscope.models.encoder_decoder import EncoderDecoder, EncoderDecoderSpec
from attnscope.models.trace import Trace, attend
from attnscope.recipes.aitken import fig2
from attnscope.recipes.aitken.units import KINDS, ArchitectureName, Group
from attnscope.running.run import run
from attnscope.runs.pictures import Matrix, Plane
from attnscope.runs.result import Measurement, Result
from attnscope.runs.spec import read_settings
from attnscope.runs.unit import UnitFolder
from attnscope.training.engine.grouping import groups
from attnscope.training.engine.workers import Workers
from attnscope.training.progress import Silent
from attnscope.training.trained_unit import TrainedUnit
from cases import for_each
from readings import stricter

HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED
LENGTH = 4
RADII = torch.linspace(0.05, 0.2, LENGTH + 1).double()
SHORT = OneToOne(shortest=3, longest=LENGTH)


def config(**settings: Any) -> fig2.Config:
    return fig2.Config(**({"hidden": 6, "examples": 7, "samples": 60} | settings))


def untrained(model: ArchitectureName = "aed", attention: Any = "dot") -> TrainedUnit:
    """Return a network as it is built, without a folder."""
    made = Group(SHORT, model, 1, attention=attention).unit(config(), 0)
    found = TrainedUnit(made, UnitFolder(Path("nowhere")))
    # What `cached_property` would keep once it had read the folder.
    vars(found)["model"] = made.model.build(SHORT, 0)
    return found


@for_each(
    ("model", "width", "penalty"), [("ved", None, 1e-4), ("aed", None, 1e-3), ("ao", 50, 1e-3)]
)
def test_units_have_the_sizes_of_the_authors_code(
    model: ArchitectureName, width: int | None, penalty: float
) -> None:
    made = Group(OneToOne(), model, 4).unit(fig2.Config(), 3)
    spec, training = cast(EncoderDecoderSpec, made.model), made.training
    assert (spec.cell, spec.hidden, spec.input_dimension) == ("gru", 128, width)
    assert (training.steps, training.batch_size, training.examples) == (6000, 128, 200)
    assert [term.weight for term in training.objective] == [1.0, penalty]
    assert training.optimizer.kind == "aitken-adam"  # type: ignore[attr-defined]
    assert bool(training.scores) == (model != "ved")
    assert getattr(spec.architecture, "period", 20) == 20


def test_groups_are_those_that_the_claims_need() -> None:
    found = {
        (group.task.dataset, group.model): group.seeds
        for group in fig2.groups(fig2.Config(cells=()))
    }
    assert found.pop(("one-to-one-3", "aed")) == 25  # of which the median has the circle
    assert set(found.values()) == {5}
    expected = {
        "one-to-one-3": "aed ao ved",
        "one-to-one-5": "aed ao",
        "reversed-3": "aed ao",
        "reversed-3-varying": "aed ao",
        "sorting-10": "aed ao ved",
        "sorting-10-repeated": "aed",
    }
    wanted = {(name, m) for name, models in expected.items() for m in models.split()}
    assert set(found) == wanted - {("one-to-one-3", "aed")}


def test_some_of_the_tasks_can_be_trained_alone() -> None:
    every = {group.task.dataset for group in fig2.groups(fig2.Config())}
    found = set()
    for task in fig2.TASKS:
        own = {group.task.dataset for group in fig2.groups(fig2.Config(tasks=(task,)))}
        assert len(own) == 1
        found |= own
    assert found == every
    others = fig2.groups(fig2.Config(tasks=("reversed", "sorting")))
    assert {group.cell for group in others} == {"gru"}  # other cells are those on one-to-one
    with pytest.raises(UsageError, match=r"tasks.*'revers'.*'reversed'"):
        read_settings(fig2.Config, {"tasks": "revers"}, "aitken/fig2")


def test_cells_are_ten_seeds_of_each_other_kind_on_one_to_one() -> None:
    others = [group for group, shown in fig2.groups(fig2.Config()).items() if not shown]
    kinds = {
        (group.model, group.cell, group.attention)
        for group in others
        if group.task.dataset == "one-to-one-3" and group.seeds == 10
    }
    assert kinds == {
        ("aed", "lstm", "dot"),
        ("ao", "lstm", "dot"),
        ("aed", "ugrnn", "dot"),
        ("ao", "ugrnn", "dot"),
        ("aed", "gru", "learned"),
        ("ao", "gru", "learned"),
        ("ao", "tanh", "dot"),
    }


def test_reversed_sequences_that_decide_have_one_length_of_twenty() -> None:
    tasks = {group.task.dataset: group.task for group in fig2.groups(fig2.Config())}
    assert (tasks["reversed-3"].shortest, tasks["reversed-3"].longest) == (19, 19)
    assert tasks["reversed-3"].evaluation_batch(9).target_lengths.unique().tolist() == [20]
    assert tasks["reversed-3-varying"].evaluation_batch(200).target_lengths.unique().tolist() == [
        *range(16, 21)
    ]


@for_each(
    ("given", "read"),
    [("", ()), ("lstm", ("lstm",)), ("lstm,learned", ("lstm", "learned"))],
)
def test_cells_are_named_on_the_command_line(given: str, read: tuple[str, ...]) -> None:
    assert read_settings(fig2.Config, {"cells": given}, "aitken/fig2").cells == read


def test_an_unknown_kind_of_network_is_refused_in_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"no kind of network 'lstmm'.*lstm"):
        read_settings(fig2.Config, {"cells": "lstmm"}, "aitken/fig2")
    assert set(KINDS) == {"lstm", "ugrnn", "learned", "non-gated"}


def test_analysed_sequences_are_none_of_those_evaluated_while_training() -> None:
    one = untrained()
    assert fresh(one, 5).ids.tolist() == [7, 8, 9, 10, 11]


def test_traces_read_the_networks_own_words_and_can_be_had_again() -> None:
    network = Network.of(untrained(), 130)
    first, again = list(network.traces()), list(network.traces())
    assert [len(trace.batch) for trace in first] == [100, 30]
    for trace, other in zip(first, again, strict=True):
        assert not trace.teacher_forced
        torch.testing.assert_close(trace.logits, other.logits)
        own = trace.logits.argmax(-1)[:, :-1]
        torch.testing.assert_close(trace.batch.decoder_inputs[:, 1:], own)


@for_each("model", ["ved", "aed", "ao"])
def test_own_words_are_written_once_and_every_pass_is_that_of_the_network_itself(
    model: ArchitectureName,
) -> None:
    network = Network.of(untrained(model), 130)
    expected = [network.model.trace(batch) for batch in network.batches]
    written: list[int] = []
    write = encoder_decoder._own_words

    def counted(own: EncoderDecoder, batch: Batch, *given: Any) -> Any:
        written.append(len(batch))
        return write(own, batch, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder_decoder, "_own_words", counted)
        for _ in range(3):
            for trace, other in zip(network.passes(), expected, strict=True):
                assert not trace.teacher_forced
                torch.testing.assert_close(trace.logits, other.logits)
                torch.testing.assert_close(trace.decoder_states, other.decoder_states)
                assert trace.batch.decoder_inputs.equal(other.batch.decoder_inputs)
    assert written == [100, 30]


def test_reading_traces_leaves_gradients_on() -> None:
    for trace in Network.of(untrained(), 3).traces():
        assert torch.is_grad_enabled()
        assert not trace.logits.requires_grad


def test_traces_of_one_length_are_all_of_that_length() -> None:
    network = Network.of(untrained(), 40)
    network = network.only(network.sequences.target_lengths == 4)
    lengths = [trace.batch.target_lengths for trace in network.passes()]
    assert torch.cat(lengths).unique().tolist() == [4]


def test_word_accuracy_counts_words_up_to_and_with_the_end() -> None:
    one = untrained()
    right = total = 0
    network = Network.of(one, 50)
    for trace in network.passes():
        rows = zip(trace.logits.argmax(-1), trace.batch.targets, strict=True)
        for (own, target), length in zip(rows, trace.batch.target_lengths.tolist(), strict=True):
            right += int((own[:length] == target[:length]).sum())
            total += length
    assert network.accuracy == pytest.approx(right / total)


def test_the_first_word_is_counted_by_itself() -> None:
    class Placed(Writing):
        """It writes the word 0 first, and the end word after it."""

        ends = torch.ones(60, dtype=torch.int64)

    model = untrained().model.with_teacher_forcing("off")  # type: ignore[attr-defined]
    network = Placed(model, SHORT, SHORT.evaluation_batch(60))
    right = (network.sequences.targets[:, 0] == 0).double().mean()
    assert 0 < right < 1
    assert network.first_word_accuracy == pytest.approx(float(right))


def test_the_authors_accuracy_counts_padding_as_right() -> None:
    network = Network.of(untrained(), 50)
    positions = network.samples * (LENGTH + 1)
    padding = positions - int(network.sequences.target_lengths.sum())
    assert padding > 0
    right = network.accuracy * (positions - padding)
    assert network.padded_accuracy == pytest.approx((right + padding) / positions)


class Writing(Network):
    """A network that writes the end word at given steps, and else a word."""

    ends: Tensor

    def passes(self) -> Iterator[Trace]:
        """Replace the words written."""
        for trace in super().passes():
            logits = torch.zeros_like(trace.logits)
            logits[..., 0] = 1.0
            steps = torch.arange(logits.shape[1])
            logits[..., SHORT.end] = 2.0 * (steps >= type(self).ends[trace.batch.ids, None])
            yield replace(trace, logits=logits)


def test_outputs_are_analysed_up_to_the_end_word_that_was_written() -> None:
    """References have 3 or 4 words; the network ends after 1, 3, or never within the width."""
    ends = torch.tensor([1, 3, 9]).repeat(20)
    kind = type("Placed", (Writing,), {"ends": ends})
    made = Group(SHORT, "aed", 1).unit(config(), 0)
    model = made.model.build(SHORT, 0).with_teacher_forcing("off")  # type: ignore[attr-defined]
    network = kind(model, SHORT, SHORT.evaluation_batch(60))
    (trace,) = network.traces()
    width = LENGTH + 1
    assert trace.batch.target_lengths.tolist() == [2, 4, width] * 20
    # Every mean is over the outputs before and with the written end.
    counts = network.states.decoder.time_counts.tolist()
    assert counts == [60, 60, 40, 40, 20]
    assert network.cross.decoder.time_counts.tolist() == counts
    assert trace.batch.gold[~trace.batch.target_mask].eq(-1).all()
    # The right words are still those of the reference, however long the network writes.
    (whole,) = network.passes()
    assert whole.batch.target_lengths.equal(network.sequences.target_lengths)
    right = (whole.logits.argmax(-1) == whole.batch.targets)[whole.batch.target_mask]
    assert network.accuracy == pytest.approx(float(right.double().mean()))


def test_with_the_right_words_given_outputs_are_real_up_to_the_references_end() -> None:
    model = untrained().model
    network = Network(model, SHORT, SHORT.evaluation_batch(30))
    (trace,) = network.traces()
    assert trace.teacher_forced
    assert trace.batch.target_lengths.equal(network.sequences.target_lengths)


@pytest.mark.parametrize("given", ["on", "off"])
def test_networks_are_trained_on_the_right_words_or_on_their_own(given: str) -> None:
    settings = read_settings(fig2.Config, {"teacher_forcing": given}, "aitken/fig2")
    made = Group(SHORT, "aed", 1).unit(settings, 0)
    trace = made.model.build(SHORT, 0).trace(SHORT.training_batch(0, 0, 8))
    assert trace.teacher_forced is (given == "on")
    if given == "on":
        assert made == Group(SHORT, "aed", 1).unit(fig2.Config(), 0)


def test_seeds_trained_on_their_own_words_are_one_vmapped_group_and_learn(tmp_path: Path) -> None:
    settings = config(hidden=16, steps=40, batch_size=32, teacher_forcing=False)
    units = Group(SHORT, "aed", 2).units(settings)
    assert groups(units) == [units]
    with Workers(tmp_path) as workers:
        trained = workers.train(units, Silent(), "own words")
    for one in trained:
        assert one.log[-1]["loss"] < one.log[0]["loss"]


@for_each("attention", ["dot", "learned"])
@for_each("model", ["aed", "ao"])
def test_the_readout_of_the_context_gives_the_logits_from_attended_states(
    model: ArchitectureName, attention: str
) -> None:
    one = untrained(model, attention)
    network = cast(EncoderDecoder, one.model)
    trace = next(Network.of(one, 10).traces())
    mean_state = trace.sites["cross"].weights[:, 0] @ trace.encoder_states
    expected = trace.logits
    if model == "aed":
        hidden = network.output.weight[:, :6]
        assert trace.decoder_states is not None
        expected = expected - trace.decoder_states @ hidden.T
    torch.testing.assert_close(mean_state @ context_readout(network).T, expected.detach())


def test_without_the_state_readout_logits_depend_on_the_context_alone() -> None:
    one = untrained()
    network = cast(EncoderDecoder, one.model)
    before = network.output.weight.clone()
    silenced = replace(Network.of(one, 10), model=without_state_readout(network))
    trace = next(silenced.traces())
    context = trace.sites["cross"].context[:, :, 0]
    torch.testing.assert_close(trace.logits, context @ before[:, 6:].T)
    torch.testing.assert_close(network.output.weight, before)


def every_sequence(task: SequenceTask) -> Batch:
    """Return all sequences of the task's length: at each step every word is as frequent."""
    words = torch.tensor(list(product(range(task.end), repeat=task.longest)))
    ends = torch.full((len(words), 1), task.end)
    inputs = torch.cat([words, ends], 1)
    lengths = torch.full((len(words),), task.longest)
    gold = task.order(inputs, lengths)
    targets = inputs.gather(1, gold)
    return Batch(
        ids=torch.arange(len(words)),
        inputs=inputs,
        input_lengths=lengths + 1,
        decoder_inputs=torch.cat([ends + 1, targets[:, :-1]], 1),
        targets=targets,
        target_lengths=lengths + 1,
        gold=gold,
    )


def ideal_network(task: SequenceTask, swapped: bool = False) -> Network:
    """Return a network as §3 describes: μ_t round a circle, χ_x a simplex apart from it.

    The decoder's states are temporal and meet the encoder's where the output word comes from.
    """
    batch = every_sequence(task)
    steps = task.longest + 1
    angle = torch.arange(steps).double() * 2 * math.pi / steps
    temporal = 6 * torch.stack([angle.cos(), angle.sin()], -1)
    words = torch.zeros(task.end + 1, task.end + 1).double()
    words[:-1, :-1] = torch.eye(task.end) - 1 / task.end
    states = torch.cat([temporal.expand(len(batch), -1, -1), words[batch.inputs]], -1)
    padding = torch.zeros(len(batch), steps, words.shape[1]).double()
    # Of other lengths, so that rows and columns of the alignment differ.
    asked = temporal[batch.gold] * RADII[:, None]
    decoded = torch.cat([asked, padding], -1)
    spec = EncoderDecoderSpec(architecture=AO(), hidden=states.shape[-1], input_dimension=50)
    model = spec.build(task, 0).double().requires_grad_(False)
    rows = torch.arange(task.end).roll(1 if swapped else 0)
    model.output.weight.zero_()
    model.output.weight[: task.end, -words.shape[1] :] = words[rows]
    logits = decoded @ states.mT
    site = attend(
        batch,
        logits[:, None],
        states[:, None],
        queries=decoded[:, None],
        keys=states[:, None],
    )
    right = torch.nn.functional.one_hot(batch.targets, task.end + 2).double()
    trace = Trace(batch, states, states, decoded, decoded, right, {"cross": site}, False)

    class Ideal(Network):
        def traces(self) -> Iterator[Trace]:
            """Give the one trace, whatever the model."""
            yield trace

    return Ideal(model, task, batch)


@cache
def ideal_numbers(task: SequenceTask, swapped: bool = False) -> Numbers:
    network = ideal_network(task, swapped)
    return fig2.numbers(network) | components.explained(network, fig2.words(network))


def value(found: Numbers, name: str, **axes: Any) -> float:
    [number] = [
        number
        for key, number in found.items()
        if key.name == name and axes.items() <= dict(key.axes).items()
    ]
    return number


FIXED = OneToOne(shortest=LENGTH, longest=LENGTH)
TURNED = Reversed(shortest=LENGTH, longest=LENGTH)


@for_each("task", [FIXED, TURNED], ids=["one-to-one", "reversed"])
@for_each(
    ("name", "axes", "expected"),
    [
        ("temporal_agreement", {}, 1.0),
        ("aligned_steps", {}, 1.0),
        ("delta_share", {"side": "encoder"}, 0.0),
        ("input_delta_size", {"side": "decoder"}, 0.0),
        ("orthogonality", {"side": "encoder"}, 0.0),
        ("orthogonality", {"side": "encoder with decoder"}, 0.0),
        ("radius_variation", {"side": "encoder"}, 0.0),
        ("monotone", {"side": "encoder"}, 1.0),
        ("explained_variance", {"of": "temporal", "axes": 2}, 1.0),
        ("explained_variance", {"of": "word", "axes": 2}, 1.0),
        ("simplex_error", {}, 0.0),
        ("dictionary", {}, 1.0),
        ("term_share", {"form": "raw", "term": "muD.muE"}, 1.0),
    ],
)
def test_a_network_as_the_paper_describes_has_the_numbers_of_the_claims(
    task: SequenceTask, name: str, axes: dict[str, Any], expected: float
) -> None:
    assert value(ideal_numbers(task), name, **axes) == pytest.approx(expected, abs=1e-9)


def test_the_mass_at_the_gold_position_is_that_of_the_softmax() -> None:
    angle = torch.arange(LENGTH + 1).double() * 2 * math.pi / (LENGTH + 1)
    rows = (36 * RADII[:, None] * angle.cos()).softmax(-1)
    for task in (FIXED, TURNED):
        for of in ("temporal", "attention"):
            found = value(ideal_numbers(task), "gold_mass", of=of, within=0)
            assert found == pytest.approx(float(rows[:, 0].mean()))


def test_the_first_output_attends_the_first_and_the_last_input_by_their_angles() -> None:
    angle = torch.arange(LENGTH + 1).double() * 2 * math.pi / (LENGTH + 1)
    row = (36 * RADII[0] * angle.cos()).softmax(-1)
    # Its gold position is 0 on one-to-one, and the last word's, before the mark, where reversed.
    for task, first, last in ((FIXED, 0, LENGTH), (TURNED, 2, 1)):
        found = attention.first_output(ideal_network(task))
        assert value(found, "first_attention", at="first") == pytest.approx(float(row[first]))
        assert value(found, "first_attention", at="last") == pytest.approx(float(row[last]))


def test_readouts_of_other_words_are_no_dictionary() -> None:
    assert value(ideal_numbers(FIXED, swapped=True), "dictionary") == 0.0


def test_sorting_by_the_example_is_not_in_line_with_temporal_components() -> None:
    task = Sorting(letters=3, shortest=LENGTH, longest=LENGTH, drawn="repeated")
    assert value(ideal_numbers(task), "temporal_agreement") < 0.9


def test_temporal_attention_is_over_the_real_positions_of_each_sample() -> None:
    network = Network.of(untrained(), 60)
    trace = next(network.traces())
    weights, real = temporal_weights(network, trace), trace.batch.input_mask
    assert not real.all()
    assert weights.masked_select(~real[:, None].expand_as(weights)).count_nonzero() == 0
    rows = trace.batch.target_mask
    torch.testing.assert_close(weights.sum(-1)[rows], torch.ones(int(rows.sum())).double())


def test_what_is_lost_without_the_state_readout_is_measured_on_the_same_sequences() -> None:
    one = untrained()
    found = Network.of(one, 60)
    drop = value(fig2.numbers(found), "accuracy_drop")
    silenced = replace(found, model=without_state_readout(found.model))
    assert drop == pytest.approx(word_accuracy_of(found) - word_accuracy_of(silenced))


def word_accuracy_of(network: Network) -> float:
    right, real = zip(
        *(
            (trace.logits.argmax(-1) == trace.batch.targets, trace.batch.target_mask)
            for trace in network.passes()
        ),
        strict=True,
    )
    return float(torch.cat(right)[torch.cat(real)].double().mean())


def test_what_is_closest_by_angle_need_not_be_closest_by_product() -> None:
    """With one encoder step twice as long as the others, products are largest there or nearby."""
    network = ideal_network(FIXED)
    found = fig2.of_attention(network)
    assert value(found, "aligned_steps") == value(found, "dot_aligned_steps") == 1.0
    keys = network.cross.encoder
    keys.temporal[2] *= 50.0
    found = fig2.of_attention(network)
    assert value(found, "aligned_steps") == 1.0
    angle = torch.arange(LENGTH + 1).double() * 2 * math.pi / (LENGTH + 1)
    products = (angle[:, None] - angle).cos()
    products[:, 2] *= 50.0
    expected = (products.argmax(1) == torch.arange(LENGTH + 1)).double().mean()
    assert value(found, "dot_aligned_steps") == pytest.approx(float(expected))


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Return a run of networks that have learned nothing."""
    few = {"steps": 2, "sorting_steps": 2, "hidden": 4, "samples": 30, "examples": 4, "seeds": 1}
    few |= {"circle_seeds": 1, "cells": ""}
    out = tmp_path_factory.mktemp("runs")
    return run("aitken/fig2", few, quick=True, device="cpu", jobs=1, out=out).result


def test_networks_that_solve_their_task_alone_are_decomposed(tmp_path: Path) -> None:
    few = {"steps": 2, "hidden": 4, "samples": 30, "examples": 4, "seeds": 3, "circle_seeds": 3}
    few |= {"tasks": "one-to-one", "cells": "", "accepted": 0.5}
    reached = property(lambda network: (0.4, 0.5, 0.9)[network.seed])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Network, "accuracy", reached)
        found = run("aitken/fig2", few, quick=True, device="cpu", jobs=1, out=tmp_path).result
    of_every = {"word_accuracy", "first_word_accuracy", "solved", "accepted", "first_attention"}
    for one in found.measurements:
        assert one.seeds == ((0, 1, 2) if one.name in of_every else (1, 2))
    assert {one.name for one in found.measurements} >= of_every | {"delta_share", "term_share"}
    for one in found.select("accepted"):
        assert (one.value, one.n) == (pytest.approx(2 / 3), 3)


def test_a_run_of_which_no_network_solves_its_task_has_accuracies_alone(tmp_path: Path) -> None:
    few = {"steps": 2, "sorting_steps": 2, "hidden": 4, "samples": 30, "examples": 4, "seeds": 1}
    few |= {"circle_seeds": 1, "cells": "", "accepted": 1.0}
    found = run("aitken/fig2", few, quick=True, device="cpu", jobs=1, out=tmp_path).result
    assert not found.pictures
    assert {row.value for row in found.select("accepted")} == {0.0}
    assert len(found.select("word_accuracy")) == len(fig2.groups(fig2.Config(cells=())))
    assert not found.select("delta_share")


@for_each(
    ("datasets", "drawn"),
    [
        ({"reversed-3"}, {"fig2"}),
        ({"sorting-6"}, {"fig2-sorting"}),
        ({"one-to-one-5"}, set()),
        (None, {"fig2", "fig2-sorting"}),
    ],
)
def test_what_was_trained_is_drawn(
    result: Result, datasets: set[str] | None, drawn: set[str]
) -> None:
    if datasets is not None:
        own = [p for p in result.pictures if p.dataset in datasets]
        result = result.model_copy(update={"pictures": tuple(own)})
    assert set(fig2.draw(result, ())) == drawn


def test_veds_path_is_measured_at_each_length_too(result: Result) -> None:
    rows = result.select("steps_from_last", "one-to-one-3", model="ved")
    assert [row.axes.get("length") for row in rows] == [None, 6, 7]


def test_the_papers_bound_is_that_of_the_explained_variance_on_one_to_one(result: Result) -> None:
    rows = result.numbers
    on_one_to_one = {r.published for r in rows if r.dataset.startswith("one-to-one")}
    assert on_one_to_one == {0.9, None}
    for one in rows:
        explained = one.name == "explained_variance" and one.dataset.startswith("one-to-one")
        assert (one.published == 0.9) is explained


def test_pictures_have_every_step_and_rows_of_attention_sum_to_one() -> None:
    network, group = ideal_network(FIXED), Group(FIXED, "aed", 1)
    path, plane, *matrices = fig2.planes(group, network)
    assert isinstance(path, Plane)
    steps = [(point.group, point.label) for point in path.points]
    assert steps == [
        (side, str(step)) for side in ("encoder", "decoder") for step in range(1, LENGTH + 2)
    ]
    assert isinstance(plane, Plane)
    components = [point for point in plane.points if point.group == "component"]
    assert [point.label for point in components] == ["I1 → O1", "I2 → O2", "I3 → O3"]
    # The vertices of a triangle about the origin.
    radii = [math.hypot(point.x, point.y) for point in components]
    assert radii == pytest.approx([radii[0]] * 3, abs=1e-3)
    # Readouts along the components end where these do.
    readouts = [point for point in plane.points if point.group == "readout"]
    for end, vertex in zip(readouts, components, strict=True):
        assert (end.x, end.y) == pytest.approx((vertex.x, vertex.y), abs=1e-3)
    for matrix in (*matrices, *fig2.example(group, network)):
        assert isinstance(matrix, Matrix)
        assert len(matrix.rows) == LENGTH + 1
        for line in matrix.values:
            assert sum(weight for weight in line if weight is not None) == pytest.approx(
                1, abs=1e-3
            )
    assert [m.axes["of"] for m in matrices if isinstance(m, Matrix)] == ["attention", "temporal"]


def row(
    name: str, dataset: str, model: str, value: float, seeds: int = 5, **axes: Any
) -> Measurement:
    return Measurement(
        name=name,
        dataset=dataset,
        axes={"model": model, "cell": "gru", "attention": "none" if model == "ved" else "dot"}
        | axes,
        value=value,
        low=value,
        high=value,
        n=seeds,
        seeds=tuple(range(seeds)),
    )


ONE, FIVE, BACK, SORTED = "one-to-one-3", "one-to-one-5", "reversed-3", "sorting-10"


def as_claimed() -> list[Measurement]:
    """Return measurements as the paper describes them, all it takes to decide."""
    rows = [
        row(name, ONE, model, number)
        for model in ("ved", "aed", "ao")
        for name, number in (("solved", 1.0), ("word_accuracy", 0.999))
    ]
    rows += [
        row("delta_share", dataset, model, 0.05, side="encoder")
        for dataset, models in (
            (ONE, ("ved", "aed", "ao")),
            (FIVE, ("aed", "ao")),
            (BACK, ("aed", "ao")),
            (SORTED, ("aed",)),
        )
        for model in models
    ]
    for dataset in (ONE, BACK):
        for model in ("aed", "ao"):
            rows.append(row("temporal_agreement", dataset, model, 0.99))
            for of in ("temporal", "attention"):
                for within, mass in ((0, 0.6), (1, 0.9)):
                    rows.append(row("gold_mass", dataset, model, mass, of=of, within=within))
    for side in ("encoder", "decoder"):
        rows.append(row("radius_variation", ONE, "aed", 0.1, side=side))
        rows.append(row("monotone", ONE, "aed", 1.0, side=side))
        rows.append(row("orthogonality", ONE, "aed", 0.05, side=side))
    rows += [
        row("aligned_steps", ONE, "aed", 0.95),
        row("input_delta_size", ONE, "aed", 0.2, side="decoder"),
        row("accuracy_drop", ONE, "aed", 0.001, without="state readout"),
        row("readout_norms", ONE, "aed", 3.0),
        row("adjacent_steps", ONE, "ved", 0.95),
        row("steps_from_last", ONE, "ved", 0.0),
        row("term_gap", SORTED, "aed", 0.2, form="centred", term="deltahD.chiE"),
        row("term_share", SORTED, "aed", 0.05, form="centred", term="muD.muE"),
        row("term_share", SORTED, "aed", 0.4, form="raw", term="muD.muE"),
    ]
    for model in ("ved", "aed", "ao"):
        rows.append(row("explained_variance", ONE, model, 0.95, of="temporal", axes=3))
    rows += [row("simplex_error", data, m, 0.02) for data in (ONE, FIVE) for m in ("aed", "ao")]
    return rows


def decided(claim: str, rows: list[Measurement], scale: Any = "full") -> Verdict:
    result = Result(
        recipe="aitken/fig2",
        scale=scale,
        config=fig2.Config().model_dump(mode="json"),
        environment={"device": "cpu"},
        seconds=0.0,
        measurements=tuple(rows),
    )
    return stricter(fig2.CLAIMS[f"aitken.{claim}"])(Pool((result,))).verdict


def changed(
    rows: list[Measurement], name: str, value: float | None, keep: Callable[[Measurement], bool]
) -> list[Measurement]:
    update = {"value": value, "low": value, "high": value}
    return [r.model_copy(update=update) if r.name == name and keep(r) else r for r in rows]


OWN = (
    "one-to-one",
    "temporal-attention",
    "circle",
    "decoder-temporal",
    "orthogonal",
    "readout-context",
    "low-dimensional",
    "ved-path",
    "reversed",
    "sorting",
)


@for_each("claim", OWN)
def test_a_claim_holds_on_what_the_paper_describes(claim: str) -> None:
    assert decided(claim, as_claimed()) is HOLDS


@for_each(
    ("claim", "name", "value", "where"),
    [
        ("one-to-one", "solved", 0.6, {"model": "ved"}),
        ("temporal-attention", "temporal_agreement", 0.9, {"model": "ao"}),
        ("temporal-attention", "gold_mass", 0.4, {"model": "aed", "of": "temporal", "within": 1}),
        ("circle", "radius_variation", 0.3, {"side": "decoder"}),
        ("circle", "monotone", 0.8, {"side": "encoder"}),
        ("circle", "aligned_steps", 0.8, {}),
        ("decoder-temporal", "input_delta_size", 0.4, {}),
        ("orthogonal", "orthogonality", 0.2, {"side": "encoder"}),
        ("readout-context", "accuracy_drop", 0.02, {}),
        ("low-dimensional", "explained_variance", 0.8, {"model": "ved"}),
        ("low-dimensional", "simplex_error", 0.2, {"model": "ao"}),
        ("ved-path", "adjacent_steps", 0.8, {}),
        ("ved-path", "steps_from_last", 2.0, {}),
        ("reversed", "temporal_agreement", 0.9, {"model": "aed"}),
        ("reversed", "gold_mass", 0.4, {"model": "ao", "of": "temporal", "within": 1}),
        ("sorting", "term_gap", -0.1, {}),
        ("sorting", "term_share", 0.2, {"form": "centred"}),
    ],
)
def test_any_one_altered_number_fails_its_claim(
    claim: str, name: str, value: float, where: dict[str, Any]
) -> None:
    rows = changed(as_claimed(), name, value, lambda r: where.items() <= r.axes.items())
    assert decided(claim, rows) is FAILS


@for_each("claim", [claim for claim in OWN if claim != "one-to-one"])
def test_networks_that_do_not_solve_their_task_decide_nothing(claim: str) -> None:
    # Of such networks only accuracies are measured.
    rows = [r for r in as_claimed() if r.name in ("solved", "word_accuracy")]
    assert decided(claim, rows) is UNDECIDED


@for_each("claim", OWN)
def test_four_seeds_decide_nothing_but_in_a_quick_run(claim: str) -> None:
    rows = [r.model_copy(update={"n": 4, "seeds": (0, 1, 2, 3)}) for r in as_claimed()]
    assert decided(claim, rows) is UNDECIDED
    assert decided(claim, rows, "quick") is HOLDS


@for_each("claim", OWN)
def test_nothing_measured_decides_nothing(claim: str) -> None:
    assert decided(claim, [row("other", ONE, "aed", 1.0)]) is UNDECIDED


@for_each("claim", OWN)
def test_numbers_of_other_cells_and_single_lengths_do_not_decide(claim: str) -> None:
    others = [
        r.model_copy(update={"value": 0.5, "low": 0.5, "high": 0.5, "axes": r.axes | axes})
        for r in as_claimed()
        for axes in ({"cell": "lstm"}, {"attention": "learned"}, {"length": 17})
    ]
    assert decided(claim, as_claimed() + others) is HOLDS


def test_raw_shares_of_sorting_stand_beside_and_do_not_decide() -> None:
    rows = changed(as_claimed(), "term_share", 0.9, lambda r: r.axes["form"] == "raw")
    assert decided("sorting", rows) is HOLDS


def by_words(claim: str, rows: list[Measurement]) -> Verdict:
    result = Result(
        recipe="aitken/fig2",
        scale="full",
        config=fig2.Config().model_dump(mode="json"),
        environment={"device": "cpu"},
        seconds=0.0,
        measurements=tuple(rows),
    )
    return fig2.CLAIMS[f"aitken.{claim}"](Pool((result,))).verdict


def test_by_the_papers_words_the_median_of_25_networks_has_the_circle() -> None:
    seeds = tuple(range(25))

    def many(row: Measurement) -> Measurement:
        assert row.value is not None
        spread = [row.value] * 13 + [0.5] * 12  # the others have no circle
        return row.model_copy(update={"seeds": seeds, "n": 25, "values": tuple(spread)})

    rows = [many(r) for r in as_claimed()]
    rows += [many(row("dot_aligned_steps", ONE, model, 0.95)) for model in ("aed", "ao")]
    worse = changed(rows, "aligned_steps", 0.5, lambda r: True)
    assert by_words("circle", worse) is HOLDS
    assert by_words("circle", changed(rows, "dot_aligned_steps", 0.5, lambda r: True)) is FAILS
    assert by_words("circle", as_claimed()) is UNDECIDED  # five seeds


def test_by_the_papers_words_veds_path_is_that_of_the_longest_length() -> None:
    at_lengths = []
    for length, steps in ((19, 3.0), (20, 0.0)):
        at_lengths.append(row("adjacent_steps", ONE, "ved", 1.0, length=length))
        at_lengths.append(row("steps_from_last", ONE, "ved", steps, length=length))
    varying = changed(as_claimed(), "steps_from_last", 4.0, lambda r: True)
    assert by_words("ved-path", varying) is UNDECIDED
    assert by_words("ved-path", varying + at_lengths) is HOLDS


def test_by_the_papers_words_reversed_aed_may_be_one_position_off() -> None:
    near = [row("temporal_agreement_within_one", "reversed-3", "aed", 0.99)]
    rows = changed(as_claimed(), "temporal_agreement", 0.4, lambda r: r.axes["model"] == "aed")
    assert by_words("reversed", rows + near) is HOLDS
    assert by_words("reversed", changed(rows + near, near[0].name, 0.4, lambda r: True)) is FAILS
