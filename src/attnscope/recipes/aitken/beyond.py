"""Beyond the paper: a bidirectional encoder and a Transformer with several heads (its discussion).

The same decomposition and the same nine terms on snell's translator and on a small Transformer,
trained on one-to-one, eSCAN and sentences of a grammar, and which of the paper's findings carry
over. Both are trained by Adam without a penalty, as translators are, and not as the paper's own
networks: ``l2`` adds their penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, product

import numpy as np
from pydantic import Field

from attnscope.analysis.intervals import Interval, rate_interval
from attnscope.claims.verdicts import Predicate
from attnscope.data.corpus import GrammarTranslation
from attnscope.data.sequence_tasks import OneToOne
from attnscope.data.source import Source
from attnscope.models.base import ModelSpec
from attnscope.models.seq2seq import TRANSLATOR
from attnscope.models.transformer import TransformerSpec
from attnscope.recipes.aitken.beyond_figures import draw as draw
from attnscope.recipes.aitken.beyond_findings import average_attention, carried_over
from attnscope.recipes.aitken.beyond_measure import numbers, path_numbers
from attnscope.recipes.aitken.beyond_network import HeadedNetwork
from attnscope.recipes.aitken.escan_units import EscanConfig
from attnscope.recipes.aitken.fig5_measure import grouped_spearman
from attnscope.recipes.aitken.groups import Numbers, key, over
from attnscope.recipes.aitken.shared_claims import MU_MU
from attnscope.recipes.recipe import Lab
from attnscope.runs.result import Measurement, measured
from attnscope.training.objective import Likelihood
from attnscope.training.optimizer import Adam
from attnscope.training.penalties import SquaredNorm
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Training, Unit, every

_EVALUATED = 250  # steps from one evaluation to the next
_TEXT_EXAMPLES = 50  # of the log's accuracy: the grammar's 150 other sentences are analysed
_PAIRS = 3  # groups of networks below which a rank correlation says nothing


class Config(EscanConfig):
    """Settings; tasks are those of figures 2 and 5."""

    seeds: int = Field(5, ge=1)
    hidden: int = Field(64, ge=1)  # of the translator, per direction; and its embeddings
    width: int = Field(64, ge=1)  # of the Transformer
    heads: int = Field(4, ge=1)
    layers: int = Field(2, ge=1)
    steps: int = Field(2000, ge=1)  # several times what both need
    escan_steps: int = Field(4000, ge=1)
    text_steps: int = Field(4000, ge=1)  # 128 epochs of the grammar's 2000 sentences
    batch_size: int = Field(64, ge=1)
    lr: float = Field(1e-3, gt=0)
    l2: float = Field(0.0, ge=0)  # c of a penalty c·Σθ²
    shortest: int = Field(15, ge=1)
    longest: int = Field(19, ge=2)

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
    "accepted": 0.0,  # so short a run solves nothing, and is looked at all the same
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


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train all networks, look at those that solve their task, and say what carries over."""
    kinds = list(product(config.models.items(), config.tasks))
    units = [
        unit(task, model, seed, config)
        for (_, model), task in kinds
        for seed in range(config.seeds)
    ]
    trained = iter(lab.train(units, "networks"))
    rows: list[Measurement] = []
    pairs: dict[str, list[tuple[list[float], list[float]]]] = {}
    for (name, _), task in kinds:
        members = list(islice(trained, config.seeds))
        # No translator writes every sentence of a text as the reference has it.
        bound = 0.0 if isinstance(task, GrammarTranslation) else config.accepted
        found, accepted, networks = _analysed(name, task, members, config.samples, bound)
        rows += found
        pairs.setdefault(name, []).extend(_similarities(networks))
        rows += carried_over(found, name, task.dataset, accepted, len(members))
    return rows + [row for name, groups in pairs.items() for row in _relation(name, groups)]


def _analysed(
    name: str, task: Source, members: Sequence[TrainedUnit], samples: int, bound: float
) -> tuple[list[Measurement], list[int], list[Numbers]]:
    """Return the measurements of networks that differ in their seed, and the accepted ones."""
    networks = [HeadedNetwork.of(member, samples) for member in members]
    accuracies = [network.accuracy for network in networks]
    seeds, axes = [network.seed for network in networks], {"model": name}
    good = [x for x, accuracy in zip(networks, accuracies, strict=True) if accuracy >= bound]
    rate = rate_interval(len(good), len(members))
    rows = [
        measured("word_accuracy", task.dataset, over(accuracies), axes, seeds),
        measured("accepted", task.dataset, rate, axes | {"accuracy": bound}, seeds),
    ]
    accepted = [network.seed for network in good]
    found = [numbers(network) for network in good]
    for one in found[0] if found else ():
        interval = over([numbers_[one] for numbers_ in found])
        rows.append(measured(one.name, task.dataset, interval, axes | dict(one.axes), accepted))
    for one, value in (path_numbers(good[0]) if good else {}).items():
        shown = Interval(value, np.nan, np.nan, 1)
        rows.append(measured(one.name, task.dataset, shown, axes | dict(one.axes), accepted[:1]))
    return rows, accepted, found


def _similarities(found: Sequence[Numbers]) -> list[tuple[list[float], list[float]]]:
    """Return each head's shares of μ^D·μ^E beside the similarity to its mean attention."""
    groups = []
    heads = [dict(one.axes)["head"] for one in (found[0] if found else ()) if one.name == _SIMILAR]
    for head in heads:
        share = key("term_share", form="raw", term=MU_MU, head=head)
        similar = key(_SIMILAR, head=head)
        groups.append(([one[share] for one in found], [one[similar] for one in found]))
    return groups


_SIMILAR = "attention_similarity"


def _relation(model: str, groups: Sequence[tuple[list[float], list[float]]]) -> list[Measurement]:
    if len(groups) < _PAIRS:
        return []
    interval = grouped_spearman(groups, np.random.default_rng(0))
    row = measured("share_similarity_spearman", "all tasks", interval, {"model": model})
    return [row, average_attention(row)]
