"""Figure 4: AED and AO that translate English to French, word by word (§4, §4.1).

Attention is nearly diagonal, but no term of the alignment dominates: words are offset differently
from sentence to sentence, so that time alone cannot say where to look, least of all late in a
sentence. Any parallel corpus can be given as ``corpus=``.
"""

from __future__ import annotations

from attnscope.claims.published import published_value
from attnscope.data.corpus import Corpus
from attnscope.recipes.aitken.escan_measure import delta_shares, temporal_paths
from attnscope.recipes.aitken.escan_units import (
    Group,
    Key,
    Numbers,
    key,
    of_one,
    over,
    over_networks,
)
from attnscope.recipes.aitken.fig4_claims import CLAIMS as CLAIMS
from attnscope.recipes.aitken.fig4_figures import draw as draw
from attnscope.recipes.aitken.fig4_measure import (
    dictionary_numbers,
    example_numbers,
    length_excess,
    offset_numbers,
    temporal_cells,
    term_numbers,
    variance_numbers,
)
from attnscope.recipes.aitken.fig4_units import (
    TranslationConfig,
    Translator,
    train_translators,
    word_accuracy,
)
from attnscope.recipes.aitken.fig5_measure import similarity
from attnscope.recipes.aitken.shared_claims import TRANSLATION
from attnscope.recipes.recipe import Lab
from attnscope.runs.result import Measurement, measured

Config = TranslationConfig
QUICK = {
    "corpus": "grammar-translation",
    "seeds": 2,
    "hidden": 48,
    "room": 20,
    "steps": 150,
    "batch_size": 32,
    "lr": 5e-3,
    "examples": 50,
    "samples": 200,
    "dictionary": "teacher=Lehrer,child=Kind,has=hat",
    "sentence": "der Lehrer zeigt heute dem Mädchen das rote Buch .",
}
HEADLINE = (
    "token_accuracy",
    "largest_share",
    "dictionary",
    "variance_drop",
    "attention_similarity",
    "offset_change",
)


def measure(config: TranslationConfig, lab: Lab) -> list[Measurement]:
    """Train both architectures, and look at all networks."""
    groups = train_translators(config, lab)
    rows = [_excess(groups[0])]
    for group in groups:
        networks = [Translator(unit, config.samples) for unit in group.units]
        rows += _accuracy_rows(group, config)
        found = [_numbers(network, config) for network in networks]
        rows += over_networks(group, found, _published(group))
        rows += of_one(group, _shown(networks[0], config))
    return rows


def _accuracy_rows(group: Group, config: TranslationConfig) -> list[Measurement]:
    """Return the accuracies of networks that read their own words, and of ones read the right."""
    right = [word_accuracy(unit, config.samples, "on") for unit in group.units]
    seeds = [unit.unit.seed for unit in group.units]
    return [
        group.row("token_accuracy", over(values), {"reads": reads}, seeds)
        for reads, values in (("right words", right), ("own words", group.accuracies))
    ]


def _numbers(network: Translator, config: TranslationConfig) -> Numbers:
    return (
        term_numbers(network, config.shortest)
        | offset_numbers(network)
        | variance_numbers(network)
        | delta_shares(network)
        | similarity(network)
        | dictionary_numbers(network, config)
    )


def _shown(network: Translator, config: TranslationConfig) -> Numbers:
    return (
        example_numbers(network, config.sentence)
        | temporal_paths(network)
        | temporal_cells(network)
    )


def _is_paper(group: Group) -> bool:
    return group.dataset.endswith(TRANSLATION)


def _excess(group: Group) -> Measurement:
    printed = published_value("aitken", "text-s4.1", "English-French", "target_length_excess")
    share = None if printed is None or not _is_paper(group) else printed / 100
    source = group.wanted.task
    assert isinstance(source, Corpus)
    return measured("target_length_excess", group.dataset, length_excess(source), {}, (), share)


def _published(group: Group) -> dict[Key, float]:
    metric, model = "variance_drop(hE,hE-muE)", str(group.wanted.model).upper()
    printed = published_value("aitken", "text-s4.1", "English-French", metric, model=model)
    if printed is None or not _is_paper(group):
        return {}
    return {key("variance_drop"): printed / 100}
