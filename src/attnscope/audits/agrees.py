"""Does attention agree with other scores? Top 5 % agreement and Kendall's τ-b, against chance.

A translator's scores are also compared with IBM Model 1, which knows nothing of the model: how
often words meet in parallel text decides alone. Every head of every site that scores inputs is
compared with the lexical probe.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attnscope.analysis.agreement import chance_agreement, top_share_agreement
from attnscope.analysis.comparison import Metric, per_word
from attnscope.analysis.kendall import kendall_tau_b
from attnscope.audits.lexicon import NAME as IBM, ibm_scores
from attnscope.audits.subject import Subject
from attnscope.audits.uniform import matrix_of_heads
from attnscope.models.places import Place
from attnscope.runs.result import Record
from attnscope.scores.attention import Attention
from attnscope.scores.score import Score, read_scores


def measure(subject: Subject) -> list[Record]:
    """Return how far attention agrees with every other score, and each score with IBM Model 1."""
    others = subject.all_scores(subject.rules)
    attention = others.pop("attention")
    translated = ibm_scores(subject)
    if translated is not None:
        others[IBM] = subject.stored[IBM] = translated
    records: list[Record] = []
    for name, scores in others.items():
        pairs = list(zip(attention, scores, strict=True))
        agree = per_example(subject, pairs, top_share_agreement)
        chance = per_example(subject, pairs, chance_agreement)
        records.append(subject.mean("agreement", agree, {"score": name}))
        above = subject.mean("agreement_above_chance", agree - chance, {"score": name})
        records.append(above)
        tau = per_example(subject, pairs, kendall_tau_b)
        records.append(subject.mean("tau", tau, {"score": name}))
    if translated is not None:
        records += _with_ibm(subject, translated)
    return [*records, *_of_heads(subject)]


def _of_heads(subject: Subject) -> list[Record]:
    """Return how far each head agrees with the lexical probe, as a picture."""
    places = [place for place in subject.model.places if _scores_inputs(place, subject)]
    rules = [Attention(site=p.name, heads=head) for p in places for head in range(p.heads)]
    if not rules:
        return []
    found = np.full((len(rules), len(subject.batch)), np.nan)
    for (rows, part), probe in zip(subject.parts, subject.scores("lexical_probe"), strict=True):
        for number, score in enumerate(read_scores(rules, subject.model, part)):
            values = per_word(subject.of_words(score), probe, top_share_agreement)
            found[number, rows.numpy()] = _mean_over_words(values)
    means = iter(np.nanmean(found, 1).tolist())
    heads_of = {place.name: [next(means) for _ in range(place.heads)] for place in places}
    return [matrix_of_heads(subject, "agreement_map", heads_of)]


def _scores_inputs(place: Place, subject: Subject) -> bool:
    """Tell whether a site attends to the inputs, from rows that belong to outputs."""
    return place.keys == "source" and (subject.labels or place.reads == "own")


def _with_ibm(subject: Subject, translated: list[Score]) -> list[Record]:
    """Return how often each score's top word is among those of IBM Model 1."""
    records: list[Record] = []
    for name in subject.rules:
        pairs = list(zip(subject.scores(name), translated, strict=True))
        agree = per_example(subject, pairs, top_share_agreement)
        records.append(subject.mean("agreement_with_ibm1", agree, {"score": name}))
    return records


def per_example(
    subject: Subject, pairs: list[tuple[Score, Score]], metric: Metric
) -> Float[np.ndarray, " example"]:
    """Return each example's mean agreement over its output words."""
    found = np.full(len(subject.batch), np.nan)
    for (rows, _), (first, second) in zip(subject.parts, pairs, strict=True):
        found[rows.numpy()] = _mean_over_words(per_word(first, second, metric))
    return found


def _mean_over_words(values: Float[np.ndarray, "example out"]) -> Float[np.ndarray, " example"]:
    counted = (~np.isnan(values)).sum(1)
    return np.where(counted > 0, np.nansum(values, 1) / np.maximum(counted, 1), np.nan)
