"""Figure 4: AED and AO that translate word by word, in the paper English to French (§4, §4.1).

Attention is nearly diagonal, but no term of the alignment dominates: words are offset differently
from sentence to sentence, so that time alone does not determine where to look, least of all late
in a sentence. Any parallel corpus can be given as ``corpus=``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from attnscope.analysis import dictionary
from attnscope.analysis.alignment_terms import CROSS, MU_MU, TERM_NAMES
from attnscope.analysis.intervals import Interval, sentence_ratio_interval
from attnscope.analysis.measures import components, pictures
from attnscope.analysis.measures.numbers import Numbers, number
from attnscope.analysis.network import Network, without_gradients
from attnscope.claims.decide import above, below
from attnscope.claims.symbols import product_in_figures
from attnscope.claims.table import Part
from attnscope.data.batch import Example, collate
from attnscope.data.corpus import Corpus
from attnscope.figures.charts import Axis, Panel, beside
from attnscope.figures.component_planes import path_panel
from attnscope.figures.palette import ARCHITECTURES
from attnscope.models.trace import Trace
from attnscope.recipes.aitken.claims import AED, DICTIONARY, HALF, on_text
from attnscope.recipes.aitken.panels import (
    NAMES,
    matrix_panel,
    name_of,
    readout_panel,
)
from attnscope.recipes.aitken.translation import (
    EARLY,
    LATE,
    QUICK_CORPUS,
    QUICK_WORDS,
    TranslationConfig,
    measure_text,
    network_of,
    text_rows,
    train_translators,
)
from attnscope.recipes.aitken.units import MODELS, TRANSLATION, Group
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.plots import band, dots
from attnscope.recipes.kit.sheet import Sheet, rng
from attnscope.recipes.recipe import Charts
from attnscope.runs.pictures import Curve, Matrix, Plane
from attnscope.runs.result import Measurement, Result

__all__ = ["CLAIMS", "EXAMPLES", "HEADLINE", "QUICK", "Config", "draw", "measure"]

Records = list[Measurement | Matrix | Plane | Curve]

Config = TranslationConfig
QUICK = {
    "corpus": QUICK_CORPUS,
    "seeds": 2,
    "hidden": 48,
    "room": 20,
    "steps": 150,
    "batch_size": 32,
    "lr": 5e-3,
    "examples": 50,
    "samples": 200,
    **QUICK_WORDS,
}
EXAMPLES = "moved"
HEADLINE = (
    "token_accuracy",
    "largest_share",
    "dictionary",
    "variance_drop",
    "attention_similarity",
    "offset_change",
)

# Of the corpus' lengths: a hundred thousand sentences need few.
_RESAMPLES = 200


def measure(config: TranslationConfig, lab: Lab) -> Records:
    """Train both architectures, and measure all networks."""
    trained = train_translators(config, lab)
    rows: Records = [length_excess(config.source), *sizes(config.source)]
    for group, units in trained.items():
        sheet = group.sheet([unit.unit.seed for unit in units])
        networks = [network_of(unit, config.samples) for unit in units]
        # A network that omits one of its own words is wrong from there on; with the right words
        # given it is not.
        forced = [network_of(unit, config.samples, "on") for unit in units]
        for reads, those in (("right words", forced), ("own words", networks)):
            accuracies = [network.accuracy for network in those]
            rows.append(sheet.mean("token_accuracy", accuracies, {"reads": reads}))
        found = [measure_text(network, config.shortest) for network in networks]
        rows += text_rows(group, sheet, found)
        rows += sheet.over_seeds([components.of_states(each, "delta_share") for each in networks])
        rows += dictionary_rows(sheet, networks, config)
        first = group.sheet([networks[0].seed])
        rows += first.over_seeds([components.explained(networks[0])])
        rows += shown(group, networks[0], config.example)
    return rows


def length_excess(source: Corpus) -> Measurement:
    """Return how much longer outputs are than inputs, with its interval over sentences."""
    outputs, inputs = (
        np.array([[len(row) - 1.0] for row in dictionary.training_rows(source, side)])
        for side in ("targets", "inputs")
    )
    every = np.ones(outputs.shape, bool)
    ratio = sentence_ratio_interval(outputs, inputs, every, rng=rng(), resamples=_RESAMPLES)
    excess = Interval(ratio.value - 1, ratio.low - 1, ratio.high - 1, ratio.n)
    text = "English-French" if source.dataset.endswith(TRANSLATION) else None
    sheet = Sheet(source.dataset, paper="aitken", table="text-s4.1", printed=text)
    return sheet.row("target_length_excess", excess)


def sizes(source: Corpus) -> list[Measurement]:
    """Return the training pairs and the word types of each language, next to the paper's."""
    printed = "English-French" if source.dataset.endswith(TRANSLATION) else None
    sheet = Sheet(source.dataset, "train", (), "aitken", "text-s4", printed)
    languages = {"English": source.input_words, "French": source.output_words}
    rows = [sheet.point("train_size", len(source.training_examples))]
    for language, words in languages.items() if printed else ():
        rows.append(sheet.point("vocab_size", len(words), {"language": language}))
    return rows


def dictionary_rows(
    sheet: Sheet, networks: Sequence[Network], config: TranslationConfig
) -> Records:
    """Return which of the most common input words raises each asked output word most (Fig. 4c).

    The share of the asked words for which it is their translation is given only if all of them can
    be asked. The matrix has the most common output words and the asked ones.
    """
    source = networks[0].source
    assert isinstance(source, Corpus)
    inputs = dictionary.common_words(source, "inputs", config.common)
    outputs = dictionary.common_words(source, "targets", config.common)
    # All networks read the same sentences.
    seen = networks[0].states.encoder.seen
    read = torch.tensor([word for word in inputs if word < len(seen) and seen[word]])
    wanted = config.asked
    asked = dictionary.asked_pairs(source, wanted, read.tolist())
    outputs += [output for output in asked if output not in outputs]
    words, found, tables = source.output_words.words, [], []
    for network in networks:
        effects = dictionary.linear_effects(network, read)
        right = dictionary.right(dictionary.raised_most(effects, read), asked)
        numbers: Numbers = {
            number("readout_aligns", output=words[output]): value
            for output, value in zip(asked, right, strict=True)
        }
        if asked and len(asked) == len(wanted):
            numbers[number("dictionary")] = sum(right) / len(right)
        found.append(numbers)
        tables.append(effects[outputs])
    labels = {
        "rows": [words[output] for output in outputs],
        "columns": [source.input_words.words[word] for word in read],
    }
    return [*sheet.over_seeds(found), *sheet.mean_matrix("readout_product", tables, **labels)]


def shown(group: Group, network: Network, sentence: str) -> Iterator[Matrix | Plane]:
    """Yield the attention on a sentence, temporal paths, and their attention (Fig. 4a, b)."""
    trace, source = example(network, sentence), network.source
    assert source.boundaries is not None
    written, end = trace.logits[0].argmax(-1).tolist(), source.boundaries[1]
    out = written.index(end) + 1 if end in written else len(written)
    yield pictures.matrix(
        "attention",
        network,
        group.axes,
        trace.sites[CROSS.site].weights[0, 0, :out],
        inputs=source.input_words.decode(trace.batch.inputs[0].tolist()),
        outputs=source.output_words.decode(written[:out]),
    )
    yield pictures.path(network, group.axes, network.paths)
    temporal = network.temporal_attention()
    yield pictures.matrix("temporal_attention", network, group.axes, temporal)


def example(network: Network, text: str) -> Trace:
    """Return the pass over one sentence that has no reference translation."""
    source = network.source
    assert source.boundaries is not None
    nothing = [0] * network.sequences.targets.shape[1]
    one = Example(0, source.encode(text), [source.boundaries[0], *nothing[1:]], nothing)
    return without_gradients(network.model, collate([one]))


# Fixed beforehand.
_SEEDS = 3

CLAIMS: dict[str, Any] = {
    "aitken.translation-terms": on_text(
        "largest_share",
        Part("largest mean share", "largest_share", below, HALF),
        Part("mean share of", "term_share", each="term"),
        *(
            Part(
                f"{MU_MU} less the largest other at s = {step}",
                "early_gap",
                above,
                given={"step": step},
                only=AED,
            )
            for step in range(1, EARLY + 1)
        ),
        Part(f"{MU_MU} at s >= {LATE} less s <= {EARLY}", "late_difference", below, only=AED),
        models=MODELS,
        seeds=_SEEDS,
        given={"form": "raw"},
    ),
    "aitken.dictionary": DICTIONARY,
}

# A hue for each of the decoder's parts, lighter from the encoder's temporal to its delta part.
_TERM_COLOURS = (
    *("#201681", "#5B5BB5", "#9C9DD6"),
    *("#8F3B00", "#D5722E", "#EBAF84"),
    *("#00563E", "#009E73", "#74C9AF"),
)
_SHARE = Axis("share", domain=(0, 1))
_OF_LARGEST = "share of the largest alignments"


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw Fig. 4 in the paper's arrangement, AED above; terms; offsets; and numbers."""
    panels: list[Any] = []
    for model, name in NAMES.items():
        panels += _row(result, model, name)
    return {
        "fig4": beside(*panels, columns=4),
        "terms": beside(*(_terms(result, model) for model in NAMES), columns=2),
        "offsets": beside(
            _by_step(result, "peak_offset", "offset t − s of the maximum", "where it is"),
            _by_step(result, "offset_width", "width (standard deviation of t)", "how wide it is"),
            _by_step(result, "diagonal_mass", "attention at t = s", "how diagonal it is"),
            columns=3,
        ),
        "numbers": beside(_numbers(result), _shares(result)),
    }


def _row(result: Result, model: str, name: str) -> list[Any]:
    temporal = result.picture(Matrix, "temporal_attention", model=model)
    return [
        matrix_panel(
            result.picture(Matrix, "attention", model=model),
            f"a  {name}: attention on a sentence",
            cell=18,
        ),
        path_panel(
            result.picture(Plane, "temporal_path", model=model), f"b  {name}: temporal components"
        ),
        matrix_panel(
            temporal,
            f"b  {name}: attention of temporal components",
            value_title="softmax(μ·μ)",
            cell=8,
        ),
        readout_panel(
            result.picture(Matrix, "readout_product", model=model),
            f"c  {name}: readouts and input components",
            cell=14,
        ),
    ]


def _terms(result: Result, model: str) -> Any:
    """Draw the nine shares at each decoder step, of terms as they are."""
    symbols = {term: product_in_figures(term) for term in TERM_NAMES}
    panel = Panel(
        Axis("decoder step s"),
        Axis(_OF_LARGEST, domain=(0, 1)),
        dict(zip(symbols.values(), _TERM_COLOURS, strict=True)),
        f"{NAMES[model]}: the nine terms (decoder·encoder)",
        labels="legend",
        height=240,
    )
    rows = result.select("term_share_at", model=model)
    return band(rows, panel, x="step", group=lambda row: symbols[str(row.axes["term"])])


def _by_step(result: Result, name: str, title: str, what: str) -> Any:
    """Draw a number of the attention that temporal components alone give, step by step."""
    panel = Panel(
        Axis("decoder step s"),
        Axis(title),
        ARCHITECTURES,
        f"Attention from time, softmax(μ·μ): {what}",
    )
    return band(result.select(name), panel, x="step", group=name_of)


def _numbers(result: Result) -> Any:
    said = {
        "token_accuracy": "accuracy",
        "dictionary": "readouts that align with their translation",
        "variance_drop": "word variance that the temporal component, μ, takes away",
        "attention_similarity": "overlap with the mean attention",
        "delta_share": "rest of a state, Δh in h − μ",
    }

    def label(row: Measurement) -> str:
        more = [str(row.axes[axis]) for axis in ("reads", "side") if axis in row.axes]
        return ", ".join([f"{name_of(row)}: {said[row.name]}", *more])

    rows = [row for name in said for row in result.select(name)]
    return dots(rows, _SHARE, label=label, title="Translators")


def _shares(result: Result) -> Any:
    def label(row: Measurement) -> str:
        return f"{name_of(row)} {product_in_figures(str(row.axes['term']))}, {row.axes['form']}"

    rows = [row for row in result.select("term_share") if row.axes["term"] in TERM_NAMES]
    axis = Axis(_OF_LARGEST, domain=(0, 1))
    return dots(rows, axis, label=label, title="Terms, raw and row-centred")
