"""Figure 5: terms, offsets, variances and readouts on one-to-one, eSCAN and a translation (§4.1).

The networks that translate are those of figure 4, trained once for both. Reversed and sorted
sequences are added for the paper's second contribution: temporal components matter more, the
better the mean attention approximates a sequence's. Cells other than GRU and learned attention are
trained on eSCAN too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from attnscope.analysis import dictionary
from attnscope.analysis.alignment_terms import MU_MU
from attnscope.analysis.intervals import sentence_interval
from attnscope.analysis.measures import attention, components, terms
from attnscope.analysis.measures.numbers import Line, Lines, Number, Numbers, number
from attnscope.analysis.measures.terms import THREE
from attnscope.analysis.network import Network
from attnscope.analysis.rank_correlation import grouped_spearman
from attnscope.analysis.state_measures import gold_offset, marker_offset
from attnscope.data.batch import Batch, prefix_mask
from attnscope.data.escan import ExtendedScan
from attnscope.data.sequence_tasks import OneToOne
from attnscope.data.source import Source
from attnscope.recipes.aitken.claims import ALL_TASKS
from attnscope.recipes.aitken.fig5_panels import SHADES, draw
from attnscope.recipes.aitken.section_claims import SECTION_4_1
from attnscope.recipes.aitken.translation import (
    TranslationConfig,
    measure_text,
    network_of,
    text_rows,
    train_translators,
)
from attnscope.recipes.aitken.units import (
    ESCAN_QUICK,
    KINDS,
    MODELS,
    EscanConfig,
    Group,
    TaskConfig,
    Trained,
    train,
    with_printed,
)
from attnscope.recipes.kit.lab import Lab
from attnscope.recipes.kit.sheet import Sheet, rng
from attnscope.runs.pictures import Curve, Matrix
from attnscope.runs.result import Measurement

__all__ = ["CLAIMS", "EXAMPLES", "HEADLINE", "QUICK", "Config", "draw", "measure"]

Records = list[Measurement | Matrix | Curve]

# AED on eSCAN; AO without gates is on one-to-one (figure 2).
ESCAN_KINDS = ("lstm", "ugrnn", "learned")
SILENT = ("and", "twice")
PROFILE = range(-5, 6)  # offsets of Fig. 5b
# Groups of networks below which a rank correlation says nothing.
_PAIRS = 3


class Config(TaskConfig, EscanConfig):
    """Settings of figure 5; tasks and seeds other than eSCAN's are those of figure 2."""

    task_seeds: int = Field(5, ge=0)
    """Networks of each task other than eSCAN, as in figure 2; 0 leaves them out."""
    cell_seeds: int = Field(10, ge=0)
    """Networks of each other cell, as in figure 2; 0 leaves them out."""
    corpus: str = TranslationConfig.model_fields["corpus"].default
    """Parallel corpus, a known name or your own folder, as in figure 4."""
    text_seeds: int = Field(3, ge=0)
    """Translating networks, as in figure 4; 0 leaves them out, and with them the need for a corpus.
    """
    text_steps: int = Field(TranslationConfig.model_fields["steps"].default, ge=1)
    """Training steps of the translating networks, as in figure 4."""
    text_hidden: int = Field(TranslationConfig.model_fields["hidden"].default, ge=1)
    """Units of the translating networks, as in figure 4."""

    @property
    def translation(self) -> TranslationConfig:
        """The settings of the networks that translate."""
        return TranslationConfig(
            corpus=self.corpus,
            seeds=self.text_seeds,
            steps=self.text_steps,
            hidden=self.text_hidden,
        )


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
EXAMPLES = "moved"
CLAIMS = SECTION_4_1
HEADLINE = ("word_accuracy", "attention_similarity", "variance_drop", "share_similarity_spearman")


def groups(config: Config) -> list[Group]:
    """Return all networks that do not translate: on eSCAN, on the simpler tasks, other kinds."""
    simple: list[Source] = [config.one_to_one, config.reversed, config.sorting]
    seeds = config.task_seeds
    tasks = [Group(task, model, seeds) for task in simple for model in MODELS if seeds]
    kinds = [KINDS[name] for name in ESCAN_KINDS if config.cell_seeds]
    return [
        *config.escan_groups,
        *tasks,
        *(
            Group(config.escan, "aed", config.cell_seeds, kind.cell, kind.attention)
            for kind in kinds
        ),
    ]


def measure(config: Config, lab: Lab) -> Records:
    """Train all networks and measure the accepted ones, and all that translate."""
    rows: Records = []
    usual: list[Sequence[Numbers]] = []
    escan: list[Network] = []
    for trained in train(config, lab, groups(config)):
        rows += trained.accuracy_rows(config.accepted)
        shares = [terms.shares_of(network) for network in trained.networks]
        both = list(zip(trained.networks, shares, strict=True))
        found = [
            terms.nine(network, share)
            | terms.three(network, share)
            | terms.temporal_lead(network, share)
            for network, share in both
        ]
        rows += trained.sheet.curves([shades_by_step(share) for share in shares])
        if trained.group.usual:
            more = [_more(network) for network in trained.networks]
            found = [one | other for one, other in zip(found, more, strict=True)]
            usual.append(found)
            rows += _pictures(trained)
            escan += trained.networks if isinstance(trained.group.task, ExtendedScan) else ()
        rows += with_printed(trained.sheet.over_seeds(found), _printed(trained.group))
    rows += corpus_offsets(escan[0]) if escan else ()
    if config.text_seeds:
        for group, units in train_translators(config.translation, lab).items():
            sheet = group.sheet([unit.unit.seed for unit in units])
            networks = [network_of(unit, config.translation.samples) for unit in units]
            accuracies = [network.accuracy for network in networks]
            rows.append(sheet.mean("token_accuracy", accuracies, {"reads": "own words"}))
            texts = [measure_text(network, config.translation.shortest) for network in networks]
            rows += text_rows(group, sheet, texts)
            rows += _profile(sheet, networks)
            usual.append([numbers for numbers, _ in texts])
    return rows + _relation(usual)


def _more(network: Network) -> Numbers:
    """Return what is asked of the paper's kind of network; of others the terms are enough."""
    found = attention.similarity(network) | components.variance_drop(network)
    if isinstance(network.source, ExtendedScan):
        lines = corpus_lines(network.source, network.sequences)
        return found | verbs(network) | attention.followed(network, lines)
    return found


def verbs(network: Network) -> Numbers:
    """Return whether verbs, 'left' and silent words are read out as the paper says (Fig. 5d)."""
    source, seen = network.source, network.states.encoder.seen.nonzero()[:, 0]
    best = dictionary.raised_most(dictionary.linear_effects(network, seen), seen)
    words = [source.input_words.words[word] for word in best]
    raised = dict(zip(source.output_words.words[:-1], words, strict=False))
    return {
        number("dictionary"): dictionary.share_right(best, dictionary.pairs_of(source)),
        number("dictionary_left"): float(raised["LTURN"] == "left"),
        number("silent_readouts"): float(sum(word in SILENT for word in raised.values())),
    }


def corpus_lines(task: ExtendedScan, batch: Batch) -> dict[str, Float[Tensor, "batch step"]]:
    """Return the offsets of sequences: as the authors' code has them, and exactly."""
    words = task.input_words
    inside = prefix_mask(batch.input_lengths - 1, batch.inputs.shape[1])
    code = marker_offset(batch.inputs, inside, silent=words.id("and"), late=words.id("left"))
    return {"code": code, "exact": gold_offset(batch)}


def shades_by_step(shares: terms.Shares) -> Lines:
    """Return the raw shares of the three shades at each step."""
    steps, found = terms.at_steps(shares["raw"]), {}
    for shade, places in SHADES.items():
        found[number("term_share_at", shade=shade)] = Line.of_steps(steps[list(places)].sum(0))
    return found


def _pictures(trained: Trained) -> Iterator[Matrix | Curve]:
    task, networks = trained.group.task, trained.networks
    if isinstance(task, ExtendedScan):
        words = torch.arange(len(task.input_words))
        products = [dictionary.linear_effects(network, words)[:-1] for network in networks]
        labels = {"rows": task.output_words.words[:-1], "columns": task.input_words.words}
        yield from trained.sheet.mean_matrix("readout_product", products, **labels)
    if isinstance(task, ExtendedScan) or type(task) is OneToOne:
        yield from trained.sheet.curves([attention.maxima(network) for network in networks])
        yield from _profile(trained.sheet, networks)


def _profile(sheet: Sheet, networks: Sequence[Network]) -> list[Matrix]:
    return sheet.mean_matrix(
        "temporal_profile",
        [attention.profile(network, PROFILE) for network in networks],
        columns=list(PROFILE),
        row_axis="step",
        column_axis="offset",
    )


def corpus_offsets(network: Network) -> list[Curve]:
    """Return the offsets that the corpus has at each step, which the maxima should follow."""
    task, found, stream = network.source, [], rng()
    assert isinstance(task, ExtendedScan)
    for name, line in corpus_lines(task, network.sequences).items():
        means = {
            step: sentence_interval(values, rng=stream)
            for step, values in enumerate(line.numpy().T, 1)
            if not bool(torch.tensor(values).isnan().all())
        }
        found.append(Curve.of("corpus_offset", task.dataset, "step", means, {"line": name}))
    return found


def _printed(group: Group) -> Mapping[Number, float | None]:
    """Return the paper's shares and variance drops, which are of eSCAN."""
    if not (isinstance(group.task, ExtendedScan) and group.usual):
        return {}
    metrics = {
        number("term_share", form="raw", term=MU_MU): f"alignment_share({MU_MU})",
        number("term_share", form="raw", term=THREE): f"alignment_share({THREE})",
        number("variance_drop"): "variance_drop(hE,hE-muE)",
    }
    return {key: group.printed("text-s4.1", "eSCAN", metric) for key, metric in metrics.items()}


def _relation(found: Sequence[Sequence[Numbers]]) -> list[Measurement]:
    """Return the rank correlation of shares and similarities over tasks and architectures."""
    sheet, rows = Sheet(ALL_TASKS), []
    solved = [networks for networks in found if networks]
    for form in ("raw", "centred") if len(solved) >= _PAIRS else ():
        share, similar = number("term_share", form=form, term=MU_MU), number("attention_similarity")
        pairs = []
        for networks in solved:
            pairs.append(([one[share] for one in networks], [one[similar] for one in networks]))
        interval = grouped_spearman(pairs, rng())
        rows.append(sheet.row("share_similarity_spearman", interval, {"form": form}))
    return rows
