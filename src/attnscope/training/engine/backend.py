"""One backend per device: which units form a group, and how a group computes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jaxtyping import Float
from torch import Tensor

from attnscope.data.source import Source
from attnscope.errors import UsageError, suggestion
from attnscope.models.intervention import AttentionRule
from attnscope.runs.spec import fingerprint
from attnscope.training.engine.cuda_graphs import RecordedGradients
from attnscope.training.engine.dropout_masks import in_turn
from attnscope.training.engine.recurrent_cells import ELEMENTWISE, FUSED, RecurrentCells
from attnscope.training.engine.vmapped import Gradients, StackedModels
from attnscope.training.like_lengths import reads_parts
from attnscope.training.objective import Term
from attnscope.training.unit import Unit

Rules = Mapping[str, AttentionRule]
Numbers = Float[Tensor, "model number"]


class Backend(ABC):
    """How units train on one device.

    Attributes
    ----------
    cells
        How the cells of LSTMs and GRUs are computed under vmap.
    vmaps_single_units
        Whether a unit by itself runs as a group of one.
    vmaps_evaluation
        Whether the members of a group are evaluated together.
    """

    cells: RecurrentCells
    vmaps_single_units: bool
    vmaps_evaluation: bool

    def vectorises(self, unit: Unit) -> bool:
        """Whether a unit may join a group: its model and all its terms are vectorised."""
        return unit.model.vectorised and all(term.vectorised for term in unit.training.objective)

    @abstractmethod
    def likeness(self, unit: Unit) -> dict[str, Any]:
        """Return what the units of one group have in common."""

    @abstractmethod
    def parts(self, units: Sequence[Unit]) -> int:
        """Return the number of groups to split like units into: a function of the units alone."""

    @abstractmethod
    def gradients(
        self, models: StackedModels, terms: Sequence[Term], attention: Rules, numbers: Numbers
    ) -> Gradients:
        """Return what computes the gradients of stacked models."""

    @abstractmethod
    def for_each(self, function: Callable[..., None], *columns: Sequence[Any]) -> None:
        """Call a function for each row of some columns: to draw masks, or to write files."""


class CpuBackend(Backend):
    """One thread per process; a group is as large as a core's cache makes worthwhile.

    PyTorch's own recurrences read no padding and are faster than vmapped ones, so recurrent models
    train one by one, and so do units that read batches in parts. Units of several λ are not put
    together: sharing their masks would save a tenth of a step, and a larger group costs more.
    """

    cells = ELEMENTWISE
    vmaps_single_units = False
    vmaps_evaluation = False
    _LARGEST = 5

    def vectorises(self, unit: Unit) -> bool:
        """Whether a unit may join a group: not if its model is recurrent, or it reads parts."""
        alone = unit.model.recurrent or reads_parts(unit)
        return super().vectorises(unit) and not alone

    def likeness(self, unit: Unit) -> dict[str, Any]:
        """Return the settings without the seed."""
        return unit.config() | {"seed": 0}

    def parts(self, units: Sequence[Unit]) -> int:
        """Return as few groups of at most five as there can be."""
        return math.ceil(len(units) / self._LARGEST)

    def gradients(
        self, models: StackedModels, terms: Sequence[Term], attention: Rules, numbers: Numbers
    ) -> Gradients:
        """Return plain gradients."""
        return Gradients(models, terms, attention, numbers)

    def for_each(self, function: Callable[..., None], *columns: Sequence[Any]) -> None:
        """Call it in turn, on the core that trains."""
        in_turn(function, *columns)


class CudaBackend(Backend):
    """CUDA graphs; ten units take about as long as one, so groups are as large as memory allows.

    Units of one group may differ in λ and other such numbers, in the seeds of their initialisation,
    and in their tasks, if these have as many words.
    """

    cells = FUSED
    vmaps_single_units = True
    vmaps_evaluation = True
    # Input positions that a group reads in one step, at most: with an LSTM's states and their
    # gradients some 9 GB.
    _POSITIONS = 2**19
    _THREADS = 16

    def likeness(self, unit: Unit) -> dict[str, Any]:
        """Return the settings without the seed and varying numbers, and the sizes of the source."""
        config, source = unit.config(), unit.source
        sizes = len(source.input_words), len(source.output_words), source.boundaries
        _forget(config["model"], unit.model.varying)
        terms = zip(config["training"]["objective"], unit.training.objective, strict=True)
        for settings, term in terms:
            _forget(settings, term.varying)
        return config | {"seed": 0, "source": sizes}

    def parts(self, units: Sequence[Unit]) -> int:
        """Return as few groups as fit into memory."""
        training = units[0].training
        passes = 1 + sum(term.passes for term in training.objective)
        widest = max(source.widest_input for source in distinct_sources(units).values())
        positions = passes * len(units) * training.batch_size * widest
        return math.ceil(positions / self._POSITIONS)

    def gradients(
        self, models: StackedModels, terms: Sequence[Term], attention: Rules, numbers: Numbers
    ) -> Gradients:
        """Return gradients by CUDA graphs."""
        return RecordedGradients(models, terms, attention, numbers)

    def for_each(self, function: Callable[..., None], *columns: Sequence[Any]) -> None:
        """Call it in several threads, since the GPU waits for them."""
        with ThreadPoolExecutor(self._THREADS) as threads:
            list(threads.map(function, *columns))


def _forget(settings: dict[str, Any], names: Sequence[str]) -> None:
    """Replace the values of some dotted names, of a tuple by its length."""
    for name in names:
        *path, last = name.split(".")
        inner = settings
        for field in path:
            inner = inner[field]
        value = inner[last]
        inner[last] = len(value) if isinstance(value, list) else None


def distinct_sources(units: Sequence[Unit]) -> dict[str, Source]:
    """Return the sources of units by their fingerprints."""
    return {fingerprint(unit.source.model_dump(mode="json")): unit.source for unit in units}


BACKENDS: dict[str, Backend] = {"cpu": CpuBackend(), "cuda": CudaBackend()}


def backend_of(device: str) -> Backend:
    """Return the backend of a device."""
    if device not in BACKENDS:
        raise UsageError(f"device={device!r} is not known; {suggestion(device, BACKENDS)}")
    return BACKENDS[device]
