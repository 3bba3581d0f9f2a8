"""Supplement C: on texts whose words' groups are known, which term moves which group, and when.

Data set I has words of a text's own label alone, data set II a few of the other. Plain gradient
descent, so that the terms alone move the scores, apart from dropout; they are taken over the whole
training part every few epochs. The prediction is B, C > 0 for positive and < 0 for negative words,
and E, F > 0 for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Annotated, Any, Literal

import altair as alt
import numpy as np
from pydantic import Field, StringConstraints

from attnscope.analysis.intervals import mean_interval
from attnscope.claims.decide import above, below, by_value, reaches
from attnscope.claims.pool import Pool
from attnscope.claims.table import Cells, Claim, Needs, Part
from attnscope.data.polarity_texts import STRAY, PolarityTexts
from attnscope.figures.charts import Axis, Guide, Panel, beside, curves
from attnscope.figures.palette import FLOW_TERMS, GROUPS, group_colours
from attnscope.models.classifier import Output
from attnscope.recipes.kit import plots
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.settings import EachOnce, RecipeSettings, Several
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.recipe import Charts
from attnscope.recipes.sunlu.term_ratios import LAMBDA_TERMS, ratio_panels, ratio_rows
from attnscope.recipes.sunlu.units import (
    DOT_PRODUCTS,
    SYNTHETIC_SIZES,
    Scales,
    SunluConfig,
    Variant,
    model_of,
    objective_of,
)
from attnscope.runs.result import Curve, Measurement, Record, Result
from attnscope.training.gradient_flow import GradientFlow
from attnscope.training.optimizer import Sgd
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Training, Unit, every

POLAR = ("negative", "positive")
Ratios = Annotated[
    tuple[Annotated[str, StringConstraints(pattern=r"^[1-9]\d?:[1-9]\d?$")], ...], Several, EachOnce
]


class Config(RecipeSettings):
    """Settings of the experiment; the defaults are the authors' notebook's."""

    seeds: int = Field(5, ge=1)
    """Draws of data sets I and II. The supplement has one, and four in its Fig. 7."""
    further_seeds: int = Field(5, ge=0)
    """Draws of data set I at each further λ and class ratio, at most as many as seeds; 0 leaves
    these out."""
    scale: float = Field(10.0, gt=0)
    """Scaling factor λ of the attention logits; 10 is √d."""
    scales: Scales = (1.0, 10.0, 20.0, 50.0, 100.0)
    """Further λ on data set I, which show which term comes to dominate; extreme ones train nothing.
    """
    texts: int = Field(6000, ge=2)
    """Texts of each label."""
    neutral_types: int = Field(1000, ge=10)
    """Neutral word types."""
    polar_types: int = Field(50, ge=2)
    """Positive word types, and as many negative ones."""
    stray: float = Field(STRAY, gt=0, le=1)
    """Probability of a stray word of the other polarity in data set II; the paper does not give it.
    """

    strays: Literal["texts", "words"] = "texts"
    """What strays in data set II: both polar words of a text together, as in the authors' notebook,
    or each word by itself."""
    positives: int | None = Field(None, ge=1)
    """Positive texts, where not as many as negative ones (the supplement's figure 7)."""
    ratios: Ratios = ("1:1", "1:2", "1:5", "2:1", "2:5")
    """Class ratios, positive to negative, at which VᵀW is followed (the supplement's figure 7); the
    larger class has as many texts as data set I."""
    penalty: float = Field(0.0, ge=0)
    """Weight of the penalty on VᵀW (the supplement's figure 5b); 0 leaves it out."""
    spread: float = Field(0.1, gt=0)
    """Embeddings are drawn between -spread and spread; the paper's figure 1 has U(-1, 1)."""

    embedding: int = Field(100, ge=1)
    """Embedding size d."""
    dropout: float = Field(0.5, ge=0, lt=1)
    """Dropout of words and of the context."""
    epochs: int = Field(500, ge=1)
    """Epochs of training."""
    batch_size: int = Field(200, ge=1)
    """Texts in a training batch."""
    lr: float = Field(0.015, gt=0)
    """Learning rate."""
    record_every: int = Field(5, ge=1)
    """Epochs between two measurements of the terms."""


QUICK = {
    "seeds": 2,
    "further_seeds": 2,
    "scales": (1.0, 10.0, 100.0),
    "ratios": ("1:1", "1:5"),
    "texts": 200,
    "neutral_types": 100,
    "polar_types": 10,
    "embedding": 30,
    "epochs": 60,
    "batch_size": 100,
    "lr": 0.5,
    "record_every": 10,
}
HEADLINE = ("sign", "neutral_ratio", "dot_sign", "rank_correlation", "VW", "accuracy")

# The predicted side of each term, by group.
SIDES: Mapping[str, Mapping[str, int]] = {
    "B": {"positive": 1, "negative": -1},
    "C": {"positive": 1, "negative": -1},
    "E": {"positive": 1, "negative": 1},
    "F": {"positive": 1, "negative": 1},
}


def sources(config: Config) -> dict[str, PolarityTexts]:
    """Return data sets I and II, and I at every class ratio."""
    sizes: dict[str, Any] = {
        "positives": config.positives or config.texts,
        "negatives": config.texts,
        "neutral_types": config.neutral_types,
        "polar_types": config.polar_types,
    }
    found = {
        "I": PolarityTexts(**sizes),
        "II": PolarityTexts(stray=config.stray, strays=config.strays, **sizes),
    }
    for ratio in config.ratios:
        counts = [int(part) for part in ratio.split(":")]
        texts = [max(1, config.texts * count // max(counts)) for count in counts]
        found[ratio] = PolarityTexts(**sizes | {"positives": texts[0], "negatives": texts[1]})
    return found


def unit_of(config: Config, source: PolarityTexts, scale: float, seed: int) -> Unit:
    """Return a unit of the plain model, its terms recorded as it trains."""
    epoch = source.epoch(config.batch_size)
    steps = config.epochs * epoch
    sizes = {name: getattr(config, name) for name in ("embedding", "spread", "dropout")}
    of, plain = SunluConfig(**sizes), Variant("DP", scale, config.penalty)
    return Unit(
        source=source,
        model=model_of(of, plain).model_copy(update={"output": Output(bias="off", spread=1.0)}),
        training=Training(
            steps=steps,
            batch_size=config.batch_size,
            evaluate_at=every(config.record_every * epoch, steps),
            optimizer=Sgd(lr=config.lr),
            objective=objective_of(of, plain),
            metrics=(GradientFlow(),),
            examples=1000,
            stored=0,
            scores=(),
        ),
        seed=seed,
    )


def units(config: Config) -> dict[tuple[str, float], list[Unit]]:
    """Return the units by data set and λ."""
    every = sources(config)
    cells = {("I", config.scale): config.seeds, ("II", config.scale): config.seeds}
    if further := _further_seeds(config):
        # A λ or a ratio may be that of data set I, which is trained once.
        others = [("I", scale) for scale in config.scales]
        others += [(name, config.scale) for name in config.ratios if every[name] != every["I"]]
        cells = dict.fromkeys((*cells, *others), further) | cells
    return {
        (name, scale): [unit_of(config, every[name], scale, seed) for seed in range(seeds)]
        for (name, scale), seeds in cells.items()
    }


def _further_seeds(config: Config) -> int:
    return min(config.seeds, config.further_seeds)


def measure(config: Config, lab: Lab) -> list[Record]:
    """Train both data sets and sum up the recorded terms."""
    trained = lab.train(units(config), "synthetic")
    rows: list[Record] = []
    for name in ("I", "II"):
        cell = _Cell(config, trained[name, config.scale])
        rows += [*cell.signs(), *cell.curves(), *cell.neutral(), *cell.dots(), *cell.accuracy()]
        rows += cell.scores(config.penalty)
    if not (further := _further_seeds(config)):
        return rows
    for ratio in config.ratios:
        of_ratio = trained.get((ratio, config.scale), trained["I", config.scale])
        rows += _Cell(config, of_ratio[:further]).products(ratio)
    return [*rows, *_ratios(further, trained)]


Log = Mapping[str, Any]


class _Cell:
    """The seeds of one data set at the paper's λ."""

    def __init__(self, config: Config, units: Sequence[TrainedUnit]) -> None:
        self.units = units
        seeds = [unit.unit.seed for unit in units]
        axes = {"model": "DP", "lambda": config.scale}
        self.sheet = Sheet(units[0].unit.source.dataset, seeds=seeds, axes=axes)
        self.steps = [int(row["step"]) for row in units[0].log]
        self.epoch = self.steps[-1] / config.epochs
        self.late = [step for step in self.steps if step >= 2 / 3 * self.steps[-1]]

    def _late(self, of: Callable[..., float], *which: str) -> list[float]:
        """Return the mean over the last third of epochs, seed by seed."""
        return [
            float(np.mean([of(unit.log_row(step), *which) for step in self.late]))
            for unit in self.units
        ]

    def signs(self) -> list[Measurement]:
        """Return each term's share of polar words with the predicted sign, late in training."""
        rows = []
        for term in SIDES:
            rows.append(self.sheet.mean("sign", self._late(_share, term), {"term": term}))
            for group in POLAR:
                late = self._late(_side, term, group)
                rows.append(self.sheet.mean("sign", late, {"term": term, "group": group}))
        return rows

    def curves(self) -> list[Curve]:
        """Return the same share through training."""
        return [self._curve("sign_curve", partial(_share, term=term), term=term) for term in SIDES]

    def _curve(self, name: str, of: Callable[[Log], float], **axes: str) -> Curve:
        """Return a number through training, the mean over seeds with its interval."""
        points = {}
        for step in self.steps:
            values = [of(unit.log_row(step)) for unit in self.units]
            points[round(step / self.epoch)] = mean_interval(values)
        return self.sheet.curve(name, "epoch", points, axes)

    def neutral(self) -> list[Measurement]:
        """Return each term's size for neutral words over that for polar ones, late in training."""
        return [
            self.sheet.mean("neutral_ratio", self._late(_neutral_ratio, term), {"term": term})
            for term in SIDES
        ]

    def dots(self) -> list[Measurement]:
        """Return the share of dot products with the predicted sign at the end."""
        within = np.mean([self._last(f"dot.{group}.{group}") for group in POLAR], axis=0)
        across = 1 - np.array(self._last("dot.negative.positive"))
        return [
            self.sheet.mean("dot_sign", within, {"pair": "within"}),
            self.sheet.mean("dot_sign", across, {"pair": "across"}),
        ]

    def accuracy(self) -> list[Measurement]:
        """Return the accuracy at the end: terms of a model that learned nothing mean nothing."""
        return [self.sheet.mean("accuracy", [100 * u.log[-1]["accuracy"] for u in self.units])]

    def scores(self, penalty: float) -> list[Measurement]:
        """Return each group's mean scores at the end; the supplement's figure 5b has a penalty."""
        rows = []
        for score in ("attention", "polarity"):
            for group in (*POLAR, "neutral"):
                axes, last = {"penalty": penalty, "group": group}, self._last(f"{score}.{group}")
                rows.append(self.sheet.mean(f"mean({score})", last, axes))
        return rows

    def products(self, ratio: str) -> list[Record]:
        """Return VᵀW at the end and through training, and its size, at a class ratio."""
        last = self._last("VW")
        return [
            self.sheet.mean("VW", last, {"classes": ratio}),
            self.sheet.mean("VW_size", np.abs(last), {"classes": ratio}),
            self._curve("VW_curve", itemgetter("flow.VW"), classes=ratio),
        ]

    def _last(self, quantity: str) -> list[float]:
        """Return a quantity of gradient flow at the end, seed by seed."""
        return [unit.log[-1][f"flow.{quantity}"] for unit in self.units]


def _side(row: Log, term: str, group: str) -> float:
    """Return the share of a group's words whose term has the predicted sign."""
    positive = float(row[f"flow.{term}.{group}.above"])
    return positive if SIDES[term][group] > 0 else 1 - positive


def _share(row: Log, term: str) -> float:
    # Both labels have as many words.
    return float(np.mean([_side(row, term, group) for group in POLAR]))


def _neutral_ratio(row: Log, term: str) -> float:
    polar = np.mean([row[f"flow.{term}.{group}.size"] for group in POLAR])
    return float(row[f"flow.{term}.neutral.size"] / polar)


def _ratios(
    seeds: int, trained: Mapping[tuple[str, float], Sequence[TrainedUnit]]
) -> list[Measurement]:
    """Return the sizes of the terms over λ, at the start and at the end."""
    scales = sorted({scale for name, scale in trained if name == "I"})
    dataset = trained["I", scales[0]][0].unit.source.dataset
    rows: list[Measurement] = []
    for when, place in (("start", 0), ("end", -1)):
        logs = [
            {scale: trained["I", scale][seed].log[place] for scale in scales}
            for seed in range(seeds)
        ]
        rows += ratio_rows(dataset, logs, when, "flow.")
    return rows


def _deviation(pool: Pool, datasets: Sequence[str]) -> str:
    stray = pool.config().get("stray", STRAY)
    return f"in data set II {stray:g} of the polar words are of the other label, a guess"


# Both labels together: rows without a group.
_BOTH = {"group": (None,)}

CLAIMS = {
    # Signs late in training, and neutral words hardly moved.
    "sunlu.synthetic": Claim(
        Cells("sign"),
        (
            # "B ≥ .9" is about the share itself, the others about its interval.
            Part("B", "sign", by_value(reaches), 0.9, {"term": "B"} | _BOTH),
            Part("", "sign", above, 0.5, {"term": ("C", "E", "F")} | _BOTH, each="term"),
            Part("neutral over polar,", "neutral_ratio", below, 1 / 3, each="term"),
        ),
        Needs(3, SYNTHETIC_SIZES, datasets=2),
        deviation=_deviation,
    ),
    "sunlu.lambda-terms": LAMBDA_TERMS,
    "sunlu.dot-products": DOT_PRODUCTS,
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the shares of predicted signs, each term's mean by group, and the ratios over λ."""
    rows = result.select("sign_curve")
    datasets, scale = plots.datasets(rows), rows[0].axes["lambda"]
    charts: dict[str, Any] = {
        "signs": beside(*(_signs(result, name) for name in datasets)),
    }
    if result.select("ratio"):
        charts["lambda"] = beside(*ratio_panels(result))
    if result.select("VW_curve"):
        charts["class-ratio"] = _class_ratios(result)
    texts = {name: _usual(units, name) for name in datasets}
    for name in datasets:
        logs = [
            unit
            for unit in units
            if unit.config["source"] == texts[name]
            and unit.config["model"]["attention"]["scale"] == scale
        ]
        panels = [_term(logs, term) for term in FLOW_TERMS]
        charts[f"terms-{name}"] = beside(*panels, columns=2, title=f"{name}, λ = {scale:g}")
    return charts


def _usual(units: Sequence[Logged], dataset: str) -> Any:
    """Return the source of a data set: the first one's, other class ratios come after it."""
    return next(unit.config["source"] for unit in units if unit.dataset == dataset)


def _class_ratios(result: Result) -> alt.LayerChart:
    """Draw VᵀW through training, a curve for each class ratio (the supplement's figure 7)."""
    rows = result.select("VW_curve")
    groups = [f"{ratio} positive to negative" for ratio in plots.axis_values(rows, "classes")]
    last = max(float(row.axes["epoch"]) for row in rows)
    panel = Panel(
        Axis("epochs", domain=(0.0, last)),
        Axis("attention vector times output weights, V·W"),
        group_colours(groups),
        title="V·W by class ratio",
        labels="legend",
        guides=[Guide([(0.0, 0.0), (last, 0.0)])],
    )
    return plots.band(
        rows, panel, x="epoch", group=lambda row: f"{row.axes['classes']} positive to negative"
    )


def _signs(result: Result, dataset: str) -> alt.LayerChart:
    rows = result.select("sign_curve", dataset)
    last = max(float(row.axes["epoch"]) for row in rows)
    panel = Panel(
        Axis("epochs", domain=(0.0, last)),
        Axis("polar words with the predicted sign", domain=(0.0, 1.0)),
        {_named(term): colour for term, colour in FLOW_TERMS.items()},
        title=dataset,
        guides=[Guide([(0.0, 0.5), (last, 0.5)])],
    )
    return plots.band(rows, panel, x="epoch", group=lambda row: _named(str(row.axes["term"])))


def _named(term: str) -> str:
    """Return a term with the score that it moves."""
    return f"{'polarity' if term in 'ABC' else 'attention'}, {term}"


def _term(logs: Sequence[Logged], term: str) -> alt.LayerChart:
    """Draw a term's mean over each group through training, a line a seed."""
    # Most words are neutral: they lie below the others.
    groups = ("neutral", "positive", "negative")
    lines = []
    for unit in logs:
        for row in unit.rows:
            for group in groups:
                value = row[f"flow.{term}.{group}"]
                at = {"step": row["step"], "seed": unit.config["seed"]}
                lines.append({"value": value, "group": group, **at})
    last = max(line["step"] for line in lines)
    panel = Panel(
        Axis("training steps", domain=(0, last), format="~s"),
        Axis(f"mean of term {term}", format="~e"),
        {group: GROUPS[group] for group in groups},
        title=f"Term of {_named(term)}",
        guides=[Guide([(0, 0.0), (last, 0.0)])],
    )
    return curves(lines, panel, x="step", y="value", group="group", detail="seed")
