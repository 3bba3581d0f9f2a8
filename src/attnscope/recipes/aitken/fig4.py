"""Figure 4: AED and AO that translate English to French, word by word (§4, §4.1).

Attention is nearly diagonal, but no term of the alignment dominates: words are offset differently
from sentence to sentence, so that time alone cannot say where to look, least of all late in a
sentence. Any parallel corpus can be given as ``corpus=``.
"""

from __future__ import annotations

from attnscope.claims.published import published_value
from attnscope.data.corpus import Corpus
from attnscope.recipes.aitken.escan_measure import delta_shares, temporal_paths
from attnscope.recipes.aitken.fig4_claims import CLAIMS as CLAIMS
from attnscope.recipes.aitken.fig4_figures import draw as draw
from attnscope.recipes.aitken.fig4_measure import (
    closer_numbers,
    dictionary_numbers,
    example_numbers,
    length_excess,
    published_drop,
    temporal_cells,
)
from attnscope.recipes.aitken.fig4_units import (
    TranslationConfig,
    Translator,
    own_words_row,
    train_translators,
)
from attnscope.recipes.aitken.groups import Group, Numbers, of_one, over, over_networks
from attnscope.recipes.aitken.shared_claims import TRANSLATION
from attnscope.recipes.recipe import Lab
from attnscope.recipes.showing import right_and_wrong
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
EXAMPLES = right_and_wrong
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
        networks = [Translator.of(unit, config.samples) for unit in group.units]
        rows += _accuracy_rows(group, config)
        found = [_numbers(network, config) for network in networks]
        rows += over_networks(group, found, published_drop(group))
        rows += of_one(group, _shown(networks[0], config))
    return rows


def _accuracy_rows(group: Group, config: TranslationConfig) -> list[Measurement]:
    """Return the accuracies at every place of the reference, its end included.

    A network that writes its own words and leaves one out is wrong from there on; reading the right
    words it is not.
    """
    right = [Translator.of(unit, config.samples, "on").accuracy for unit in group.units]
    seeds = [unit.unit.seed for unit in group.units]
    return [
        group.row("token_accuracy", over(right), {"reads": "right words"}, seeds),
        own_words_row(group),
    ]


def _numbers(network: Translator, config: TranslationConfig) -> Numbers:
    return (
        closer_numbers(network, config)
        | delta_shares(network)
        | dictionary_numbers(network, config)
    )


def _shown(network: Translator, config: TranslationConfig) -> Numbers:
    return (
        example_numbers(network, config.sentence)
        | temporal_paths(network)
        | temporal_cells(network)
    )


def _excess(group: Group) -> Measurement:
    printed = published_value("aitken", "text-s4.1", "English-French", "target_length_excess")
    share = None if printed is None or not group.dataset.endswith(TRANSLATION) else printed / 100
    source = group.wanted.task
    assert isinstance(source, Corpus)
    return measured("target_length_excess", group.dataset, length_excess(source), {}, (), share)
