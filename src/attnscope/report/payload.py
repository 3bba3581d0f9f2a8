"""Everything that the page shows, as one JSON value of bounded size.

The same folders always give the same value. If a report would be too large, examples are left out
first, then figures; a notice says so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnscope import __version__
from attnscope.claims.glossary import GLOSSARY
from attnscope.claims.symbols import SCORES, in_words, measure_words, score_symbol
from attnscope.figures.palette import GROUPS, NEUTRAL, SIDES, TRANSLATED, WORDS, score_colours
from attnscope.recipes.registry import entries
from attnscope.report.audit_view import audits_json
from attnscope.report.examples import CHOICES, Choice, ExampleRequest
from attnscope.report.folders import Contents, find_contents
from attnscope.report.matrices import matrix_scenes
from attnscope.report.overview import (
    about_json,
    claims_json,
    fidelity_sentence,
    figures_of,
    judged_results,
    known_measures,
    known_module,
    paper_titles,
    run_json,
)
from attnscope.report.planes import planes
from attnscope.report.scenes import Scene
from attnscope.report.unit_scenes import unit_scenes
from attnscope.training.progress import Progress

MOST_BYTES = 8_500_000
"""Of the payload: with the page's own scripts a report stays under ten million."""

_MOST_SCENES = 60
_MOST_PLANES = 100


@dataclass(frozen=True)
class Request:
    """The folders that a report is made of, and what it shows of them.

    Attributes
    ----------
    folders
        Workspaces, folders of single results, or folders of single units.
    examples
        Examples of each source that are shown, by id; by default those that a recipe names, or
        the first readable ones.
    count
        How many of the first readable ones, where no ids are given.
    sentences
        The user's own, read by the trained models.
    """

    folders: tuple[Path, ...]
    examples: tuple[int, ...] = ()
    count: int | None = None
    sentences: tuple[str, ...] = ()


def payload(
    request: Request, most_bytes: int = MOST_BYTES, progress: Progress | None = None
) -> dict[str, Any]:
    """Return what the page shows."""
    found = find_contents(request.folders)
    notices = found.notices
    order = [entry.name for entry in entries()]
    found.results.sort(key=lambda each: _place(each.result.recipe, order))
    scenes = _scenes(found, request, notices, progress)
    figures = [figures_of(each, notices) for each in found.results]
    runs = [run_json(each, f"run{number}", notices) for number, each in enumerate(found.results)]
    all_planes = [
        {"run": run["key"], "place": run["place"], **plane}
        for run, each in zip(runs, found.results, strict=True)
        for plane in planes(each.result, known_measures(each.result.recipe))
    ]
    if len(all_planes) > _MOST_PLANES:
        notices.append(
            f"{len(all_planes) - _MOST_PLANES} of {len(all_planes)} planes of points are left out."
        )
    claims = claims_json(judged_results([each.result for each in found.results], notices))
    value: dict[str, Any] = {
        "attnscope": __version__,
        "folders": [str(folder) for folder in request.folders],
        "papers": paper_titles(dict.fromkeys(claim["paper"] for claim in claims)),
        "notices": notices,
        "runs": runs,
        "about": [
            block
            for run, each in zip(runs, found.results, strict=True)
            for block in about_json(each, run["key"])
        ],
        "claims": claims,
        "fidelity": fidelity_sentence(found.results),
        "audits": audits_json(found.results, notices),
        "planes": all_planes[:_MOST_PLANES],
        "symbols": _symbols(runs),
        "glossary": {paper: GLOSSARY.get(paper, {}) for paper in _papers(runs)},
        "scores": _score_table(scenes),
        "colours": {
            "neutral": NEUTRAL,
            "named": GROUPS | SIDES | WORDS | {out: WORDS[of] for out, of in TRANSLATED.items()},
        },
    }
    return _fitted(value, scenes, figures, most_bytes)


def _papers(runs: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(run["recipe"].partition("/")[0] for run in runs))


def _place(recipe: str, order: Sequence[str]) -> int:
    return order.index(recipe) if recipe in order else len(order)


def _scenes(
    found: Contents, request: Request, notices: list[str], progress: Progress | None
) -> list[Scene]:
    examples = ExampleRequest(request.count, request.examples, request.sentences, _choices(found))
    scenes = unit_scenes(found.units, examples, notices, progress)
    measured: list[Scene] = []
    for number, each in enumerate(found.results):
        recipe = each.result.recipe
        measured += matrix_scenes(each.result, f"run{number}/{recipe}", known_measures(recipe))
    # Scenes with scores that units have too come before other tables.
    scenes += sorted(measured, key=lambda scene: not any(m.score in SCORES for m in scene.maps))
    if len(scenes) > _MOST_SCENES:
        notices.append(f"{len(scenes) - _MOST_SCENES} of {len(scenes)} scenes are left out.")
    return scenes[:_MOST_SCENES]


def _choices(found: Contents) -> dict[Path, tuple[str, Choice]]:
    """Return the recipes that choose examples, by the folders of the units that they list."""
    choices: dict[Path, tuple[str, Choice]] = {}
    for each in found.results:
        wish = getattr(known_module(each.result.recipe), "EXAMPLES", None)
        choice = CHOICES.get(wish) if isinstance(wish, str) else wish
        if choice is not None:
            choices |= {path.resolve(): (each.result.recipe, choice) for path in each.units}
    return choices


def _symbols(runs: Sequence[dict[str, Any]]) -> dict[str, dict[str, list[str]]]:
    """Return each measured name in words with its symbol, and its explanation, by recipe."""
    symbols: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        measures, own = known_measures(run["recipe"]), symbols.setdefault(run["recipe"], {})
        for name in dict.fromkeys(row[0] for row in run["rows"]):
            own[name] = [in_words(name, measures), measure_words(name, measures)[1]]
    return symbols


def _score_table(scenes: Sequence[Scene]) -> dict[str, dict[str, Any]]:
    """Return label, explanation and colour of every score that is shown."""
    maps = {each.score: each for scene in scenes for each in scene.maps}
    table = {}
    for name, each in maps.items():
        label, meaning = (each.label, each.meaning) if each.label else score_symbol(name)
        table[name] = {"label": label, "meaning": meaning, "colour": list(score_colours(name))}
    return table


def _fitted(
    value: dict[str, Any],
    scenes: Sequence[Scene],
    figures: list[list[dict[str, str]]],
    most_bytes: int,
) -> dict[str, Any]:
    """Add scenes and figures, fewer of them until all fits."""
    notices: list[str] = value["notices"]
    value["scenes"] = [scene.as_json() for scene in scenes]
    drawn = _size(figures)
    for count in (4, 2, 1):
        if _size(value) + drawn <= most_bytes:
            break
        for scene in scenes:
            scene.keep(count)
        value["scenes"] = [scene.as_json() for scene in scenes]
        cut_short = f"The report would be too large: {count} examples of each source are shown."
        notices[:] = [
            *(each for each in notices if "examples of each source" not in each),
            cut_short,
        ]
    room = most_bytes - _size(value)
    left_out = 0
    for run, own in zip(value["runs"], figures, strict=True):
        run["figures"] = []
        for figure in own:
            room -= _size(figure)
            if room >= 0:
                run["figures"].append(figure)
            else:
                left_out += 1
    if left_out:
        notices.append(
            f"The report would be too large: {left_out} figures are left out; they are in the "
            "folders."
        )
    return value


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf8", "surrogatepass"))
