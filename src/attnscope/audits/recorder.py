"""`Recorder`: scores of a user's own training run, stored while it trains.

Steps are recorded on a scale that grows (1, 2, 5, 10, 20, 50, …), so that early learning is seen
and the cost stays a small share of the time. Weights are kept only at chosen steps, as
``checkpoint-N`` folders that ``attnscope audit --checkpoints`` reads.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from attnscope.analysis.agreement import top_share_agreement
from attnscope.analysis.comparison import compare
from attnscope.analysis.intervals import Interval
from attnscope.audits.subject import Subject
from attnscope.audits.texts import Texts
from attnscope.audits.uniform import site_entropy
from attnscope.data.batch import Batch
from attnscope.data.tokenised import TokenisedBatch
from attnscope.errors import UsageError, WorkspaceError
from attnscope.models.adapted import Adapted, Call
from attnscope.models.adapter import adapt
from attnscope.models.trace import Trace
from attnscope.runs.result import Curve
from attnscope.runs.tensors import load_arrays, save_arrays
from attnscope.scores.score import Score, read_scores

SCORES = ("attention", "lexical_probe")


def growing(step: int) -> bool:
    """Tell whether a step is 1, 2 or 5 times a power of ten."""
    digits = str(step)
    return step > 0 and digits[0] in "125" and not digits[1:].strip("0")


class Recorder:
    """Stores scores of a few texts while a model trains.

    Parameters
    ----------
    model, tokenizer, call
        As `attnscope.adapt` takes them; the model is the one that is trained.
    texts, wanted
        Examples to follow, with their labels or translations.
    out
        The folder.
    steps
        The steps to record, by default 1, 2, 5, 10, 20, 50, ….
    weights_at
        The steps whose weights are kept too.
    scores
        What is recorded.
    """

    def __init__(
        self,
        model: nn.Module,
        texts: Sequence[str],
        wanted: Sequence[int] | Sequence[str] | None = None,
        *,
        tokenizer: Any = None,
        call: Call | None = None,
        example: Any = None,
        out: str | Path = "recorded",
        steps: Collection[int] | None = None,
        weights_at: Collection[int] = (),
        scores: Sequence[str] = SCORES,
    ) -> None:
        self.model: Adapted = adapt(model, tokenizer, call, example)
        batch = self.model.batch(texts, wanted).to(self.model.device)
        assert isinstance(batch, TokenisedBatch)
        self._subject = Subject(self.model, Texts("recorded", "all", tuple(texts)), batch)
        unknown = [name for name in scores if name not in self._subject.rules]
        if unknown:
            raise UsageError(f"There is no score {unknown[0]!r} to record.")
        self.out, self.names = Path(out), tuple(scores)
        self.steps, self.weights_at = steps, frozenset(weights_at)
        self._started, self._spent = time.monotonic(), 0.0

    @property
    def share(self) -> float:
        """The share of the time since the recorder was made that recording took."""
        return self._spent / max(time.monotonic() - self._started, 1e-9)

    def step(self, number: int) -> None:
        """Record a training step, if it is one that is recorded: call it after every update."""
        started = time.monotonic()
        if growing(number) if self.steps is None else number in self.steps:
            self._record(number)
        if number in self.weights_at:
            folder = self.out / f"checkpoint-{number}"
            folder.mkdir(parents=True, exist_ok=True)
            state = self.model.module.state_dict()
            plain = {name: value.detach().cpu().clone() for name, value in state.items()}
            save_file(plain, folder / "model.safetensors")
        self._spent += time.monotonic() - started

    def _record(self, number: int) -> None:
        for step, path in self._files().items():
            if step > number:  # of another run, or of one that has gone back to a checkpoint
                path.unlink()
        batch, rules = self._subject.batch, [self._subject.rules[name] for name in self.names]
        cells = (*batch.targets.shape, batch.inputs.shape[1])
        arrays = {name: np.zeros(cells, np.float32) for name in self.names}
        arrays |= {f"{name}.mask": np.zeros(cells, bool) for name in self.names}
        arrays["entropy"] = np.zeros(len(batch))
        equal = self.model.padding_matters
        for rows, part in batch.by_length(lambda *_: len(batch), equal=equal):
            trace = self._subject.trace(part)
            arrays["entropy"][rows.numpy()] = self._entropy(trace, part)
            scores = read_scores(rules, self.model, part, trace=trace)
            at = (rows.numpy(), slice(part.targets.shape[1]), slice(part.inputs.shape[1]))
            for name, score in zip(self.names, map(self._subject.of_words, scores), strict=True):
                arrays[name][at] = score.values.float().cpu().numpy()
                arrays[f"{name}.mask"][at] = score.mask.cpu().numpy()
        save_arrays(self.out / "scores" / f"step-{number:08d}.safetensors", arrays, {})

    def _entropy(self, trace: Trace, part: Batch) -> np.ndarray:
        entropy = site_entropy(trace.sites[self._subject.site], part)
        return entropy.nanmean(1).double().cpu().numpy()

    def curves(self) -> list[Curve]:
        """Return entropy, and the agreement of each recorded step with the last one."""
        recorded, entropies = self._recorded()
        curves = []
        for name in self.names:
            last = recorded[max(recorded)][name]
            points: dict[int, Interval] = {
                step: compare(last, scores[name], top_share_agreement)
                for step, scores in recorded.items()
            }
            curves.append(
                Curve.of("agreement_with_last", "recorded", "step", points, {"score": name})
            )
        spread = {step: self._subject.interval(values) for step, values in entropies.items()}
        curves.append(Curve.of("entropy", "recorded", "step", spread, {"score": "attention"}))
        return curves

    def _recorded(self) -> tuple[dict[int, dict[str, Score]], dict[int, np.ndarray]]:
        """Return the scores and entropies of every step."""
        scores, entropies = {}, {}
        for step, path in self._files().items():
            arrays, _ = load_arrays(path)
            scores[step] = {name: self._score(name, arrays) for name in self.names}
            entropies[step] = arrays["entropy"]
        if not scores:
            raise WorkspaceError(f"{self.out} has no recorded step yet.")
        return scores, entropies

    def _files(self) -> dict[int, Path]:
        files = sorted((self.out / "scores").glob("step-*.safetensors"))
        return {int(path.stem.removeprefix("step-")): path for path in files}

    def _score(self, name: str, arrays: dict[str, np.ndarray]) -> Score:
        values, mask = (torch.from_numpy(arrays[key]) for key in (name, f"{name}.mask"))
        return Score(name, values, mask, self._subject.batch.to("cpu"))

    def callback(self) -> Any:
        """Return the recorder as a Hugging Face ``TrainerCallback``."""
        try:
            from transformers import TrainerCallback
        except ImportError as error:
            raise UsageError("This needs transformers: pip install 'attnscope[hf]'.") from error
        record = self.step

        class Recording(TrainerCallback):
            """Records after each update."""

            def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
                """Record the step."""
                record(state.global_step)

        return Recording()
