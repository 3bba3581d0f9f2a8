"""IBM Model 1 on the pieces of a translator's tokeniser, as a score of the audited pairs.

It learns from the training part of the corpus where there is one, else from all pairs that the
data has, and from the audited pairs themselves, so that every pair of words in them has met.
"""

from __future__ import annotations

from collections.abc import Sequence

from attnscope.audits.subject import Subject
from attnscope.scores.score import Score
from attnscope.theory.ibm1 import IbmModel1
from attnscope.theory.initial_derivative import PaddedPairs

NAME = "ibm_model1"


def ibm_scores(subject: Subject) -> list[Score] | None:
    """Return α^IBM (snell Eq. 19) on every part; None where the model is not a translator."""
    targets = subject.texts.targets
    if subject.model.facts.task != "translation" or targets is None:
        return None
    model = _fitted(subject, targets)
    scores = []
    for _, part in subject.parts:
        values = model.alignment(PaddedPairs.of(part.to("cpu"))).float().to(part.inputs.device)
        scores.append(subject.of_words(Score(NAME, values, part.input_mask, part)))
    return scores


def _fitted(subject: Subject, targets: Sequence[str]) -> IbmModel1:
    study = subject.texts.study
    sources = [*(source for source, _ in study), *subject.texts.texts]
    batch = subject.model.read(sources, [*(target for _, target in study), *targets]).batch
    types = 1 + int(max(batch.inputs.max(), batch.targets.max()))
    return IbmModel1.fit(PaddedPairs.of(batch), types, types)
