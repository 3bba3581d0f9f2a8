"""Figures 2, 3 and 4: polarity and attention scores of positive, negative and neutral words.

At λ = 10 and 100, with and without the penalty on VᵀW; with an affine map, an LSTM or additive
attention at λ = 10. Words are grouped by counts alone; the groups take no part in training.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
from pydantic import Field

from attnscope.claims.decide import (
    about_equal,
    above,
    all_of,
    below,
    reaches,
    stays_within,
    verdict,
)
from attnscope.claims.pool import Pool, interval_of
from attnscope.claims.readings import Readings
from attnscope.claims.table import Cell, Cells, Check, Claim, Finding, Needs, Part
from attnscope.data.token_groups import NEGATIVE, NEUTRAL, POSITIVE
from attnscope.figures.charts import Axis, Guide, Panel, beside, points
from attnscope.figures.distributions import strips
from attnscope.figures.palette import NEUTRAL as GREY, ROLES, group_colours
from attnscope.recipes.kit import plots
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.sheet import rng
from attnscope.recipes.recipe import Charts
from attnscope.recipes.sunlu.corpora import (
    answers_of,
    demand_groups,
    groups_of,
    sheet_of,
    statistics_rows,
)
from attnscope.recipes.sunlu.units import (
    DOT_PRODUCTS,
    IMDB,
    NEWS_1,
    NEWS_2,
    SIZES,
    SST,
    Models,
    Plan,
    Scales,
    SunluConfig,
    SunluUnits,
    Variant,
    deviations,
    train,
)
from attnscope.recipes.sunlu.word_scores import (
    AGAINST,
    ALONE,
    OCCURRENCES,
    TITLES,
    CellScores,
    ratio_rows,
)
from attnscope.runs.result import Measurement, Plane, Record, Result


class Config(SunluConfig):
    """Settings of the figures."""

    dot_seeds: int = Field(10, ge=1)
    """Runs of the plain model. The side of the gap depends on the draw, and ten decide it; `seeds`
    are those of the other models, which Table 2's grid has too."""
    scales: Scales = Field((10.0, 100.0), min_length=1)
    """Scaling factors λ: √d as in Fig. 2 and 4, and that of Fig. 3."""
    penalty: float = Field(1e-4, ge=0)
    """Weight of |VᵀW|, as in the authors' code for SST; 0 leaves it out."""
    others: Models = ("AD", "DP-A", "DP-L")
    """Other models that are trained, at the first λ."""
    shown: int = Field(60, ge=1)
    """Words of each group in a panel."""
    listed: int = Field(15, ge=1)
    """Most polar and most attended words that are listed."""

    @property
    def penalties(self) -> tuple[float, ...]:
        """Without the penalty, and with it."""
        return tuple(dict.fromkeys((0.0, self.penalty)))


QUICK = {
    "corpus": "grammar-sentiment",
    "seeds": 1,
    "dot_seeds": 2,
    "embedding": 20,
    "hidden": 20,
    "lstm_hidden": 10,
    "epochs": 4,
    "others": ("AD", "DP-L"),
}
SHOWN = {"reading": ALONE, "penalty": 0.0}
HEADLINE = (
    "AUC(attention)",
    "AUC(polarity)",
    "gap_size",
    "accuracy",
    "majority",
    "bag_of_words",
    "group_size",
)


def plan(config: Config) -> Plan:
    """Return the cells, with their seeds."""
    cells = [Variant("DP", scale, held) for held in config.penalties for scale in config.scales]
    others = [Variant(model, config.scales[0]) for model in config.others if model != "DP"]
    return dict.fromkeys(cells, config.dot_seeds) | dict.fromkeys(others, config.seeds)


def measure(config: Config, lab: Lab) -> list[Record]:
    """Train the units and read every word's scores off them."""
    demand_groups(config)
    rows: list[Record] = []
    for runs in train(config, plan(config), lab):
        rows += statistics_rows(runs.source, config.rule)
        rows += _word_rows(config, runs, lab.device)
        for scale in config.scales:
            rows += _accuracies(config, runs, scale, lab.device)
    return rows


def _word_rows(config: Config, runs: SunluUnits, device: str) -> list[Record]:
    rows: list[Record] = []
    plain: dict[float, CellScores] = {}
    for variant, units in runs.cells.items():
        # With context the two readings differ.
        for reading in (ALONE, OCCURRENCES) if variant.model == "DP-L" else (ALONE,):
            groups = groups_of(runs.source, config.rule)
            cell = CellScores(runs.source, groups, variant, reading, units, device)
            rows += [*cell.rows(), cell.words(config.shown)]
            if variant.model == "DP" and not variant.penalty:
                plain[variant.scale] = cell
                rows += [*cell.lists(config.listed), *cell.dot_signs()]
    first, last = plain[config.scales[0]], plain[config.scales[-1]]
    return rows if first is last else [*rows, *ratio_rows(first, last)]


def _accuracies(config: Config, runs: SunluUnits, scale: float, device: str) -> list[Measurement]:
    """Return the plain model's accuracy, and how the penalty changes it."""
    sheet = sheet_of(runs.source, range(config.dot_seeds), percent=True)
    rows, plain = [], None
    for penalty in config.penalties:
        variant = Variant("DP", scale, penalty)
        cell = answers_of(runs.cells[variant], runs.source, device)
        rows.append(sheet.row("accuracy", cell.accuracy(rng=rng()), variant.axes, share=True))
        if plain is not None:
            change = cell.accuracy(rng=rng(), less=plain)
            rows.append(sheet.row("accuracy_change", change, variant.axes, share=True))
        plain = plain or cell
    return rows


def _plain(scale: float, **axes: Any) -> dict[str, Any]:
    return {"model": "DP", "lambda": scale, "penalty": 0.0, "reading": ALONE} | axes


_ABOVE_NEUTRAL = Part("AUC", "AUC(attention)", above, 0.5, each="group")


def _three_labels(cell: Cell) -> Finding:
    """Check a corpus of more than two labels; others are not shown."""
    several = len(cell.select("AUC(attention)")) > 2
    return _ABOVE_NEUTRAL(cell) if several else Finding(None, {})


def _on_the_side_of_vw(cell: Cell) -> Finding:
    """Check that the gap at λ = 100 has the sign of VᵀW, and is wider than at λ = 10."""
    rows = [row for row in cell.select("gap") if "VW" in row.found]
    small, large = (cell.value("gap_size", **_plain(scale)) for scale in (10.0, 100.0))
    agree = {
        name: sum(row.number * float(row.found[name]) > 0 for row in rows)
        for name in ("VW", "VW at the start")
    }
    summary = (
        f"signs agree with VᵀW in {agree['VW']} of {len(rows)} seeds (at the start "
        f"{agree['VW at the start']}); |gap| {large:.2f} at λ = 100, {small:.2f} at λ = 10"
    )
    return Finding(verdict(agree["VW"] >= 0.9 * len(rows) and large > small, True), {"": summary})


def _above_zero(cell: Cell) -> Finding:
    """Check that the mean attention score of each label's words is above 0."""
    rows = cell.select("mean(attention)", model="DP", reading=ALONE)
    polar = {f"mean a, {row.axes['group']}": row for row in rows if row.axes["group"] != NEUTRAL}
    return Finding(all_of([above(interval_of(row)) for row in polar.values()]), polar)


def _claim(
    cells: Cells, *checks: Check, seeds: int = 3, deviation: str = "", **each: Sequence[str]
) -> Claim:
    """Return a claim that some of the paper's corpora decide."""

    def deviates(pool: Pool, datasets: Sequence[str]) -> str:
        return "; ".join(filter(None, [deviations(pool, datasets), deviation]))

    needs = Needs(seeds, SIZES, each={"dataset": tuple(cells.decide), **each})
    return Claim(cells, checks, needs, deviation=deviates)


_BINARY = (SST, IMDB, NEWS_1)
_OTHERS = ("AD", "DP-A", "DP-L")
_IN_PRINT = ("AD", "DP-A")  # The main text shows AD; DP-L's size is not known.


def _other_encoders(models: Sequence[str]) -> Claim:
    """Return the claim about other encoders and attentions; those not given are shown."""

    def above_neutral(cell: Cell) -> Finding:
        found = _ABOVE_NEUTRAL(cell)
        return found if cell.given["model"] in models else Finding(None, found.evidence)

    return _claim(
        Cells("AUC(attention)", ("dataset", "model"), _plain(10.0, model=_OTHERS), decide=(SST,)),
        above_neutral,
        Part("in context, AUC", "AUC(attention)", given={"reading": OCCURRENCES}, each="group"),
        model=models,
    )


CLAIMS = {
    "sunlu.dot-products": DOT_PRODUCTS,
    "sunlu.polarity-sign": _claim(
        Cells("neutral_share", given=_plain(10.0), decide=_BINARY),
        Part("AUC", "AUC(polarity)", reaches, 0.95, {"group": AGAINST}),
        Part("neutral over polar", "neutral_share", below, 1 / 3),
    ),
    "sunlu.attention-polar": _claim(
        Cells("AUC(attention)", given=_plain(10.0), decide=_BINARY), _ABOVE_NEUTRAL
    ),
    "sunlu.gap": _claim(
        Cells("gap", given=_plain(100.0), decide=(SST,)), _on_the_side_of_vw, seeds=10
    ),
    # At λ = 100 |s| stays and |a| shrinks.
    "sunlu.healthy-polarity": _claim(
        Cells("ratio(polarity)", given=_plain(100.0), decide=(SST,)),
        Part("|s| ratio", "ratio(polarity)", reaches, 0.8),
        Part("|a| ratio", "ratio(attention)", stays_within, 0.5),
    ),
    # With the penalty at λ = 100, scores above neutral and above 0.
    "sunlu.regulariser": _claim(
        Cells("accuracy_change", ("dataset", "penalty"), {"lambda": 100.0}, decide=(SST,)),
        Part("AUC", "AUC(attention)", above, 0.5, {"model": "DP", "reading": ALONE}, each="group"),
        _above_zero,
        Part("accuracy change", "accuracy_change", about_equal, 2.0),
    ),
    "sunlu.multiclass": _claim(
        Cells("AUC(attention)", given=_plain(10.0), decide=(NEWS_2,)),
        _three_labels,
        deviation="the rule of three classes' groups is the one nearest to the supplement's sizes",
    ),
    # Fig. 4: additive attention, and an affine map or an LSTM below dot attention.
    "sunlu.additive": Readings(_other_encoders(_IN_PRINT), _other_encoders(_OTHERS)),
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw figures 2, 3 and 4 in the paper's arrangement, the penalty's, the gaps and the AUC."""
    planes = result.select_pictures(Plane, "word", reading=ALONE)
    scales = sorted({float(p.axes["lambda"]) for p in planes if p.axes["model"] == "DP"})
    first, last = scales[0], scales[-1]
    datasets = list(dict.fromkeys(plane.dataset for plane in planes))
    binary = {NEGATIVE, POSITIVE, NEUTRAL}
    several = {plane.dataset for plane in planes if set(_groups(plane)) - binary}
    two = [name for name in datasets if name not in several]
    more = [name for name in datasets if name in several]

    def panel(dataset: str, score: str, scale: float, model: str = "DP") -> alt.LayerChart:
        axes = {"reading": ALONE, "penalty": 0.0, "model": model, "lambda": scale}
        return _words(result.picture(Plane, "word", dataset, **axes), score)

    charts: dict[str, Any] = {}
    if two:
        second = [panel(name, score, first) for score in TITLES for name in two]
        charts["fig2"] = beside(*second, columns=len(two))
    third = [panel(name, score, last) for name in two for score in TITLES]
    third += [panel(name, "attention", first) for name in more]
    charts["fig3"] = beside(*third, columns=3 if len(third) % 3 == 0 else 2)
    for model in dict.fromkeys(str(plane.axes["model"]) for plane in planes):
        if model != "DP":
            fourth = [panel(name, score, first, model) for name in two for score in TITLES]
            fourth += [panel(name, "attention", first, model) for name in more]
            charts[f"fig4-{model}"] = beside(*fourth, columns=2, title=model)
    charts |= _penalty(planes, last, two)
    if two:
        charts["gap"] = beside(*(_gaps(result, name) for name in two), columns=min(2, len(two)))
    aucs = [_aucs(result, name) for name in datasets]
    charts["auc"] = beside(*aucs, columns=min(2, len(datasets)))
    return charts


def _groups(plane: Plane) -> list[str]:
    return list(dict.fromkeys(point.group for point in plane.points))


def _words(plane: Plane, score: str, title: str = "") -> alt.LayerChart:
    """Draw each word as a point: groups side by side, words in the order of their draw."""
    groups: dict[str, list[float]] = {group: [] for group in _groups(plane)}
    for point in plane.points:
        groups[point.group].append(point.x if score == "polarity" else point.y)
    title = title or f"{plane.dataset}, λ = {plane.axes['lambda']:g}"
    return strips(groups, Axis(TITLES[score]), group_colours(list(groups)), title=title)


def _penalty(planes: Sequence[Plane], scale: float, datasets: Sequence[str]) -> dict[str, Any]:
    """Draw the attention scores at the larger λ without the penalty and with it."""
    panels = []
    for name in datasets:
        own = [p for p in planes if p.dataset == name and p.axes["model"] == "DP"]
        both = [plane for plane in own if plane.axes["lambda"] == scale]
        for plane in both if len(both) > 1 else ():
            held = "with" if plane.axes["penalty"] else "without"
            panels.append(_words(plane, "attention", f"{name}, λ = {scale:g}, {held} penalty"))
    return {"penalty": beside(*panels, columns=2)} if panels else {}


def _gaps(result: Result, dataset: str) -> alt.LayerChart:
    """Draw each seed's gap over its VᵀW: the claim is about the two quadrants of like signs."""
    every = result.select("gap", dataset, model="DP", penalty=0.0)
    rows = [row for row in every if "VW" in row.found]
    scales = sorted(plots.axis_values(rows, "lambda"))
    names = {scale: f"λ = {scale:g}" for scale in (scales[0], scales[-1])}
    dots = [
        {"x": row.found["VW"], "y": row.number, "group": names[row.axes["lambda"]]}
        for row in rows
        if row.axes["lambda"] in names
    ]
    wide, high = (1.1 * max(abs(float(dot[key])) for dot in dots) or 1.0 for key in ("x", "y"))
    panel = Panel(
        Axis("attention vector times output weights, V·W", domain=(-wide, wide)),
        Axis("gap of attention scores a (s.d.)", domain=(-high, high)),
        {names[scales[-1]]: ROLES["hard"], names[scales[0]]: GREY},
        title=dataset,
        guides=[Guide([(-wide, 0.0), (wide, 0.0)]), Guide([(0.0, -high), (0.0, high)])],
    )
    return points(dots, panel, x="x", y="y", group="group")


def _aucs(result: Result, dataset: str) -> alt.LayerChart:
    rows = result.select("AUC(attention)", dataset)
    tints = group_colours(plots.axis_values(rows, "group"))

    def label(row: Measurement) -> str:
        penalised = ", penalty" if row.axes["penalty"] else ""
        context = ", in context" if row.axes["reading"] != ALONE else ""
        cell = f"{row.axes['model']}, λ = {row.axes['lambda']:g}{penalised}{context}"
        return f"{cell}: {row.axes['group']}"

    axis = Axis("attention score a above neutral words' (AUC)", domain=(0, 1))
    return plots.dots(
        rows, axis, label=label, colour=lambda row: tints[str(row.axes["group"])], title=dataset
    )
