"""Metrics that are measured at every evaluation, next to loss and accuracy, and logged."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from attnscope.data.batch import Batch
from attnscope.data.source import Source
from attnscope.models.intervention import AttentionRule
from attnscope.models.trace import AttentionModel
from attnscope.runs.spec import Spec


class Metric(Spec):
    """Root of the metrics that a configuration can name."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of its column in the log, or the prefix of its columns' names."""

    def demand(self) -> None:
        """Raise `UsageError` if something that it needs is not installed."""

    @abstractmethod
    def __call__(
        self,
        model: AttentionModel,
        batch: Batch,
        source: Source,
        split: str,
        attention: Mapping[str, AttentionRule] | None = None,
    ) -> float | dict[str, float]:
        """Return its value on the first examples of a split, which ``batch`` holds.

        A metric with several columns returns them by their names, which start with its own.
        """
