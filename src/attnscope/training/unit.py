"""A unit: one model, one source, one seed, one way of training. Its settings decide its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SerializeAsAny, field_validator, model_serializer, model_validator

from attnscope.data.source import Source
from attnscope.models.base import ModelSpec
from attnscope.models.intervention import Intervention
from attnscope.runs.spec import Settings
from attnscope.runs.unit import UnitFolder
from attnscope.scores.attention import Attention
from attnscope.scores.score import ScoreRule
from attnscope.training.metric import Metric
from attnscope.training.objective import Likelihood, Term
from attnscope.training.optimizer import Adam, OptimizerSpec

Precision = Literal["float32", "tf32"]
"""Of a GPU's matrix products: TF32 is faster, and has three decimal digits."""


class Training(Settings):
    """How a unit is trained, evaluated, and what is kept of it."""

    steps: int = Field(ge=0)
    batch_size: int = Field(ge=1)
    evaluate_at: tuple[int, ...] = Field(description="steps; 0 and the last one are always added")
    optimizer: SerializeAsAny[OptimizerSpec] = Adam()
    objective: tuple[SerializeAsAny[Term], ...] = (Likelihood(),)
    attention: dict[str, SerializeAsAny[Intervention]] = Field(default_factory=dict)
    frozen: tuple[str, ...] = Field((), description="prefixes of parameter names that do not train")
    examples: int = Field(50, ge=1, description="evaluation examples of each split, at most")
    splits: tuple[Literal["val", "train"], ...] = Field(
        ("val",), description="evaluated; the first one decides which weights are the best"
    )
    stored: int = Field(8, ge=0, description="evaluation examples whose scores are kept")
    scores: tuple[SerializeAsAny[ScoreRule], ...] = (Attention(),)
    final_scores: tuple[SerializeAsAny[ScoreRule], ...] = Field(
        (), description="kept of the last and of the best weights alone: they take long to read"
    )
    metrics: tuple[SerializeAsAny[Metric], ...] = Field((), description="logged next to accuracy")
    best_by: Literal["accuracy", "loss", "training_loss"] = Field(
        "accuracy",
        description="picks the best weights; training_loss is the mean of the objective since the "
        "evaluation before",
    )
    patience: int | None = Field(
        None,
        ge=1,
        description="training stops after so many evaluations in a row without a better one; "
        "stored where there is one",
    )
    dtype: Literal["float32", "float64"] = "float32"
    precision: Precision = Field(
        "float32", description="of a GPU's products; stored where it is not the default"
    )

    @model_validator(mode="after")
    def _tf32_is_a_form_of_float32(self) -> Training:
        if self.precision == "tf32" and self.dtype != "float32":
            raise ValueError("precision=tf32 needs dtype=float32")
        return self

    @model_serializer(mode="wrap")
    def _without_later_defaults(self, handler: Any) -> dict[str, Any]:
        """Leave defaults of later fields out, so that units made before them keep their hash."""
        values = handler(self)
        later = ("precision", "float32"), ("patience", None)
        return {k: v for k, v in values.items() if (k, v) not in later}

    @field_validator("evaluate_at", mode="after")
    @classmethod
    def _in_order(cls, steps: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(set(steps)))

    @field_validator("scores", "final_scores", mode="after")
    @classmethod
    def _distinct_names(cls, scores: tuple[ScoreRule, ...]) -> tuple[ScoreRule, ...]:
        names = [score.name for score in scores]
        if len(set(names)) < len(names):
            raise ValueError(f"two scores would be stored under one name among {names}")
        return scores

    @property
    def schedule(self) -> tuple[int, ...]:
        """The steps of evaluation, the first and the last one included."""
        inside = {step for step in self.evaluate_at if 0 <= step <= self.steps}
        return tuple(sorted(inside | {0, self.steps}))


class Unit(Settings):
    """Everything that decides a unit's numbers."""

    source: SerializeAsAny[Source]
    model: SerializeAsAny[ModelSpec]
    training: Training
    seed: int = 0
    device: Literal["cpu", "cuda"] = "cpu"

    @property
    def name(self) -> str:
        """Source, model and seed: what a reader of the workspace looks for."""
        kind = type(self.model).model_fields["kind"].default
        return f"{self.source.dataset}-{kind}-seed{self.seed}"

    def config(self) -> dict[str, Any]:
        """Return the settings as JSON."""
        return self.model_dump(mode="json")

    def folder(self, workspace: Path) -> UnitFolder:
        """Return the unit's folder in a workspace."""
        return UnitFolder.of(workspace, self.name, self.config())


def log_column(split: str, name: str) -> str:
    """Return the log's name of a number measured on a split; ``val`` goes without saying."""
    return name if split == "val" else f"{split}.{name}"


def score_file(split: str, step: int | str | None = None) -> str:
    """Return where a unit keeps the scores of a split, or (None) its examples.

    ``step`` is a step of evaluation, or ``last`` or ``best`` for scores read after training.
    """
    name = f"step-{step:08d}" if isinstance(step, int) else step or "examples"
    return log_column(split, name)


def best_step(log: Sequence[Mapping[str, Any]], training: Training) -> int:
    """Return the step with the highest accuracy or lowest loss, the first one of several."""
    if training.best_by == "training_loss":
        # Before the first update there is none.
        losses = [(row["training_loss"], int(row["step"])) for row in log]
        return min(losses, key=lambda pair: math.inf if pair[0] is None else pair[0])[1]
    column = log_column(training.splits[0], training.best_by)
    best = {"accuracy": max, "loss": min}[training.best_by]
    return int(best(log, key=lambda row: row[column])["step"])


def stops_early(log: Sequence[Mapping[str, Any]], training: Training) -> bool:
    """Return whether the last evaluations were in vain for as long as the patience lasts."""
    if training.patience is None or not log:
        return False
    best = best_step(log, training)
    return sum(int(row["step"]) > best for row in log) >= training.patience


def every(interval: int, steps: int) -> tuple[int, ...]:
    """Return 0, interval, 2·interval, … up to ``steps``."""
    return tuple(range(0, steps + 1, interval))


def merged(*schedules: Iterable[int]) -> tuple[int, ...]:
    """Return the steps of several schedules, in order."""
    return tuple(sorted({step for schedule in schedules for step in schedule}))
