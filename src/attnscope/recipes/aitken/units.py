"""What all of aitken's recipes train and how they look at it; sizes are the authors' code's.

Networks are trained on the right words (teacher forcing) and analysed on their own words, on fresh
sequences beyond those that the log's accuracy is of. The loss is a mean over real positions; the
authors' divides by the padded length, which makes their L2 penalty weigh about a tenth more.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from attnscope.analysis.streaming import Ratio, collect, mean_of
from attnscope.data.batch import Batch
from attnscope.data.source import Source
from attnscope.models.architectures import (
    AED,
    AO,
    VED,
    Architecture,
    CrossAttention,
    DotAttention,
    LearnedAttention,
    LearnedQKV,
)
from attnscope.models.cells import CellName
from attnscope.models.encoder_decoder import EncoderDecoder, EncoderDecoderSpec
from attnscope.models.trace import Trace
from attnscope.runs.spec import Settings
from attnscope.scores.attention import Attention
from attnscope.training.objective import Likelihood
from attnscope.training.optimizer import AitkenAdam
from attnscope.training.penalties import SquaredNorm
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Training, Unit, every

ArchitectureName = Literal["ved", "aed", "ao"]
AttentionName = Literal["dot", "learned"]
# Word accuracy at which a network counts as one that has solved its task; fixed before any run.
SOLVED = 0.97

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

    def budget(self, task: Source) -> int:
        """Return the number of training steps on a task."""
        return self.steps


@dataclass(frozen=True)
class Sizes:
    """What the authors' code chooses by task: AO's room for words and period, and L2's weight."""

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
    """A cell and an attention, and the architectures that are made with them."""

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
    sizes = SIZES[_kind(task)]
    steps = config.budget(task)
    weight = sizes.l2[architecture] if l2 is None else l2
    spec = EncoderDecoderSpec(
        architecture=_architecture(architecture, _ATTENTIONS[attention], sizes.period),
        cell=cell,
        hidden=config.hidden,
        # Only AO's positions need the room.
        input_dimension=sizes.width if architecture == "ao" else None,
    )
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


def _kind(task: Source) -> str:
    return str(type(task).model_fields["kind"].default)


def _architecture(name: str, attention: CrossAttention, period: float) -> Architecture:
    made: dict[str, Architecture] = {
        "ved": VED(),
        "aed": AED(attention=attention),
        "ao": AO(attention=attention, period=period),
    }
    return made[name]


def analysed(unit: TrainedUnit) -> EncoderDecoder:
    """Return the network with its last weights, reading its own words."""
    return cast(EncoderDecoder, unit.model).with_teacher_forcing("off")


def fresh(unit: TrainedUnit, count: int) -> Batch:
    """Return held-out sequences beyond those that were evaluated while training."""
    seen = unit.unit.training.examples
    return unit.unit.source.evaluation_batch(seen + count).rows(slice(seen, None))


def words_right(trace: Trace) -> Ratio:
    """Return the share of output words that are right, up to and with EOS."""
    right = (trace.logits.argmax(-1) == trace.batch.targets).double()
    return mean_of(right.masked_fill(~trace.batch.target_mask, torch.nan))


def accuracy_of(passes: Iterable[Trace]) -> float:
    """Return the word accuracy over forward passes."""
    return collect(passes, {"": words_right})[""].value


def context_readout(model: EncoderDecoder) -> Float[Tensor, "output state"]:
    """Return what the readout makes of an encoder state that is attended to, a row a word.

    Of AED this is the half of the context; with learned attention the values' map comes before. Of
    VED, which attends to nothing, it is the readout of the decoder's state.
    """
    weight = model.output.weight.detach()
    if model.attention is None:
        return weight
    weight = weight[:, -model.attention.value :]
    if isinstance(model.attention, LearnedQKV):
        return weight @ model.attention.value_map.detach()
    return weight


def without_state_readout(model: EncoderDecoder) -> EncoderDecoder:
    """Return an AED whose output depends on the context alone (footnote 6)."""
    other = copy.deepcopy(model)
    value = cast(Any, other.attention).value
    with torch.no_grad():
        other.output.weight[:, :-value] = 0.0
    return other
