"""Parallel text by words: English to French as aitken reads it (§4).

Words and marks, lower-cased, in one vocabulary for each language; the most frequent ones of the
training part, the others unknown. An input ends in ``<eos>``, which is attended to, and has no
``<bos>``; the decoder reads ``<bos> y`` and writes ``y <eos>``, as in aitken's other tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from attnscope.data.batch import Example
from attnscope.data.corpus import Corpus, GrammarTranslation
from attnscope.data.folder import Pair
from attnscope.data.known import definition, definitions
from attnscope.data.text import Loaded, Text, as_ids, checked, selected_of, tokeniser_named
from attnscope.data.tokens import BOS, EOS, SPECIALS, UNKNOWN
from attnscope.data.vocabulary import Vocabulary
from attnscope.errors import UsageError
from attnscope.runs.spec import read_settings

OWN: dict[str, type[Corpus]] = {"grammar-translation": GrammarTranslation}


@dataclass(frozen=True)
class LoadedWords(Loaded[Pair]):
    """A parallel corpus in word ids; ``words`` are the input's."""

    output_words: Vocabulary


class ParallelWords(Text):
    """Sentence pairs in words of two vocabularies (aitken §4).

    The paper says how many words a language has (30 000) and how long a sentence may be (15
    tokens); how text is cut into words is open there. ``longest`` counts tokens without the end,
    ``max_length``, which all texts have, with it.
    """

    kind: Literal["parallel-words"] = "parallel-words"
    tokens: str = "words-and-marks"
    types: int = Field(30_000, ge=1, description="words of each language; others are unknown")
    longest: int = Field(
        15, ge=1, description="pairs with more tokens on a side are left out and counted"
    )

    @property
    def loaded(self) -> LoadedWords:
        """The corpus in word ids."""
        return _load_words(self)

    @property
    def output_words(self) -> Vocabulary:
        """Word types of the other language, boundaries included."""
        return self.loaded.output_words

    @property
    def boundaries(self) -> tuple[int, int] | None:
        """``<bos>`` and ``<eos>``."""
        return self.output_words.id(BOS), self.output_words.id(EOS)

    def encode(self, text: str) -> list[int]:
        """Cut a sentence into words as the corpus was, with its end."""
        return self.input_words.encode([*tokeniser_named(self.tokens)(text), EOS])

    def references(self, split: str, count: int) -> list[str]:
        """Return the targets in words, rare ones as they are and not as unknown."""
        records = {"val": self.loaded.val_records, "train": self.loaded.train_records}[split]
        cut = tokeniser_named(self.tokens)
        ids = self.evaluation_batch(count, split).ids.tolist()
        return [" ".join(cut(records[index].target)) for index in ids]


def open_words(corpus: str | Path, **settings: Any) -> Corpus:
    """Return a parallel corpus by words as a source.

    Parameters
    ----------
    corpus
        A known name (``attnscope data list``), the user's own folder, or ``grammar-translation``,
        which is made of words already and takes no settings.
    settings
        Those of `ParallelWords`.
    """
    if str(corpus) in OWN:
        return OWN[str(corpus)]()
    known = definition(corpus)
    if known.task != "translation":
        raise UsageError(
            f"{known.name} is not parallel text ({known.task}); give a corpus of sentence pairs."
        )
    # A folder is the same one from wherever, and however, it is named.
    place = str(corpus) if str(corpus) in definitions() else known.folder
    tokens = str(settings.get("tokens", ParallelWords.model_fields["tokens"].default))
    given = {"corpus": place, "digest": selected_of(known, tokens).digest} | settings
    return read_settings(ParallelWords, given, known.name)


Cut = tuple[list[str], list[str]]


@lru_cache(maxsize=3)
def _load_words(source: ParallelWords) -> LoadedWords:
    selected = checked(source, source.tokens)
    left_out = dict(selected.dropped)
    limit = min(source.longest, (source.max_length or source.longest + 1) - 1)
    train, val = (
        _short_enough(source, records, split, limit, left_out)
        for split, records in (("train", selected.train), ("val", selected.val))
    )
    inputs, outputs = (
        _frequent((pair[side] for _, pair in train), source.types) for side in (0, 1)
    )
    start, end = [outputs.id(BOS)], [outputs.id(EOS)]
    unknown = outputs.id(UNKNOWN)
    # The vocabularies' own look-up is a call for each of millions of words.
    of_input, of_output = (
        {word: index for index, word in enumerate(side.words)} for side in (inputs, outputs)
    )

    def numbered(pairs: Sequence[tuple[int, Cut]]) -> list[Example]:
        made = []
        for n, (x, y) in pairs:
            read = [of_input.get(word, unknown) for word in x]
            written = [of_output.get(word, unknown) for word in y]
            made.append(
                Example(n, as_ids(read + end), as_ids(start + written), as_ids(written + end))
            )
        return made

    return LoadedWords(
        words=inputs,
        labels=(),
        train=numbered(train),
        val=numbered(val),
        train_records=selected.train,
        val_records=selected.val,
        left_out=left_out,
        output_words=outputs,
    )


def _short_enough(
    source: ParallelWords,
    records: Sequence[Pair],
    split: str,
    limit: int,
    left_out: dict[str, int],
) -> list[tuple[int, Cut]]:
    """Cut pairs into words and keep those that are short enough, each with its place."""
    cut = tokeniser_named(source.tokens)
    every = ((n, (cut(record.source), cut(record.target))) for n, record in enumerate(records))
    kept = [(n, pair) for n, pair in every if max(map(len, pair)) <= limit]
    if not kept:
        raise UsageError(f"{source.dataset}: no {split} pair has {limit} tokens or fewer.")
    if len(kept) < len(records):
        left_out[f"{split}: more than {limit} tokens"] = len(records) - len(kept)
    return kept


def _frequent(texts: Iterable[Sequence[str]], types: int) -> Vocabulary:
    """Return the specials, then the most frequent words first, equal ones by the alphabet."""
    counts = Counter(word for text in texts for word in text if word not in SPECIALS)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return Vocabulary((*SPECIALS, *ranked[:types]), UNKNOWN)
