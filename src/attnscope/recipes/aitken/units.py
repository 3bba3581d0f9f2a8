"""Units of aitken's figures: which networks, trained how; sizes are those of the authors' code.

Networks are trained on the right words (teacher forcing; a setting) and analysed on their own. The
loss is a mean over real positions; the authors' divides by the padded length, which makes their L2
penalty weigh about a tenth more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from attnscope.claims.published import published_value
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
from attnscope.recipes.kit.sheet import Number, Sheet
from attnscope.runs.result import Measurement
from attnscope.runs.spec import Settings
from attnscope.scores.attention import Attention
from attnscope.training.objective import Likelihood
from attnscope.training.optimizer import AitkenAdam
from attnscope.training.penalties import SquaredNorm
from attnscope.training.unit import Training, Unit, every

ArchitectureName = Literal["ved", "aed", "ao"]
AttentionName = Literal["dot", "learned"]
# Word accuracy at which a network counts as having solved its task; fixed before any run.
SOLVED = 0.97
TRANSLATION = "en-fr"  # ends the name of an English-French corpus
# The architectures of figures 3 to 6.
MODELS: tuple[ArchitectureName, ...] = ("aed", "ao")

_EVALUATED = 500  # steps from one evaluation to the next
_ATTENTIONS: dict[AttentionName, CrossAttention] = {
    "dot": DotAttention(),
    "learned": LearnedAttention(),
}


class AitkenConfig(Settings):
    """Settings that all of aitken's recipes share: GRU networks of the authors' recorded runs."""

    hidden: int = Field(128, ge=1)
    steps: int = Field(6000, ge=1)  # 3 freshly drawn sets, 2 epochs of 1000 batches each
    batch_size: int = Field(128, ge=1)
    examples: int = Field(200, ge=1)  # of the log's accuracy
    samples: int = Field(1000, ge=2)  # fresh sequences of the analyses
    # Whether the right words are read in training; the authors' first networks read their own.
    teacher_forcing: bool = True

    def budget(self, task: Source) -> int:
        """Return the number of training steps on a task."""
        return self.steps


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


def unit(
    task: Source,
    architecture: ArchitectureName,
    seed: int,
    *,
    config: AitkenConfig,
    cell: CellName = "gru",
    attention: AttentionName = "dot",
    l2: float | None = None,
) -> Unit:
    """Return a network on a task, trained as in the authors' code.

    Parameters
    ----------
    task
        One whose kind is in `SIZES`.
    cell, attention
        Those of all figures by default; VED has no attention.
    l2
        c of the penalty c·Σθ², by default the authors' for the task and the architecture.
    """
    sizes = SIZES[str(type(task).model_fields["kind"].default)]
    steps = config.budget(task)
    made: dict[str, Architecture] = {
        "ved": VED(),
        "aed": AED(attention=_ATTENTIONS[attention]),
        "ao": AO(attention=_ATTENTIONS[attention], period=sizes.period),
    }
    spec = EncoderDecoderSpec(
        architecture=made[architecture],
        cell=cell,
        hidden=config.hidden,
        # Only AO's positions need the room.
        input_dimension=sizes.width if architecture == "ao" else None,
        teacher_forcing="on" if config.teacher_forcing else "off",
    )
    weight = sizes.l2[architecture] if l2 is None else l2
    training = Training(
        steps=steps,
        batch_size=config.batch_size,
        evaluate_at=every(_EVALUATED, steps),
        optimizer=AitkenAdam(),
        objective=(Likelihood(), SquaredNorm(weight=weight)),
        examples=config.examples,
        scores=() if architecture == "ved" else (Attention(),),
    )
    return Unit(source=task, model=spec, training=training, seed=seed)


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
        return [
            unit(
                self.task,
                self.model,
                seed,
                config=config,
                cell=self.cell,
                attention=self.attention,
            )
            for seed in range(self.seeds)
        ]

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
