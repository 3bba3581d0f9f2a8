"""Texts with marked words for the recipe on rationales: people's, or the package's own stand-in.

The package's own corpus has no annotators. So that the recipe runs without any download, a word of
it counts as marked where it comes nearly always with its text's label in the training part: its
grammar's words of praise and blame.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.data.batch import Example, collate
from attnscope.data.corpus import Corpus
from attnscope.data.known import locate
from attnscope.data.rationales import Annotated, annotated
from attnscope.data.text import LabelledText
from attnscope.errors import UsageError

_SHARE, _COUNT = 0.8, 10  # of a word's occurrences that have one label; fewer say nothing


def marked_texts(source: Corpus, splits: Sequence[str]) -> dict[str, Annotated]:
    """Return held-out texts with their marks, split by split."""
    if not isinstance(source, LabelledText):
        return {"val": stand_in(source)}
    here = locate(source.definition).splits
    found = {split: annotated(source, split) for split in splits if split in here}
    if not found:
        raise UsageError(
            f"{source.dataset} has none of the splits {', '.join(splits)}; it has "
            f"{', '.join(here)}."
        )
    return found


def stand_in(source: Corpus) -> Annotated:
    """Return the validation texts of a corpus with words that nearly always have one label."""
    batch = collate(source.validation_examples)
    words = batch.input_mask & (batch.inputs != batch.inputs[0, batch.input_lengths[0] - 1])
    share = _label_share(source.training_examples, len(source.input_words))
    marked = (share[batch.inputs, batch.targets] >= _SHARE) & words
    some = marked.any(1)
    kept = batch.rows(some)
    left_out = {"no rationale": int((~some).sum())} if not bool(some.all()) else {}
    return Annotated(kept, words[some], marked[some], left_out)


def _label_share(examples: Sequence[Example], types: int) -> Float[Tensor, "input_type label"]:
    """Return for each word how much of its occurrences each label has; 0 for rare words."""
    batch = collate(examples)
    labels = int(batch.targets.max()) + 1
    cells = (batch.inputs * labels + batch.targets)[batch.input_mask]
    counts = torch.bincount(cells, minlength=types * labels).view(types, labels).double()
    total = counts.sum(1, keepdim=True)
    return torch.where(total >= _COUNT, counts / total.clamp(min=1), 0.0)
