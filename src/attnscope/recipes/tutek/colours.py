"""Names and colours of tutek's models in all its figures: base red, as in the paper's."""

from __future__ import annotations

from attnscope.figures.palette import NEUTRAL, POSITIONS, ROLES, SCORES

LABELS = {
    "base": "base",
    "concat": "concat",
    "residual": "residual",
    "tying": "tying",
    "mlm": "masked words",
    "instance": "own query",
}
MODELS = {
    "base": ROLES["hard"],
    "concat": SCORES["gold"],
    "residual": NEUTRAL,
    "tying": ROLES["mixed"],
    "mlm": ROLES["control"],
    "instance": POSITIONS["next"],
}
# The paper's marks.
SIGNS = {"additive": "+", "dot": "•"}
