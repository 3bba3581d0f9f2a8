"""The training loop of one unit: evaluate on schedule, update, keep a state to resume from.

At an evaluated step k the model has had k updates. A checkpoint of step k is taken after its
evaluation and before its update, once its loss is known to be finite. Whatever is interrupted, the
log and the scores up to the last checkpoint stand, and going on from it gives the bytes that an
uninterrupted run gives.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from attnscope.data.randomness import generator
from attnscope.errors import DamagedFile, NonFiniteLoss, UsageError, suggestion
from attnscope.runs.environment import environment
from attnscope.runs.tensors import Arrays
from attnscope.runs.unit import UnitFolder
from attnscope.training.evaluation import evaluate, example_arrays, kept_scores
from attnscope.training.objective import total
from attnscope.training.optimizer import optimizer_arrays, restore_optimizer
from attnscope.training.unit import Unit, best_step, log_column, score_file

Report = Callable[[int], None]
Note = Callable[[str], None]

# A checkpoint costs as much as a few steps; one every so many seconds loses little when killed.
CHECKPOINT_SECONDS = 10.0
_LOSSES_HELD = 100


def train_unit(
    unit: Unit,
    workspace: Path,
    report: Report = lambda steps: None,
    note: Note = lambda sentence: None,
    *,
    wait: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> UnitFolder:
    """Train a unit, or go on where it stopped, or do nothing if it is finished.

    Parameters
    ----------
    report
        Called with the number of steps done since the last call.
    note
        Called with a sentence when a damaged file is found.
    wait
        Whether to wait for another process that is training this unit.
    """
    folder = unit.folder(workspace)
    with folder.lock(wait=wait), _repeatable(unit.device):
        done, complaints = folder.finished()
        for sentence in complaints:
            note(sentence)
        if done:
            folder.drop_checkpoints()  # A process killed as it finished leaves them.
            report(unit.training.steps)
            return folder
        if complaints:
            folder.clear()
        folder.begin(unit.config(), environment(unit.device))
        _Run(unit, folder, report, note, checkpoint_seconds).go()
        folder.finish()
    return folder


class _Run:
    """The state of one unit in training."""

    def __init__(
        self, unit: Unit, folder: UnitFolder, report: Report, note: Note, checkpoint_seconds: float
    ) -> None:
        self.unit, self.folder, self.report = unit, folder, report
        self.checkpoint_seconds = checkpoint_seconds
        self.model = build_model(unit)
        trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = unit.training.optimizer.build(trained)
        self.examples = {
            split: unit.source.evaluation_batch(unit.training.examples, split).to(unit.device)
            for split in unit.training.splits
        }
        self.losses: list[torch.Tensor] = []  # since they were last looked at
        self.seen: list[float] = []  # since the last evaluation
        self.rows: list[dict[str, Any]] = []
        self.first = 0
        self.resumed = self._restore(note)
        self.saved_at = time.monotonic()
        self.saved_step = self.first if self.resumed else None

    def _restore(self, note: Note) -> bool:
        step, state, complaints = self.folder.load_checkpoint()
        for sentence in complaints:
            note(sentence)
        if state is None or not self._restore_log(step, note):
            for split, batch in self.examples.items():
                stored = batch.rows(slice(self.unit.training.stored))
                self.folder.save_scores(score_file(split), example_arrays(stored))
            return False
        _load_weights(self.model, {k[6:]: v for k, v in state.items() if k.startswith("model.")})
        restore_optimizer(self.optimizer, state)
        self.seen = state["losses"].tolist()
        self.first = step
        self.report(step)
        return True

    def _restore_log(self, step: int, note: Note) -> bool:
        """Take the rows up to a step; a log that lacks any of them is of no use."""
        try:
            rows = [row for row in self.folder.log if row["step"] <= step]
        except DamagedFile:
            rows = []
        evaluated = [number for number in self.unit.training.schedule if number <= step]
        if [row["step"] for row in rows] != evaluated:
            note(f"The log of {self.folder.name} was altered; the unit is trained from the start.")
            return False
        self.rows = rows
        return True

    def go(self) -> None:
        steps, schedule = self.unit.training.steps, set(self.unit.training.schedule)
        for step in range(self.first, steps + 1):
            # The checkpoint that was resumed from was written after its step's evaluation.
            if step in schedule and not (self.resumed and step == self.first):
                self._evaluate(step)
            if step < steps:
                self._update(step)
                self.report(1)
        self.folder.save_weights("last", steps, _weights(self.model))
        self._read_final_scores()

    def _read_final_scores(self) -> None:
        unit, rules = self.unit, self.unit.training.final_scores
        for which in ("last", "best") if rules else ():
            _load_weights(self.model, self.folder.load_weights(which)[1])
            self.model.eval()
            for split, batch in self.examples.items():
                first = batch.rows(slice(unit.training.stored))
                scores = kept_scores(self.model, first, unit.source, unit.training, rules)  # type: ignore[arg-type]
                self.folder.save_scores(score_file(split, which), scores)

    def _update(self, step: int) -> None:
        unit, training = self.unit, self.unit.training
        batch = unit.source.training_batch(unit.seed, step, training.batch_size).to(unit.device)
        stream = generator("training", unit.seed, step)
        self.optimizer.zero_grad(set_to_none=True)
        trace = self.model.trace(batch, training.attention, stream)  # type: ignore[operator]
        loss = total(training.objective, self.model, trace, stream)  # type: ignore[arg-type]
        if time.monotonic() - self.saved_at >= self.checkpoint_seconds:
            self._check_losses(step)
            self._demand_finite(loss.item(), step)
            self._checkpoint(step)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.detach())
        if len(self.losses) >= _LOSSES_HELD:
            self._check_losses(step + 1)

    def _check_losses(self, step: int) -> None:
        """Look at the losses of the last steps at once: looking at each would stall a GPU."""
        values: list[float] = torch.stack(self.losses).tolist() if self.losses else []
        self.losses = []
        for offset, value in enumerate(values):
            self._demand_finite(value, step - len(values) + offset)
        self.seen += values

    def _demand_finite(self, loss: float, step: int) -> None:
        if math.isfinite(loss):
            return
        kept = "no checkpoint was due before it"
        if self.saved_step is not None:
            kept = f"the last good checkpoint is that of step {self.saved_step}"
        raise NonFiniteLoss(
            f"{self.folder.name}: the loss was {loss} at step {step}; {kept}. "
            "Lower the learning rate."
        )

    def _evaluate(self, step: int) -> None:
        self._check_losses(step)
        training_loss = sum(self.seen) / len(self.seen) if self.seen else None
        self.seen = []
        started = time.monotonic()
        training = self.unit.training
        entry: dict[str, Any] = {"step": step}
        for split, batch in self.examples.items():
            row, scores = evaluate(self.model, batch, self.unit.source, training, split)  # type: ignore[arg-type]
            self._demand_finite(row["loss"], step)
            self.folder.save_scores(score_file(split, step), scores)
            entry |= {log_column(split, name): value for name, value in row.items()}
        entry |= {"training_loss": training_loss}
        self.rows.append(entry | {"seconds": round(time.monotonic() - started, 3)})
        if best_step(self.rows, training) == step:
            self.folder.save_weights("best", step, _weights(self.model))
        self.folder.write_log(self.rows)

    def _checkpoint(self, step: int) -> None:
        state = {f"model.{name}": array for name, array in _weights(self.model).items()}
        state["losses"] = np.array(self.seen)
        self.folder.save_checkpoint(step, state | optimizer_arrays(self.optimizer))
        self.saved_at, self.saved_step = time.monotonic(), step


def build_model(unit: Unit) -> nn.Module:
    """Return a unit's model as initialised, on its device, with its frozen parts frozen."""
    dtype = getattr(torch, unit.training.dtype)
    model = unit.model.build(unit.source, unit.seed).to(unit.device, dtype)
    names = [name for name, _ in model.named_parameters()]
    for prefix in unit.training.frozen:
        if not any(name.startswith(prefix) for name in names):
            raise UsageError(
                f"frozen: no parameter starts with {prefix!r}; {suggestion(prefix, names)}"
            )
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.startswith(unit.training.frozen))
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UsageError(f"frozen: nothing is left to train of {', '.join(names)}.")
    return model


def load_model(unit: Unit, folder: UnitFolder, which: str = "last") -> nn.Module:
    """Return a unit's trained model, on the CPU, ready to be measured."""
    model = build_model(unit.model_copy(update={"device": "cpu"}))
    _load_weights(model, folder.load_weights(which)[1])
    return model.eval().requires_grad_(False)


def _weights(model: nn.Module) -> Arrays:
    return {name: value.detach().cpu().numpy() for name, value in model.named_parameters()}


def _load_weights(model: nn.Module, arrays: Arrays) -> None:
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(arrays[name]))


@contextmanager
def _repeatable(device: str) -> Iterator[None]:
    """Use one CPU thread and deterministic kernels, so that a unit's bytes repeat."""
    threads = torch.get_num_threads()
    mode = torch.get_deterministic_debug_mode()
    memory: Any = torch.utils.deterministic
    filling = memory.fill_uninitialized_memory
    if device == "cuda":
        # cuBLAS reads this when it is first used; without it its sums are not repeatable.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(1)
    # The same as `torch.use_deterministic_algorithms`, without its import of the compiler (1.4 s).
    torch.set_deterministic_debug_mode("error")
    # Nothing here reads memory that it has not written; filling it costs a kernel a tensor.
    memory.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_deterministic_debug_mode(mode)
        memory.fill_uninitialized_memory = filling
