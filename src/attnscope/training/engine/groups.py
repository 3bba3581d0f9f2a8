"""Train units that differ only in seed and scalar hyperparameters (λ) as one vmapped model.

Each unit keeps its own folder, lock, log, scores and weights, and is evaluated by itself; only the
updates are made together (`attnscope.training.engine.vmapped`). Units of one seed read the same
batches through the same dropout masks, which are drawn once for all of them. The numbers are those
of units trained one by one, up to rounding. The last bits may depend on which units form a group,
so the grouping is a pure function of the command: the same command gives the same bytes, and so
does a group that was killed and resumed.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import torch

from attnscope.errors import AttnscopeError, DamagedFile, NonFiniteLoss, UnitLocked
from attnscope.models.base import ModelSpec
from attnscope.runs.spec import fingerprint
from attnscope.runs.tensors import Arrays, load_arrays
from attnscope.runs.unit import UnitFolder
from attnscope.training.engine.cuda_graphs import GRADIENTS
from attnscope.training.engine.dropout_masks import PreparedMasks
from attnscope.training.engine.vmapped import Stack, stack, stack_batches, term_numbers
from attnscope.training.loop import (
    CHECKPOINT_SECONDS,
    Note,
    Report,
    UnitRun,
    made_ready,
    repeatable,
)
from attnscope.training.objective import Term
from attnscope.training.optimizer import optimizer_arrays, restore_optimizer
from attnscope.training.unit import Unit

_LOSSES_HELD = 100  # as many as of a unit by itself


def groups(units: Sequence[Unit], jobs: int) -> list[list[Unit]]:
    """Put units together that train as one program; the others are groups of one.

    On a CPU all units of a program are cut into as many parts as give each of ``jobs`` processes
    the same number of them: ten seeds for two processes are twice five. On a GPU ten units take
    about as long as one, and are cut only for processes that would have nothing to do, or where
    long texts would fill its memory; there units that differ in a number such as λ are put together
    as well. Those of one seed stand side by side, so that a cut leaves as few seeds as may be to be
    drawn on both sides.
    """
    programs: dict[str, dict[int, list[Unit]]] = {}
    for unit in units:
        programs.setdefault(_likeness(unit), {}).setdefault(unit.seed, []).append(unit)
    alike = [list(chain(*seeds.values())) for seeds in programs.values()]
    several = sum(len(members) > 1 for members in alike)
    return [
        part
        for members in alike
        for part in _cut(members, _PARTS[members[0].device](members, jobs, max(several, 1)))
    ]


# Input positions that a GPU reads in one step of a program, at most; with an LSTM's states and
# their gradients these are some 9 GB.
_POSITIONS = 2**19


def _parts_on_a_gpu(units: Sequence[Unit], jobs: int, programs: int) -> int:
    for_idle_processes = min(len(units) // 2, jobs // programs)
    training = units[0].training
    passes = 1 + sum(term.passes for term in training.objective)
    positions = passes * len(units) * training.batch_size * units[0].source.widest_input
    return max(1, for_idle_processes, math.ceil(positions / _POSITIONS))


# In how many parts the units of one of several programs are cut for so many processes, by device.
_PARTS: dict[str, Callable[[Sequence[Unit], int, int], int]] = {
    "cpu": lambda units, jobs, programs: jobs // math.gcd(jobs, programs),
    "cuda": _parts_on_a_gpu,
}


def is_program(units: Sequence[Unit]) -> bool:
    """Whether units of a group train as one program.

    On a GPU so does one by itself, if it can: its steps are recorded then.
    """
    return len(units) > 1 or (units[0].device == "cuda" and _stackable(units[0]))


def _stackable(unit: Unit) -> bool:
    parts: list[ModelSpec | Term] = [unit.model, *unit.training.objective]
    return all(unit.device in part.stackable_on for part in parts)


def _likeness(unit: Unit) -> str:
    if _stackable(unit):
        unit = _PROGRAMS[unit.device](unit.model_copy(update={"seed": 0}))
    return fingerprint(unit.config())


def _without_numbers(unit: Unit) -> Unit:
    """Return a unit without the numbers that units of one program may differ in."""
    terms = tuple(term.program() for term in unit.training.objective)
    training = unit.training.model_copy(update={"objective": terms})
    return unit.model_copy(update={"model": unit.model.program(), "training": training})


# What units of one program have in common, by device. A GPU waits for what is drawn, which is the
# same at every λ. On a CPU that is a tenth of a step; a program of many units loses more, as the
# memory of its large gradients is given back to the system and asked for again at every step.
_PROGRAMS: dict[str, Callable[[Unit], Unit]] = {"cpu": lambda unit: unit, "cuda": _without_numbers}


def _cut(units: list[Unit], parts: int) -> list[list[Unit]]:
    parts = min(parts, len(units))
    bounds = [len(units) * part // parts for part in range(parts + 1)]
    return [units[low:high] for low, high in pairwise(bounds)]


def train_together(
    units: Sequence[Unit],
    workspace: Path,
    report: Report = lambda steps: None,
    note: Note = lambda sentence: None,
    *,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> list[AttnscopeError | None]:
    """Train units that make one program, or go on with them; finished ones are left out.

    Return for each unit None if it is finished, or else why it is not: another process holds it,
    or its loss was no number, which stops no other unit.

    Parameters
    ----------
    report
        Called with the number of steps, summed over units, done since the last call.
    note
        Called with a sentence when a damaged file is found.
    """
    outcomes: list[AttnscopeError | None] = [None] * len(units)
    with ExitStack() as held, repeatable(units[0].device):
        members: dict[int, _Member] = {}
        for number, unit in enumerate(units):
            folder = unit.folder(workspace)
            try:
                held.enter_context(folder.lock())
            except UnitLocked as error:
                outcomes[number] = error
                continue
            if made_ready(unit, folder, note):
                members[number] = _Member(unit, folder, note)
            else:
                report(unit.training.steps)
        terms = units[0].training.objective
        objective = [term.ready(workspace, units[0].device).in_program() for term in terms]
        for first, part in _meeting_points(list(members.values())):
            _Group(part, first, objective, report, checkpoint_seconds).go()
        for number, member in members.items():
            outcomes[number] = member.failure
    return outcomes


class _Member(UnitRun):
    """One unit of a group: what it can go on from, and what stopped it, if anything did."""

    def __init__(self, unit: Unit, folder: UnitFolder, note: Note) -> None:
        super().__init__(unit, folder)
        self.failure: NonFiniteLoss | None = None
        self.checkpoints = self._sound_checkpoints(note)
        if self.checkpoints and not self.has_log(max(self.checkpoints), note):
            self.checkpoints = {}

    def _sound_checkpoints(self, note: Note) -> dict[int, Arrays]:
        found = {}
        for path in sorted(self.folder.path.glob("checkpoint-*.safetensors")):
            try:
                state, facts = load_arrays(path)
            except DamagedFile as error:
                note(f"{error} The checkpoint before it is used, if there is one.")
                path.unlink()
            else:
                found[int(facts["step"])] = state
        return found

    @property
    def meeting_points(self) -> set[int]:
        """The steps it can go on from.

        Two checkpoints are kept; with one alone, others may have been stopped before their first.
        """
        return set(self.checkpoints) | ({0} if len(self.checkpoints) < 2 else set())

    def go_on_from(self, step: int) -> None:
        """Take up a checkpoint, or at step 0 start anew, and forget all that came after it."""
        if step == 0:
            self.folder.drop_checkpoints()
            self.begin()
            return
        for later in (number for number in self.checkpoints if number > step):
            (self.folder.path / f"checkpoint-{later:08d}.safetensors").unlink()
        self.restore(step, self.checkpoints[step])


def _meeting_points(members: list[_Member]) -> Iterator[tuple[int, list[_Member]]]:
    """Yield members that go on together, with the step: the last one that all of them can take.

    Where they have none in common, as when one diverged long ago, the step that most of them can
    take comes first, and the rest go by themselves.
    """
    while members:
        held = Counter(step for member in members for step in member.meeting_points)
        step = max(held, key=lambda step: (held[step], step))
        yield step, [member for member in members if step in member.meeting_points]
        members = [member for member in members if step not in member.meeting_points]


class _Group:
    """Members at the same step, and their updates.

    One that diverged stays in the program, so that the others' bytes do not depend on it.
    """

    def __init__(
        self,
        members: list[_Member],
        first: int,
        objective: Sequence[Term],
        report: Report,
        checkpoint_seconds: float,
    ) -> None:
        self.members, self.first, self.report = members, first, report
        self.checkpoint_seconds = checkpoint_seconds
        self.training = members[0].unit.training
        for member in members:
            member.go_on_from(first)
        self.models = [member.model for member in members]
        seeds = {member.unit.seed: member for member in members}
        self.drawing = list(seeds.values())  # one of each seed draws for all of it
        numbers = {seed: number for number, seed in enumerate(seeds)}
        self.stacked = stack(self.models, [numbers[member.unit.seed] for member in members])
        self.optimizer = self.training.optimizer.build_stacked(self.stacked)
        attention = self.training.attention
        own = term_numbers(self.stacked, [m.unit.training.objective for m in members])
        gradients = GRADIENTS[members[0].unit.device]
        self.gradients = gradients(self.stacked, objective, attention, own)
        self.masks = PreparedMasks(self.stacked, objective, attention)
        if first > 0:
            states = [member.checkpoints[first] for member in members]
            restore_optimizer(self.optimizer, _joined(states))
            report(first * len(members))
        self.losses: list[torch.Tensor] = []  # since they were last looked at
        self.saved_at = time.monotonic()

    def go(self) -> None:
        steps, schedule = self.training.steps, set(self.training.schedule)
        widest = self.gradients.width(self.members[0].unit.source.widest_input)
        self.gradients.make_room(lambda: self._columns(self.first, lambda _: widest))
        for step in range(self.first, steps + 1):
            # The checkpoints that were resumed from were written after their step's evaluation.
            if step in schedule and not 0 < step == self.first:
                self._evaluate(step)
            if not self._running():
                return
            if step < steps:
                self._update(step)
                self.report(len(self._running()))
        # With these, members that are not yet finished when killed need no update any more.
        self._checkpoint(steps)
        for _, member in self._running():
            member.end()
            member.folder.finish()

    def _running(self) -> list[tuple[int, _Member]]:
        return [pair for pair in enumerate(self.members) if pair[1].failure is None]

    def _evaluate(self, step: int) -> None:
        self._check_losses(step)
        self.stacked.write_back(self.models)
        for _, member in self._running():
            with _stopped_alone(member):
                member.evaluate(step)

    def _columns(self, step: int, width: Callable[[int], int]) -> Stack:
        size = self.training.batch_size
        units = [member.unit for member in self.drawing]
        batches = [u.source.training_batch(u.seed, step, size) for u in units]
        streams = [member.stream(step) for member in self.drawing]
        columns = stack_batches(batches, width)
        return columns | self.masks(batches, streams, columns)

    def _update(self, step: int) -> None:
        columns = self._columns(step, self.gradients.width)
        if time.monotonic() - self.saved_at >= self.checkpoint_seconds:
            self._check_losses(step)
            values = self.gradients.losses(columns).tolist()
            for number, member in self._running():
                with _stopped_alone(member):
                    member.demand_finite(values[number], step)
            self._checkpoint(step)
            self.saved_at = time.monotonic()
        self.losses.append(self.gradients(columns))
        self.optimizer.step()
        if len(self.losses) >= _LOSSES_HELD:
            self._check_losses(step + 1)

    def _check_losses(self, step: int) -> None:
        """Look at the losses of the last steps at once: looking at each would stall a GPU."""
        values = torch.stack(self.losses, 1).tolist() if self.losses else [[]] * len(self.members)
        self.losses = []
        for number, member in self._running():
            with _stopped_alone(member):
                member.look_at(values[number], step)

    def _checkpoint(self, step: int) -> None:
        self.stacked.write_back(self.models)
        state = optimizer_arrays(self.optimizer)
        for number, member in self._running():
            member.checkpoint(step, _taken_apart(state, number))


@contextmanager
def _stopped_alone(member: _Member) -> Iterator[None]:
    """Let a loss that is no number stop its own unit."""
    try:
        yield
    except NonFiniteLoss as error:
        member.failure = error


def _taken_apart(state: Arrays, number: int) -> Arrays:
    """Return one model's part of the optimiser's state, as it would be if trained by itself."""
    return {name: array if _shared(name) else array[number] for name, array in state.items()}


def _joined(states: Sequence[Arrays]) -> Arrays:
    """Return the optimiser's state of all models from that of each."""
    names = [name for name in states[0] if name.startswith("optimizer.")]
    return {
        name: states[0][name] if _shared(name) else np.stack([state[name] for state in states])
        for name in names
    }


def _shared(name: str) -> bool:
    # Adam counts its steps once for each parameter, however many models are stacked in it.
    return name.endswith(".step")
