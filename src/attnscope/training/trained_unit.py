"""A trained unit, read from its folder: its log, its stored scores, its model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from attnscope.data.batch import Batch
from attnscope.data.carried import CarriedText
from attnscope.data.known import locate
from attnscope.data.source import Source
from attnscope.data.text import Text, demand_digest
from attnscope.errors import AttnscopeError, DamagedFile, UsageError, WorkspaceError, suggestion
from attnscope.models.base import AttentionModule
from attnscope.models.decoding import respond
from attnscope.models.prediction import Prediction, predict
from attnscope.runs.unit import UnitFolder
from attnscope.scores.score import Score, ScoreRule, read_score
from attnscope.training.evaluation import example_batch, padded_score
from attnscope.training.loop import load_model
from attnscope.training.registry import import_kinds, read_unit
from attnscope.training.unit import Unit, best_step, score_file


class TrainedUnit:
    """A unit's folder, read.

    Attributes
    ----------
    unit
        Its settings.
    folder
        Its files.
    """

    trained = True

    def __init__(self, unit: Unit, folder: UnitFolder) -> None:
        self.unit = unit
        self.folder = folder
        self._examples: dict[str, Batch] = {}

    def __repr__(self) -> str:
        return f"TrainedUnit({self.unit.name!r}, steps={self.unit.training.steps})"

    @classmethod
    def read(cls, path: Path) -> TrainedUnit:
        """Read a unit's folder."""
        if not (path / "config.json").exists():
            raise WorkspaceError(f"{path} is not a unit: it has no config.json.")
        folder = UnitFolder(path)
        unit = read_unit(folder.config, str(path))
        demand_digest(unit.source, str(path))
        return cls(unit, folder)

    @cached_property
    def source(self) -> Source:
        """The unit's source, with the words that the unit carries: its corpus may be gone.

        A unit that was stored before units carried words reads them from its corpus.
        """
        stored = self.folder.load_words()
        if stored is None:
            return self._source_of_corpus()
        words, model = stored
        try:
            return CarriedText.model_validate(words | {"model": model})
        except ValidationError as error:
            reason = f"{self.folder.path / 'words.json'} is not the vocabulary of a unit"
            raise DamagedFile(f"{reason} ({error.errors()[0]['msg']}).") from error

    def _source_of_corpus(self) -> Source:
        source = self.unit.source
        if isinstance(source, Text):
            try:
                locate(source.definition)
            except AttnscopeError as error:
                raise UsageError(
                    f"{self.folder.name} carries no words of its own, as older units do not, and "
                    f"its corpus is not here: {error}"
                ) from error
        return source

    @property
    def _with_words(self) -> Unit:
        return self.unit.model_copy(update={"source": self.source})

    @cached_property
    def log(self) -> list[dict[str, Any]]:
        """One row per evaluation: step, loss, accuracy."""
        return self.folder.log

    @cached_property
    def examples(self) -> Batch:
        """The evaluation examples whose scores are stored."""
        return self.examples_of(self.unit.training.splits[0])

    def examples_of(self, split: str) -> Batch:
        """Return the examples of a split whose scores are stored."""
        if split not in self._examples:
            arrays = self.folder.load_scores(score_file(split))
            with self._sound(score_file(split)):
                self._examples[split] = self._known_words(example_batch(arrays))
        return self._examples[split]

    @contextmanager
    def _sound(self, name: str) -> Iterator[None]:
        """Turn what arrays of other names, kinds or sizes raise into one sentence."""
        try:
            yield
        except (LookupError, ValueError, TypeError, RuntimeError, AttributeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise DamagedFile(
                f"{self.folder.path / 'scores' / name}.safetensors does not hold what its name "
                f"says ({type(error).__name__}: {reason})."
            ) from error

    def _known_words(self, batch: Batch) -> Batch:
        source = self.source
        pairs = (batch.inputs, source.input_words), (batch.targets, source.output_words)
        for ids, words in pairs:
            if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < len(words):
                raise ValueError(f"ids are not those of {len(words)} words")
        return batch

    def stored(self, name: str, step: int | str | None = None, split: str | None = None) -> Score:
        """Return a stored score.

        Parameters
        ----------
        name
            As in ``unit.training.scores``, or in ``unit.training.final_scores``.
        step
            An evaluated step, by default the last one; ``"last"`` or ``"best"`` for a final score.
        split
            ``"val"`` or ``"train"``, by default the unit's first one.
        """
        split = self.unit.training.splits[0] if split is None else split
        step = self.log[-1]["step"] if step is None else step
        arrays = self.folder.load_scores(score_file(split, step))
        if name not in arrays:
            names = {key.removesuffix(".mask") for key in arrays}
            raise UsageError(f"{self.folder.name} stores no {name!r}; {suggestion(name, names)}")
        source, examples = self.source, self.examples_of(split)
        with self._sound(score_file(split, step)):
            score = padded_score(name, arrays, examples)
        return replace(score, input_words=source.input_words, output_words=source.output_words)

    def log_row(self, step: int) -> dict[str, Any]:
        """Return the log's row of an evaluated step."""
        return next(row for row in self.log if row["step"] == step)

    @property
    def evaluated_steps(self) -> list[int]:
        """The steps of the log."""
        return [int(row["step"]) for row in self.log]

    @property
    def best_step(self) -> int:
        """The step of the best weights."""
        return best_step(self.log, self.unit.training)

    @cached_property
    def model(self) -> AttentionModule:
        """The model with the weights of the last step."""
        return load_model(self._with_words, self.folder)

    @cached_property
    def best_model(self) -> AttentionModule:
        """The model with the weights of the best step, as ``training.best_by`` has it."""
        return load_model(self._with_words, self.folder, "best")

    def score(self, rule: ScoreRule | str, examples: Batch | str | None = None) -> Score:
        """Read a score off the model.

        Parameters
        ----------
        rule
            A score such as ``LexicalProbe()``, or the kind of one: ``"attention"``,
            ``"lexical_probe"``.
        examples
            A batch; or, for a unit trained on text, a sentence, whose output is then the one that
            the model gives; by default the stored evaluation examples.
        """
        if isinstance(rule, str):
            import_kinds()
            if rule not in ScoreRule.variants:
                raise UsageError(f"No score {rule!r}; {suggestion(rule, ScoreRule.variants)}")
            rule = ScoreRule.model_validate({"kind": rule})
        model = self.model
        source = self.source
        if isinstance(examples, str):
            attention, ids = self.unit.training.attention, source.encode(examples)
            if len(ids) <= len(source.encode("")):
                raise UsageError(f"There is no word in the sentence {examples!r}.")
            examples = respond(model, ids, source.boundaries, attention=attention)
        batch = self.examples if examples is None else examples
        score = read_score(rule, model, batch, self.unit.training.attention)
        return replace(score, input_words=source.input_words, output_words=source.output_words)

    def predict(self, texts: Sequence[str], best: bool = False) -> list[Prediction]:
        """Return the model's own output for texts, with its probability.

        Parameters
        ----------
        texts
            As a user writes them; they are cut as the unit's corpus was.
        best
            Whether the weights are those of the best step, by default those of the last.
        """
        if isinstance(texts, str):
            raise UsageError("predict takes several texts: give a list.")
        return predict(
            self.best_model if best else self.model,
            self.source,
            texts,
            attention=self.unit.training.attention,
        )


def load(unit: str | Path) -> TrainedUnit:
    """Return a trained unit: its model, its log, its stored scores.

    Parameters
    ----------
    unit
        ``"demo"`` for the tiny translator that comes with the package, or the folder of a unit, as
        in ``runs/units/permutations-40-seq2seq-seed0-…``.

    Examples
    --------
    >>> import attnscope
    >>> demo = attnscope.load("demo")
    >>> score = demo.score("attention", "der Mann hat den Hund gesehen .")
    >>> score.words(0)[1][:4]
    ['the', 'man', 'has', 'seen']
    """
    path = demo_folder() if unit == "demo" else Path(unit)
    if not path.is_dir():
        raise UsageError(f"There is no unit {str(unit)!r}; give 'demo' or the folder of a unit.")
    if any((path / name).exists() for name in ("model.safetensors", "pytorch_model.bin")):
        raise UsageError(f"{path} is not a unit but a model of Hugging Face: use attnscope.adapt.")
    return TrainedUnit.read(path)


def demo_folder() -> Path:
    """Return the folder of the demo unit inside the package."""
    return Path(str(files("attnscope").joinpath("demo")))
