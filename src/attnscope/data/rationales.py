"""Texts with human rationales (spans that decide the label), as a batch with marked positions.

Marks count the words between blanks; the source's own tokens are found inside these, so that every
input position is marked or not. A split is read by itself: annotators of one split may have marked
four times as much as those of another, and numbers of different splits are not to be pooled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.data.batch import Batch, Example, collate
from attnscope.data.corpus import Corpus
from attnscope.data.folder import LabelledRecord
from attnscope.data.known import locate
from attnscope.data.text import LabelledText, as_ids, tokeniser_named
from attnscope.data.tokens import Tokeniser
from attnscope.errors import UsageError

# Of a word's occurrences that have one label, and how many there must be.
_SHARE, _COUNT = 0.8, 10


@dataclass(frozen=True)
class Annotated:
    """Examples of one split with the positions that people marked.

    Attributes
    ----------
    batch
        The examples; an id is the place in the split's file.
    words
        True at words: nobody could have marked a boundary.
    rationale
        True at words that were marked.
    left_out
        How many texts were left out, by reason.
    """

    batch: Batch
    words: Bool[Tensor, "batch inp"]
    rationale: Bool[Tensor, "batch inp"]
    left_out: dict[str, int]

    def to(self, device: torch.device | str) -> Annotated:
        """Return the examples on a device."""
        masks = self.words.to(device), self.rationale.to(device)
        return Annotated(self.batch.to(device), *masks, self.left_out)


def annotated(source: LabelledText, split: str) -> Annotated:
    """Read a split with its rationales, in the source's tokens and vocabulary.

    Parameters
    ----------
    source
        A labelled corpus whose folder has rationales.
    split
        Any split of the folder, also one that the source itself does not use.
    """
    if source.definition.classes:
        raise UsageError(f"Rationales are read from whole corpora; {source.dataset} takes classes.")
    cut = tokeniser_named(source.tokens)
    examples: list[Example] = []
    marks: list[np.ndarray] = []
    left_out: Counter[str] = Counter()
    for place, record in enumerate(locate(source.definition).labelled(split)):
        marked = marked_tokens(record, cut)
        ids = as_ids(source.encode(record.text))
        if source.max_length is not None and len(ids) > source.max_length:
            left_out[f"more than {source.max_length} tokens"] += 1
        elif not marked.any():
            left_out["no rationale"] += 1
        else:
            examples.append(Example(place, ids, [0], [record.label]))
            marks.append(marked)
    if not examples:
        raise UsageError(f"No text of {source.dataset}, split {split!r}, has a rationale.")
    batch = collate(examples)
    words = batch.input_mask.clone()
    words[:, 0] = False  # <bos>
    words[torch.arange(len(batch)), batch.input_lengths - 1] = False  # <eos>
    rationale = torch.zeros_like(words)
    rationale[words] = torch.from_numpy(np.concatenate(marks))
    return Annotated(batch, words, rationale, dict(left_out))


def label_words(source: Corpus) -> Annotated:
    """Return the validation texts of a corpus without annotators, marked by what words say.

    A word counts as marked if nearly all its occurrences in the training part are in texts of its
    text's label, such as words of praise and blame; rare words are never marked.
    """
    batch = collate(source.validation_examples)
    words = batch.input_mask & (batch.inputs != batch.inputs[0, batch.input_lengths[0] - 1])
    share = _label_share(source.training_examples, len(source.input_words))
    marked = (share[batch.inputs, batch.targets] >= _SHARE) & words
    some = marked.any(1)
    left_out = {"no rationale": int((~some).sum())} if not bool(some.all()) else {}
    return Annotated(batch.rows(some), words[some], marked[some], left_out)


def _label_share(examples: Sequence[Example], types: int) -> Float[Tensor, "input_type label"]:
    """Return for each word the share of its occurrences that each label has; 0 for rare words."""
    batch = collate(examples)
    labels = int(batch.targets.max()) + 1
    cells = (batch.inputs * labels + batch.targets)[batch.input_mask]
    counts = torch.bincount(cells, minlength=types * labels).view(types, labels).double()
    total = counts.sum(1, keepdim=True)
    return torch.where(total >= _COUNT, counts / total.clamp(min=1), 0.0)


def marked_tokens(record: LabelledRecord, cut: Tokeniser) -> np.ndarray:
    """Return for every token of a text whether it lies in a rationale.

    Parameters
    ----------
    cut
        The tokeniser; no token of its may reach over a blank.
    """
    words = record.text.split()
    edges = np.zeros(len(words) + 1, dtype=np.int64)
    spans = np.array(record.rationales or (), dtype=np.int64).reshape(-1, 2)
    np.add.at(edges, spans[:, 0], 1)
    np.add.at(edges, spans[:, 1], -1)
    inside = edges.cumsum()[:-1] > 0
    pieces: list[Sequence[str]] = [cut(word) for word in words]
    if list(chain.from_iterable(pieces)) != list(cut(record.text)):
        raise UsageError(f"Text {record.id} has tokens that reach over a blank.")
    return inside.repeat([len(piece) for piece in pieces])
