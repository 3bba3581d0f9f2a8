"""Figure 5: terms, offsets, variances and readouts on one-to-one, eSCAN and a translation (§4.1).

The networks that translate are those of figure 4, trained once for both. Reversed and sorted
sequences stand beside them for the paper's second contribution: temporal components matter more,
the better the mean attention approximates a sequence's. Cells other than GRU and learned attention
are trained on eSCAN too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import Field
from torch import Tensor

from attnscope.analysis.intervals import mean_interval
from attnscope.claims.published import published_value
from attnscope.data.escan import ExtendedScan
from attnscope.data.sequence_tasks import OneToOne, Reversed, Sorting
from attnscope.data.source import Source
from attnscope.recipes.aitken.escan_units import ESCAN_QUICK, MODELS, EscanConfig, train_groups
from attnscope.recipes.aitken.fig4_measure import closer_numbers, published_drop, temporal_attention
from attnscope.recipes.aitken.fig4_units import (
    TranslationConfig,
    Translator,
    own_words_row,
    train_translators,
)
from attnscope.recipes.aitken.fig5_claims import CLAIMS as CLAIMS
from attnscope.recipes.aitken.fig5_figures import draw as draw
from attnscope.recipes.aitken.fig5_measure import (
    corpus_lines,
    dictionary_numbers,
    grouped_spearman,
    offset_numbers,
    profile,
    similarity,
    term_numbers,
    variance_drop,
)
from attnscope.recipes.aitken.groups import Group, Key, Numbers, Wanted, key, over_networks
from attnscope.recipes.aitken.networks import Network
from attnscope.recipes.aitken.shared_claims import MU_MU, THREE
from attnscope.recipes.aitken.units import KINDS
from attnscope.recipes.recipe import Lab
from attnscope.recipes.showing import right_and_wrong
from attnscope.runs.result import Measurement, measured
from attnscope.training.trained_unit import TrainedUnit

# AED on eSCAN; AO without gates is looked at on one-to-one.
ESCAN_KINDS = ("lstm", "ugrnn", "learned")
# Groups of networks below which a rank correlation says nothing.
_PAIRS = 3


class Config(EscanConfig):
    """Settings of figure 5; tasks and seeds beside eSCAN are those of figure 2."""

    task_seeds: int = Field(5, ge=1)
    cell_seeds: int = Field(3, ge=0)  # 0 leaves other cells out
    shortest: int = Field(15, ge=1)
    longest: int = Field(19, ge=2)
    letters: int = Field(10, ge=3)
    sorted_shortest: int = Field(5, ge=1)
    sorted_longest: int = Field(8, ge=2)
    sorting_steps: int = Field(6000, ge=1)
    # Translation as in figure 4, whose settings these are.
    corpus: str = TranslationConfig.model_fields["corpus"].default
    text_seeds: int = Field(3, ge=0)  # 0 leaves it out, and with it the need for a corpus
    text_steps: int = Field(TranslationConfig.model_fields["steps"].default, ge=1)
    text_hidden: int = Field(TranslationConfig.model_fields["hidden"].default, ge=1)

    @property
    def translation(self) -> TranslationConfig:
        """The settings of the networks that translate."""
        return TranslationConfig(
            corpus=self.corpus,
            seeds=self.text_seeds,
            steps=self.text_steps,
            hidden=self.text_hidden,
        )

    def budget(self, task: Source) -> int:
        """Return the number of training steps on a task."""
        return self.sorting_steps if isinstance(task, Sorting) else super().budget(task)


QUICK = ESCAN_QUICK | {
    "task_seeds": 2,
    "cell_seeds": 1,
    "steps": 200,
    "sorting_steps": 200,
    "escan_steps": 200,
    "shortest": 6,
    "longest": 8,
    "letters": 6,
    "sorted_shortest": 3,
    "sorted_longest": 4,
    "corpus": "grammar-translation",
    "text_seeds": 2,
    "text_steps": 60,
    "text_hidden": 32,
}
EXAMPLES = right_and_wrong
HEADLINE = ("word_accuracy", "attention_similarity", "variance_drop", "share_similarity_spearman")


def wanted(config: Config) -> list[Wanted]:
    """Return all networks: of eSCAN, of the simpler tasks, and of other kinds."""
    simple: list[Source] = [
        OneToOne(shortest=config.shortest, longest=config.longest),
        Reversed(shortest=config.longest, longest=config.longest),
        Sorting(
            letters=config.letters, shortest=config.sorted_shortest, longest=config.sorted_longest
        ),
    ]
    escan = [Wanted(config.escan, model, config.seeds) for model in MODELS]
    tasks = [Wanted(task, model, config.task_seeds) for task in simple for model in MODELS]
    kinds = [
        Wanted(config.escan, "aed", config.cell_seeds, KINDS[name].cell, KINDS[name].attention)
        for name in ESCAN_KINDS
        if config.cell_seeds
    ]
    return escan + tasks + kinds


Pairs = list[tuple[list[float], list[float]]]


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train all networks and look at the accepted ones, and at all that translate."""
    rows: list[Measurement] = []
    shares: dict[str, Pairs] = {"raw": [], "centred": []}
    lined = False
    for group in train_groups(config, lab, wanted(config)):
        rows += group.accuracy_rows()
        networks = [Network.of(unit, config.samples) for unit in group.accepted]
        if networks and isinstance(group.wanted.task, ExtendedScan) and not lined:
            rows += _line_rows(group.wanted.task, networks[0])
            lined = True
        found = [_numbers(group, network) for network in networks]
        rows += over_networks(group, found, _published(group))
        if _is_usual(group):
            _pair(shares, found)
    for group in train_translators(config.translation, lab) if config.text_seeds else ():
        found = [_text_numbers(unit, config.translation) for unit in group.units]
        rows.append(own_words_row(group))
        rows += over_networks(group, found, published_drop(group))
        _pair(shares, found)
    return rows + _relation(shares)


def _pair(shares: dict[str, Pairs], found: Sequence[Numbers]) -> None:
    """Add the shares of μ^D·μ^E of some networks and how similar their attention is to its mean."""
    for form, pairs in shares.items() if found else ():
        share, similar = key("term_share", form=form, term=MU_MU), key("attention_similarity")
        pairs.append(([one[share] for one in found], [one[similar] for one in found]))


def _text_numbers(unit: TrainedUnit, config: TranslationConfig) -> Numbers:
    network = Translator.of(unit, config.samples)
    return closer_numbers(network, config) | profile(temporal_attention(network))


def _is_usual(group: Group) -> bool:
    return (group.wanted.cell, group.wanted.attention) == ("gru", "dot")


def _numbers(group: Group, network: Network) -> Numbers:
    """Return what is asked of a network: other kinds are there for their terms alone."""
    terms = term_numbers(network)
    if not _is_usual(group):
        return terms
    task = group.wanted.task
    found = terms | similarity(network) | variance_drop(network)
    if isinstance(task, ExtendedScan):
        return found | dictionary_numbers(network) | offset_numbers(network, _lines(task, network))
    if type(task) is OneToOne:
        return found | offset_numbers(network, {})
    return found


def _lines(task: ExtendedScan, network: Network) -> dict[str, Tensor]:
    """Return the mean offsets of the sequences, at the steps that some of them reach."""
    lines = corpus_lines(task, network.sequences)
    means = {name: line.nanmean(0) for name, line in lines.items()}
    return {name: line[~line.isnan()] for name, line in means.items()}


def _line_rows(task: ExtendedScan, network: Network) -> list[Measurement]:
    lines = corpus_lines(task, network.sequences)
    rng = np.random.default_rng(0)
    return [
        measured(
            "corpus_offset",
            task.dataset,
            mean_interval(values, rng=rng),
            {"line": name, "step": step},
        )
        for name, line in lines.items()
        for step, values in enumerate(line.numpy().T, 1)
        if not np.isnan(values).all()
    ]


def _published(group: Group) -> dict[Key, float]:
    """Return the paper's shares and variance drops, which are of eSCAN."""
    model = str(group.wanted.model).upper()
    if not (isinstance(group.wanted.task, ExtendedScan) and _is_usual(group)):
        return {}
    printed = {
        key("term_share", form="raw", term=MU_MU): f"alignment_share({MU_MU})",
        key("term_share", form="raw", term=THREE): f"alignment_share({THREE})",
        key("variance_drop"): "variance_drop(hE,hE-muE)",
    }
    found = {
        name: published_value("aitken", "text-s4.1", "eSCAN", metric, model=model)
        for name, metric in printed.items()
    }
    return {name: value / 100 for name, value in found.items() if value is not None}


def _relation(
    shares: dict[str, Pairs],
) -> list[Measurement]:
    """Return the rank correlation of shares and similarities over tasks and architectures."""
    return [
        measured(
            "share_similarity_spearman",
            "all tasks",
            grouped_spearman(pairs, np.random.default_rng(0)),
            {"form": form},
        )
        for form, pairs in shares.items()
        if len(pairs) >= _PAIRS
    ]
