"""What figure 2 draws of the first network of a kind, as measurements: few, and rounded.

A point in a plane is two measurements, one for each axis; a row of attention is one, its largest
weight with all weights beside it, by input position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.alignment_terms import TERMS, AlignmentTerms, alignment_terms
from attnscope.analysis.components import PrincipalAxes, principal_axes
from attnscope.analysis.decomposition import states_of
from attnscope.analysis.state_measures import attention_cells
from attnscope.analysis.streaming import cell_means
from attnscope.data.batch import Batch
from attnscope.recipes.aitken.fig2_network import SequenceNetwork
from attnscope.recipes.aitken.groups import Axes, Wanted
from attnscope.recipes.aitken.units import context_readout
from attnscope.runs.result import Measurement

BOUNDARY = "boundary"
Point = tuple[Axes, list[float]]

_CLOUD = 6  # input-delta components of a word and a side
_DIGITS = 4
# Fig. 2h: what the attention of an example is made of.
EXAMPLE_TERMS = {
    "temporal": ("temporal", "temporal"),
    "chiD.deltahE": ("word", "delta"),
    "deltahD.chiE": ("delta", "word"),
}


def path_rows(group: Wanted, network: SequenceNetwork) -> list[Measurement]:
    """Return the temporal components in the plane of their first two axes."""
    return [
        row
        for side, path in network.paths.items()
        for step, point in enumerate(network.plane.project(path).tolist(), 1)
        for row in _point(group, network, "temporal_path", {"side": side, "step": step}, point)
    ]


def word_rows(group: Wanted, network: SequenceNetwork) -> list[Measurement]:
    """Return input components, readouts and some input-delta components in the words' plane.

    The plane's origin is the words' mean. Readouts are directions from there: without their own
    mean, which a softmax does not see, and as long as the components.
    """
    components = network.states.encoder.words(network.ids)
    plane = principal_axes(components)
    places = plane.project(components)
    directions = context_readout(network.model)[network.ids].double()
    readouts = (directions - directions.mean(0)) @ plane.axes[:2].mT
    readouts = readouts * places.norm(dim=-1).max() / readouts.norm(dim=-1).max()
    inputs = [_word(network, word) for word in network.ids.tolist()]
    found: list[Point] = [
        ({"point": "origin", "word": BOUNDARY, "number": 0}, [0.0, 0.0]),
        *_numbered("component", inputs, places.tolist()),
        *_numbered("readout", inputs, readouts.tolist()),
        *_cloud(network, plane),
    ]
    return [
        row for axes, point in found for row in _point(group, network, "input_plane", axes, point)
    ]


def _numbered(kind: str, words: list[str], points: list[list[float]]) -> Iterator[Point]:
    for number, (word, point) in enumerate(zip(words, points, strict=True)):
        yield {"point": kind, "word": word, "number": number}, point


def _cloud(network: SequenceNetwork, plane: PrincipalAxes) -> Iterator[Point]:
    """Return some input-delta components of each word that is read, on both sides."""
    trace = next(network.traces())
    kinds = {"encoder": "state", "decoder": "decoder state"}
    for name, side in vars(states_of(trace)).items():
        parts = getattr(network.states, name).split(side)
        for word in side.ids[parts.mask].unique().tolist():
            found = parts.input_delta[parts.mask & (side.ids == word)]
            # Evenly over what was found: early and late steps alike.
            chosen = torch.linspace(0, len(found) - 1, min(_CLOUD, len(found))).long()
            points = plane.project(found[chosen]).tolist()
            yield from (
                ({**axes, "number": word * _CLOUD + number}, point)
                for number, (axes, point) in enumerate(
                    _numbered(kinds[name], [_word(network, word)] * len(points), points)
                )
            )


def _word(network: SequenceNetwork, word: int) -> str:
    if word >= network.task.end:
        return BOUNDARY
    inputs, outputs = network.task.pairs[word]
    return inputs if inputs == outputs else f"{inputs} → {outputs}"


def attention_rows(group: Wanted, network: SequenceNetwork) -> list[Measurement]:
    """Return the mean attention, and the mean of what temporal components alone give."""
    if not network.attends:
        return []
    both = (
        torch.stack(
            [
                attention_cells(trace.sites["cross"], trace.batch.target_mask)[:, 0].double(),
                network.temporal_weights(trace).where(_real(trace.batch), torch.nan),
            ],
            1,
        )
        for trace in network.traces()
    )
    full, temporal = cell_means(both).mean
    return [
        *_matrix(group, network, "mean_attention", {"of": "attention"}, full),
        *_matrix(group, network, "mean_attention", {"of": "temporal"}, temporal),
    ]


def _real(batch: Batch) -> Bool[Tensor, "batch out inp"]:
    return batch.target_mask[:, :, None] & batch.input_mask[:, None]


def example_rows(group: Wanted, network: SequenceNetwork) -> list[Measurement]:
    """Return the attention of one of the longest sequences, and that of some of its terms."""
    if not network.attends:
        return []
    trace = next(network.traces())
    row = int(trace.batch.target_lengths.argmax())
    batch = trace.batch.rows(slice(row, row + 1)).trimmed()
    terms = next(_picked(alignment_terms(trace, network.cross), row))
    out, inp = batch.targets.shape[1], batch.inputs.shape[1]
    weights = {"attention": trace.sites["cross"].weights[row, 0, :out, :inp].double()} | {
        name: (network.scale * terms[TERMS.index(term), :out, :inp]).softmax(-1)
        for name, term in EXAMPLE_TERMS.items()
    }
    inputs = network.task.input_words.decode(batch.inputs[0].tolist())
    outputs = network.task.output_words.decode(batch.targets[0].tolist())
    return [
        measurement
        for name, matrix in weights.items()
        for measurement in _matrix(
            group, network, "example_attention", {"of": name}, matrix, inputs, outputs
        )
    ]


def _picked(chunks: Iterable[AlignmentTerms], row: int) -> Iterator[Float[Tensor, "9 out inp"]]:
    start = 0
    for chunk in chunks:
        size = len(chunk.mask)
        if start <= row < start + size:
            yield chunk.values[row - start, 0]
        start += size


def _matrix(
    group: Wanted,
    network: SequenceNetwork,
    name: str,
    axes: Axes,
    matrix: Float[Tensor, "out inp"],
    inputs: list[str] | None = None,
    outputs: list[str] | None = None,
) -> Iterator[Measurement]:
    columns = inputs or [str(place) for place in range(1, matrix.shape[1] + 1)]
    lines = outputs or [str(step) for step in range(1, matrix.shape[0] + 1)]
    for step, (line, weights) in enumerate(zip(lines, matrix.tolist(), strict=True), 1):
        # A token may come twice, and so its position stands before it.
        known = {
            f"{place} {column}": round(weight, _DIGITS)
            for place, (column, weight) in enumerate(zip(columns, weights, strict=True), 1)
            if weight == weight
        }
        at: Axes = {**axes, "step": step, "output": line}
        yield _row(group, network, name, at, max(known.values(), default=float("nan")), known)


def _point(
    group: Wanted, network: SequenceNetwork, name: str, axes: Axes, point: list[float]
) -> Iterator[Measurement]:
    for number, value in enumerate(point, 1):
        yield _row(group, network, name, {**axes, "pc": number}, round(value, _DIGITS), {})


def _row(
    group: Wanted,
    network: SequenceNetwork,
    name: str,
    axes: Axes,
    value: float,
    found: Mapping[str, str | int | float],
) -> Measurement:
    return Measurement(
        name=name,
        dataset=group.task.dataset,
        axes={**group.axes, **axes},
        found=dict(found),
        value=value,
        n=network.samples,
        seeds=(network.seed,),
    )
