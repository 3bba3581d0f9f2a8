"""Does attention point at what people marked? Word alignments, or rationales.

For alignments each head is an aligner of its own: the best one is chosen on one half of the
sentences and measured on the other. The row of an output word is read as it is, and one step later,
where some decoders put it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.alignment import link_tensor, links_of
from attnscope.analysis.faithfulness import random_score
from attnscope.analysis.rationales import average_precision, chance_average_precision
from attnscope.audits.subject import Subject
from attnscope.data.removal import word_groups
from attnscope.data.tokenised import TokenisedBatch
from attnscope.runs.measurement import Label
from attnscope.runs.result import Record
from attnscope.scores.attention import Attention
from attnscope.scores.score import Score, read_score
from attnscope.scores.subwords import merge_words

Spans = tuple[tuple[int, int], ...]


def measure(subject: Subject) -> list[Record]:
    """Return agreement with rationales or with gold alignments; nothing where there are none."""
    if subject.texts.rationales is not None and subject.labels:
        return _rationales(subject)
    if subject.texts.sure is not None:
        return _alignments(subject)
    return []


def _rationales(subject: Subject) -> list[Record]:
    spans = dict(zip(subject.texts.ids, subject.texts.rationales or (), strict=True))
    records: list[Record] = []
    for name in subject.rules:
        above = np.full(len(subject.batch), np.nan)
        for (rows, part), score in zip(subject.parts, subject.scores(name), strict=True):
            marks = _marks(part, spans)  # type: ignore[arg-type]
            words = score.input_mask
            found = average_precision(score.values[:, 0], marks, words)
            chance = chance_average_precision(marks, words)
            above[rows.numpy()] = (found - chance).cpu().numpy()
        records.append(subject.mean("gold_above_chance", above, {"score": name}))
    return records


def _marks(
    part: TokenisedBatch, spans: dict[int, tuple[tuple[int, int], ...]]
) -> Bool[Tensor, "batch inp"]:
    marks = torch.zeros_like(part.inputs, dtype=torch.bool)
    for row, example in enumerate(part.ids.tolist()):
        for start, end in spans[example]:
            marks[row] |= (part.input_words[row] >= start) & (part.input_words[row] < end)
    return marks


def _alignments(subject: Subject) -> list[Record]:
    records: list[Record] = []
    for name in subject.rules:
        for reading, shift in (("own row", 0), ("next row", 1)):
            error = _error(subject, subject.scores(name), shift)
            axes = {"score": name, "reading": reading}
            records.append(subject.mean("alignment_error", error, axes))
            if not shift:
                chance = _error(subject, [_chance(each) for each in subject.scores(name)], 0)
                records.append(subject.mean("gold_above_chance", chance - error, {"score": name}))
    return [*records, *_best_head(subject)]


def _best_head(subject: Subject) -> list[Record]:
    """Choose the head with the least error on one half, and measure it on the other."""
    first = np.arange(len(subject.batch)) % 2 == 0
    errors: dict[tuple[str, int], np.ndarray] = {}
    for place in subject.model.places:
        if place.keys != "source" or place.queries != "target":
            continue
        for head in range(place.heads):
            rule = Attention(site=place.name, heads=head)
            scores = [
                subject.of_words(read_score(rule, subject.model, p)) for _, p in subject.parts
            ]
            errors[place.name, head] = _error(subject, scores, 0)
    if not errors:
        return []
    site, head = min(errors, key=lambda key: float(np.nanmean(errors[key][first])))
    axes: dict[str, Label] = {"site": site, "head": head + 1}
    return [subject.mean("gold_best_head", errors[site, head][~first], axes)]


def _read(subject: Subject, rule: Attention) -> list[Score]:
    read = (read_score(rule, subject.model, part) for _, part in subject.parts)
    return [subject.of_words(score) for score in read]


def _chance(score: Score) -> Score:
    """Return a random score of the same words."""
    return replace(random_score(score.batch, 0), input_mask=score.input_mask)


def _error(subject: Subject, scores: list[Score], shift: int) -> Float[np.ndarray, " example"]:
    """Return each sentence's alignment error rate."""
    sure = dict(zip(subject.texts.ids, subject.texts.sure or (), strict=True))
    possible = dict(zip(subject.texts.ids, subject.texts.possible or (), strict=True))
    found = np.full(len(subject.batch), np.nan)
    for (rows, part), score in zip(subject.parts, scores, strict=True):
        merged = _word_links(part, score, shift)  # type: ignore[arg-type]
        for row, example in enumerate(part.ids.tolist()):
            out, inp = merged.shape[1:]
            gold = [
                link_tensor([_inside(links[example], out, inp)], out, inp)
                for links in (sure, possible)
            ]
            one = merged[row : row + 1].cpu()
            below = int(one.sum() + gold[0].sum())
            hit = int((one & gold[0]).sum() + (one & (gold[0] | gold[1])).sum())
            found[int(rows[row])] = 1 - hit / below if below else np.nan
    return found


def _inside(links: frozenset[tuple[int, int]], out: int, inp: int) -> list[tuple[int, int]]:
    return [(s, t) for s, t in links if s < inp and t < out]


def _word_links(part: TokenisedBatch, score: Score, shift: int) -> Bool[Tensor, "batch out inp"]:
    """Link each output word to the input word with the highest score."""
    if shift:
        values = torch.roll(score.values, -shift, dims=1)
        values[:, -1] = score.values[:, -1]
        score = Score(score.name, values, score.input_mask, score.batch)
    merged = by_word(score, part)
    return links_of(merged.values, merged.input_mask, merged.target_mask)


def by_word(score: Score, part: TokenisedBatch) -> Score:
    """Return a score of pieces as one of words, which stand between blanks."""
    targets = part.target_words.masked_fill(~part.target_mask, -1)
    return merge_words(score, word_groups(part), _without_gaps(targets))


def _without_gaps(groups: Tensor) -> Tensor:
    rising = torch.nn.functional.pad(groups, (1, 0), value=-1).cummax(1).values
    fresh = (groups > rising[:, :-1]) & (groups >= 0)
    return (fresh.cumsum(1) - 1).masked_fill(groups < 0, -1)
