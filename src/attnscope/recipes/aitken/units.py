"""Units of aitken's figures: which networks, trained how; sizes are those of the authors' code.

Networks are trained on the right words (teacher forcing; a setting) and analysed on their own. The
loss is a mean over real positions; the authors' divides by the padded length, which makes their L2
penalty weigh about a tenth more.

Analyses are of accepted runs: those with a word accuracy of at least .97, a rule fixed before any
run. How many were accepted is reported with an interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from attnscope.analysis.measures.numbers import Number
from attnscope.analysis.network import Network
from attnscope.claims.published import published_value
from attnscope.data.escan import ExtendedScan
from attnscope.data.sequence_tasks import OneToOne, Reversed, Sorting
from attnscope.data.source import Source
from attnscope.models.architectures import (
    AED,
    AO,
    VED,
    Architecture,
    CrossAttention,
    DotAttention,
    LearnedAttention,
)
from attnscope.models.cells import CellName
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.recipes.kit.lab import Lab
from attnscope.recipes.kit.settings import RecipeSettings
from attnscope.recipes.kit.sheet import Sheet
from attnscope.runs.result import Measurement
from attnscope.scores.attention import Attention
from attnscope.training.objective import Likelihood
from attnscope.training.optimizer import AitkenAdam
from attnscope.training.penalties import SquaredNorm
from attnscope.training.progress import counted
from attnscope.training.unit import Training, Unit, every

ArchitectureName = Literal["ved", "aed", "ao"]
AttentionName = Literal["dot", "learned"]
# Word accuracy at which a network counts as having solved its task; fixed before any run.
SOLVED = 0.97
TRANSLATION = "en-fr"  # ends the name of an English-French corpus
STAND_IN = "tatoeba-en-fr"  # for ParaCrawl
# The architectures of figures 3 to 6.
MODELS: tuple[ArchitectureName, ...] = ("aed", "ao")

_EVALUATED = 500  # steps from one evaluation to the next
_ATTENTIONS: dict[AttentionName, CrossAttention] = {
    "dot": DotAttention(),
    "learned": LearnedAttention(),
}


class AitkenConfig(RecipeSettings):
    """Settings that all of aitken's recipes share: GRU networks of the authors' recorded runs."""

    hidden: int = Field(128, ge=1)
    """Units of a network, as in the authors' recorded runs."""
    steps: int = Field(6000, ge=1)
    """Training steps; 3 freshly drawn sets, 2 epochs of 1,000 batches each, as recorded."""
    batch_size: int = Field(128, ge=1)
    """Sequences in a training batch, as recorded."""
    examples: int = Field(200, ge=1)
    """Sequences that the logged accuracy is measured on."""
    samples: int = Field(1000, ge=2)
    """Fresh sequences that the states and terms are measured on."""
    teacher_forcing: bool = True
    """Whether decoders read the right words in training; the authors' first networks read their
    own."""
    accepted: float = Field(SOLVED, ge=0, le=1)
    """Word accuracy that a run needs to be analysed."""

    def budget(self, task: Source) -> int:
        """Return the number of training steps on a task."""
        return self.steps


class TaskConfig(AitkenConfig):
    """Settings of the simpler tasks, in figures 2 and 5; sizes of sorting are not the paper's."""

    shortest: int = Field(15, ge=1)
    """Fewest words of a sequence, its end mark not counted: with it 16 to 20 words, the text's "15
    to 20"."""
    longest: int = Field(19, ge=2)
    """Most words of a sequence, its end mark not counted."""
    letters: int = Field(10, ge=3)
    """Letters that are sorted; the paper does not give their number."""
    sorted_shortest: int = Field(5, ge=1)
    """Fewest letters of a sequence to sort; the paper does not give it."""
    sorted_longest: int = Field(8, ge=2)
    """Most letters of a sequence to sort; the paper does not give it."""
    sorting_steps: int = Field(6000, ge=1)
    """Training steps on sorting."""

    @property
    def one_to_one(self) -> OneToOne:
        """The task of §3."""
        return OneToOne(shortest=self.shortest, longest=self.longest)

    @property
    def reversed(self) -> Reversed:
        """Reversed sequences of one length."""
        return Reversed(shortest=self.longest, longest=self.longest)

    @property
    def sorting(self) -> Sorting:
        """Sorting of distinct letters."""
        return Sorting(
            letters=self.letters, shortest=self.sorted_shortest, longest=self.sorted_longest
        )

    def budget(self, task: Source) -> int:
        """Return the number of training steps on a task."""
        return self.sorting_steps if isinstance(task, Sorting) else super().budget(task)


@dataclass(frozen=True)
class Sizes:
    """Sizes that the authors' code chooses by task: AO's one-hot width and period, L2's weight."""

    width: int
    period: float
    l2: Mapping[str, float]


_SHORT = Sizes(50, 20.0, {"ved": 1e-4, "aed": 1e-3, "ao": 1e-3})
SIZES: dict[str, Sizes] = {
    "one-to-one": _SHORT,
    # The paper gives no sizes of these two.
    "reversed": _SHORT,
    "sorting": _SHORT,
    "escan": Sizes(100, 100.0, {"ved": 1e-4, "aed": 1e-4, "ao": 1e-4}),
}


@dataclass(frozen=True)
class Kind:
    """A cell and an attention, and the architectures that are built with them."""

    cell: CellName
    attention: AttentionName
    architectures: tuple[ArchitectureName, ...]


# The other networks of §2, footnotes 1 and 2; without gates only the network without recurrence.
KINDS: dict[str, Kind] = {
    "lstm": Kind("lstm", "dot", ("aed", "ao")),
    "ugrnn": Kind("ugrnn", "dot", ("aed", "ao")),
    "learned": Kind("gru", "learned", ("aed", "ao")),
    "non-gated": Kind("tanh", "dot", ("ao",)),
}


@dataclass(frozen=True)
class Group:
    """Networks that differ only in their seed."""

    task: Source
    model: ArchitectureName
    seeds: int
    cell: CellName = "gru"
    attention: AttentionName = "dot"

    @property
    def axes(self) -> dict[str, str | int | float]:
        """The axes of all their measurements."""
        attention = "none" if self.model == "ved" else self.attention
        return {"model": self.model, "cell": self.cell, "attention": attention}

    @property
    def usual(self) -> bool:
        """Whether cell and attention are those of the paper's figures."""
        return (self.cell, self.attention) == ("gru", "dot")

    def units(self, config: AitkenConfig) -> list[Unit]:
        """Return the units, one for each seed."""
        return [self.unit(config, seed) for seed in range(self.seeds)]

    def unit(self, config: AitkenConfig, seed: int) -> Unit:
        """Return one network, trained as in the authors' code; its task's kind is in `SIZES`."""
        sizes = SIZES[str(type(self.task).model_fields["kind"].default)]
        steps, attention = config.budget(self.task), _ATTENTIONS[self.attention]
        made: dict[str, Architecture] = {
            "ved": VED(),
            "aed": AED(attention=attention),
            "ao": AO(attention=attention, period=sizes.period),
        }
        spec = EncoderDecoderSpec(
            architecture=made[self.model],
            cell=self.cell,
            hidden=config.hidden,
            # Only AO's positions need the room.
            input_dimension=sizes.width if self.model == "ao" else None,
            teacher_forcing="on" if config.teacher_forcing else "off",
        )
        training = Training(
            steps=steps,
            batch_size=config.batch_size,
            evaluate_at=every(_EVALUATED, steps),
            optimizer=AitkenAdam(),
            objective=(Likelihood(), SquaredNorm(weight=sizes.l2[self.model])),
            examples=config.examples,
            scores=() if self.model == "ved" else (Attention(),),
        )
        return Unit(source=self.task, model=spec, training=training, seed=seed)

    def sheet(self, seeds: Sequence[int]) -> Sheet:
        """Return the sheet of some of the networks' measurements."""
        return Sheet(self.task.dataset, seeds=seeds, axes=self.axes)

    def printed(self, table: str, dataset: str, metric: str) -> float | None:
        """Return the share that the paper prints of this architecture, or None."""
        percent = published_value("aitken", table, dataset, metric, model=self.model.upper())
        return None if percent is None else percent / 100


def with_printed(
    rows: Sequence[Measurement], printed: Mapping[Number, float | None]
) -> list[Measurement]:
    """Return measurements with the numbers that the paper prints of some of them."""
    found = []
    for row in rows:
        for key, value in printed.items():
            if row.name == key.name and dict(key.axes).items() <= row.axes.items():
                row = row.model_copy(update={"published": value})
        found.append(row)
    return found


# What the paper says that both architectures reach on eSCAN.
REACHED = 0.98


class EscanConfig(AitkenConfig):
    """Settings of everything that is trained on eSCAN (figures 3, 5 and 6)."""

    seeds: int = Field(10, ge=1)
    """Networks of each architecture; about a third of the authors' AO runs were kept."""
    escan_steps: int = Field(10_000, ge=1)
    """Training steps on eSCAN; 5 freshly drawn sets, 2 epochs of 1,000 batches each, as recorded.
    """
    shortest_output: int = Field(10, ge=1)
    """Fewest output words; 10 to 15 as in the authors' recorded runs, the text has 15 to 20."""
    longest_output: int = Field(15, ge=2)
    """Most output words."""
    longest_input: int = Field(27, ge=2)
    """Most input words."""
    separator: Literal["none", "marked"] = "marked"
    """Whether a mark ends every phrase, on both sides; recorded runs have it, the text none."""
    drawing: Literal["phrase", "shape"] = "phrase"
    """Whether commands are drawn uniformly over phrases, or over their shapes first."""

    @property
    def part(self) -> str:
        """The subfolder of the result: ``text-lengths`` for outputs as the text has them."""
        chosen = (self.shortest_output, self.longest_output, self.separator)
        return "text-lengths" if chosen == (15, 20, "none") else ""

    @property
    def in_part(self) -> tuple[str, ...]:
        """Settings whose values `part` names."""
        return ("shortest_output", "longest_output", "separator") if self.part else ()

    @property
    def escan(self) -> ExtendedScan:
        """The task."""
        return ExtendedScan(
            shortest_output=self.shortest_output,
            longest_output=self.longest_output,
            longest_input=self.longest_input,
            separator=self.separator,
            drawing=self.drawing,
        )

    @property
    def escan_groups(self) -> list[Group]:
        """AED and AO on eSCAN, the networks of all three figures."""
        return [Group(self.escan, model, self.seeds) for model in MODELS]

    def budget(self, task: Source) -> int:
        """Return the number of training steps on a task."""
        return self.escan_steps if isinstance(task, ExtendedScan) else super().budget(task)


ESCAN_QUICK = {
    "seeds": 2,
    "hidden": 32,
    "escan_steps": 300,
    "batch_size": 32,
    "samples": 100,
    "shortest_output": 5,
    "longest_output": 8,
    "longest_input": 12,
    "accepted": 0.0,  # so short a run solves nothing, and is analysed all the same
}


@dataclass(frozen=True)
class Trained:
    """A trained group: every network, and those that are accepted."""

    group: Group
    every: Sequence[Network]
    networks: Sequence[Network]

    @property
    def sheet(self) -> Sheet:
        """The sheet of the accepted networks' measurements."""
        return self.group.sheet([network.seed for network in self.networks])

    @property
    def sheet_of_every(self) -> Sheet:
        """The sheet of every network's measurements."""
        return self.group.sheet([network.seed for network in self.every])

    def accuracy_rows(self, threshold: float, published: float | None = None) -> list[Measurement]:
        """Return the accuracies: their mean, each seed's, and how many are accepted or reach .98.

        A seed's accuracy is of one network and has no interval over networks. The authors' way of
        counting, padding included, is that of the accepted networks.
        """
        values = [network.accuracy for network in self.every]
        sheet = self.sheet_of_every
        rows = [sheet.mean("word_accuracy", values, published=published)]
        if self.networks:
            padded = [network.padded_accuracy for network in self.networks]
            rows.append(self.sheet.mean("padded_accuracy", padded, published=published))
        for name, bound in (("accepted", threshold), ("reached", REACHED)):
            count = sum(value >= bound for value in values)
            rows.append(sheet.rate(name, count, len(values), {"accuracy": bound}))
        for network in self.every:
            axes, seeds = {"seed": network.seed}, [network.seed]
            rows.append(sheet.point("seed_accuracy", network.accuracy, axes, seeds=seeds))
        return rows


def train(config: AitkenConfig, lab: Lab, groups: Sequence[Group]) -> Iterator[Trained]:
    """Train all networks, or reuse them, and yield each group with its accepted networks."""
    units = {group: group.units(config) for group in groups}
    trained = lab.train(units, "networks").items()
    for group, members in counted(lab.progress, "components of groups", trained):
        every = [Network.of(member, config.samples) for member in members]
        accepted = [network for network in every if network.accuracy >= config.accepted]
        yield Trained(group, every, accepted)
