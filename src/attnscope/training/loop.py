"""The training loop of one unit: evaluate on schedule, update, keep a state to resume from.

At an evaluated step k the model has had k updates. A checkpoint of step k is taken after its
evaluation and before its update, once its loss is known to be finite. Whatever is interrupted, the
log and the scores up to the last checkpoint stand, and resuming from it gives the bytes of an
uninterrupted run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from attnscope.data.batch import Batch
from attnscope.data.carried import carried
from attnscope.data.randomness import generator
from attnscope.data.source import Source
from attnscope.errors import DamagedFile, NonFiniteLoss, UsageError, WorkspaceError, suggestion
from attnscope.models.base import AttentionModule
from attnscope.runs.environment import environment
from attnscope.runs.tensors import Arrays
from attnscope.runs.unit import UnitFolder
from attnscope.training.accelerator import accelerator
from attnscope.training.evaluation import Evaluated, evaluate, example_arrays, kept_scores
from attnscope.training.like_lengths import parts, reads_parts
from attnscope.training.objective import LoadModel, Term, total
from attnscope.training.optimizer import optimizer_arrays, restore_optimizer
from attnscope.training.repeatable import repeatable
from attnscope.training.unit import Unit, best_step, log_column, score_file, stops_early

Report = Callable[[int], None]
Note = Callable[[str], None]


def uncounted(number: int) -> None:
    """Count nothing."""


# A checkpoint costs as much as a few steps; one every so many seconds loses little when killed.
CHECKPOINT_SECONDS = 10.0
_LOSSES_HELD = 100


def train_unit(
    unit: Unit,
    workspace: Path,
    report: Report = uncounted,
    note: Note = lambda sentence: None,
    *,
    evaluated: Report = uncounted,
    wait: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> UnitFolder:
    """Train a unit, or resume it, or do nothing if it is finished.

    Parameters
    ----------
    report
        Called with the number of steps made since the last call.
    note
        Called with a sentence when a damaged file is found.
    evaluated
        Called with the number of evaluations made since the last call.
    wait
        Whether to wait for another process that is training this unit.
    """
    folder = unit.folder(workspace)
    with folder.lock(wait=wait), repeatable(unit.device, unit.training.precision):
        if prepare_folder(unit, folder, note):
            load = model_loader(workspace, unit.device)
            objective = [term.ready(load) for term in unit.training.objective]
            _Run(unit, folder, objective, report, note, evaluated, checkpoint_seconds).train()
            folder.finish()
        else:
            report(unit.training.steps)
            evaluated(len(unit.training.schedule))
    return folder


def prepare_folder(unit: Unit, folder: UnitFolder, note: Note) -> bool:
    """Prepare a unit's folder for training; return False if the unit is finished."""
    done, complaints = folder.finished()
    for sentence in complaints:
        note(sentence)
    if done:
        folder.drop_checkpoints()  # A process killed as it finished leaves them.
        return False
    if complaints:
        folder.clear()
    folder.begin(unit.config(), environment(unit.device, accelerator(unit.device)), note)
    return True


@lru_cache(maxsize=4)
def _examples(source: Source, count: int, split: str, device: str) -> Batch:
    # Units of one group, and those that a process trains in turn, share the evaluation examples.
    return source.evaluation_batch(count, split).to(device)


class UnitRun:
    """A unit in training: its model, log, scores and checkpoints, but not its updates."""

    def __init__(self, unit: Unit, folder: UnitFolder) -> None:
        self.unit, self.folder = unit, folder
        self.model = build_model(unit)
        self.examples = {
            split: _examples(unit.source, unit.training.examples, split, unit.device)
            for split in unit.training.splits
        }
        self.seen: list[float] = []  # losses since the last evaluation
        self.rows: list[dict[str, Any]] = []
        self.stopped = False  # early; its last weights are those of its last evaluation
        self.saved_step: int | None = None
        self.best: tuple[int, dict[str, torch.Tensor]] | None = None  # not yet written

    def stream(self, step: int) -> torch.Generator:
        """Return the generator of a step's dropout and random terms."""
        return generator("training", self.unit.seed, step)

    def begin(self) -> None:
        """Store the examples whose scores will be stored, and the words that the unit reads."""
        for split, batch in self.examples.items():
            stored = batch.rows(slice(self.unit.training.stored))
            self.folder.save_scores(score_file(split), example_arrays(stored))
        words = carried(self.unit.source)
        if words is not None:
            self.folder.save_words(words.model_dump(mode="json"), words.model)

    def restore(self, step: int, state: Arrays) -> None:
        """Restore a checkpoint, without the optimiser's state."""
        weights = {k[6:]: v for k, v in state.items() if k.startswith("model.")}
        with self.fitting(step):
            _load_weights(self.model, weights)
            self.seen = [float(loss) for loss in state["losses"].reshape(-1)]
        self.rows = self._log_until(step)
        self.stopped = stops_early(self.rows, self.unit.training)
        self.saved_step = step

    @contextmanager
    def fitting(self, step: int) -> Iterator[None]:
        """Name the checkpoint whose arrays are not those of this unit."""
        try:
            yield
        except (DamagedFile, LookupError, ValueError, TypeError, RuntimeError) as error:
            path = self.folder.path / f"checkpoint-{step:08d}.safetensors"
            raise DamagedFile(
                f"{path} is not a checkpoint of this unit; remove it and run the same command "
                "again."
            ) from error

    def has_log(self, step: int, note: Note) -> bool:
        """Return whether the log has every row up to a step."""
        training, rows = self.unit.training, self._log_until(step)
        evaluated = [number for number in training.schedule if number <= step]
        if stops_early(rows, training):
            evaluated = evaluated[: len(rows)]
        if [row["step"] for row in rows] == evaluated:
            return True
        note(f"The log of {self.folder.name} was altered; the unit is trained from the start.")
        return False

    def _log_until(self, step: int) -> list[dict[str, Any]]:
        try:
            return [row for row in self.folder.log if row["step"] <= step]
        except DamagedFile:
            return []

    def take_losses(self, losses: Sequence[float], step: int) -> None:
        """Add the losses of the steps just before this one; one that is not finite raises."""
        for offset, value in enumerate(losses):
            self.demand_finite(value, step - len(losses) + offset)
        self.seen += losses

    def demand_finite(self, loss: float, step: int) -> None:
        """Raise `NonFiniteLoss` if a loss is not finite."""
        if math.isfinite(loss):
            return
        self.store_best()
        kept = "no checkpoint was due before it"
        if self.saved_step is not None:
            kept = f"the last good checkpoint is that of step {self.saved_step}"
        raise NonFiniteLoss(
            f"{self.folder.name}: the loss was {loss} at step {step}; {kept}. "
            "Lower the learning rate."
        )

    def evaluate(self, step: int) -> None:
        """Evaluate the model; store its scores and row of the log, and keep the best weights."""
        started, training = time.monotonic(), self.unit.training
        found: dict[str, Evaluated] = {
            split: evaluate(self.model, batch, self.unit.source, training, split)
            for split, batch in self.examples.items()
        }
        self.store(step, found, started)

    def store(self, step: int, found: Mapping[str, Evaluated], started: float) -> None:
        """Store an evaluation of every split that was started at a time."""
        training_loss = sum(self.seen) / len(self.seen) if self.seen else None
        self.seen = []
        entry: dict[str, Any] = {"step": step}
        for split, (row, scores) in found.items():
            self.demand_finite(row["loss"], step)
            self.folder.save_scores(score_file(split, step), scores)
            entry |= {log_column(split, name): value for name, value in row.items()}
        entry |= {"training_loss": training_loss}
        self.rows.append(entry | {"seconds": round(time.monotonic() - started, 3)})
        if best_step(self.rows, self.unit.training) == step:
            weights = {name: p.detach().clone() for name, p in self.model.named_parameters()}
            self.best = step, weights
        self.folder.write_log(self.rows)
        self.stopped = stops_early(self.rows, self.unit.training)
        if self.stopped:
            self.folder.save_weights("last", step, _weights(self.model))

    def store_best(self) -> None:
        """Write the best weights, if they are better than those written last.

        They are written at checkpoints and not at every evaluation: early on most are the best.
        """
        if self.best is not None:
            step, weights = self.best
            self.folder.save_weights("best", step, _arrays(weights))
            self.best = None

    def checkpoint(self, step: int, optimizer: Arrays) -> None:
        """Store everything needed to resume, the optimiser's state included."""
        self.store_best()
        state = {f"model.{name}": array for name, array in _weights(self.model).items()}
        state["losses"] = np.array(self.seen)
        self.folder.save_checkpoint(step, state | optimizer)
        self.saved_step = step

    def end(self) -> None:
        """Store the last weights, and the final scores of the last and of the best weights."""
        unit, rules = self.unit, self.unit.training.final_scores
        self.store_best()
        if not self.stopped:
            self.folder.save_weights("last", unit.training.steps, _weights(self.model))
        for which in ("last", "best") if rules else ():
            _load_weights(self.model, self.folder.load_weights(which)[1])
            self.model.eval()
            for split, batch in self.examples.items():
                first = batch.rows(slice(unit.training.stored))
                scores = kept_scores(self.model, first, unit.source, unit.training, rules)
                self.folder.save_scores(score_file(split, which), scores)


class _Run(UnitRun):
    """A unit trained by itself."""

    def __init__(
        self,
        unit: Unit,
        folder: UnitFolder,
        objective: Sequence[Term],
        report: Report,
        note: Note,
        evaluated: Report,
        checkpoint_seconds: float,
    ) -> None:
        super().__init__(unit, folder)
        self.objective = objective
        self.report, self.evaluated = report, evaluated
        self.checkpoint_seconds = checkpoint_seconds
        trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = unit.training.optimizer.build(trained)
        self.reads_parts = reads_parts(unit)
        self.losses: list[torch.Tensor] = []  # since they were last checked
        self.first = 0
        self.resumed = self._resume(note)
        self.saved_at = time.monotonic()

    def _resume(self, note: Note) -> bool:
        step, state, complaints = self.folder.load_checkpoint()
        for sentence in complaints:
            note(sentence)
        if state is None or not self.has_log(step, note):
            self.begin()
            return False
        self.restore(step, state)
        with self.fitting(step):
            restore_optimizer(self.optimizer, state)
        self.first = step
        self.report(step)
        self.evaluated(len(self.rows))
        return True

    def train(self) -> None:
        """Evaluate on schedule, update, and store the last weights."""
        steps, schedule = self.unit.training.steps, set(self.unit.training.schedule)
        for step in range(self.first, steps + 1):
            # A checkpoint is written after its step's evaluation.
            if step in schedule and not (self.resumed and step == self.first):
                self._check_losses(step)
                self.evaluate(step)
                self.evaluated(1)
            if self.stopped:
                self.report(steps - step)
                self.evaluated(sum(later > step for later in schedule))
                break
            if step < steps:
                self._update(step)
                self.report(1)
        self.end()

    def _update(self, step: int) -> None:
        unit, training = self.unit, self.unit.training
        batch = unit.source.training_batch(unit.seed, step, training.batch_size).to(unit.device)
        stream = self.stream(step)
        self.optimizer.zero_grad(set_to_none=True)
        losses = []
        for share, part in parts(batch) if self.reads_parts else [(1.0, batch)]:
            trace = self.model.trace(part, training.attention, stream)
            loss = share * total(self.objective, self.model, trace, stream)
            loss.backward()
            losses.append(loss.detach())
        loss = torch.stack(losses).sum()
        if time.monotonic() - self.saved_at >= self.checkpoint_seconds:
            self._check_losses(step)
            self.demand_finite(loss.item(), step)
            self.checkpoint(step, optimizer_arrays(self.optimizer))
            self.saved_at = time.monotonic()
        self.optimizer.step()
        self.losses.append(loss)
        if len(self.losses) >= _LOSSES_HELD:
            self._check_losses(step + 1)

    def _check_losses(self, step: int) -> None:
        """Check the losses of the last steps at once: reading each would stall a GPU."""
        values: list[float] = torch.stack(self.losses).tolist() if self.losses else []
        self.losses = []
        self.take_losses(values, step)


def build_model(unit: Unit) -> AttentionModule:
    """Return a unit's initial model, on its device, with its frozen parts frozen."""
    dtype = getattr(torch, unit.training.dtype)
    built = unit.model.build(unit.source, unit.seed).to(unit.device, dtype)
    model = cast(AttentionModule, built)
    names = [name for name, _ in model.named_parameters()]
    for prefix in unit.training.frozen:
        if not any(name.startswith(prefix) for name in names):
            raise UsageError(
                f"frozen: no parameter starts with {prefix!r}; {suggestion(prefix, names)}"
            )
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.startswith(unit.training.frozen))
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UsageError(f"frozen: no parameter is left to train among {', '.join(names)}.")
    return model


def load_model(unit: Unit, folder: UnitFolder, which: str = "last") -> AttentionModule:
    """Return a unit's trained model, on the CPU, in evaluation mode."""
    model = build_model(unit.model_copy(update={"device": "cpu"}))
    _load_weights(model, folder.load_weights(which)[1])
    return model.eval().requires_grad_(False)


def model_loader(workspace: Path, device: str) -> LoadModel:
    """Return a function that loads the trained model of a unit of a workspace to a device."""

    def load(unit: Unit, which: str) -> AttentionModule:
        folder = unit.folder(workspace)
        if not folder.finished()[0]:
            raise WorkspaceError(
                f"The base unit {folder.name} has not been trained in {workspace}; train it first."
            )
        return load_model(unit, folder, which).to(device)

    return load


def _weights(model: nn.Module) -> Arrays:
    return _arrays(dict(model.named_parameters()))


def _arrays(tensors: Mapping[str, torch.Tensor]) -> Arrays:
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def _load_weights(model: nn.Module, arrays: Arrays) -> None:
    parameters = dict(model.named_parameters())
    shapes = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    given = {name: array.shape for name, array in arrays.items()}
    odd = sorted(name for name in shapes | given if shapes.get(name) != given.get(name))
    if odd:
        raise DamagedFile(
            f"The stored weights do not fit the unit's model: {odd[0]} has the shape "
            f"{given.get(odd[0])}, not {shapes.get(odd[0])}."
        )
    if not all(array.dtype.kind == "f" and np.isfinite(array).all() for array in arrays.values()):
        raise DamagedFile("The stored weights are not finite numbers.")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(torch.from_numpy(arrays[name]))
