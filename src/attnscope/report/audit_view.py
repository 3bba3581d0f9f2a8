"""An audit as a view of its own: the verdict, each question, sites by heads, coloured texts.

Everything is plain JSON; words are shown as text, never as markup.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnscope.audits.claims import CLAIMS, FIGURES, decide, sentence
from attnscope.errors import WorkspaceError
from attnscope.figures.palette import NEUTRAL, score_colours
from attnscope.report.folders import FoundResult
from attnscope.runs.atomic import read_json
from attnscope.runs.result import Curve, Matrix, Result
from attnscope.runs.tensors import load_arrays

# Raised by numbers and texts that no audit writes.
_UNFIT = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)
_EXAMPLES, _WORDS, _OUTPUTS = 8, 60, 12


def audits_json(found: Sequence[FoundResult], notices: list[str]) -> list[dict[str, Any]]:
    """Return every audit among some results."""
    audits = []
    for each in found:
        if each.result.recipe == "audit":
            try:
                audits.append(_audit(each))
            except WorkspaceError as error:
                notices.append(f"{error} The audit is left out.")
            except _UNFIT as error:
                reason = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
                notices.append(f"The audit in {each.folder} was edited ({reason}); it is left out.")
    return audits


def _audit(found: FoundResult) -> dict[str, Any]:
    result = found.result
    decisions = decide(result)
    return {
        "title": f"{result.config.get('model', '')} on {result.config.get('data', '')}",
        "sentence": sentence(result, decisions),
        "notices": [str(each) for each in result.config.get("notices", ())],
        "facts": _facts(result),
        "questions": [
            {
                "id": name,
                "statement": CLAIMS[name].statement,
                "verdict": decision.verdict.value,
                "note": decision.note,
                **_figure(result, name),
            }
            for name, decision in decisions.items()
        ],
        "scores": _score_rows(result, "found_share"),
        "agreements": _score_rows(result, "agreement_above_chance"),
        "ibm": _score_rows(result, "agreement_with_ibm1"),
        "maps": [_map(m) for m in result.pictures if isinstance(m, Matrix)],
        "curves": [_curve(c) for c in result.pictures if isinstance(c, Curve)],
        "examples": _examples(found.folder),
    }


def _facts(result: Result) -> list[list[str]]:
    config = result.config
    accuracy = result.select("accuracy")
    return [
        ["judged site", str(config.get("site", ""))],
        ["sites", ", ".join(map(str, config.get("sites", ())))],
        ["examples", str(config.get("examples", ""))],
        ["accuracy", f"{accuracy[0].number:.3f}" if accuracy else "not measured"],
        ["watched pass, off by", f"{float(config.get('off', math.nan)):.1e}"],
    ]


def _figure(result: Result, name: str) -> dict[str, Any]:
    measured, given = FIGURES[name]
    rows = result.select(measured, **given)
    if not rows:
        return {"measured": measured.replace("_", " "), "value": None, "low": None, "high": None}
    row = rows[0]
    words = measured.replace("_", " ")
    return {"measured": words, "value": row.value, "low": row.low, "high": row.high}


def _score_rows(result: Result, measured: str) -> list[dict[str, Any]]:
    """Return a number of each score, the highest first."""
    rows = sorted(
        (row for row in result.select(measured) if row.value is not None),
        key=lambda row: -row.number,
    )
    return [
        {"score": str(row.axes["score"]), "value": row.value, "low": row.low, "high": row.high}
        for row in rows
    ]


def _map(matrix: Matrix) -> dict[str, Any]:
    return {
        "name": matrix.name.removesuffix("_map"),
        "rows": list(map(str, matrix.rows)),
        "columns": list(map(str, matrix.columns)),
        "values": [list(row) for row in matrix.values],
    }


def _curve(curve: Curve) -> dict[str, Any]:
    score = str(curve.axes.get("score", ""))
    return {
        "name": f"{curve.name}, {score}".replace("_", " "),
        "x": list(curve.x),
        "y": list(curve.y),
        "colour": NEUTRAL if curve.name == "entropy" else score_colours(score)[0],
    }


def _examples(folder: Path) -> list[dict[str, Any]]:
    """Return the first readable examples with all their scores, on one scale each."""
    path = folder / "scores" / "examples.json"
    if not path.is_file():
        return []
    words = read_json(path)
    short = [n for n, each in words.items() if len(each["inputs"]) <= _WORDS]
    chosen = short[:_EXAMPLES]
    files = sorted((folder / "scores").glob("*.safetensors"))
    stored = {file.stem: load_arrays(file)[0] for file in files}
    shown = []
    for number in chosen:
        scores = {
            name: _rounded(arrays[number]) for name, arrays in stored.items() if number in arrays
        }
        shown.append(
            {
                "id": number,
                "inputs": words[number]["inputs"],
                "outputs": words[number]["outputs"][:_OUTPUTS],
                "words": [int(each) for each in words[number].get("words", ())],
                "scores": scores,
            }
        )
    return shown


def _rounded(values: np.ndarray) -> list[list[float | None]]:
    return [
        [None if not math.isfinite(v) else round(float(v), 4) for v in row]
        for row in values[:_OUTPUTS]
    ]
