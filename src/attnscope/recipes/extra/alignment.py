"""Gold word alignments: how well IBM Model 1, attention and the lexical probe find them (AER).

Model 1 learns from the training text together with the gold sentences' own text, without their
links, as is usual; a gold corpus in other languages than the training text has its own sentences
alone. Attention α and probe β are those of snell's translator, trained on the same text and read
on the gold pairs, teacher-forced, their pieces merged to words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import torch
from pydantic import Field

from attnscope.analysis.alignment import (
    alignment_error,
    alignment_precision,
    alignment_recall,
    diagonal_links,
    links_of,
)
from attnscope.analysis.gold_alignments import (
    GRAMMAR,
    GoldAlignments,
    Links,
    Parallel,
    open_gold,
    training_words,
)
from attnscope.analysis.ibm_alignment import ibm_links
from attnscope.claims.symbols import score_in_figures
from attnscope.claims.verdicts import Predicate
from attnscope.data.corpus import Corpus
from attnscope.data.known import definition
from attnscope.data.word_pairs import read_word_pairs
from attnscope.errors import UsageError
from attnscope.figures.charts import Axis
from attnscope.figures.palette import NEUTRAL, SCORES
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.plots import dots, per_dataset
from attnscope.recipes.kit.settings import Names, RecipeSettings, Several, corpus_label
from attnscope.recipes.kit.sheet import Sheet, rng
from attnscope.recipes.recipe import Charts
from attnscope.recipes.snell.units import QUICK as TEXT_QUICK, TextConfig, open_corpus, units_of
from attnscope.runs.result import Measurement, Result
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.score import ScoreRule
from attnscope.scores.subwords import merge_words
from attnscope.training.evaluation import kept_scores, padded_score
from attnscope.training.progress import Progress, counting
from attnscope.training.trained_unit import TrainedUnit

ALONE = "gold sentences alone"
_IBM = "ibm_model1"
# The mean log-probability of a word's pieces orders positions as the whole word's probability does.
_RULES: dict[str, ScoreRule] = {
    "attention": Attention(),
    "lexical_probe": LexicalProbe(reading="log_probability"),
}
Method = Literal["diagonal", "ibm_model1", "attention", "lexical_probe"]


class Config(RecipeSettings):
    """Settings of the alignments; the translator's are those of snell's tables."""

    gold: Names = Field(("gold-en-fr", "gold-ro-en"), min_length=1)
    """Corpora with gold word alignments, by name or folder; the second default has no training text
    here."""
    training: str = "tatoeba-en-fr"
    """Parallel corpus to train on, known or your own folder."""
    spelling: Literal["expanded", "plain"] = "expanded"
    """Spelling of the training text for IBM Model 1. The gold text of the Hansards has contractions
    written out ("de le", "do not"): expanded; gold text that keeps them: plain."""
    methods: Annotated[tuple[Method, ...], Several] = Field(
        ("diagonal", "ibm_model1", "attention", "lexical_probe"), min_length=1
    )
    """Methods to compare with the gold alignments."""
    iterations: int = Field(5, ge=0)
    """EM iterations of IBM Model 1; 5 is the usual number."""

    pieces: int = Field(8000, ge=10)
    """Subwords, both languages together, as in snell/table5."""
    translation_hidden: int = Field(256, ge=1)
    """Size of embeddings and LSTM states of the translator, as in snell/table5."""
    translation_steps: int = Field(36_000, ge=1)
    """Training steps of the translator, as in snell/table5."""
    translation_batch: int = Field(16, ge=1)
    """Sentence pairs in a training batch, as in snell/table5."""
    examples: int = Field(4000, ge=2)
    """Examples of each split that are evaluated, at most, as in snell/table5."""
    max_length: int | None = Field(1000, ge=3)
    """Longest sentence that is used, in subwords with the two boundary marks; longer ones are left
    out and counted."""

    @property
    def in_part(self) -> tuple[str, ...]:
        """Settings whose values `part` names."""
        return ("gold",)

    @property
    def part(self) -> str:
        """The folder of the result next to that of other corpora; empty for the default ones."""
        default = type(self).model_fields["gold"].default
        return "" if self.gold == default else "+".join(map(corpus_label, self.gold))

    @property
    def text(self) -> TextConfig:
        """The settings of the translator's unit, the same as in snell's tables."""
        shared = {name: value for name, value in self if name in TextConfig.model_fields}
        return TextConfig(corpus=(self.training,), **shared)


QUICK = {
    "gold": GRAMMAR,
    "training": GRAMMAR,
    **{key: TEXT_QUICK[key] for key in ("translation_hidden", "translation_steps", "examples")},
}
EXAMPLES = "moved"
HEADLINE = ("aer",)


def training_languages(name: str) -> tuple[str, str]:
    """Return source and target of the training text."""
    if name == GRAMMAR:
        return ("de", "en")
    known = definition(name)
    if known.task != "translation":
        raise UsageError(
            f"{known.name} is made for {known.task}; training= needs parallel text, such as "
            f"tatoeba-en-fr or {GRAMMAR}."
        )
    return known.source, known.target


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Align every gold corpus by every method."""
    languages = training_languages(config.training)
    corpora = [open_gold(name, languages) for name in config.gold]
    trainable = [gold for gold in corpora if gold.languages == languages]
    rules: dict[str, ScoreRule] = {
        name: rule for name, rule in _RULES.items() if name in config.methods
    }
    text, translator = None, None
    if trainable:
        source = open_corpus(config.text, config.training)
        if _IBM in config.methods:
            text = training_words(source, config.spelling)
        if rules:
            translator = lab.train(units_of(config.text, source)["reference"], "translator")
    rows: list[Measurement] = []
    for gold in corpora:
        if "diagonal" in config.methods:
            axes = {"method": "diagonal", "direction": "forward"}
            lengths = ([len(words) for words in side] for side in gold.lowered)
            rows += _rows(gold, diagonal_links(*map(torch.tensor, lengths)), axes)
        if _IBM in config.methods:
            rows += _ibm_rows(gold, ((), ()), ALONE, config.iterations, lab.progress)
        if text is not None and gold in trainable:
            rows += _ibm_rows(gold, text, config.training, config.iterations, lab.progress)
        if translator is not None and gold in trainable:
            rows += _model_rows(gold, translator, rules, config.training, lab.device)
    return rows


def _ibm_rows(
    gold: GoldAlignments, text: Parallel, training: str, iterations: int, progress: Progress
) -> list[Measurement]:
    rows = []
    for null in (True, False):
        with counting(progress, "IBM Model 1", 2 * iterations) as report:  # in both directions
            found = ibm_links(*gold.lowered, text, iterations=iterations, null=null, report=report)
        for direction, links in found.items():
            axes = {
                "method": _IBM,
                "direction": direction,
                "null": "with NULL" if null else "without NULL",
                "training": Path(training).name,
                "iterations": iterations,
            }
            rows += _rows(gold, links, axes)
    return rows


def _model_rows(
    gold: GoldAlignments,
    translator: TrainedUnit,
    rules: Mapping[str, ScoreRule],
    training: str,
    device: str,
) -> list[Measurement]:
    rows = []
    steps = {"last": translator.evaluated_steps[-1], "best": translator.best_step}
    for checkpoint, step in steps.items():
        model = translator.best_model if checkpoint == "best" else translator.model
        found = model_links(gold, translator, model.to(device), rules, device)
        for method, links in found.items():
            axes = {"method": method, "direction": "forward"}
            axes |= {"training": Path(training).name, "checkpoint": checkpoint}
            rows += _rows(gold, links, axes, (translator.unit.seed,), {"at": step})
    return rows


def model_links(
    gold: GoldAlignments,
    translator: TrainedUnit,
    model: Any,
    rules: Mapping[str, ScoreRule],
    device: str = "cpu",
) -> dict[str, Links]:
    """Link each output word to the input word of the highest score, by the rules' names."""
    unit, source = translator.unit, cast(Corpus, translator.unit.source)
    pairs = read_word_pairs(source, ((pair.source, pair.target) for pair in gold.sentences))
    batch = pairs.batch.to(device)
    arrays = kept_scores(model, batch, source, unit.training, tuple(rules.values()))
    found = {}
    for name, rule in rules.items():
        score = padded_score(rule.name, arrays, pairs.batch)
        merged = merge_words(score, pairs.input_words, pairs.output_words)
        found[name] = links_of(merged.values, merged.input_mask, merged.target_mask)
    return found


def _rows(
    gold: GoldAlignments,
    links: Links,
    axes: Mapping[str, Any],
    seeds: Sequence[int] = (),
    at: Mapping[str, Any] | None = None,
) -> list[Measurement]:
    sure, possible = gold.sure, gold.possible
    found = {
        "aer": alignment_error(links, sure, possible, rng=rng()),
        "precision": alignment_precision(links, sure, possible, rng=rng()),
        "recall": alignment_recall(links, sure, rng=rng()),
    }
    sheet = Sheet(gold.dataset, gold.split, seeds, axes=axes)
    return [sheet.row(name, interval, found=at) for name, interval in found.items()]


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the error rate of every method, a figure for each gold corpus."""

    def rates(dataset: str) -> Any:
        return dots(
            result.select("aer", dataset),
            Axis("alignment error rate", domain=(0, 1), format=".1f"),
            label=_label,
            colour=lambda row: SCORES.get(str(row.axes["method"]), NEUTRAL),
            title=dataset,
        )

    return per_dataset(result, "aer", rates, "aer")


_SHOWN = {
    "diagonal": "diagonal",
    _IBM: "Model 1",
    "attention": score_in_figures("alpha"),
    "lexical_probe": score_in_figures("beta"),
}


def _label(row: Measurement) -> str:
    parts = [_SHOWN[str(row.axes["method"])], str(row.axes["direction"])]
    parts += [str(row.axes[key]) for key in ("null", "checkpoint") if key in row.axes]
    alone = row.axes.get("training") == ALONE
    return ", ".join([*parts, "alone"] if alone else parts)


CLAIMS: Mapping[str, Predicate] = {}  # None of the papers says anything of gold alignments.
