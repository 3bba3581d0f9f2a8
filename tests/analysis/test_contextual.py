"""The step from which a curve exceeds a level."""

from __future__ import annotations

import math

from attnscope.analysis.contextual import first_exceeding
from cases import for_each

CURVE = {0: 0.10, 10: 0.30, 50: 0.20, 100: 0.60, 250: 0.40}


@for_each(
    ("level", "expected"),
    [
        (0.05, 0),  # step 0 is an answer like any other (20 Newsgroups in the paper)
        (0.10, 10),  # an equal agreement does not exceed
        (0.25, 10),  # the first of several, though the curve falls below again
        (0.30, 100),
        (0.59, 100),
        (0.60, None),  # the maximum itself is never exceeded
        (1.00, None),
    ],
)
def test_the_first_step_strictly_above_the_level_is_found(
    level: float, expected: int | None
) -> None:
    assert first_exceeding(CURVE, level) == expected


def test_steps_count_in_their_order_and_not_in_that_of_the_mapping() -> None:
    backwards = dict(reversed(CURVE.items()))
    assert first_exceeding(backwards, 0.25) == 10


def test_what_is_undefined_exceeds_nothing_and_is_exceeded_by_nothing() -> None:
    assert first_exceeding({0: math.nan, 10: 0.5}, 0.1) == 10
    assert first_exceeding(CURVE, math.nan) is None
    assert first_exceeding({}, 0.0) is None
