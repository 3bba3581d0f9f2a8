"""Is attention the same from another seed, and how was it learned?

Agreement (top 5 %) of attention and of the lexical probe between models that were trained alike,
and of each checkpoint with the last one: the two stages of snell on the user's own training. Each
model reads the texts through its own tokeniser; where pieces differ, words are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.agreement import top_share_agreement
from attnscope.audits.agrees import per_example
from attnscope.audits.checkpoints import with_weights
from attnscope.audits.gold import by_word
from attnscope.audits.subject import Subject
from attnscope.audits.uniform import site_entropy
from attnscope.data.batch import Batch
from attnscope.data.tokenised import TokenisedBatch
from attnscope.errors import UsageError
from attnscope.models.adapted import Adapted
from attnscope.runs.result import Curve, Record
from attnscope.scores.score import Score

SCORES = ("attention", "lexical_probe")


def measure(
    subject: Subject, rivals: Sequence[Adapted], checkpoints: Mapping[int, Path]
) -> list[Record]:
    """Return agreement with other models, and along the folders of checkpoints."""
    return [*_between(subject, rivals), *_along(subject, checkpoints)]


def _twin(subject: Subject, model: Adapted) -> Subject:
    """Return another model on the same texts, asked about the same outputs."""
    parts = subject.parts
    if model.tokeniser is not subject.model.tokeniser:
        read = _read(subject, model)
        parts = [(rows, _asked(read.rows(rows).trimmed(), part)) for rows, part in parts]
    twin = Subject(model, subject.texts, subject.batch, subject.seed, subject.draws)
    twin.__dict__["parts"] = parts
    return twin


def _read(subject: Subject, model: Adapted) -> Batch:
    """Return the texts of an audit as another model's tokeniser cuts them."""
    texts, task = subject.texts, subject.model.facts.task
    if model.facts.task != task:
        raise UsageError(f"Models of other tasks are not compared: {task}, {model.facts.task}.")
    read = model.read(texts.texts, None if task == "next word" else texts.wanted, texts.ids).batch
    if read.ids.tolist() != subject.batch.ids.tolist():
        raise UsageError("A model to compare with cannot read all texts that the audited one can.")
    return read.to(subject.batch.inputs.device)


def _asked(part: Batch, other: Batch) -> Batch:
    """Return a part with the labels that another model is asked about."""
    return replace(part, targets=other.targets) if other.targets.shape[1] == 1 else part


def _agreement(one: Subject, other: Subject, name: str) -> Float[np.ndarray, " example"]:
    pairs = [_comparable(*pair) for pair in zip(one.scores(name), other.scores(name), strict=True)]
    return per_example(one, pairs, top_share_agreement)


def _comparable(one: Score, other: Score) -> tuple[Score, Score]:
    """Return two scores of the same texts as they are, or of words where pieces differ."""
    first, second = one.batch, other.batch
    if not isinstance(first, TokenisedBatch) or not isinstance(second, TokenisedBatch):
        return one, other
    if _same(first.input_words, second.input_words) and _same(
        first.target_words, second.target_words
    ):
        return one, other
    found = by_word(one, first), by_word(other, second)
    counts = [(each.batch.input_lengths, each.batch.target_lengths) for each in found]
    alike = all(_same(*lengths) for lengths in zip(*counts, strict=True))
    if one.input_mask.ndim > 2 or not alike:
        raise UsageError("A model to compare with cuts texts into other pieces.")
    return found


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.equal(other)


def _between(subject: Subject, rivals: Sequence[Adapted]) -> list[Record]:
    if not rivals:
        return []
    twins = [_twin(subject, model) for model in rivals]
    found = {
        name: np.mean([_agreement(subject, twin, name) for twin in twins], 0) for name in SCORES
    }
    records: list[Record] = [
        subject.mean("stability", values, {"score": name}) for name, values in found.items()
    ]
    difference = found["attention"] - found["lexical_probe"]
    return [*records, subject.mean("stability_difference", difference)]


def _entropies(subject: Subject) -> Float[np.ndarray, " example"]:
    site = subject.site

    def entropy(part: Batch) -> Tensor:
        return site_entropy(subject.trace(part, [site]).sites[site], part).nanmean(1)

    return subject.each(entropy)


def _along(subject: Subject, checkpoints: Mapping[int, Path]) -> list[Record]:
    curves: dict[str, dict[int, object]] = {name: {} for name in (*SCORES, "entropy")}
    for step, folder in sorted(checkpoints.items()):
        twin = _twin(subject, with_weights(subject.model, folder))
        for name in SCORES:
            curves[name][step] = subject.interval(_agreement(subject, twin, name))
        curves["entropy"][step] = subject.interval(_entropies(twin))
    return [
        Curve.of(
            "entropy" if name == "entropy" else "agreement_with_last",
            subject.texts.name,
            "step",
            points,  # type: ignore[arg-type]
            {"score": "attention" if name == "entropy" else name, "curve": "checkpoints"},
            (subject.seed,),
            subject.texts.split,
        )
        for name, points in curves.items()
        if points
    ]
