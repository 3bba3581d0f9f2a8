"""The networks of figures 4 and 5 that translate by words: AED and AO.

The paper says of them: ParaCrawl, 30 000 words a language, at most 15 tokens. Everything else is a
choice that was made here before any run, and has its reason in the configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import torch
from jaxtyping import Int
from pydantic import BeforeValidator, Field
from torch import Tensor

from attnscope.analysis.measures import attention, components, terms
from attnscope.analysis.measures.numbers import Lines, Numbers, number
from attnscope.analysis.network import Network, analysed
from attnscope.data.batch import Batch, Example
from attnscope.data.corpus import Corpus
from attnscope.data.parallel_words import open_words
from attnscope.data.tokens import SPECIALS
from attnscope.errors import UsageError
from attnscope.models.architectures import AED, AOWithRoom, Architecture
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.recipes.aitken.units import (
    MODELS,
    STAND_IN,
    TRANSLATION,
    ArchitectureName,
    Group,
    with_printed,
)
from attnscope.recipes.kit.lab import Lab
from attnscope.recipes.kit.settings import RecipeSettings, corpus_label
from attnscope.recipes.kit.sheet import Sheet
from attnscope.runs.pictures import Curve
from attnscope.runs.result import Measurement
from attnscope.training.optimizer import Adam
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Training, Unit, every

# Decoder steps s, from 1 on, that the claims call early and late.
EARLY, LATE = 3, 8
_SHOWN = 11  # tokens of the figure's example, the end among them
QUICK_CORPUS = "grammar-translation"
QUICK_WORDS = {
    "dictionary": "teacher=Lehrer,child=Kind,has=hat",
    "sentence": "der Lehrer zeigt heute dem Mädchen das rote Buch .",
}
"""Settings of quick runs that are about words of their corpus."""
_EVALUATED = 2000  # steps from one evaluation to the next


def pairs_of(value: Any) -> Any:
    """Read ``la=the,le=the`` from the command line as two pairs."""
    if not isinstance(value, str):
        return value
    return tuple(tuple(pair.split("=")) for pair in value.split(","))


Pairs = Annotated[tuple[tuple[str, str], ...], BeforeValidator(pairs_of)]


class TranslationConfig(RecipeSettings):
    """Settings of the translating networks."""

    corpus: str = STAND_IN
    """Parallel corpus, a known name or your own folder; stands in for ParaCrawl, whose 30 million
    pairs are too many."""
    seeds: int = Field(3, ge=1)
    """Networks of each architecture."""
    types: int = Field(5000, ge=1)
    """Most frequent words of each language that are known, 98 and 96 % of all tokens here; the
    paper's 30,000 are more words than this corpus has."""
    longest: int = Field(15, ge=1)
    """Longest sentence that is used, in words; longer ones are left out and counted."""
    hidden: int = Field(256, ge=1)
    """Units of a network; twice those of the small tasks, because thousands of words share the
    states."""
    room: int = Field(100, ge=1)
    """Dimensions of AO's position encoding, those of eSCAN."""
    period: float = Field(100.0, gt=0)
    """Period of AO's position encoding, that of eSCAN."""
    steps: int = Field(20_000, ge=1)
    """Training steps, eight passes over the corpus, with plain Adam and no penalty; the recorded
    optimiser and penalty are for small tasks and would mostly shrink the rows of rare words."""
    batch_size: int = Field(64, ge=1)
    """Sentence pairs in a training batch."""
    lr: float = Field(1e-3, gt=0)
    """Learning rate of Adam."""
    examples: int = Field(500, ge=1)
    """Sentences that the logged accuracy is measured on."""
    samples: int = Field(4000, ge=2)
    """Held-out sentences that the terms are measured on, at most."""
    shortest: int = Field(10, ge=1)
    """Fewest words on each side of the sentences whose terms are measured."""
    common: int = Field(20, ge=2)
    """Most common words that readouts are compared with."""
    dictionary: Pairs = Field((("la", "the"), ("le", "the"), ("les", "the")), min_length=1)
    """Output words, each with the input word that it translates, as in la=the,le=the; of another
    corpus than the default one none are asked for unless they are given."""
    sentence: str = "the old woman gave her little dog to the young man ."
    """Example of the figure, our own; of another corpus than the default one its first held-out
    sentence of ten words or fewer, unless one is given."""

    @property
    def in_part(self) -> tuple[str, ...]:
        """Settings whose values `part` names."""
        return ("corpus",)

    @property
    def part(self) -> str:
        """The subfolder of the result; none for the default corpus."""
        default = type(self).model_fields["corpus"].default
        return "" if self.corpus == default else corpus_label(self.corpus)

    @property
    def asked(self) -> tuple[tuple[str, str], ...]:
        """The dictionary; one that was written for a corpus is not asked of another."""
        return () if self._foreign("dictionary") else self.dictionary

    @property
    def example(self) -> str:
        """The sentence of the figure; of another corpus its own."""
        if not self._foreign("sentence"):
            return self.sentence
        source = self.source
        examples = source.validation_examples
        short = [each for each in examples if len(each.inputs) <= _SHOWN]
        return _words_of(source, (short or list(examples))[0])

    def _foreign(self, name: str) -> bool:
        """Return whether a setting's words are those of the default or the quick corpus alone."""
        fields = type(self).model_fields
        quick = QUICK_WORDS[name]
        written = {
            fields[name].default: fields["corpus"].default,
            pairs_of(quick) if name == "dictionary" else quick: QUICK_CORPUS,
        }
        return written.get(getattr(self, name), self.corpus) != self.corpus

    @property
    def source(self) -> Corpus:
        """The corpus."""
        return open_words(self.corpus, types=self.types, longest=self.longest)


def _words_of(source: Corpus, example: Example) -> str:
    words = source.input_words.decode(int(index) for index in example.inputs)
    return " ".join(word for word in words if word not in SPECIALS)


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


def train_translators(config: TranslationConfig, lab: Lab) -> dict[Group, list[TrainedUnit]]:
    """Train AED and AO, or reuse them; all are analysed, whatever their accuracy."""
    source = config.source
    _check_lengths(config, source)
    units = {
        Group(source, model, config.seeds): [
            translator(config, source, model, seed) for seed in range(config.seeds)
        ]
        for model in MODELS
    }
    return lab.train(units, "translators")


def _check_lengths(config: TranslationConfig, source: Corpus) -> None:
    """Reject a corpus without sentences long enough for their terms, before training on it."""
    longest = int(shorter_side(source.evaluation_batch(config.samples)).max())
    if longest < config.shortest:
        raise UsageError(
            f"{source.dataset}: no held-out sentence has {config.shortest} tokens on both sides; "
            f"set shortest to {longest} or less."
        )


def shorter_side(batch: Batch) -> Int[Tensor, " batch"]:
    """Return how many tokens without the end the shorter side of each pair has."""
    return torch.minimum(batch.input_lengths, batch.target_lengths) - 1


def network_of(unit: TrainedUnit, samples: int, teacher_forcing: str = "off") -> Network:
    """Return a translator on held-out sentences, reading its own words or (``on``) the right ones.

    Last weights are analysed, so that no sentence has chosen them.
    """
    model = analysed(unit).with_teacher_forcing(teacher_forcing)
    source = unit.unit.source
    return Network(model, source, source.evaluation_batch(samples), unit.unit.seed, trimmed=True)


def long_sentences(network: Network, shortest: int) -> Network:
    """Return the network with the sentences that have as many tokens on both sides."""
    return network.only(shorter_side(network.sequences) >= shortest)


def measure_text(network: Network, shortest: int) -> tuple[Numbers, Lines]:
    """Return what §4.1 says of terms, offsets, variances and the mean attention.

    Terms are those of sentences with as many tokens on both sides; components are the means over
    all sentences.
    """
    shares = terms.shares_of(network, long_sentences(network, shortest))
    by_step = attention.by_step(network)
    numbers = (
        terms.nine(network, shares)
        | terms.three(network, shares)
        | terms.largest(network, shares)
        | terms.early_and_late(network, shares, EARLY, LATE)
        | attention.changes(by_step)
        | components.variance_drop(network)
        | components.variance_words(network)
        | attention.similarity(network)
    )
    return numbers, terms.by_step(shares) | by_step


def text_rows(
    group: Group, sheet: Sheet, found: Sequence[tuple[Numbers, Lines]]
) -> list[Measurement | Curve]:
    """Return the measurements of `measure_text` over networks, with the paper's variance drop."""
    rows = sheet.over_seeds([numbers for numbers, _ in found])
    drop = group.printed("text-s4.1", "English-French", "variance_drop(hE,hE-muE)")
    if group.task.dataset.endswith(TRANSLATION):
        rows = with_printed(rows, {number("variance_drop"): drop})
    return [*rows, *sheet.curves([lines for _, lines in found])]
