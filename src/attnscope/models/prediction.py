"""A model's output for a user's texts: a label with the probability of each, or a translation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from attnscope.data.batch import Example, collate
from attnscope.data.source import Source
from attnscope.errors import UsageError
from attnscope.models.decoding import Attention, greedy
from attnscope.models.trace import AttentionModel

_AT_ONCE = 64


@dataclass(frozen=True)
class Prediction:
    """The output for one text.

    Attributes
    ----------
    text
        As given.
    output
        The most probable label, or the words that the model writes.
    probability
        Of that label, or of all of these words together.
    probabilities
        Of every label; empty for a translation.
    unknown
        How many words of the text the model does not know.
    """

    text: str
    output: str
    probability: float
    probabilities: Mapping[str, float] = field(default_factory=dict)
    unknown: int = 0


@torch.no_grad()
def predict(
    model: AttentionModel,
    source: Source,
    texts: Sequence[str],
    attention: Attention | None = None,
    limit: int = 100,
) -> list[Prediction]:
    """Return the output of a model for each text.

    Parameters
    ----------
    source
        Cuts texts, and names labels or words.
    attention
        The rules of the weights at named sites, as in ``trace``.
    limit
        Most words of a translation.
    """
    ids = [source.encode(text) for text in texts]
    for text, each in zip(texts, ids, strict=True):
        if not each:
            raise UsageError(f"The text {text!r} has no words.")
    made: list[Prediction] = []
    for start in range(0, len(texts), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        outputs = _outputs(model, source, ids[part], attention, limit)
        for text, words, output in zip(texts[part], ids[part], outputs, strict=True):
            made.append(Prediction(text, *output, _unknown(source, words)))
    return made


def _outputs(
    model: AttentionModel,
    source: Source,
    ids: Sequence[Sequence[int]],
    attention: Attention | None,
    limit: int,
) -> list[tuple[str, float, dict[str, float]]]:
    batch = collate([Example(n, each, [0], [0]) for n, each in enumerate(ids)])
    if source.boundaries is not None:
        written = greedy(model, batch, source.boundaries, limit, attention)
        sentences = [source.sentence(words) for words in written.words]
        chances = torch.tensor(written.scores, dtype=torch.float64).exp().tolist()
        return [(text, p, {}) for text, p in zip(sentences, chances, strict=True)]
    shares = model.trace(batch, attention).logits[:, 0].softmax(-1).tolist()
    made = []
    for row in shares:
        each = dict(zip(source.output_words.words, row, strict=True))
        label = max(each, key=each.__getitem__)
        made.append((label, each[label], each))
    return made


def _unknown(source: Source, ids: Sequence[int]) -> int:
    words = source.input_words
    return 0 if words.unknown is None else list(ids).count(words.id(words.unknown))
