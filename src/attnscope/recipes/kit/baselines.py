"""The accuracy of a majority and of a bag of words, next to a model's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from attnscope.analysis.baselines import Baselines
from attnscope.data.batch import Example
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


@lru_cache(maxsize=4)
def _fitted(source: Corpus) -> Baselines:
    return Baselines.fit(source.training_examples, len(source.input_words))
