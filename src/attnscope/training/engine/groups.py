"""Train units that differ only in seed, task and scalar hyperparameters (λ) as one vmapped model.

Each unit keeps its own folder, lock, log, scores and weights; only
updates, and on a GPU evaluations, are made together (`attnscope.training.engine.vmapped`).
Units of one task and seed read the same batches through the same dropout masks, which are drawn
once for all of them. The numbers are those of units trained one by one, up to rounding. The last
bits may depend on which units form a group, so a group is held as a whole or not at all, and
grouping is a function of the units alone (`attnscope.training.engine.grouping`): the same command
gives the same bytes, and so does a group that was killed and resumed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np
import torch

from attnscope.errors import AttnscopeError, NonFiniteLoss, UnitLocked
from attnscope.models.base import AttentionModule
from attnscope.runs.spec import fingerprint
from attnscope.runs.tensors import Arrays
from attnscope.runs.unit import UnitFolder
from attnscope.training.engine.backend import backend_of, distinct_sources
from attnscope.training.engine.dropout_masks import DropoutMasks
from attnscope.training.engine.group_evaluation import evaluate_group
from attnscope.training.engine.vmappable import vmappable
from attnscope.training.engine.vmapped import Stack, as_wide, stack, stack_batches, term_numbers
from attnscope.training.evaluation import Evaluated
from attnscope.training.loop import (
    CHECKPOINT_SECONDS,
    Note,
    Report,
    UnitRun,
    model_loader,
    prepare_folder,
    uncounted,
)
from attnscope.training.objective import Term
from attnscope.training.optimizer import optimizer_arrays, restore_optimizer
from attnscope.training.repeatable import repeatable
from attnscope.training.unit import Unit

_LOSSES_HELD = 100  # as many as of a unit by itself
_EARLIER = "The checkpoint before it is used, if there is one."


def train_group(
    units: Sequence[Unit],
    workspace: Path,
    report: Report = uncounted,
    note: Note = lambda sentence: None,
    *,
    evaluated: Report = uncounted,
    wait: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> list[AttnscopeError | None]:
    """Train a group of units, or resume it; finished units are left out.

    Return for each unit None if it is finished, or else the error: another process holds a unit of
    the group, and then none is trained, or its loss was not finite, which stops no other unit.

    Parameters
    ----------
    report
        Called with the number of steps, summed over units, made since the last call.
    note
        Called with a sentence when a damaged file is found.
    evaluated
        Called with the number of evaluations, summed over units, made since the last call.
    wait
        Whether to wait for other processes that hold units of the group.
    """
    folders = [unit.folder(workspace) for unit in units]
    training = units[0].training
    with ExitStack() as held, repeatable(units[0].device, training.precision):
        # In one order everywhere: two commands that wait for each other's units would hang.
        for folder in sorted(folders, key=lambda folder: folder.name):
            try:
                held.enter_context(folder.lock(wait=wait))
            except UnitLocked as error:
                _look_at_locks(folders)
                return [error] * len(units)
        members: dict[int, _Member] = {}
        for number, (unit, folder) in enumerate(zip(units, folders, strict=True)):
            if prepare_folder(unit, folder, note):
                members[number] = _Member(unit, folder, note)
            else:
                report(unit.training.steps)
                evaluated(len(unit.training.schedule))
        objective = _ready(units[0], workspace)
        for first, part in _resume_points(list(members.values())):
            _Group(part, first, objective, report, evaluated, checkpoint_seconds).train()
        failures = {number: member.failure for number, member in members.items()}
    return [failures.get(number) for number in range(len(units))]


def _look_at_locks(folders: Sequence[UnitFolder]) -> None:
    """Try every lock once: the leases of a holder that died then expire together, not in turn."""
    for folder in folders:
        with suppress(UnitLocked), folder.lock():
            pass


def _ready(unit: Unit, workspace: Path) -> list[Term]:
    """Return the terms with the trained models they need, which run under vmap too."""
    load, cells = model_loader(workspace, unit.device), backend_of(unit.device).cells

    def load_vmappable(base: Unit, which: str) -> AttentionModule:
        return vmappable(load(base, which), cells)

    return [term.ready(load_vmappable) for term in unit.training.objective]


class _Member(UnitRun):
    """One unit of a group: its checkpoints, and the error that stopped it, if any."""

    def __init__(self, unit: Unit, folder: UnitFolder, note: Note) -> None:
        super().__init__(unit, folder)
        self.failure: NonFiniteLoss | None = None
        self.checkpoints = dict(
            folder.sound_checkpoints(lambda damage: note(f"{damage} {_EARLIER}"))
        )
        if self.checkpoints and not self.has_log(max(self.checkpoints), note):
            self.checkpoints = {}

    @property
    def resume_points(self) -> set[int]:
        """The steps it can resume from.

        Two checkpoints are kept; with only one, others may have been killed before their first.
        """
        return set(self.checkpoints) | ({0} if len(self.checkpoints) < 2 else set())

    def resume_from(self, step: int) -> None:
        """Restore a checkpoint, or start over at step 0, and remove all later checkpoints."""
        if step == 0:
            self.folder.drop_checkpoints()
            self.begin()
            return
        self.folder.drop_checkpoints_after(step)
        self.restore(step, self.checkpoints[step])


def _resume_points(members: list[_Member]) -> Iterator[tuple[int, list[_Member]]]:
    """Yield members that resume together, with the step: the last one that all of them have.

    Where they have none in common, as when one diverged long ago, the step that most of them have
    comes first, and the rest go by themselves.
    """
    while members:
        held = Counter(step for member in members for step in member.resume_points)
        step = max(held, key=lambda step: (held[step], step))
        yield step, [member for member in members if step in member.resume_points]
        members = [member for member in members if step not in member.resume_points]


class _Group:
    """Members at the same step, and their updates.

    A member that diverged or stopped early stays in the stack, so that the others' bytes do not
    depend on it.
    """

    def __init__(
        self,
        members: list[_Member],
        first: int,
        objective: Sequence[Term],
        report: Report,
        evaluated: Report,
        checkpoint_seconds: float,
    ) -> None:
        self.members, self.first = members, first
        self.report, self.evaluated = report, evaluated
        self.checkpoint_seconds = checkpoint_seconds
        self.training = members[0].unit.training
        for member in members:
            member.resume_from(first)
        self.models = [member.model for member in members]
        batches = {_batch_of(member.unit): member for member in members}
        self.drawing = list(batches.values())  # one member draws for all that read its batches
        numbers = {key: number for number, key in enumerate(batches)}
        self.backend = backend = backend_of(members[0].unit.device)
        reads = [numbers[_batch_of(member.unit)] for member in members]
        self.stacked = stack(self.models, reads, backend.cells)
        self.optimizer = self.training.optimizer.build_stacked(self.stacked)
        attention = self.training.attention
        own = term_numbers(self.stacked, [m.unit.training.objective for m in members])
        self.gradients = backend.gradients(self.stacked, objective, attention, own)
        self.masks = DropoutMasks(self.stacked, objective, attention, backend.for_each)
        # A function of the units alone, so that a resumed group pads as one never stopped.
        self.target_width = self.gradients.target_width
        if self.target_width is not as_wide and not any(
            _has_targets_of_several_widths(member.unit) for member in self.drawing
        ):
            self.target_width = as_wide
        if first > 0:
            self._restore_optimizer(first)
            report(first * len(members))
            evaluated(len(members) * sum(step <= first for step in self.training.schedule))
        self.losses: list[torch.Tensor] = []  # since they were last checked
        self.saved_at = time.monotonic()

    def _restore_optimizer(self, step: int) -> None:
        """Restore the stacked state; a checkpoint of another unit is named."""
        states: list[Arrays] = []
        for number, member in enumerate(self.members):
            with member.fitting(step):
                states.append(_optimizer_part(member.checkpoints[step]))
                _demand_alike(states[number], states[0])
        with self.members[0].fitting(step):
            restore_optimizer(self.optimizer, _joined(states))

    def train(self) -> None:
        """Evaluate on schedule, update, and finish every member."""
        steps, schedule = self.training.steps, set(self.training.schedule)
        sources = distinct_sources([member.unit for member in self.members]).values()
        widest = max(source.widest_input for source in sources)
        # A source may draw wider inputs than it expects.
        self.gradients.make_room(
            lambda: self._columns(self.first, lambda wide: self.gradients.width(max(wide, widest)))
        )
        for step in range(self.first, steps + 1):
            # A checkpoint is written after its step's evaluation.
            if step in schedule and not 0 < step == self.first:
                self._evaluate(step)
                self.evaluated(len(self._running()))
            if not self._running():
                return
            if not self._training():
                self.report(len(self._running()) * (steps - step))
                self.evaluated(len(self._running()) * sum(later > step for later in schedule))
                break
            if step < steps:
                self._update(step)
                self.report(len(self._running()))
        # With these, members that are not finished when killed need no further update.
        self._checkpoint(step)
        self.backend.for_each(_finish, [member for _, member in self._running()])

    def _running(self) -> list[tuple[int, _Member]]:
        return [pair for pair in enumerate(self.members) if pair[1].failure is None]

    def _training(self) -> list[tuple[int, _Member]]:
        """Return the members that have not stopped early."""
        return [pair for pair in self._running() if not pair[1].stopped]

    def _evaluate(self, step: int) -> None:
        self._check_losses(step)
        self.stacked.write_back(self.models)
        if self.backend.vmaps_evaluation:
            self._evaluate_together(step)
            return
        for _, member in self._training():
            with _failing_alone(member):
                member.evaluate(step)

    def _evaluate_together(self, step: int) -> None:
        started = time.monotonic()
        by_source: dict[str, list[int]] = {}
        for number, member in self._training():
            by_source.setdefault(_source_of(member.unit), []).append(number)
        found: dict[int, dict[str, Evaluated]] = {number: {} for number, _ in self._training()}
        for numbers in by_source.values():
            sharing = [self.members[number] for number in numbers]
            models = [member.model for member in sharing]
            units = [member.unit for member in sharing]
            for split, batch in sharing[0].examples.items():
                rows = evaluate_group(self.stacked, numbers, models, units, batch, split)
                for number, evaluated in zip(numbers, rows, strict=True):
                    found[number][split] = evaluated

        def store(number: int) -> None:
            with _failing_alone(self.members[number]):
                self.members[number].store(step, found[number], started)

        self.backend.for_each(store, list(found))

    def _columns(self, step: int, width: Callable[[int], int]) -> Stack:
        size = self.training.batch_size
        units = [member.unit for member in self.drawing]
        batches = [u.source.training_batch(u.seed, step, size) for u in units]
        streams = [member.stream(step) for member in self.drawing]
        columns = stack_batches(batches, width, self.target_width)
        return columns | self.masks(batches, streams, columns)

    def _update(self, step: int) -> None:
        columns = self._columns(step, self.gradients.width)
        if time.monotonic() - self.saved_at >= self.checkpoint_seconds:
            self._check_losses(step)
            values = self.gradients.losses(columns).tolist()
            for number, member in self._training():
                with _failing_alone(member):
                    member.demand_finite(values[number], step)
            self._checkpoint(step)
            self.saved_at = time.monotonic()
        self.losses.append(self.gradients(columns))
        self.optimizer.step()
        if len(self.losses) >= _LOSSES_HELD:
            self._check_losses(step + 1)

    def _check_losses(self, step: int) -> None:
        """Check the losses of the last steps at once: reading each would stall a GPU."""
        values = torch.stack(self.losses, 1).tolist() if self.losses else [[]] * len(self.members)
        self.losses = []
        for number, member in self._training():
            with _failing_alone(member):
                member.take_losses(values[number], step)

    def _checkpoint(self, step: int) -> None:
        self.stacked.write_back(self.models)
        state = optimizer_arrays(self.optimizer)

        def save(number: int) -> None:
            self.members[number].checkpoint(step, _state_of(state, number))

        self.backend.for_each(save, [number for number, _ in self._running()])


def _finish(member: _Member) -> None:
    member.end()
    member.folder.finish()


def _has_targets_of_several_widths(unit: Unit) -> bool:
    size = unit.training.batch_size
    widths = {unit.source.training_batch(0, step, size).targets.shape[1] for step in range(4)}
    return len(widths) > 1


def _source_of(unit: Unit) -> str:
    return fingerprint(unit.source.model_dump(mode="json"))


def _batch_of(unit: Unit) -> str:
    """Return a key of the batches that a unit reads."""
    return f"{_source_of(unit)}-{unit.seed}"


@contextmanager
def _failing_alone(member: _Member) -> Iterator[None]:
    """Let a loss that is not finite stop its own unit only."""
    try:
        yield
    except NonFiniteLoss as error:
        member.failure = error


def _state_of(state: Arrays, number: int) -> Arrays:
    """Return one model's part of the optimiser's state, in the form of a unit by itself."""
    return {name: array if _shared(name) else array[number] for name, array in state.items()}


def _optimizer_part(state: Arrays) -> Arrays:
    return {name: array for name, array in state.items() if name.startswith("optimizer.")}


def _demand_alike(state: Arrays, other: Arrays) -> None:
    shapes, expected = ({k: v.shape for k, v in each.items()} for each in (state, other))
    if shapes != expected:
        raise ValueError("arrays of other names or shapes")


def _joined(states: Sequence[Arrays]) -> Arrays:
    """Stack the optimiser's states of all models."""
    return {
        name: first if _shared(name) else np.stack([state[name] for state in states])
        for name, first in states[0].items()
    }


def _shared(name: str) -> bool:
    # Adam counts its steps per parameter, whatever the number of models stacked in it.
    return name.endswith(".step")
