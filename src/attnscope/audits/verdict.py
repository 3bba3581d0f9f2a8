"""A finished audit: its numbers, its verdicts, and the answer in one sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnscope.audits.claims import FIGURES
from attnscope.claims.pool import Decision
from attnscope.claims.verdicts import plain_evidence
from attnscope.runs.result import Result


@dataclass(frozen=True)
class Audit:
    """A finished audit.

    Attributes
    ----------
    result
        Measurements and pictures.
    verdicts
        The decision on each ``audit.*`` claim.
    sentence
        The answer in one sentence.
    notices
        What a reader should know: texts left out, sites that cannot be seen.
    folder
        Where it is stored.
    """

    result: Result
    verdicts: Mapping[str, Decision]
    sentence: str
    notices: tuple[str, ...]
    folder: Path

    def table(self) -> str:
        """Return the measurements as lines of text."""
        lines = []
        for row in self.result.measurements:
            axes = " ".join(str(value) for value in row.axes.values() if value not in ("", "all"))
            low, high = (f"{end:.3f}" if end is not None else "–" for end in (row.low, row.high))
            value = "–" if row.value is None else f"{row.value:.3f}"
            lines.append(f"{row.name:24} {axes:42} {value:>7} [{low}, {high}]  n={row.n}")
        return "\n".join(lines)

    def figure(self, name: str) -> str:
        """Return the number that decides a claim, with its interval."""
        measured, given = FIGURES[name]
        rows = self.result.select(measured, **given)
        if not rows or rows[0].value is None:
            return "not measured"
        row = rows[0]
        low, high = (math.nan if end is None else end for end in (row.low, row.high))
        return f"{measured.replace('_', ' ')} {row.value:.3f} [{low:.3f}, {high:.3f}]"

    def __str__(self) -> str:
        marks = [
            f"{name:20} {each.verdict.value:10} {self.figure(name)}"
            for name, each in self.verdicts.items()
        ]
        return "\n".join([self.sentence, "", *marks, *(f"Note: {n}" for n in self.notices)])

    def as_json(self) -> dict[str, Any]:
        """Return sentence, verdicts, notices and result for machines."""
        return {
            "sentence": self.sentence,
            "notices": list(self.notices),
            "verdicts": [
                {
                    "id": name,
                    "verdict": each.verdict.value,
                    "evidence": plain_evidence(each.evidence),
                    "note": each.note,
                }
                for name, each in self.verdicts.items()
            ],
            "result": self.result.model_dump(mode="json", by_alias=True),
        }
