"""How the proxy starts to learn (§4.1, A.2): its first derivative is the centred count table C − C̄.

Eq. 53 gives the velocity of the logits, 2(C − C̄), and is measured as printed. Eq. 15 gives that
of the probabilities θ but lacks the factor 1/|O|, so θ is measured against both forms. Nothing is
trained: velocities are exact at each initialisation, and every initialisation has its own corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import Field, PositiveInt

from attnscope.claims.decide import about_equal, all_of
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.data.randomness import generator
from attnscope.figures.charts import Axis, Guide, Panel, beside, points
from attnscope.figures.palette import NEUTRAL, ROLES, SCORES
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.settings import RecipeSettings
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.recipe import Charts
from attnscope.runs.result import Measurement, Plane, Point, Record, Result
from attnscope.theory.initial_derivative import InitialVelocities, draw_proxy, random_corpus

# Velocities and their laws: Eq. 53, Eq. 15 with its missing factor, Eq. 15 as printed.
LAWS = ("logit", "theta", "theta as printed")
PRINTED_FACTOR = 2.0  # of both equations
_LARGE = 50_000  # from this d on slopes have to be right
_SLOPE_MARGIN, _EXPONENT_MARGIN = 0.01, 0.1


class Config(RecipeSettings):
    """Settings of the check; the corpora are as small as they can be and still not special."""

    seeds: int = Field(10, ge=1)
    """Initialisations; the claim needs 5."""
    dimensions: tuple[PositiveInt, ...] = Field((50, 500, 5_000, 50_000, 500_000), min_length=2)
    """Embedding sizes. Four decades distinguish the exponent of the error from its scatter; the
    largest takes 44 MB."""
    input_types: int = Field(6, ge=1)
    """Input word types of the random corpora."""
    output_types: int = Field(5, ge=2)
    """Output word types; with one the two forms of Eq. 15 are the same."""
    pairs: int = Field(8, ge=1)
    """Sentence pairs of a random corpus, as few as are not a special case."""


QUICK = {"dimensions": (20, 200, 2_000, 20_000)}
TRAINS = False
HEADLINE = ("slope", "error_exponent")


def measure(config: Config, lab: Lab) -> list[Record]:
    """Draw the initialisations at every d and compare their velocities with the laws."""
    seeds, sizes = range(config.seeds), config.dimensions
    starts = [[_start(config, seed, d) for d in sizes] for seed in seeds]
    sheet = Sheet(f"random-{config.input_types}x{config.output_types}", seeds=seeds)
    rows: list[Record] = []
    for law in LAWS:
        errors = np.array([[start.errors()[law] for start in line] for line in starts])
        exponents = np.polyfit(np.log(sizes), np.log(errors).T, 1)[0]
        for d, column in zip(sizes, errors.T, strict=True):
            axes = {"law": law, "d": d}
            rows.append(sheet.mean("mean_error", column, axes))
            for seed, value in enumerate(column):
                rows.append(sheet.point("error", value, axes, seeds=(seed,)))
        rows.append(sheet.mean("error_exponent", exponents, {"law": law}))
    for quantity in ("logit", "theta"):
        for index, d in enumerate(sizes):
            slopes = [line[index].slope(quantity) for line in starts]
            axes = {"quantity": quantity, "d": d, "output_types": config.output_types}
            rows.append(sheet.mean("slope", slopes, axes, published=PRINTED_FACTOR))
    largest = int(np.argmax(sizes))
    last = [line[largest] for line in starts]
    return [*rows, _velocities(last, sheet, sizes[largest])]


def _start(config: Config, seed: int, d: int) -> InitialVelocities:
    types, corpus = (config.input_types, config.output_types), generator("corpus", seed)
    stream = generator("initialisation", seed, d)
    weights = draw_proxy(stream, config.output_types, d)
    embeddings = draw_proxy(stream, config.input_types, d)
    return InitialVelocities.of(weights, embeddings, random_corpus(corpus, *types, config.pairs))


def _velocities(starts: Sequence[InitialVelocities], sheet: Sheet, d: int) -> Plane:
    """Return dθ/dτ of every pair of types against its C − C̄, for the figure."""
    points = []
    for seed, start in enumerate(starts):
        centred, theta = start.centred.numpy(), start.theta.numpy()
        for i, o in np.ndindex(centred.shape):
            place = float(centred[i, o]), float(theta[i, o])
            points.append(Point(f"{i} → {o}", f"seed {seed}", *place))
    x, y = "co-occurrence C, less its mean over outputs", "velocity of a probability, dθ/dτ"
    return sheet.plane("theta_velocity", points, {"d": d}, x=x, y=y)


def initial_derivative(pool: Pool) -> Decision:
    """Decide snell.initial-derivative."""
    enough = pool.needed(5)
    slopes = [row for row in pool.select("slope") if row.n >= enough]
    exponents = [row for row in pool.select("error_exponent") if row.n >= enough]
    if not (slopes and exponents):
        return undecided("needs at least 5 initialisations")
    largest = max(int(row.axes["d"]) for row in slopes)
    # A quick run has no d as large as that; what it would say rests on its largest.
    least = min(_LARGE, largest) if pool.quick else _LARGE
    large = [row for row in slopes if int(row.axes["d"]) >= least]
    errors = pool.select("mean_error", d=largest)
    evidence = {
        "slope on C - mean": {f"{r.axes['quantity']}, d = {r.axes['d']}": r for r in large},
        "exponent of the error in d": {str(row.axes["law"]): row for row in exponents},
        f"largest error at d = {largest}": {str(row.axes["law"]): row.value for row in errors},
        "initialisations": min(row.n for row in (*slopes, *exponents)),
    }
    if not large:
        return undecided(f"needs d of at least {_LARGE}", evidence)
    falling = [row for row in exponents if row.axes["law"] in ("logit", "theta")]
    slope_off = [interval_of(row).scaled(1 / _expected(row)).shifted(-1) for row in large]
    exponent_off = [interval_of(row).shifted(0.5) for row in falling]
    parts = [about_equal(off, _SLOPE_MARGIN) for off in slope_off]
    parts += [about_equal(off, _EXPONENT_MARGIN) for off in exponent_off]
    deviation = "theta against Eq. 15 with the factor 1/|O| that its print lacks"
    note = "expected slopes: 2 for the logits, 2/|O| for theta"
    return Decision(all_of(parts), evidence, deviation, note)


def _expected(row: Measurement) -> float:
    share = {"logit": 1, "theta": int(row.axes["output_types"])}[str(row.axes["quantity"])]
    return PRINTED_FACTOR / share


CLAIMS = {"snell.initial-derivative": initial_derivative}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the errors against d, and dθ/dτ against C − C̄ at the largest d."""
    return {"initial-derivative": beside(_error_panel(result), _velocity_panel(result))}


def _error_panel(result: Result) -> Any:
    names = {
        "logit": "logits,\nEq. 53",
        "theta": "probabilities,\nEq. 15 with 1/|O|",
        "theta as printed": "probabilities,\nEq. 15 as printed",
    }
    colours = (ROLES["control"], SCORES["proxy"], NEUTRAL)
    sizes = sorted({int(row.axes["d"]) for row in result.select("error")})
    errors = result.select("error")
    rows = [
        {"d": row.axes["d"], "error": row.value, "law": names[str(row.axes["law"])]}
        for row in errors
    ]
    heights = [row.number for row in errors]
    frame = Panel(
        Axis("dimension d", "log", (sizes[0] / 1.7, sizes[-1] * 1.7), sizes, "~s"),
        Axis(
            "largest error of the velocity",
            "log",
            (min(heights) / 1.7, max(heights) * 1.7),
            format="~g",
        ),
        dict(zip(names.values(), colours, strict=True)),
        title="Error at initialisation (dashed: as 1/√d)",
        guides=[Guide(_falling(result, law, sizes)) for law in ("logit", "theta")],
    )
    return points(rows, frame, x="d", y="error", group="law")


def _falling(result: Result, law: str, sizes: Sequence[int]) -> list[tuple[float, float]]:
    """Return the ends of a line of exponent −½ through the middle of a law's errors."""
    rows = result.select("error", law=law)
    level = np.mean([np.log(row.number * float(row.axes["d"]) ** 0.5) for row in rows])
    return [(d, float(np.exp(level) / d**0.5)) for d in (sizes[0], sizes[-1])]


def _velocity_panel(result: Result) -> Any:
    config = Config.model_validate(result.config)
    group = f"measured, {config.seeds} initialisations"
    velocities = result.picture(Plane, "theta_velocity")
    rows = [{"count": point.x, "velocity": point.y, "group": group} for point in velocities.points]
    edge = 1.08 * max(abs(point.x) for point in velocities.points)
    corrected = PRINTED_FACTOR / config.output_types
    laws = {
        f"slope {PRINTED_FACTOR:g}:\nEq. 15 as printed": PRINTED_FACTOR,
        f"slope 2/|O| = {corrected:.3g}:\nEq. 15 with 1/|O|": corrected,
    }
    frame = Panel(
        Axis(velocities.x, domain=(-edge, edge)),
        Axis(velocities.y, domain=(-2.4 * edge, 2.4 * edge)),
        {group: SCORES["proxy"]},
        title=f"Probabilities at d = {max(config.dimensions):,}".replace(",", "\N{NO-BREAK SPACE}"),
        labels="none",
        guides=[
            Guide([(-edge, -edge * slope), (edge, edge * slope)], label)
            for label, slope in laws.items()
        ],
    )
    return points(rows, frame, x="count", y="velocity", group="group")
