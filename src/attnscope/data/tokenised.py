"""Texts as batches through any tokeniser, with the word that each piece belongs to.

A tokeniser is a Hugging Face one or any function from text to ids. Words are what stands between
blanks; pieces are matched to them by their place in the text where the tokeniser tells it, else by
the marks of SentencePiece (▁), byte-level BPE (Ġ) and WordPiece (##). Texts that are too long are
left out and counted, never cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import torch
from jaxtyping import Int
from torch import Tensor

from attnscope.data.batch import Batch, Example, collate
from attnscope.errors import UsageError

Task = Literal["labels", "translation", "next word"]
_STARTS, _GOES_ON = ("▁", "Ġ"), "##"
_MOSTLY_UNKNOWN = 0.5


@dataclass(frozen=True)
class TokenisedBatch(Batch):
    """A batch that knows the word of each piece, counted from 0; -1 where there is none."""

    input_words: Int[Tensor, "batch inp"] = field(kw_only=True)
    target_words: Int[Tensor, "batch out"] = field(kw_only=True)

    def trimmed(self) -> TokenisedBatch:
        """Return the batch without the padding that all its examples share."""
        inp, out = int(self.input_lengths.max()), int(self.target_lengths.max())
        sides = {"inputs": inp, "input_words": inp, "decoder_inputs": out}
        sides |= {"targets": out, "gold": out, "target_words": out}
        return replace(self, **{name: getattr(self, name)[:, :end] for name, end in sides.items()})


@dataclass(frozen=True)
class Encoded:
    """One text as ids, and the word of each."""

    ids: list[int]
    words: list[int]


class Tokeniser:
    """One way to cut text, whatever stands behind it.

    Parameters
    ----------
    cut
        A Hugging Face tokeniser, or a function from a text to ids.
    """

    def __init__(self, cut: Any) -> None:
        self.cut = cut
        self.hub = hasattr(cut, "convert_ids_to_tokens")

    @property
    def pad(self) -> int:
        """The id that fills rows."""
        return int(getattr(self.cut, "pad_token_id", None) or 0)

    @property
    def unknown(self) -> int | None:
        """The id of unknown pieces."""
        return getattr(self.cut, "unk_token_id", None)

    @property
    def longest(self) -> int | None:
        """The longest text it was made for."""
        length = getattr(self.cut, "model_max_length", None)
        return length if isinstance(length, int) and length < 10**6 else None

    def encode(self, text: str, *, target: bool = False) -> Encoded:
        """Return the ids of a text; ``target`` for the language that is written."""
        if not self.hub:
            ids = list(self.cut(text))
            words = list(range(len(ids))) if len(ids) == len(text.split()) else [-1] * len(ids)
            return Encoded(ids, words)
        given = {"text_target": text} if target else {"text": text}
        if getattr(self.cut, "is_fast", False):
            found = self.cut(**given, return_offsets_mapping=True, verbose=False)
            ids, spans = found["input_ids"], found["offset_mapping"]
            special = self._special(ids)
            return Encoded(ids, _words_at(text, spans, special))
        ids = self.cut(**given, verbose=False)["input_ids"]
        pieces = self.cut.convert_ids_to_tokens(ids)
        return Encoded(ids, _words_by_marks(pieces, self._special(ids)))

    def decode(self, ids: Sequence[int]) -> list[str]:
        """Return the pieces of ids, without the marks of their tokeniser."""
        if not self.hub:
            return [str(index) for index in ids]
        pieces = self.cut.convert_ids_to_tokens(list(ids))
        return [_shown(self.cut, piece) for piece in pieces]

    def _special(self, ids: Sequence[int]) -> list[bool]:
        special = set(getattr(self.cut, "all_special_ids", ()))
        return [index in special for index in ids]


def _shown(cut: Any, piece: str) -> str:
    if piece.startswith(_STARTS) or piece.startswith(_GOES_ON):
        return piece.lstrip("▁Ġ").removeprefix(_GOES_ON) or piece
    if any(ord(c) > 0x100 for c in piece):  # a byte-level alphabet
        return cut.convert_tokens_to_string([piece]) or piece
    return piece


def _words_at(text: str, spans: Sequence[tuple[int, int]], special: Sequence[bool]) -> list[int]:
    """Return the number of the blank-separated word in which each span ends."""
    number, numbers = -1, []
    for place, character in enumerate(text):
        starts = not character.isspace() and (place == 0 or text[place - 1].isspace())
        number += starts
        numbers.append(-1 if character.isspace() else number)
    return [
        -1 if outside or end <= start else numbers[end - 1]
        for (start, end), outside in zip(spans, special, strict=True)
    ]


def _words_by_marks(pieces: Sequence[str], special: Sequence[bool]) -> list[int]:
    marked = any(piece.startswith(_STARTS) for piece in pieces)
    words, number = [], -1
    for piece, outside in zip(pieces, special, strict=True):
        new = piece.startswith(_STARTS) if marked else not piece.startswith(_GOES_ON)
        number += not outside and (new or number < 0)
        words.append(-1 if outside else number)
    return words


@dataclass(frozen=True)
class Tokenised:
    """Texts as a batch, and how many were left out for which reason."""

    batch: TokenisedBatch
    left_out: dict[str, int]


def tokenise(
    tokeniser: Tokeniser,
    task: Task,
    texts: Sequence[str],
    wanted: Sequence[int] | Sequence[str] | None = None,
    *,
    longest: int | None = None,
    start: int = 0,
    ids: Sequence[int] | None = None,
) -> Tokenised:
    """Cut texts into a batch for a task.

    Parameters
    ----------
    texts, wanted
        Texts with their labels, with their translations, or alone for a language model, which
        predicts each next piece.
    longest
        The most pieces that the model takes.
    start
        The id from which a decoder starts.
    ids
        Numbers of the examples, by default their places.
    """
    if wanted is not None and len(wanted) != len(texts):
        raise UsageError(f"There are {len(texts)} texts and {len(wanted)} labels or translations.")
    make: Callable[..., tuple[Encoded, list[int], Encoded]] = _MAKERS[task]
    examples, inputs, targets = [], [], []
    left_out: Counter[str] = Counter()
    for place, text in enumerate(texts):
        source, decoder, target = make(
            tokeniser, text, None if wanted is None else wanted[place], start
        )
        if not source.ids or not target.ids:
            left_out["no pieces"] += 1
        elif longest is not None and max(len(source.ids), len(target.ids)) > longest:
            left_out[f"more than {longest} pieces"] += 1
        else:
            number = place if ids is None else ids[place]
            examples.append(Example(number, source.ids, decoder, target.ids))
            inputs.append(source.words)
            targets.append(target.words)
    if not examples:
        raise UsageError(f"No text can be read: {dict(left_out)}.")
    _demand_known(tokeniser, [index for each in examples for index in each.inputs])
    batch = collate(examples, tokeniser.pad)
    parts = {f.name: getattr(batch, f.name) for f in fields(batch)}
    words = {"input_words": _padded(inputs), "target_words": _padded(targets)}
    return Tokenised(TokenisedBatch(**parts, **words), dict(left_out))


def _labelled(
    cut: Tokeniser, text: str, label: Any, start: int
) -> tuple[Encoded, list[int], Encoded]:
    return cut.encode(text), [0], Encoded([0 if label is None else int(label)], [0])


def _translated(
    cut: Tokeniser, text: str, to: Any, start: int
) -> tuple[Encoded, list[int], Encoded]:
    if not isinstance(to, str):
        raise UsageError("A translator needs the translations: batch(sources, targets).")
    target = cut.encode(to, target=True)
    return cut.encode(text), [start, *target.ids[:-1]], target


def _continued(
    cut: Tokeniser, text: str, nothing: Any, start: int
) -> tuple[Encoded, list[int], Encoded]:
    whole = cut.encode(text)
    source = Encoded(whole.ids[:-1], whole.words[:-1])
    return source, source.ids, Encoded(whole.ids[1:], whole.words[1:])


_MAKERS = {"labels": _labelled, "translation": _translated, "next word": _continued}


def _padded(rows: Sequence[Sequence[int]]) -> Int[Tensor, "batch width"]:
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[-1] * (width - len(row))] for row in rows])


def _demand_known(tokeniser: Tokeniser, ids: Sequence[int]) -> None:
    unknown = sum(index == tokeniser.unknown for index in ids) / max(1, len(ids))
    if unknown > _MOSTLY_UNKNOWN:
        raise UsageError(
            f"The tokeniser knows fewer than half of the words ({unknown:.0%} are unknown): it is "
            "not the one that the model was trained with."
        )
