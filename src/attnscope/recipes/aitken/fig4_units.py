"""The networks of figure 4: AED and AO that translate by words.

The paper says of them: ParaCrawl, 30 000 words a language, at most 15 tokens. All else is a choice
made here, before any run, and stands in the configuration with its reason.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import torch
from jaxtyping import Int
from pydantic import BeforeValidator, Field
from torch import Tensor

from attnscope.data.batch import Batch, Example, collate
from attnscope.data.corpus import Corpus
from attnscope.data.parallel_words import open_words
from attnscope.errors import UsageError
from attnscope.models.architectures import AED, AOWithRoom, Architecture
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.models.trace import Trace
from attnscope.recipes.aitken.escan_units import MODELS
from attnscope.recipes.aitken.groups import Group, Wanted, over
from attnscope.recipes.aitken.networks import N, Network, in_batches, without_gradients
from attnscope.recipes.aitken.units import ArchitectureName, analysed
from attnscope.recipes.recipe import Lab
from attnscope.runs.result import Measurement
from attnscope.runs.spec import Settings
from attnscope.training.optimizer import Adam
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Training, Unit, every

STAND_IN = "tatoeba-en-fr"
DEVIATION = (
    "Tatoeba (157,044 training pairs, median 7 tokens) in place of ParaCrawl (over 30 million)"
)
_EVALUATED = 2000  # steps from one evaluation to the next


def pairs_of(value: Any) -> Any:
    """Read ``la=the,le=the`` from the command line as two pairs."""
    if not isinstance(value, str):
        return value
    return tuple(tuple(pair.split("=")) for pair in value.split(","))


Pairs = Annotated[tuple[tuple[str, str], ...], BeforeValidator(pairs_of)]


class TranslationConfig(Settings):
    """Settings of the translating networks."""

    corpus: str = STAND_IN  # a name or a folder; ParaCrawl's 30 million pairs are too many
    seeds: int = Field(3, ge=1)
    # Of each language, 98 and 96 % of all tokens here; the paper's 30 000 are more words than this
    # corpus has, and half of its words occur once or twice.
    types: int = Field(5000, ge=1)
    longest: int = Field(15, ge=1)
    # Twice the 128 units of the small tasks: thousands of words share the states.
    hidden: int = Field(256, ge=1)
    room: int = Field(100, ge=1)  # dimensions and period of AO's positions: eSCAN's
    period: float = Field(100.0, gt=0)
    # Eight passes over the corpus. The recorded optimiser is one for small tasks, and so is the
    # penalty, which would mostly shrink the rows of rare words: here plain Adam and no penalty.
    steps: int = Field(20_000, ge=1)
    batch_size: int = Field(64, ge=1)
    lr: float = Field(1e-3, gt=0)
    examples: int = Field(500, ge=1)  # of the log's accuracy
    samples: int = Field(4000, ge=2)  # held-out sentences of the analyses, at most
    shortest: int = Field(10, ge=1)  # tokens a side of the sentences whose terms are looked at
    common: int = Field(20, ge=2)  # most common words that readouts are compared with
    # Output words, and the input words that they translate.
    dictionary: Pairs = Field((("la", "the"), ("le", "the"), ("les", "the")), min_length=1)
    # Of our own making: the figure's example.
    sentence: str = "the old woman gave her little dog to the young man ."

    @property
    def part(self) -> str:
        """Where the result lies beside that of other corpora: nothing for the default one."""
        default = type(self).model_fields["corpus"].default
        return "" if self.corpus == default else Path(self.corpus).resolve().name

    @property
    def source(self) -> Corpus:
        """The corpus."""
        return open_words(self.corpus, types=self.types, longest=self.longest)


def translator(
    config: TranslationConfig, source: Corpus, model: ArchitectureName, seed: int
) -> Unit:
    """Return a network that translates a corpus."""
    words = max(len(source.input_words), len(source.output_words))
    made: dict[str, tuple[Architecture, int]] = {
        "aed": (AED(), words),
        "ao": (AOWithRoom(period=config.period, room=config.room), words + config.room),
    }
    architecture, width = made[model]
    spec = EncoderDecoderSpec(
        architecture=architecture, hidden=config.hidden, input_dimension=width, words="rows"
    )
    training = Training(
        steps=config.steps,
        batch_size=config.batch_size,
        evaluate_at=every(_EVALUATED, config.steps),
        optimizer=Adam(lr=config.lr),
        examples=config.examples,
    )
    return Unit(source=source, model=spec, training=training, seed=seed)


class Translator(Network):
    """A trained translator and the held-out sentences it is analysed on.

    Last weights are analysed, so that no sentence has chosen them.
    """

    @classmethod
    def of(cls: type[N], unit: TrainedUnit, samples: int, teacher_forcing: str = "off") -> N:
        """Return a trained unit's network, reading its own words or (``on``) the right ones."""
        model = analysed(unit).with_teacher_forcing(teacher_forcing)
        source = unit.unit.source
        return cls(model, source, source.evaluation_batch(samples), unit.unit.seed)

    @property
    def batches(self) -> list[Batch]:
        """The sentences of each forward pass, without needless padding."""
        return [batch.trimmed() for batch in in_batches(self.sequences)]

    def of_sentences(self: N, shortest: int) -> N:
        """Return the network with the sentences that have as many tokens on both sides."""
        chosen = shorter_side(self.sequences) >= shortest
        return replace(self, sequences=self.sequences.rows(chosen))

    def example(self, text: str) -> Trace:
        """Return the pass over one sentence, of which there is no translation."""
        source = self.source
        assert source.boundaries is not None
        start, inputs = source.boundaries[0], source.encode(text)
        steps = self.sequences.targets.shape[1]
        nothing = [0] * steps
        one = Example(0, inputs, [start, *nothing[1:]], nothing)
        return without_gradients(self.model, collate([one]))


def train_translators(config: TranslationConfig, lab: Lab) -> list[Group]:
    """Train AED and AO, or reuse them; all are analysed, whatever their accuracy."""
    source = config.source
    _demand_long_sentences(config, source)
    units = [
        translator(config, source, model, seed) for model in MODELS for seed in range(config.seeds)
    ]
    trained = iter(lab.train(units, "translators"))
    groups = []
    for model in MODELS:
        members = tuple(islice(trained, config.seeds))
        accuracies = tuple(Translator.of(unit, config.samples).accuracy for unit in members)
        groups.append(Group(Wanted(source, model, config.seeds), members, accuracies, 0.0))
    return groups


def own_words_row(group: Group) -> Measurement:
    """Return the accuracy of translators that read their own words."""
    seeds = [unit.unit.seed for unit in group.units]
    return group.row("token_accuracy", over(group.accuracies), {"reads": "own words"}, seeds)


def _demand_long_sentences(config: TranslationConfig, source: Corpus) -> None:
    """Refuse a corpus whose terms could not be looked at, before anything is trained on it."""
    held_out = source.evaluation_batch(config.samples)
    longest = int(shorter_side(held_out).max())
    if longest < config.shortest:
        raise UsageError(
            f"{source.dataset}: no held-out sentence has {config.shortest} tokens on both sides; "
            f"set shortest to {longest} or less."
        )


def shorter_side(batch: Batch) -> Int[Tensor, " batch"]:
    """Return how many tokens without the end the shorter one of each pair's sides has."""
    return torch.minimum(batch.input_lengths, batch.target_lengths) - 1
