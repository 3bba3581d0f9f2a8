"""Figure 6: how AED and AO attend off the diagonal on eSCAN (§4.2).

Of panel b the caption says that the plot "was generated on a subset of eSCAN with T = S", to keep
the offset between 'twice' and its output constant, and that the same is seen when T ≥ S. That is
about the sequences shown; of a network trained on them alone neither the text nor the authors' code
speaks, though §4.2's "which the network has learned to be t = s − 1" would be truest of one. So the
networks are those of the other panels, trained on all of eSCAN, and are shown sequences without
'and', where T = S.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from attnscope.analysis.decomposition import states_of
from attnscope.analysis.measures import attention, pictures
from attnscope.analysis.measures.numbers import Lines, Numbers, number
from attnscope.analysis.measures.pictures import Cloud
from attnscope.analysis.network import Network
from attnscope.claims.decide import above, below, reaches
from attnscope.claims.symbols import product_in_figures
from attnscope.claims.table import Part
from attnscope.data.escan import VERBS
from attnscope.figures.charts import Axis, Panel, beside
from attnscope.figures.component_planes import plane_panel
from attnscope.figures.palette import NEUTRAL, SCORES, WORDS
from attnscope.recipes.aitken import subphrases
from attnscope.recipes.aitken.claims import AED, AO, HALF, MOST, by_setting, on_escan
from attnscope.recipes.aitken.panels import NAMES, name_of
from attnscope.recipes.aitken.units import ESCAN_QUICK, EscanConfig, train
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.plots import band, dots
from attnscope.recipes.recipe import Charts
from attnscope.runs.pictures import Curve, Plane
from attnscope.runs.result import Measurement, Result

__all__ = ["CLAIMS", "HEADLINE", "QUICK", "Config", "draw", "measure"]

Config = EscanConfig
QUICK = ESCAN_QUICK
HEADLINE = ("word_accuracy", "preceding_verb", "silhouette", "twice_previous", "left_slope")

_CLOUD = 20  # input-delta components of a word


def measure(config: EscanConfig, lab: Lab) -> list[Measurement | Plane | Curve]:
    """Train both architectures, and measure how the accepted networks handle three words."""
    rows: list[Measurement | Plane | Curve] = []
    for trained in train(config, lab, config.escan_groups):
        sheet, networks = trained.sheet, trained.networks
        products = [attention.word_products(network) for network in networks]
        alignments = [subphrases.alignment_at_twice(network) for network in networks]
        rows += trained.accuracy_rows(config.accepted)
        rows += sheet.over_seeds([numbers(network) for network in networks])
        rows += sheet.over_seeds([slope_of_left(lines) for lines in products])
        rows += sheet.curves(products)
        rows += sheet.curves(alignments)
        for network in networks[:1]:
            axes = trained.group.axes
            rows.append(pictures.states("context_plane", network, axes, context(network)))
    return rows


def numbers(network: Network) -> Numbers:
    """Return whether 'twice' knows its verb, what it attends to, and which μ·μ is second."""
    return subphrases.context(network) | subphrases.before_twice(network) | attention.ranks(network)


def slope_of_left(products: Lines) -> Numbers:
    """Return how the product of 'left' grows with the offset."""
    _, x, y = products[number("offset_product", word="left")]
    return {number("left_slope"): float(np.polyfit(np.array(x, float), y.numpy(), 1)[0])}


def context(network: Network) -> Iterator[Cloud]:
    """Yield χ + Δh of words, and of 'twice' by the verb before it (Fig. 6a)."""
    twice, words = subphrases.at_twice(network), network.words
    for verb in VERBS:
        after = twice.preceding == words.index(verb)
        yield "state", f"{verb} twice", twice.vectors[after][:_CLOUD]
    side = states_of(next(network.traces())).encoder
    parts = network.states.encoder.split(side)
    for index, word in enumerate(words):
        if word not in ("twice", "<eos>"):
            own = (side.ids == index) & parts.mask
            yield "state", word, parts.input_delta[own][:_CLOUD]


_BEFORE = "attended before 'twice'"
_VERB = "nearest verb is the preceding one"
SILENT = ("and", "twice")

CLAIMS: dict[str, Any] = {
    "aitken.context": by_setting(
        on_escan(
            "preceding_verb",
            Part(_VERB, "preceding_verb", reaches, MOST, decides_on=AED),
            Part("silhouette", "silhouette", above, HALF, only=AED),
            Part("silhouette", "silhouette", below, 0.1, only=AO),
        )
    ),
    "aitken.hide": by_setting(
        on_escan(
            "left_slope",
            *(
                Part(f"{x} at offset", "offset_product", below, given={"word": x}, each="offset")
                for x in SILENT
            ),
            Part("slope of left", "left_slope", above),
            Part("left at offset", "offset_product", given={"word": "left"}, each="offset"),
            Part(f"{_BEFORE}, T=S", "twice_previous", reaches, MOST, {"sequences": "T=S"}),
            Part(f"{_BEFORE}, all", "twice_previous", given={"sequences": "all"}),
            Part("muD.muE largest at t = s", "temporal_rank", given={"rank": 1}),
            Part("muD.muE second at t = s - 1", "temporal_rank", given={"rank": 2}),
            models=("ao",),
            deviation="networks trained on all of eSCAN see sequences without 'and' for T = S",
        )
    ),
}

# As in the paper: black, gold, pink and grey.
_PARTS = {
    "alignment": ("the alignment", "#000000"),
    "temporal": (product_in_figures("muD.muE"), SCORES["gold"]),
    "input-delta": (product_in_figures("muD.chiE+muD.deltahE"), SCORES["proxy"]),
    "rest": ("the rest", NEUTRAL),
}
# The verb's colour, lighter.
_CONTEXTS = {
    **{word: colour for word, colour in WORDS.items() if word not in ("twice", "<eos>")},
    "run twice": "#6FB7E4",
    "walk twice": "#6CD0B0",
    "jump twice": "#C77F8D",
}
_SHOWN_WORDS = ("run", "left", "and", "twice")
_PRODUCT = Axis("word and rest times decoder's time, (χ + Δh)·μ")


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the clusters of 'twice', the alignment at it, and the products by word and offset."""
    planes = result.select_pictures(Plane, "context_plane")
    models = [str(plane.axes["model"]) for plane in planes]
    panels: list[Any] = [
        plane_panel(plane, f"a  {NAMES[model]}: input-delta components", _CONTEXTS)
        for model, plane in zip(models, planes, strict=True)
    ]
    panels += [_alignment(result, model) for model in models]
    panels += [_products(result, model) for model in models]
    panels += [_by_offset(result, model) for model in models]
    charts: dict[str, Any] = {"context": _context(result)}
    if panels:
        charts["fig6"] = beside(*panels, columns=len(models))
    return charts


def _alignment(result: Result, model: str) -> Any:
    panel = Panel(
        Axis("t − s"),
        Axis("alignment at 'twice'"),
        dict(_PARTS.values()),
        f"b  {NAMES[model]}: s is the step of 'twice', T = S",
        labels="legend",
    )
    rows = result.select("twice_alignment", model=model)
    return band(rows, panel, x="offset", group=lambda row: _PARTS[str(row.axes["part"])][0])


def _products(result: Result, model: str) -> Any:
    return dots(
        result.select("offset_product", model=model, offset=0),
        _PRODUCT,
        label=_word,
        colour=lambda row: WORDS[_word(row)],
        title=f"c  {NAMES[model]}: at t = s",
    )


def _by_offset(result: Result, model: str) -> Any:
    products = result.select("offset_product", model=model)
    panel = Panel(
        Axis("offset t − s"),
        _PRODUCT,
        {word: WORDS[word] for word in _SHOWN_WORDS},
        f"d  {NAMES[model]}: by offset",
        labels="legend",
    )
    rows = [row for row in products if _word(row) in _SHOWN_WORDS]
    return band(rows, panel, x="offset", group=_word)


def _word(row: Measurement) -> str:
    return str(row.axes["word"])


def _context(result: Result) -> Any:
    said = {
        "preceding_verb": "nearest verb is the one before 'twice'",
        "silhouette": "silhouette by the verb before 'twice'",
        "twice_previous": "'twice' attends to the word before it",
    }

    def label(row: Measurement) -> str:
        where = f", {row.axes['sequences']}" if "sequences" in row.axes else ""
        return f"{name_of(row)}: {said[row.name]}{where}"

    rows = [row for name in said for row in result.select(name)]
    title = "What is read and attended to at 'twice'"
    return dots(rows, Axis("share or silhouette"), label=label, title=title)
