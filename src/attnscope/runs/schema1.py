"""Results of schema 1, which kept a picture as many measurements: its cells, its points.

Measurements that are parts of a picture are known by their axes; names that were measured along an
axis are listed here. This module goes when schema 1 is not read any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from attnscope.runs.measurement import Label, Measurement
from attnscope.runs.pictures import Curve, Matrix, Plane, Point

AnyPicture = Matrix | Plane | Curve
Rows = Sequence[Measurement]

# The x axis of what was measured along one, by recipe and name.
_CURVES: dict[str, dict[str, str]] = {
    "snell/fig7": dict.fromkeys(("gamma", "gap", "accuracy"), "step"),
    "snell/table5": dict.fromkeys(
        (
            *("curve(alpha,alpha)", "curve(alpha,beta)", "curve(alpha,beta_uf)"),
            *("entropy(alpha)", "hat_agreement", "hat_performance"),
        ),
        "step",
    ),
    "sunlu/synthetic": {"sign_curve": "epoch"},
    **dict.fromkeys(
        ("aitken/fig4", "aitken/fig5"),
        dict.fromkeys(
            (
                *("term_share_at", "peak_offset", "mean_offset", "offset_width"),
                *("diagonal_mass", "corpus_offset"),
            ),
            "step",
        ),
    ),
    "aitken/fig6": dict.fromkeys(("offset_product", "twice_alignment"), "offset"),
}
_DIGITS = 4  # of coordinates in a plane of principal components


def with_pictures(
    recipe: str, measurements: Rows, samples: int = 1
) -> tuple[tuple[Measurement, ...], tuple[AnyPicture, ...]]:
    """Return the measurements that are numbers, and the pictures that the others make.

    Parameters
    ----------
    samples
        The number of sequences that aitken's pictures come from, which some did not store.
    """
    measurements = [_renamed(row) for row in measurements]
    grouped: dict[tuple[Any, ...], list[Measurement]] = {}
    numbers = []
    for row in measurements:
        key = _group(recipe, row)
        if key is None:
            numbers.append(row)
        else:
            grouped.setdefault(key, []).append(row)
    made = []
    for (maker, *_), rows in grouped.items():
        picture = maker(rows, measurements)
        if picture is not None and recipe in _SAMPLED and picture.n == 1:
            picture = picture.model_copy(update={"n": samples})
        if picture is not None:
            made.append(picture)
    return tuple(numbers), tuple(made)


_SAMPLED = ("aitken/fig3", "aitken/fig4", "aitken/fig6", "aitken/beyond")


def _renamed(row: Measurement) -> Measurement:
    """Return the variance that axes explain under the one name it has now."""
    if row.name != "explained":
        return row
    axes = {"axes" if key == "pcs" else key: value for key, value in row.axes.items()}
    return row.model_copy(update={"name": "explained_variance", "axes": axes})


def _group(recipe: str, row: Measurement) -> tuple[Any, ...] | None:
    """Return the maker of a measurement's picture, and what distinguishes that picture."""
    axis = _CURVES.get(recipe, {}).get(row.name)
    if axis is not None and axis in row.axes:
        return _curve_of(axis), row.name, *_rest(row, axis)
    for needs, inside, maker in _FORMS:
        if needs(row):
            return maker, row.name, *_rest(row, *inside)
    return None


def _rest(row: Measurement, *inside: str) -> tuple[Any, ...]:
    axes = {key: value for key, value in row.axes.items() if key not in inside}
    # Points of several seeds are one plane; every other picture is of its own seeds.
    seeds = () if row.name == "theta_velocity" else row.seeds
    return row.dataset, row.split, tuple(sorted(axes.items())), seeds


def _record(rows: Rows, *inside: str) -> dict[str, Any]:
    """Return the fields that a picture has in common with its measurements."""
    first = rows[0]
    axes = {key: value for key, value in first.axes.items() if key not in inside}
    seeds = tuple(dict.fromkeys(seed for row in rows for seed in row.seeds))
    return {
        "name": first.name,
        "dataset": first.dataset,
        "split": first.split,
        "axes": axes,
        "n": first.n,
        "seeds": seeds,
    }


@cache
def _curve_of(axis: str) -> Callable[[Rows, Rows], AnyPicture | None]:
    """Return the maker of curves along an axis."""

    def made(rows: Rows, _: Rows) -> Curve:
        low, high = (tuple(getattr(row, end) for row in rows) for end in ("low", "high"))
        bounded = any(end is not None for end in (*low, *high))
        return Curve(
            **_record(rows, axis)
            | {
                "axis": axis,
                "x": tuple(row.axes[axis] for row in rows),
                "y": tuple(row.value for row in rows),
                "low": low if bounded else None,
                "high": high if bounded else None,
                "n": tuple(row.n for row in rows),
            }
        )

    return made


# Points that are drawn first, by group.
_DRAWN = {"origin": 0, "component": 1, "readout": 2}
_COMPONENT_AXES = ("pc", "word", "point", "side", "step", "number")


def _components(rows: Rows, _: Rows) -> Plane | None:
    """Read points whose two coordinates were measurements that differ in ``pc``."""
    places: dict[tuple[Any, ...], dict[int, float]] = {}
    for row in rows:
        step = row.axes.get("step", "")
        group = str(row.axes.get("point", row.axes.get("side", "")))
        label = group if group == "origin" else str(row.axes.get("word", step))
        point = label, group, row.axes.get("number", step)
        if row.value is not None:
            places.setdefault(point, {})[int(row.axes["pc"])] = round(row.value, _DIGITS)
    points = [
        Point(label, group, place[1], place[2])
        for (label, group, _), place in places.items()
        if len(place) == 2
    ]
    points.sort(key=lambda point: _DRAWN.get(point.group, len(_DRAWN)))
    joined = "step" in rows[0].axes
    fields = _record(rows, *_COMPONENT_AXES)
    return Plane(**fields, x="PC 1", y="PC 2", points=tuple(points), joined=joined)


def _word_types(rows: Rows, _: Rows) -> Plane:
    """Read words: attention as the value, polarity among the things found."""
    points = [
        Point(
            str(row.found["word"]),
            str(row.axes["group"]),
            float(row.found["polarity"]),
            row.number,
        )
        for row in rows
    ]
    titles = {"x": "polarity score s", "y": "attention score a"}
    return Plane(**_record(rows, "group", "place"), **titles, points=tuple(points))


def _velocities(rows: Rows, _: Rows) -> Plane:
    points = [
        Point(
            f"{row.axes['input']} → {row.axes['output']}",
            f"seed {row.seeds[0]}",
            float(row.axes["centred_count"]),
            row.number,
        )
        for row in rows
    ]
    titles = {"x": "co-occurrence C, less its mean over outputs", "y": "velocity dθ/dτ"}
    fields = _record(rows, "input", "output", "centred_count")
    return Plane(**fields, **titles, points=tuple(points))


def _lines(rows: Rows, _: Rows) -> Matrix:
    """Read a matrix whose measurements were its rows, with their cells among the things found."""
    cells = [{int(key.split(" ", 1)[0]): value for key, value in row.found.items()} for row in rows]
    keys = [key.split(" ", 1) for row in rows for key in row.found]
    spelled = {int(place): word for place, word in keys}
    places = range(1, max(spelled) + 1)
    return Matrix(
        **_record(rows, "step", "output"),
        rows=_numbered([str(row.axes["output"]) for row in rows]),
        columns=_numbered([spelled[place] for place in places]),
        values=tuple(tuple(line.get(place) for place in places) for line in cells),
    )


def _numbered(labels: Sequence[str]) -> tuple[Label, ...]:
    """Return labels that are positions as numbers."""
    positions = [str(place) for place in range(1, len(labels) + 1)]
    return tuple(range(1, len(labels) + 1)) if list(labels) == positions else tuple(labels)


def _positions(rows: Rows, others: Rows) -> Matrix:
    """Read cells by position; the words of an example were measurements of their own.

    Cells that were too small to be seen were not stored, and are 0.
    """
    outputs, inputs = (1 + max(int(row.axes[axis]) for row in rows) for axis in ("out", "inp"))
    words: dict[str, dict[int, Label]] = {
        "output": {place: place + 1 for place in range(outputs)},
        "input": {place: place + 1 for place in range(inputs)},
    }
    if rows[0].name == "attention":
        words = _example_words(others, _rest(rows[0], "out", "inp"))
    down, across = ([said[place] for place in sorted(said)] for said in words.values())
    made = _table(rows, down, across, "out", "inp", {}, "out", "inp")
    values = tuple(tuple(value or 0.0 for value in line) for line in made.values)
    return made.model_copy(update={"values": values})


def _example_words(rows: Rows, here: tuple[Any, ...]) -> dict[str, dict[int, Label]]:
    """Return the words of an example by side and position."""
    words: dict[str, dict[int, Label]] = {"output": {}, "input": {}}
    for row in rows:
        if row.name == "example" and _rest(row, "side", "place", "word") == here:
            words[str(row.axes["side"])][int(row.axes["place"])] = row.axes["word"]
    return words


def _table(
    rows: Rows,
    down: Sequence[Label],
    across: Sequence[Label],
    row_axis: str,
    column_axis: str,
    titles: Mapping[str, str],
    *inside: str,
) -> Matrix:
    """Return cells as a matrix; those axes are the places of its rows and columns, from 0."""
    shape = len(down), len(across)
    parts: dict[str, Any] = {}
    for part in ("value", "low", "high"):
        cells: list[list[float | None]] = [[None] * shape[1] for _ in range(shape[0])]
        for row in rows:
            cells[int(row.axes[row_axis])][int(row.axes[column_axis])] = getattr(row, part)
        known = any(cell is not None for line in cells for cell in line)
        parts[part] = tuple(map(tuple, cells)) if known or part == "value" else None
    return Matrix(
        **_record(rows, *inside),
        **titles,
        rows=tuple(down),
        columns=tuple(across),
        values=parts["value"],
        low=parts["low"],
        high=parts["high"],
    )


def _scored(rows: Rows, _: Rows) -> Matrix:
    outputs, inputs = _spelled(rows, "t", "output"), _spelled(rows, "l", "input")
    return _table(rows, outputs, inputs, "t", "l", {}, "t", "l", "output", "input")


def _counts(rows: Rows, _: Rows) -> Matrix:
    inputs, outputs = _spelled(rows, "place", "input"), _spelled(rows, "slot", "output")
    inside = ("place", "slot", "input", "output")
    titles = {"row_axis": "input", "column_axis": "output"}
    return _table(rows, inputs, outputs, "place", "slot", titles, *inside)


def _spelled(rows: Rows, place: str, word: str) -> list[str]:
    words = {int(row.axes[place]): str(row.axes[word]) for row in rows}
    return [words[index] for index in sorted(words)]


def _named(rows: Rows, row_axis: str, column_axis: str) -> Matrix:
    """Read cells by the names of their row and column, in the order in which they were measured."""
    down, across = (
        list(dict.fromkeys(row.axes[axis] for row in rows)) for axis in (row_axis, column_axis)
    )
    placed = [
        row.model_copy(
            update={
                "axes": row.axes
                | {
                    row_axis: down.index(row.axes[row_axis]),
                    column_axis: across.index(row.axes[column_axis]),
                }
            }
        )
        for row in rows
    ]
    titles = {"row_axis": row_axis, "column_axis": column_axis}
    return _table(placed, down, across, row_axis, column_axis, titles, row_axis, column_axis)


def _profile(rows: Rows, _: Rows) -> Matrix:
    offsets = sorted({int(row.axes["offset"]) for row in rows})
    made = _named(sorted(rows, key=lambda row: int(row.axes["offset"])), "step", "offset")
    order = sorted(range(len(made.rows)), key=lambda place: int(made.rows[place]))
    lines = {
        part: None if cells is None else tuple(cells[place] for place in order)
        for part, cells in (("values", made.values), ("low", made.low), ("high", made.high))
    }
    steps = tuple(made.rows[place] for place in order)
    return made.model_copy(update={"rows": steps, "columns": tuple(offsets), **lines})


def _sentence(rows: Rows, others: Rows) -> Matrix:
    """Read the numbers of a sentence's words; the predicted label was found with another one."""
    here = _rest(rows[0], "place")
    labels = [str(row.found["label"]) for row in others if "label" in row.found]
    own = [str(row.found["label"]) for row in others if "label" in row.found and _rest(row) == here]
    return Matrix(
        **_record(rows, "place"),
        row_axis="label",
        column_axis="word",
        rows=((own or labels or ["output"])[0],),
        columns=tuple(str(row.found["word"]) for row in rows),
        values=(tuple(row.value for row in rows),),
    )


def _nothing(rows: Rows, _: Rows) -> None:
    """Leave out the words of an example, which are the labels of its matrix."""


def _has(*axes: str) -> Callable[[Measurement], bool]:
    return lambda row: set(axes) <= row.axes.keys()


_FORMS: tuple[
    tuple[
        Callable[[Measurement], bool],
        tuple[str, ...],
        Callable[[Rows, Rows], AnyPicture | None],
    ],
    ...,
] = (
    (lambda row: row.axes.get("pc") in (1, 2), _COMPONENT_AXES, _components),
    (
        lambda row: row.name == "word" and {"word", "polarity"} <= row.found.keys(),
        ("group", "place"),
        _word_types,
    ),
    (_has("centred_count"), ("input", "output", "centred_count"), _velocities),
    (
        lambda row: row.name in ("mean_attention", "example_attention"),
        ("step", "output"),
        _lines,
    ),
    (_has("out", "inp"), ("out", "inp"), _positions),
    (
        lambda row: row.name == "example" and _has("side", "place", "word")(row),
        ("side", "place", "word"),
        _nothing,
    ),
    (_has("score", "t", "l"), ("t", "l", "output", "input"), _scored),
    (_has("place", "slot"), ("place", "slot", "input", "output"), _counts),
    (
        lambda row: row.name == "count_per_sentence",
        ("input", "output"),
        lambda rows, _: _named(rows, "input", "output"),
    ),
    (
        lambda row: row.name == "readout_product",
        ("output", "input"),
        lambda rows, _: _named(rows, "output", "input"),
    ),
    (lambda row: row.name == "temporal_profile", ("step", "offset"), _profile),
    (
        lambda row: "word" in row.found and {"sentence", "place"} <= row.axes.keys(),
        ("place",),
        _sentence,
    ),
)
"""Which measurements are part of a picture, their axes inside it, and what makes it."""
