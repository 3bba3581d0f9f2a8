"""Beyond aitken: a bidirectional encoder and a Transformer with several heads (its discussion).

The same decomposition and the same nine terms on snell's translator and on a small Transformer,
trained on one-to-one, eSCAN and sentences of a grammar, and which of the paper's findings carry
over. Both are trained by Adam without a penalty, as translators are, and not as the paper's own
networks: ``l2`` adds their penalty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, ClassVar, Literal

from pydantic import Field

from attnscope.analysis.alignment_terms import MU_MU, TERM_NAMES
from attnscope.analysis.dictionary import pairs_of, raised_most, share_right, word_effects
from attnscope.analysis.headed_network import HeadedNetwork
from attnscope.analysis.measures import attention, components, pictures, terms
from attnscope.analysis.measures.numbers import Numbers, number
from attnscope.analysis.rank_correlation import grouped_spearman
from attnscope.claims.symbols import product_in_figures
from attnscope.claims.verdicts import Predicate
from attnscope.data.corpus import GrammarTranslation
from attnscope.data.escan import ExtendedScan
from attnscope.data.sequence_tasks import OneToOne
from attnscope.data.source import Source
from attnscope.figures.charts import Axis, beside, heatmap
from attnscope.figures.component_planes import path_panel
from attnscope.models.base import ModelSpec
from attnscope.models.seq2seq import TRANSLATOR
from attnscope.models.transformer import TransformerSpec
from attnscope.recipes.aitken.panels import dataset_name
from attnscope.recipes.aitken.units import EscanConfig
from attnscope.recipes.extra.beyond_findings import ALL_HEADS, average_attention, carried_over
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.plots import datasets, dots
from attnscope.recipes.kit.sheet import Sheet, rng
from attnscope.recipes.recipe import Charts
from attnscope.runs.pictures import Plane
from attnscope.runs.result import Measurement, Result
from attnscope.training.objective import Likelihood
from attnscope.training.optimizer import Adam
from attnscope.training.penalties import SquaredNorm
from attnscope.training.unit import Training, Unit, every

_EVALUATED = 250  # steps from one evaluation to the next
_TEXT_EXAMPLES = 50  # of the log's accuracy: the grammar's 150 other sentences are analysed
_PAIRS = 3  # groups of networks below which a rank correlation says nothing


class Config(EscanConfig):
    """Settings; tasks are those of figures 2 and 5."""

    seeds: int = Field(5, ge=1)
    """Networks of each architecture and task."""
    hidden: int = Field(64, ge=1)
    """Size of the translator's embeddings, and of its states per direction."""
    width: int = Field(64, ge=1)
    """Width of the Transformer."""
    heads: int = Field(4, ge=1)
    """Heads of each Transformer layer."""
    layers: int = Field(2, ge=1)
    """Layers of the Transformer's encoder and of its decoder."""
    steps: int = Field(2000, ge=1)
    """Training steps on one-to-one; several times what both architectures need."""
    escan_steps: int = Field(4000, ge=1)
    """Training steps on eSCAN."""
    shortest_output: int = Field(15, ge=1)
    """Fewest output words of eSCAN, as the text has it."""
    longest_output: int = Field(20, ge=2)
    """Most output words of eSCAN, as the text has it."""
    separator: Literal["none", "marked"] = "none"
    """Whether a mark ends every phrase of eSCAN; the text has none."""
    part: ClassVar[str] = ""
    text_steps: int = Field(4000, ge=1)
    """Training steps on the grammar's translations; 4,000 are 128 epochs of its 2,000 sentences."""
    batch_size: int = Field(64, ge=1)
    """Sequences in a training batch."""
    lr: float = Field(1e-3, gt=0)
    """Learning rate of Adam."""
    l2: float = Field(0.0, ge=0)
    """Weight c of a penalty c·Σθ²; 0 leaves it out."""
    shortest: int = Field(15, ge=1)
    """Fewest words of a one-to-one sequence, its end mark not counted."""
    longest: int = Field(19, ge=2)
    """Most words of a one-to-one sequence, its end mark not counted."""

    def budget(self, task: Source) -> int:
        """Return the number of training steps on a task."""
        return self.text_steps if isinstance(task, GrammarTranslation) else super().budget(task)

    @property
    def tasks(self) -> list[Source]:
        """The tasks."""
        simple = OneToOne(shortest=self.shortest, longest=self.longest)
        return [simple, self.escan, GrammarTranslation()]

    @property
    def models(self) -> dict[str, ModelSpec]:
        """The architectures by name."""
        translator = TRANSLATOR.model_copy(
            update={"embedding": self.hidden, "hidden": self.hidden, "embeddings": "separate"}
        )
        transformer = TransformerSpec(
            width=self.width,
            heads=self.heads,
            layers=self.layers,
            feed_forward=4 * self.width,
            dropout=0.1,
        )
        return {"translator": translator, "transformer": transformer}


QUICK = {
    "seeds": 2,
    "hidden": 12,
    "width": 16,
    "heads": 2,
    "steps": 60,
    "escan_steps": 60,
    "text_steps": 20,
    "batch_size": 32,
    "lr": 5e-3,
    "examples": 50,
    "samples": 60,
    "shortest": 4,
    "longest": 6,
    "shortest_output": 5,
    "longest_output": 8,
    "longest_input": 12,
    "accepted": 0.0,  # so short a run solves nothing, and is analysed all the same
}
HEADLINE = ("word_accuracy", "temporal_agreement", "delta_share", "carries_over")
# The paper claims nothing about these networks.
CLAIMS: dict[str, Predicate] = {}


def unit(task: Source, model: ModelSpec, seed: int, config: Config) -> Unit:
    """Return a network of an architecture on a task."""
    steps = config.budget(task)
    penalty = (SquaredNorm(weight=config.l2),) if config.l2 else ()
    text = isinstance(task, GrammarTranslation)
    training = Training(
        steps=steps,
        batch_size=config.batch_size,
        evaluate_at=every(_EVALUATED, steps),
        optimizer=Adam(lr=config.lr),
        objective=(Likelihood(), *penalty),
        examples=_TEXT_EXAMPLES if text else config.examples,
    )
    return Unit(source=task, model=model, training=training, seed=seed)


def measure(config: Config, lab: Lab) -> list[Measurement | Plane]:
    """Train all networks, measure those that solve their task, and report what carries over."""
    units = {}
    for (name, model), task in product(config.models.items(), config.tasks):
        units[name, task] = [unit(task, model, seed, config) for seed in range(config.seeds)]
    rows: list[Measurement | Plane] = []
    pairs: dict[str, list[tuple[list[float], list[float]]]] = {name: [] for name in config.models}
    for (name, task), members in lab.train(units, "networks").items():
        networks = [HeadedNetwork.of(member, config.samples) for member in members]
        accuracies = [network.accuracy for network in networks]
        sheet = Sheet(task.dataset, seeds=[x.seed for x in networks], axes={"model": name})
        # No translator writes every sentence of a text as the reference has it.
        bound = 0.0 if isinstance(task, GrammarTranslation) else config.accepted
        good = [network for network in networks if network.accuracy >= bound]
        rows.append(sheet.mean("word_accuracy", accuracies))
        rows.append(sheet.rate("accepted", len(good), len(networks), {"accuracy": bound}))
        accepted = [network.seed for network in good]
        found = [numbers(network) for network in good]
        measured = sheet.over_seeds(found, seeds=accepted)
        rows += measured
        for network in good[:1]:
            rows += paths(name, network)
        pairs[name] += _similarities(good, found)
        rows += carried_over(measured, name, task.dataset, accepted, len(members))
    for name, groups in pairs.items():
        rows += _relation(name, groups)
    return rows


def numbers(network: HeadedNetwork) -> Numbers:
    """Return the numbers of a network; which ones there are depends on task and heads alone."""
    return (
        components.of_states(network, "delta_share", "orthogonality")
        | components.variance_drop(network, least=2)
        | attention.agreement(network)
        | attention.similarity(network)
        | terms.nine(network, network.shares)
        | terms.three(network, network.shares)
        | terms.temporal_lead(network, network.shares)
        | terms.largest(network, network.shares)
        | dictionary_numbers(network)
    )


def dictionary_numbers(network: HeadedNetwork) -> Numbers:
    """Return how many output words are raised most by the input component of their translation.

    Through all heads together, and through each of them alone; nothing for text.
    """
    if not isinstance(network.source, ExtendedScan | OneToOne):
        return {}
    pairs, seen = pairs_of(network.source), network.values.seen.nonzero()[:, 0]
    heads: dict[int | None, dict[str, str | int]] = {None: {"head": ALL_HEADS}}
    heads |= {head: dict(axes) for head, axes in network.heads.items()}
    found: Numbers = {}
    for head, axes in heads.items():
        best = raised_most(word_effects(network, seen, head).mT, seen)
        found[number("dictionary", **axes)] = share_right(best, pairs)
    return found


def paths(model: str, network: HeadedNetwork) -> Iterator[Plane]:
    """Yield the paths of every head's temporal components in the plane of their first axes."""
    for head, axes in network.heads.items():
        yield pictures.path(network, {"model": model, **axes}, network.paths_of(head))


def _similarities(
    networks: Sequence[HeadedNetwork], found: Sequence[Numbers]
) -> list[tuple[list[float], list[float]]]:
    """Return each head's shares of μ^D·μ^E with the similarities to its mean attention."""
    groups = []
    for axes in networks[0].heads.values() if networks else ():
        share = number("term_share", form="raw", term=MU_MU, **axes)
        similar = number("attention_similarity", **axes)
        groups.append(([one[share] for one in found], [one[similar] for one in found]))
    return groups


def _relation(model: str, groups: Sequence[tuple[list[float], list[float]]]) -> list[Measurement]:
    if len(groups) < _PAIRS:
        return []
    sheet = Sheet("all tasks", axes={"model": model})
    row = sheet.row("share_similarity_spearman", grouped_spearman(groups, rng()))
    return [row, average_attention(row)]


NAMES = {"translator": "bidirectional", "transformer": "Transformer"}
FORMS = {"raw": "raw", "centred": "row-centred"}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Return the shares of all terms, those of μ^D·μ^E with intervals, and the paths."""
    shown = datasets(result.select("term_share"))
    shares = [_terms(result, dataset, form) for dataset in shown for form in FORMS]
    temporal = [_temporal(result, dataset) for dataset in shown]
    # A row of panels for each data set.
    planes = [
        plane for name in shown for plane in result.select_pictures(Plane, "temporal_path", name)
    ]
    paths = [
        path_panel(plane, f"{dataset_name(plane.dataset)}: {_label(plane)}") for plane in planes
    ]
    # Without a network that solved its task, its accuracies are all there is to see.
    accuracies = _accuracies(result)
    width = max((sum(plane.dataset == name for plane in planes) for name in shown), default=1)
    return {
        "beyond": beside(*(temporal or [accuracies]), columns=3),
        "beyond-terms": beside(*(shares or [accuracies]), columns=2),
        "beyond-paths": beside(*(paths or [accuracies]), columns=width),
    }


def _label(row: Measurement | Plane) -> str:
    model = NAMES[str(row.axes["model"])]
    return f"{model}, head {row.axes['head']}" if "head" in row.axes else model


def _terms(result: Result, dataset: str, form: str) -> Any:
    lines: dict[str, dict[str, float | None]] = {}
    for row in result.select("term_share", dataset, form=form):
        lines.setdefault(_label(row), {})[str(row.axes["term"])] = row.value
    return heatmap(
        [[line[term] for term in TERM_NAMES] for line in lines.values()],
        columns=[product_in_figures(term) for term in TERM_NAMES],
        rows=list(lines),
        x_title="term, decoder·encoder",
        y_title="",
        value_title="share",
        title=f"{dataset_name(dataset)}: shares of the terms, {FORMS[form]}",
        domain=(0.0, 1.0),
        value_format=".2f",
        cell=30,
    )


def _temporal(result: Result, dataset: str) -> Any:
    rows = result.select("term_share", dataset, form="raw", term=MU_MU)
    axis = Axis("share of absolute contributions", domain=(0, 1))
    return dots(rows, axis, label=_label, title=f"{dataset_name(dataset)}: time·time, μ·μ")


def _accuracies(result: Result) -> Any:
    return dots(
        result.select("word_accuracy"),
        Axis("word accuracy", domain=(0, 1)),
        label=lambda row: f"{dataset_name(row.dataset)}, {_label(row)}",
        title="no network was accepted",
    )
