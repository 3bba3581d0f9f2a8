"""Scores that are not stored and are computed for the report, and the user's own sentences.

Proxy, IBM Model 1 and the nine terms are computed from the weights after training, of the few
examples that are shown; so are the scores of a user's sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from attnscope.analysis.alignment_terms import CROSS, TERMS, compute_alignment_terms
from attnscope.analysis.decomposition import decompose
from attnscope.data.batch import Batch
from attnscope.data.source import Source
from attnscope.errors import AttnscopeError
from attnscope.report.answers import model_answers
from attnscope.report.examples import shown_example
from attnscope.report.scenes import Follower, Map, Scene, Shown
from attnscope.report.units import role
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.lexicon import proxy_lexicon
from attnscope.scores.saliency import Saliency
from attnscope.scores.score import Score
from attnscope.scores.subwords import RULE_OF_SCORE
from attnscope.theory.ibm1 import IbmModel1
from attnscope.theory.initial_derivative import PaddedPairs
from attnscope.training.trained_unit import TrainedUnit

# Sentence pairs that IBM Model 1 is fitted to: a report must not take long.
_PAIRS = 4000
# Evaluation examples that states are averaged over.
_DECOMPOSED = 200


def displayed(values: np.ndarray, rule: Any) -> np.ndarray:
    """Return values as they are shown: a probe stored as log-odds as a probability."""
    reading = getattr(rule, "reading", None)
    if reading == "log_odds":
        return 1 / (1 + np.exp(-np.clip(values, -60, 60)))
    return np.exp(values) if reading == "log_probability" else values


def extra_maps(
    followed: Sequence[TrainedUnit],
    proxies: Sequence[TrainedUnit],
    batch: Batch,
    notices: list[str],
) -> list[Map]:
    """Return the scores that are not stored; a notice names those that cannot be computed."""
    source = followed[0].unit.source
    made = []
    for unit in proxies:
        try:
            lexicon = proxy_lexicon(unit.best_model)  # type: ignore[arg-type]
            made.append(_after(lexicon.score(batch), -1, "after training"))
        except AttnscopeError as error:
            notices.append(f"The proxy {unit.folder.name} is not shown: {error}")
    if source.boundaries is not None:
        made += _ibm(source, batch, notices)
    for place, unit in enumerate(followed):
        made += _terms(unit, place, batch)
    return made


def _ibm(source: Source, batch: Batch, notices: list[str]) -> list[Map]:
    try:
        model = _fitted(source)
    except AttnscopeError as error:
        notices.append(f"IBM Model 1 is not shown for {source.dataset}: {error}")
        return []
    score = Score("ibm_model1", model.alignment(PaddedPairs.of(batch)), batch.input_mask, batch)
    return [_after(score, -1, f"fitted to {_PAIRS:,} drawn pairs")]


@lru_cache(maxsize=32)
def _fitted(source: Source) -> IbmModel1:
    """Fit IBM Model 1, once for a served page that is made again and again."""
    sample = source.training_batch(0, 0, _PAIRS)
    return IbmModel1.fit(PaddedPairs.of(sample), len(source.input_words), len(source.output_words))


def _terms(unit: TrainedUnit, place: int, batch: Batch) -> list[Map]:
    """Return the nine terms of the logits (aitken Eq. 3), where attention is a product."""
    if unit.unit.model.model_dump().get("kind") != "encoder-decoder":
        return []
    try:
        model: Any = unit.model
        many = unit.unit.source.evaluation_batch(_DECOMPOSED)
        with torch.no_grad():
            components = decompose([model.trace(many, unit.unit.training.attention)], CROSS)
            trace = model.trace(batch, unit.unit.training.attention)
            parts = list(compute_alignment_terms(trace, components))
    except (AttnscopeError, FileNotFoundError):
        return []
    values = torch.cat([part.values for part in parts]).sum(1)  # over heads
    mask = torch.cat([part.mask for part in parts]).any(1)
    return [
        _after(
            Score(f"term_{'_'.join(term)}", values[:, index], mask, batch),
            place,
            "part of the logits, after training",
        )
        for index, term in enumerate(TERMS)
    ]


def _after(score: Score, unit: int, note: str) -> Map:
    """Return a score that was read after training as a map."""
    merge = RULE_OF_SCORE.get(score.name, "sum" if score.name == "ibm_model1" else "max")
    values: list[list[np.ndarray | None]] = [[each] for each in _unpadded(score)]
    return Map(score.name, unit, [None], values, note, merge)


def _unpadded(score: Score) -> list[np.ndarray]:
    array, batch = score.array().astype(np.float64), score.batch
    return [
        array[row, : int(batch.target_lengths[row]), : int(batch.input_lengths[row])]
        for row in range(len(batch))
    ]


def sentence_scene(unit: TrainedUnit, sentences: Sequence[str]) -> list[Scene]:
    """Return the user's own sentences as the trained unit reads them, those that it can."""
    rules = (Attention(), LexicalProbe(), Saliency())
    maps = [
        Map(rule.name, 0, [None], [], "after training", RULE_OF_SCORE.get(rule.name, "max"))
        for rule in rules
    ]
    shown: list[Shown] = []
    for sentence in sentences:
        try:
            scores = [unit.score(rule.kind, sentence) for rule in rules]
        except AttnscopeError:
            continue
        answer = model_answers(unit, scores[0].batch)[0]
        shown.append(
            shown_example(unit.source, scores[0].batch, 0, sentence, text=sentence, answer=answer)
        )
        for each, rule, score in zip(maps, rules, scores, strict=True):
            each.values.append([displayed(_unpadded(score)[0], rule)])
    title = f"{unit.unit.source.dataset}: your sentences"
    label = role(unit.folder.config)
    scene = Scene(
        f"sentences/{unit.folder.name}",
        title,
        f"As {unit.folder.name} reads them after training; outputs are its own.",
        shown,
        [Follower(unit.folder.name, label)],
        maps,
    )
    return [scene] if shown else []
