"""Is attention the same from another seed, and how was it learned?

Agreement (top 5 %) of attention and of the lexical probe between models that were trained alike,
and of each checkpoint with the last one: the two stages of snell on the user's own training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.agreement import top_share_agreement
from attnscope.audits.agrees import per_example
from attnscope.audits.subject import Subject
from attnscope.audits.uniform import site_entropy
from attnscope.data.batch import Batch
from attnscope.models.adapted import Adapted
from attnscope.runs.result import Curve, Record

SCORES = ("attention", "lexical_probe")


def measure(
    subject: Subject, rivals: Sequence[Adapted], checkpoints: Mapping[int, Adapted]
) -> list[Record]:
    """Return agreement with other models, and along checkpoints."""
    return [*_between(subject, rivals), *_along(subject, checkpoints)]


def _twin(subject: Subject, model: Adapted) -> Subject:
    """Return another model on the same examples, asked about the same outputs."""
    twin = Subject(model, subject.texts, subject.batch, subject.seed, subject.draws)
    twin.__dict__["parts"] = subject.parts
    return twin


def _agreement(one: Subject, other: Subject, name: str) -> Float[np.ndarray, " example"]:
    pairs = list(zip(one.scores(name), other.scores(name), strict=True))
    return per_example(one, pairs, top_share_agreement)


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


def _along(subject: Subject, checkpoints: Mapping[int, Adapted]) -> list[Record]:
    curves: dict[str, dict[int, object]] = {name: {} for name in (*SCORES, "entropy")}
    for step, model in sorted(checkpoints.items()):
        twin = _twin(subject, model)
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
