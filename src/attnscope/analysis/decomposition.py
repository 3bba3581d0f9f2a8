"""States as the sum of a temporal, an input and a delta component (aitken Eq. 1, 2).

h = μ_t + χ_x + Δh: the mean state of a time step, the mean of h − μ_t over a word's occurrences,
and a remainder. Words of decoder states are those that the decoder *reads*. Components come from
one pass: χ needs μ, but Σ (h − μ_t) over a word's occurrences is Σ h − Σ_t n(x, t) μ_t, so that
sums and counts suffice, and memory does not grow with the number of examples. All is float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.errors import UsageError
from attnscope.models.trace import Trace, needed


@dataclass(frozen=True)
class Side:
    """States to decompose, the word read at each of them, and which of them are real."""

    states: Float[Tensor, "batch time state"]
    ids: Int[Tensor, "batch time"]
    mask: Bool[Tensor, "batch time"]


@dataclass(frozen=True)
class Sides:
    """The encoder's and the decoder's states; a classifier has no decoder."""

    encoder: Side
    decoder: Side | None


# Part of a forward pass to decompose: its states, or the queries and keys made of them.
View = Callable[[Trace], Sides]


@dataclass(frozen=True)
class Parts:
    """The three components of every state of a batch.

    They sum to the state inside ``mask`` and are 0 outside it: at padding, and at time steps and
    words that were not there when the components were taken.
    """

    temporal: Float[Tensor, "batch time state"]
    word: Float[Tensor, "batch time state"]
    delta: Float[Tensor, "batch time state"]
    mask: Bool[Tensor, "batch time"]

    @property
    def input_delta(self) -> Float[Tensor, "batch time state"]:
        """χ_x + Δh, the state without its temporal component."""
        return self.word + self.delta


@dataclass(frozen=True)
class Components:
    """Temporal and input components, and how many states each is the mean of.

    Attributes
    ----------
    temporal
        μ_t; NaN at a time step that no example reaches.
    word
        χ_x; NaN for a word that was never read.
    time_counts, word_counts
        Over how many states the means were taken.
    """

    temporal: Float[Tensor, "time state"]
    word: Float[Tensor, "type state"]
    time_counts: Int[Tensor, " time"]
    word_counts: Int[Tensor, " type"]

    @property
    def seen(self) -> Bool[Tensor, " type"]:
        """True for the words that have a component."""
        return self.word_counts > 0

    def words(self, ids: Int[Tensor, " word"]) -> Float[Tensor, "word state"]:
        """Return χ of some words, NaN for those never read; the table ends at the last one read."""
        values, known = _looked_up(self.word, self.word_counts, ids[None])
        return values[0].masked_fill(~known[0, :, None], torch.nan)

    def split(self, side: Side) -> Parts:
        """Return the components of every state, on the device of the states."""
        device = side.states.device
        steps = torch.arange(side.states.shape[1], device=device).expand_as(side.ids)
        at_time = _looked_up(self.temporal, self.time_counts, steps)
        of_word = _looked_up(self.word, self.word_counts, side.ids)
        mask = side.mask & at_time[1] & of_word[1]
        outside = ~mask[..., None]
        temporal, word, states = (
            values.masked_fill(outside, 0.0)
            for values in (at_time[0], of_word[0], side.states.detach().double())
        )
        return Parts(temporal, word, states - temporal - word, mask)


@dataclass(frozen=True)
class Decomposition:
    """Components of the encoder's and, where there is a decoder, of the decoder's states."""

    encoder: Components
    decoder: Components | None


class Accumulator:
    """The sums of one pass over any number of batches; `components` turns them into means.

    Tables grow with the longest example and the highest word id seen, never with the number of
    examples.
    """

    def __init__(self) -> None:
        self._sums: tuple[Tensor, Tensor] | None = None  # by time step and by word: *, state
        self._counts = torch.zeros(0, 0, dtype=torch.long)  # type, time

    def update(self, side: Side) -> None:
        """Add a batch."""
        ids = side.ids.masked_fill(~side.mask, 0)
        low, high = (int(bound) for bound in ids.aminmax()) if ids.numel() else (0, -1)
        if low < 0:
            raise UsageError(f"Word {low} has no component: ids of real positions start at 0.")
        by_time, by_word, counts = self._tables(side.states, high + 1)
        states = side.states.detach().double().masked_fill(~side.mask[..., None], 0.0)
        by_time[: states.shape[1]] += states.sum(0)
        by_word.index_add_(0, ids.flatten(), states.flatten(0, 1))
        cells = ids * counts.shape[1] + torch.arange(ids.shape[1], device=ids.device)
        counts.view(-1).index_add_(0, cells.flatten(), side.mask.flatten().long())

    def components(self) -> Components:
        """Return the components of all states so far."""
        if self._sums is None:
            raise UsageError("There are no states to decompose; give at least one batch.")
        by_time, by_word = self._sums
        time_counts, word_counts = self._counts.sum(0), self._counts.sum(1)
        temporal = by_time / time_counts[:, None]
        # A step that nobody reaches has n(x, t) = 0 for every x, and 0 · NaN must stay out.
        removed = self._counts.double() @ temporal.nan_to_num(0.0)
        return Components(
            temporal, (by_word - removed) / word_counts[:, None], time_counts, word_counts
        )

    def _tables(
        self, states: Float[Tensor, "batch time state"], types: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the tables with room for the batch."""
        _, time, width = states.shape
        if self._sums is None:
            self._sums = (states.new_zeros(0, width, dtype=torch.float64),) * 2
            self._counts = self._counts.to(states.device)
        by_time, by_word = self._sums
        if by_time.shape[1] != width:
            raise UsageError(
                f"States are {width} wide where those before were {by_time.shape[1]}: "
                "decompose the states of one model at a time."
            )
        self._sums = _grown(by_time, time, width), _grown(by_word, types, width)
        self._counts = _grown(self._counts, types, time)
        return *self._sums, self._counts


def states_of(trace: Trace) -> Sides:
    """Return encoder and decoder states with the words read at them."""
    batch, decoded = trace.batch, trace.decoder_states
    states = needed(trace.encoder_states, "encoder states")
    encoder = Side(states, batch.inputs, batch.input_mask)
    if decoded is None:
        return Sides(encoder, None)
    return Sides(encoder, Side(decoded, batch.decoder_inputs, batch.target_mask))


def decompose(traces: Iterable[Trace], view: View = states_of) -> Decomposition:
    """Return the temporal and input components of a model's states, Eq. 1 of [1]_.

    Parameters
    ----------
    traces
        Forward passes, best a generator: each is forgotten before the next is asked for.
    view
        The part of them to decompose: the states, or with
        `attnscope.analysis.alignment_terms.QueriesAndKeys` the queries and keys of a site.

    References
    ----------
    .. [1] K. Aitken, V. V. Ramasesh, Y. Cao, N. Maheswaranathan. "Understanding How
       Encoder-Decoder Architectures Attend." NeurIPS 2021.
    """
    return decompose_views(traces, {"": view})[""]


def decompose_views(traces: Iterable[Trace], views: Mapping[str, View]) -> dict[str, Decomposition]:
    """Return the components of several views of the same forward passes, in one pass."""
    sums = {name: (Accumulator(), Accumulator()) for name in views}
    with_decoder = dict.fromkeys(views, False)
    for trace in traces:
        for name, view in views.items():
            sides = view(trace)
            sums[name][0].update(sides.encoder)
            if sides.decoder is not None:
                sums[name][1].update(sides.decoder)
                with_decoder[name] = True
    return {
        name: Decomposition(
            encoder.components(), decoder.components() if with_decoder[name] else None
        )
        for name, (encoder, decoder) in sums.items()
    }


def _looked_up(
    table: Float[Tensor, "row state"], counts: Int[Tensor, " row"], rows: Int[Tensor, "batch time"]
) -> tuple[Float[Tensor, "batch time state"], Bool[Tensor, "batch time"]]:
    """Return rows of a table, and which of them are there."""
    inside = rows.clamp(0, len(table) - 1)
    known = (rows == inside) & (counts.to(rows.device) > 0)[inside]
    return table.to(rows.device)[inside], known


def _grown(table: Tensor, rows: int, columns: int) -> Tensor:
    """Return the table with at least so many rows and columns, the new ones 0."""
    rows, columns = max(rows, table.shape[0]), max(columns, table.shape[1])
    if table.shape == (rows, columns):
        return table
    grown = table.new_zeros(rows, columns)
    grown[: table.shape[0], : table.shape[1]] = table
    return grown
