"""Links between the words of gold sentences: by place, by IBM Model 1, by a translator's scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, cast

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnscope.analysis.alignment import links_of
from attnscope.data.batch import Batch, Example, collate, prefix_mask
from attnscope.data.corpus import Corpus
from attnscope.data.text import ParallelText
from attnscope.data.tokens import UNKNOWN
from attnscope.recipes.extra.alignment_text import Gold, Links, Words
from attnscope.scores.score import ScoreRule
from attnscope.scores.subwords import merge_words
from attnscope.theory.ibm1 import IbmModel1, reverse
from attnscope.theory.initial_derivative import PaddedPairs
from attnscope.training.evaluation import kept_scores, padded_score
from attnscope.training.trained_unit import TrainedUnit


def diagonal_links(gold: Gold) -> Links:
    """Link each output word to the input word at the same part of the sentence: a baseline."""
    (targets, target_lengths), (sources, source_lengths) = (
        (torch.arange(width), torch.tensor([len(words) for words in side]))
        for width, side in zip(gold.shape, gold.sides[::-1], strict=True)
    )
    place = (2 * targets + 1) * source_lengths[:, None] // (2 * target_lengths[:, None])
    real = prefix_mask(target_lengths, len(targets))[:, :, None]
    return (place[:, :, None] == sources) & real


def ibm_links(
    gold: Gold,
    text: tuple[list[Words], list[Words]] | None = None,
    *,
    iterations: int = 5,
    null: bool = True,
) -> dict[str, Links]:
    """Align gold sentences by IBM Model 1.

    Parameters
    ----------
    gold
        The sentences; their links are not looked at.
    text
        Further sentences to learn from, as of `attnscope.recipes.extra.alignment.training_text`.
    iterations, null
        As in `attnscope.theory.ibm1.IbmModel1.fit`.

    Returns
    -------
    dict of Tensor
        ``forward`` gives each output word at most one input word, ``backward`` each input word at
        most one output word; their ``intersection`` and ``union``.
    """
    sides = zip(gold.sides, text or ([], []), strict=True)
    numbered = [_numbered([_lowered(own), more]) for own, more in sides]
    (inputs, input_mask, input_types), (targets, target_mask, output_types) = numbered
    pairs = PaddedPairs(inputs, input_mask, targets, target_mask)
    first = PaddedPairs(*(part[: len(gold.sentences)] for part in pairs))
    out, inp = gold.shape

    def aligned(pairs: PaddedPairs, asked: PaddedPairs, types: tuple[int, int]) -> Links:
        model = IbmModel1.fit(pairs, *types, iterations=iterations, null=null)
        shares = model.alignment(asked)
        floor = 1 - shares.sum(-1) if null else -torch.inf
        return links_of(shares, asked.input_mask, asked.target_mask, floor)

    forward = aligned(pairs, first, (input_types, output_types))[:, :out, :inp]
    turned = (output_types, input_types)
    backward = aligned(reverse(pairs), reverse(first), turned).mT[:, :out, :inp]
    return {
        "forward": forward,
        "backward": backward,
        "intersection": forward & backward,
        "union": forward | backward,
    }


def _lowered(sentences: Iterable[Words]) -> list[Words]:
    return [[word.lower() for word in sentence] for sentence in sentences]


def _numbered(
    parts: Iterable[Iterable[Words]],
) -> tuple[Int[Tensor, "batch time"], Bool[Tensor, "batch time"], int]:
    """Return sentences as padded ids, their mask, and the number of types."""
    types: dict[str, int] = {}
    rows = []
    for sentence in chain.from_iterable(parts):
        ids = [types.setdefault(word, len(types)) for word in sentence]
        rows.append(np.array(ids, dtype=np.int64))
    lengths = torch.tensor([len(row) for row in rows])
    padded = _padded(rows, 0)
    return padded, prefix_mask(lengths, padded.shape[1]), len(types)


def model_links(
    gold: Gold,
    translator: TrainedUnit,
    model: Any,
    rules: Mapping[str, ScoreRule],
    device: str = "cpu",
) -> dict[str, Links]:
    """Link each output word to the input word of the highest score, by the rules' names."""
    unit = translator.unit
    source = cast(Corpus, unit.source)
    batch, input_groups, output_groups = forced(source, gold)
    arrays = kept_scores(model, batch.to(device), source, unit.training, tuple(rules.values()))
    found = {}
    for name, rule in rules.items():
        score = merge_words(padded_score(rule.name, arrays, batch), input_groups, output_groups)
        found[name] = links_of(score.values, score.input_mask, score.target_mask)
    return found


def forced(
    source: Corpus, gold: Gold
) -> tuple[Batch, Int[Tensor, "batch inp"], Int[Tensor, "batch out"]]:
    """Return gold pairs as the translator reads them, and the word of each piece.

    Words are cut one by one, which gives the same pieces as the whole sentence, since no piece
    crosses a blank, and leaves no doubt which word a piece is of.
    """
    assert source.boundaries is not None
    bos, eos = source.boundaries
    *front, end = source.encode("")
    examples, inputs, outputs = [], [], []
    for n, pair in enumerate(gold.sentences):
        x, y = _cut(source, pair.source, "input"), _cut(source, pair.target, "output")
        flat_x, flat_y = ([piece for word in side for piece in word] for side in (x, y))
        examples.append(Example(n, [*front, *flat_x, end], [bos, *flat_y], [*flat_y, eos]))
        inputs.append(np.array([*(-1 for _ in front), *_owners(x), -1]))
        outputs.append(np.array([*_owners(y), -1]))
    return collate(examples), _padded(inputs, -1), _padded(outputs, -1)


def _cut(source: Corpus, words: Words, side: Literal["input", "output"]) -> list[list[int]]:
    if isinstance(source, ParallelText):
        unknown = source.input_words.id(UNKNOWN)
        # A word of characters that SentencePiece drops still has a place among the words.
        return [pieces or [unknown] for pieces in source.tokeniser.encode(words)]
    vocabulary = source.input_words if side == "input" else source.output_words
    return [[vocabulary.id(word)] for word in words]


def _owners(words: Sequence[Sequence[int]]) -> list[int]:
    return [n for n, pieces in enumerate(words) for _ in pieces]


def _padded(rows: Sequence[np.ndarray], fill: int) -> Int[Tensor, "batch time"]:
    tensors = [torch.from_numpy(row) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=fill)
