"""The recipe of the derivative at initialisation, and what its claim says of altered numbers."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from attnscope.claims.decide import Verdict
from attnscope.claims.pool import Decision, Pool
from attnscope.recipes.kit.lab import Lab
from attnscope.recipes.snell import initial_derivative as recipe
from attnscope.running.run import draw, run
from attnscope.runs.result import Measurement, Plane, Result
from attnscope.theory import initial_derivative as theory
from attnscope.training.engine.workers import Workers

# Few enough to be quick, and enough for intervals within the claim's margins.
CONFIG = recipe.Config(seeds=10, dimensions=(50, 500, 5_000, 50_000))


def measure(config: recipe.Config, folder: Path) -> Result:
    with Workers(folder, 1) as workers:
        rows = recipe.measure(config, Lab(workers))
    return Result(
        recipe="snell/initial-derivative",
        scale="full",
        config=config.model_dump(mode="json"),
        environment={},
        seconds=0,
        measurements=tuple(row for row in rows if isinstance(row, Measurement)),
        pictures=tuple(row for row in rows if isinstance(row, Plane)),
    )


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return measure(CONFIG, tmp_path_factory.mktemp("workspace"))


def decide(result: Result) -> Decision:
    return recipe.CLAIMS["snell.initial-derivative"](Pool((result,)))


def altered(result: Result, name: str, change: Callable[[float], float], **axes: object) -> Result:
    """Change the values and intervals of some measurements."""

    def changed(row: Measurement) -> Measurement:
        if row.name != name or any(row.axes[key] != value for key, value in axes.items()):
            return row
        ends = {key: getattr(row, key) for key in ("value", "low", "high")}
        return row.model_copy(update={key: change(end) for key, end in ends.items()})

    rows = tuple(changed(row) for row in result.measurements)
    assert rows != result.measurements
    return result.model_copy(update={"measurements": rows})


def test_claim_holds_on_ten_initialisations(result: Result) -> None:
    assert decide(result).verdict is Verdict.HOLDS


def test_slope_that_equation_15_prints_fails_the_claim(result: Result) -> None:
    printed = altered(result, "slope", lambda end: end * CONFIG.output_types, quantity="theta")
    assert decide(printed).verdict is Verdict.FAILS


@pytest.mark.parametrize("quantity", ["logit", "theta"])
def test_slope_two_percent_off_fails_the_claim(result: Result, quantity: str) -> None:
    off = altered(result, "slope", lambda end: end * 1.02, quantity=quantity)
    assert decide(off).verdict is Verdict.FAILS


def test_slopes_at_small_dimensions_do_not_count(result: Result) -> None:
    assert decide(altered(result, "slope", lambda end: end + 1, d=5_000)).verdict is Verdict.HOLDS


@pytest.mark.parametrize("law", ["logit", "theta"])
def test_error_that_falls_too_slowly_fails_the_claim(result: Result, law: str) -> None:
    slow = altered(result, "error_exponent", lambda end: end + 0.25, law=law)
    assert decide(slow).verdict is Verdict.FAILS


def test_theta_measured_against_equation_15_as_printed_fails_the_claim(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(theory, "predicted_probability_velocity", theory.predicted_logit_velocity)
    assert decide(measure(CONFIG, tmp_path)).verdict is Verdict.FAILS


def test_four_initialisations_decide_nothing(tmp_path: Path) -> None:
    few = measure(CONFIG.model_copy(update={"seeds": 4}), tmp_path)
    assert decide(few).verdict is Verdict.UNDECIDED
    assert "5 initialisations" in decide(few).note


def test_dimensions_below_fifty_thousand_decide_nothing(result: Result, tmp_path: Path) -> None:
    small = measure(CONFIG.model_copy(update={"dimensions": (50, 500, 5_000)}), tmp_path)
    assert decide(small).verdict is Verdict.UNDECIDED
    assert "50000" in decide(small).note


def test_pooled_runs_with_other_output_types_keep_their_own_slopes(
    result: Result, tmp_path: Path
) -> None:
    other = measure(CONFIG.model_copy(update={"output_types": 3}), tmp_path)
    decision = recipe.CLAIMS["snell.initial-derivative"](Pool((result, other)))
    assert decision.verdict is Verdict.HOLDS


def test_error_of_equation_15_as_printed_is_the_missing_factor(result: Result) -> None:
    velocities = result.picture(Plane, "theta_velocity")
    missing = 2 - 2 / CONFIG.output_types
    for row in result.select("error", law="theta as printed", d=50_000):
        counts = [point.x for point in velocities.points if point.group == f"seed {row.seeds[0]}"]
        assert row.value == pytest.approx(missing * np.abs(counts).max(), rel=0.05)


def test_slopes_are_those_of_numpy_on_the_drawn_points(result: Result) -> None:
    slopes = []
    for seed in range(CONFIG.seeds):
        velocities = result.picture(Plane, "theta_velocity").points
        own = np.array([(p.x, p.y) for p in velocities if p.group == f"seed {seed}"])
        slopes.append(np.linalg.lstsq(own[:, :1], own[:, 1])[0].item())
    found = result.select("slope", quantity="theta", d=50_000)[0]
    assert found.value == pytest.approx(np.mean(slopes), rel=1e-12)
    assert found.n == CONFIG.seeds


def test_intervals_are_over_initialisations(result: Result) -> None:
    for row in result.select("mean_error"):
        errors = [
            one.value or np.nan
            for one in result.select("error", law=row.axes["law"], d=row.axes["d"])
        ]
        assert row.value == pytest.approx(np.mean(errors))
        low, high = stats.t.interval(0.95, len(errors) - 1, row.value, stats.sem(errors))
        assert (row.low, row.high) == pytest.approx((low, high))


def test_printed_factor_stands_beside_every_slope(result: Result) -> None:
    assert {row.published for row in result.select("slope")} == {2.0}


def test_quick_run_draws_its_figure_from_the_result_alone(tmp_path: Path) -> None:
    finished = run("snell/initial-derivative", quick=True, device="cpu", out=tmp_path)
    svg = next(path for path in finished.figures if path.suffix == ".svg")
    first = svg.read_bytes()
    assert "Eq. 15 as printed" in first.decode()
    svg.unlink()
    draw(finished.folder)
    assert svg.read_bytes() == first


def test_quick_run_says_what_its_largest_dimension_would(tmp_path: Path) -> None:
    finished = run("snell/initial-derivative", quick=True, device="cpu", out=tmp_path)
    assert max(finished.result.config["dimensions"]) < 50_000
    assert decide(finished.result).verdict is Verdict.HOLDS
