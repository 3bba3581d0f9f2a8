"""What can be had without attention, next to a model's accuracy.

Of classifiers a majority and a bag of words; of translators the token that mostly follows the one
before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from attnscope.analysis.baselines import Baselines
from attnscope.data.batch import Batch, Example
from attnscope.data.corpus import Corpus
from attnscope.data.reading import CorpusReading
from attnscope.recipes.kit.sheet import Sheet, point
from attnscope.runs.result import Measurement


def baseline_rows(sheet: Sheet, source: Corpus, texts: Sequence[Example]) -> list[Measurement]:
    """Return the accuracy of the most frequent label and of a bag of words on some texts.

    With them come the share of unknown tokens and the median length, by which a reader sees whether
    the tokens are words.
    """
    fitted, n = _fitted(source), len(texts)
    plain = replace(sheet, seeds=(), axes={}, table="")
    rows = [
        plain.rate("majority", int(fitted.majority_right(texts).sum()), n, share=True),
        plain.rate("bag_of_words", int(fitted.regression_right(texts).sum()), n, share=True),
    ]
    reading = CorpusReading.of(source, texts)
    rows.append(plain.row("unknown_share", point(reading.unknown, n), share=True))
    return [*rows, plain.point("tokens_per_text", reading.length, n=n)]


# Sentence pairs whose successions of tokens are counted; more change nothing that is printed.
_COUNTED = 20_000


def previous_token_row(sheet: Sheet, source: Corpus, batch: Batch) -> Measurement:
    """Return how often the right token is the one that mostly follows the token before it.

    A translator that is not better has learned nothing from the sentences that it reads.
    """
    following = _following(source)
    mask = batch.target_mask
    before, right = batch.decoder_inputs[mask].tolist(), batch.targets[mask].tolist()
    found = sum(following.get(b) == r for b, r in zip(before, right, strict=True))
    plain = replace(sheet, seeds=(), axes={}, table="")
    return plain.row("previous_token", point(found / len(right), len(right)), share=True)


@lru_cache(maxsize=4)
def _following(source: Corpus) -> dict[int, int]:
    """Return the most frequent next token of each token, over training pairs drawn evenly."""
    examples = source.training_examples
    counts: Counter[tuple[int, int]] = Counter()
    for example in examples[:: max(1, len(examples) // _COUNTED)]:
        counts.update(zip(example.decoder_inputs, example.targets, strict=True))
    best: dict[int, int] = {}
    # Of equally frequent ones the smaller id, whatever the order of counting.
    for (before, after), _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        best.setdefault(int(before), int(after))
    return best


@lru_cache(maxsize=4)
def _fitted(source: Corpus) -> Baselines:
    return Baselines.fit(source.training_examples, len(source.input_words))
