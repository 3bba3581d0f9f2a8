"""Gradients of stacked models on a GPU as CUDA graphs: a step's kernels are launched at once.

A step of an encoder-decoder is a couple of thousand small kernels, which a GPU runs sooner than
Python can launch them. A graph is recorded once for each shape of batches, and reads them from the
same memory at every step. Losses and gradients are recorded; clipping and the optimiser are a few
dozen kernels more, and run as on a CPU, with the same state and checkpoints. All graphs write the
gradients to the same memory: those of a large vocabulary are too large for one copy per graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.models.intervention import AttentionRule
from attnscope.training.engine.vmapped import Gradients, Stack, StackedModels
from attnscope.training.objective import Term

# Steps of a shape that run without a graph: a GPU loads kernels and allocates memory when it first
# needs them, which must not be recorded.
_WARM = 1
# Most graphs of a group; further shapes, of a corpus with long and rare texts, run without.
_MOST = 64
# Inputs wider than this are padded to a multiple of the second, and to one of an eighth of their
# width or less: hardly two batches of long texts are equally wide. Sentences, which a recurrent
# model reads word by word, keep their width.
_NARROW, _MULTIPLE = 32, 16
# Targets of several widths are padded to a multiple of this.
_TARGET_MULTIPLE = 4

Work = Callable[[], Tensor]


class CudaGraphs:
    """A stream to work on, and graphs recorded from it that share memory.

    Graphs may share memory because the results of one are used before another is launched.
    """

    def __init__(self) -> None:
        self.stream = torch.cuda.Stream()
        self.pool = torch.cuda.graph_pool_handle()

    def send(self, numbers: Tensor, place: Tensor) -> None:
        """Copy numbers from the CPU without waiting for it."""
        place.copy_(numbers.pin_memory(), non_blocking=True)

    def run_on_stream(self, work: Work) -> Tensor:
        """Do a piece of work on the stream on which it would be recorded."""
        current = torch.cuda.current_stream()
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            done = work()
        current.wait_stream(self.stream)
        return done

    def record(self, work: Work) -> tuple[Tensor, Callable[[], None]]:
        """Record a piece of work; return its result, which a replay overwrites, and the replay."""
        graph = torch.cuda.CUDAGraph()
        with _no_copies_from_the_host(), torch.cuda.graph(graph, self.pool, self.stream):
            done = work()
        return done, graph.replay


@contextmanager
def _no_copies_from_the_host() -> Iterator[None]:
    """Use the usual kernels instead of the deterministic ones, one of which cannot be recorded.

    It is that of a gather's gradient, which copies a few numbers from the CPU. The losses gather
    one number of each row, so the usual kernel adds every number to 0 and is deterministic too.
    """
    mode = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("default")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)


class RecordedGradients(Gradients):
    """`Gradients` by graphs; the same numbers.

    Parameters
    ----------
    graphs
        Records the work.
    """

    def __init__(
        self,
        models: StackedModels,
        terms: Sequence[Term],
        attention: Mapping[str, AttentionRule] | None = None,
        numbers: Float[Tensor, "model number"] | None = None,
        graphs: CudaGraphs | None = None,
    ) -> None:
        super().__init__(models, terms, attention, numbers)
        self.graphs = graphs or CudaGraphs()
        self.shapes: dict[tuple[torch.Size, ...], _Shape] = {}
        self.kept: list[Tensor | None] = []  # the gradients, once it is known which exist

    @staticmethod
    def width(widest: int) -> int:
        """Return a width that many batches share, so that they share a graph."""
        if widest <= _NARROW:
            return widest
        multiple = max(_MULTIPLE, 1 << (widest.bit_length() - 4))
        return -(-widest // multiple) * multiple

    @staticmethod
    def target_width(widest: int) -> int:
        """Return a width that many batches share: one of two widths has too many pairs."""
        return -(-widest // _TARGET_MULTIPLE) * _TARGET_MULTIPLE

    def make_room(self, widest: Callable[[], Stack]) -> None:
        """Record the widest batch first: the others reuse its memory.

        Recorded as they come, wider and wider batches would each allocate new memory.
        """
        columns = widest()
        for _ in range(_WARM + 1):
            self(columns)

    def __call__(self, columns: Stack) -> Float[Tensor, " model"]:
        """Store the gradients in the stacked parameters, and return the losses."""
        shapes = tuple(column.shape for column in columns.values())
        shape = self.shapes.get(shapes)
        if shape is None:
            recorded = len(self.shapes) < _MOST
            shape = _Shape(self, columns, recorded)
            # Buffers of batches that are never recorded are not kept: with masks they are large.
            if recorded:
                self.shapes[shapes] = shape
        return shape(columns)

    def store(self, found: Sequence[Tensor | None]) -> None:
        """Store gradients in the parameters, in the same memory at every step."""
        if not self.kept:
            self.kept = [
                g if g is None else torch.empty_like(p)
                for p, g in zip(self.trained, found, strict=True)
            ]
        for place, gradient in zip(self.kept, found, strict=True):
            if place is not None and gradient is not None:
                place.copy_(gradient)
        super().store(self.kept)


class _Shape:
    """Batches of one shape: the buffers that they are copied to, and the graph that reads them."""

    def __init__(self, owner: RecordedGradients, columns: Stack, recorded: bool) -> None:
        self.owner, self.left = owner, _WARM if recorded else -1
        self.places = [
            torch.empty(row.shape, dtype=row.dtype, device=owner.device)
            for row in _in_rows(columns)
        ]
        self.columns: Stack = {}
        for place, like in zip(self.places, _by_type(columns), strict=True):
            parts = place.split([column.numel() for column in like.values()])
            for part, (name, column) in zip(parts, like.items(), strict=True):
                self.columns[name] = part.view(column.shape)
        self.replay: Callable[[], None] | None = None
        self.losses: Tensor | None = None

    def __call__(self, columns: Stack) -> Float[Tensor, " model"]:
        owner = self.owner
        for row, place in zip(_in_rows(columns), self.places, strict=True):
            owner.graphs.send(row, place)
        if self.left:
            self.left -= 1
            return owner.graphs.run_on_stream(lambda: owner.compute(self.columns))
        if self.replay is None:
            self.losses, self.replay = owner.graphs.record(lambda: owner.compute(self.columns))
        assert self.losses is not None
        self.replay()
        # The next step overwrites them.
        return self.losses.clone()


def _by_type(columns: Stack) -> list[Stack]:
    types = dict.fromkeys(column.dtype for column in columns.values())
    return [{n: c for n, c in columns.items() if c.dtype == one} for one in types]


def _in_rows(columns: Stack) -> list[Tensor]:
    """Return the columns of each type as one tensor, so that a step has one copy per type.

    A single column is left as it is: masks, which are large, are not copied once more.
    """
    rows = ([column.flatten() for column in like.values()] for like in _by_type(columns))
    return [torch.cat(row) if len(row) > 1 else row[0] for row in rows]
