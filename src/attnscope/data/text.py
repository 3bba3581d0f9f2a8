"""Text corpora as sources: labelled texts by words or pieces, parallel texts by pieces.

`attnscope.data.known` and `attnscope.data.selection` decide what a corpus contains; here it
becomes ids. Every sequence is ``<bos> … <eos>``, both of which are attended to (snell, authors'
code); the decoder reads ``<bos> y`` and writes ``y <eos>``.
"""

from __future__ import annotations

import re
import sys
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import torch
from pydantic import Field, model_serializer

from attnscope.data.batch import Batch, Example, collate
from attnscope.data.corpus import Corpus, GrammarSentiment, GrammarTranslation
from attnscope.data.folder import LabelledRecord, Pair
from attnscope.data.known import (
    GENERATED,
    CorpusDefinition,
    definition,
    definitions,
    locate,
)
from attnscope.data.pieces import Pieces, trained_pieces
from attnscope.data.randomness import generator
from attnscope.data.selection import Selected, select
from attnscope.data.source import Source
from attnscope.data.tokens import BOS, EOS, SPECIALS, TOKENISERS, UNKNOWN
from attnscope.data.vectors import digest_of_vectors, read_vectors
from attnscope.data.vocabulary import Vocabulary
from attnscope.errors import UsageError, suggestion
from attnscope.runs.spec import read_settings

OWN: dict[str, type[Corpus]] = dict(
    zip(GENERATED, (GrammarSentiment, GrammarTranslation), strict=True)
)
Record = TypeVar("Record", LabelledRecord, Pair)


@dataclass(frozen=True)
class Loaded(Generic[Record]):
    """A corpus in ids, with its records and a count of those left out."""

    words: Vocabulary
    labels: tuple[str, ...]
    train: list[Example]
    val: list[Example]
    train_records: Sequence[Record]
    val_records: Sequence[Record]
    left_out: dict[str, int]
    # Of a corpus that has such a part.
    test: list[Example] = field(default_factory=list, kw_only=True)
    test_records: Sequence[Record] = field(default=(), kw_only=True)


class Text(Corpus):
    """A corpus that is read from files; its digest makes a unit's hash follow their content."""

    corpus: str = Field(description="a known name, or a folder")
    digest: str = Field("", description="of the selected text; filled in by `open_text`")
    max_length: int | None = Field(
        None, ge=3, description="longer sequences, boundaries included, are left out and counted"
    )

    @property
    def definition(self) -> CorpusDefinition:
        """The definition of the corpus."""
        return definition(self.corpus)

    @property
    def dataset(self) -> str:
        """The corpus' name; a folder's own."""
        return Path(self.corpus).name

    @property
    @abstractmethod
    def loaded(self) -> Loaded[Any]:
        """The corpus in ids."""

    @property
    def input_words(self) -> Vocabulary:
        """Word or piece types."""
        return self.loaded.words

    @property
    def training_examples(self) -> Sequence[Example]:
        """Examples to train on."""
        return self.loaded.train

    @property
    def validation_examples(self) -> Sequence[Example]:
        """Examples to evaluate on."""
        return self.loaded.val

    @property
    def test_examples(self) -> Sequence[Example]:
        """Examples of the test part; none where the corpus has no such part."""
        return self.loaded.test

    def evaluation_batch(self, count: int, split: str = "val") -> Batch:
        """Return a fixed random part of a split: the first texts of a file may share a label."""
        examples = self.validation_examples
        if split != "val" or count >= len(examples):
            return super().evaluation_batch(count, split)
        drawn = torch.randperm(len(examples), generator=generator("part of val"))
        return collate([examples[index] for index in drawn[:count].sort()[0]])


class LabelledText(Text):
    """Texts with a label each, word by word (snell A.8)."""

    kind: Literal["labelled-text"] = "labelled-text"
    # A tokeniser's name; or "pieces", "pieces-2000": SentencePiece, for text without blanks.
    tokens: str = "words"
    min_count: int = Field(3, ge=1, description="words rarer in that part are unknown")
    counted: Literal["occurrences", "texts"] = Field(
        "occurrences", description="counts of a word, or of texts with it; stored where it is texts"
    )
    vocabulary: Literal["train", "all"] = Field(
        "train", description="the part whose words are known: sunlu has those of all parts"
    )
    edges: Literal["marked", "bare"] = Field(
        "marked", description="whether <bos> and <eos> stand around a text: sunlu has neither"
    )
    vectors: str = Field("", description="word vectors whose words are kept however rare")
    vectors_digest: str = Field("", description="of their content; filled in by `open_text`")
    bucket_size: int = Field(
        20, ge=1, description="batches sorted by length together; 1: as they come"
    )

    @model_serializer(mode="wrap")
    def _without_the_default_count(self, handler: Any) -> dict[str, Any]:
        """Leave the default out, so that units made before there was a choice keep their hash."""
        values: dict[str, Any] = handler(self)
        return {k: v for k, v in values.items() if (k, v) != ("counted", "occurrences")}

    @property
    def bucket(self) -> int:
        """As configured: reviews differ in length by a factor of a hundred."""
        return self.bucket_size

    @property
    def loaded(self) -> Loaded[LabelledRecord]:
        """The corpus in word ids."""
        return _load_labelled(self)

    @property
    def output_words(self) -> Vocabulary:
        """The labels."""
        return Vocabulary(self.loaded.labels)

    @property
    def boundaries(self) -> tuple[int, int] | None:
        """None: the output is a label."""
        return None

    def encode(self, text: str) -> list[int]:
        """Cut a text into words or pieces as the corpus was, with its boundaries if it has them."""
        return self.input_words.encode(_EDGES[self.edges](_cutter(self)([text])[0]))


_EDGES: dict[str, Callable[[list[str]], list[str]]] = {
    "marked": lambda words: [BOS, *words, EOS],
    "bare": list,
}


class ParallelText(Text):
    """Sentence pairs in pieces of one vocabulary for both languages (snell A.8)."""

    kind: Literal["parallel-text"] = "parallel-text"
    pieces: int = Field(8000, ge=10, description="types of the joint SentencePiece vocabulary")

    @property
    def loaded(self) -> Loaded[Pair]:
        """The corpus in piece ids."""
        return _load_parallel(self)

    @property
    def output_words(self) -> Vocabulary:
        """The same as the input's."""
        return self.input_words

    @property
    def boundaries(self) -> tuple[int, int] | None:
        """``<bos>`` and ``<eos>``."""
        return self.input_words.id(BOS), self.input_words.id(EOS)

    @property
    def tokeniser(self) -> Pieces:
        """The trained SentencePiece model."""
        return _pieces(self)

    def encode(self, text: str) -> list[int]:
        """Cut a sentence into pieces, with its boundaries."""
        bos, eos = self.input_words.encode([BOS, EOS])
        return [bos, *self.tokeniser.encode([text])[0], eos]

    def sentence(self, ids: Sequence[int]) -> str:
        """Join pieces to text."""
        return self.tokeniser.decode(ids)

    def references(self, split: str, count: int) -> list[str]:
        """Return the targets as the files have them."""
        records = {"val": self.loaded.val_records, "train": self.loaded.train_records}[split]
        return [records[index].target for index in self.evaluation_batch(count, split).ids.tolist()]


def open_text(
    corpus: str | Path,
    *,
    classification: Mapping[str, Any] | None = None,
    translation: Mapping[str, Any] | None = None,
) -> Corpus:
    """Return a text corpus as a source.

    Parameters
    ----------
    corpus
        A known name (``attnscope data list``), the user's own folder, or one of the package's own
        corpora, ``grammar-sentiment`` and ``grammar-translation``.
    classification, translation
        Settings of `LabelledText` and of `ParallelText`: the corpus decides which are taken.
    """
    if str(corpus) in OWN:
        return OWN[str(corpus)]()
    known = definition(corpus)
    # A folder is the same one from wherever, and however, it is named.
    place = str(corpus) if str(corpus) in definitions() else known.folder
    given: dict[str, Any] = {"corpus": place}
    if known.task == "classification":
        given |= {"tokens": known.tokens} | dict(classification or {})
        if given.get("vectors"):
            given["vectors_digest"] = digest_of_vectors(given["vectors"])
        given["digest"] = selected_of(known, given["tokens"]).digest
        return read_settings(LabelledText, given, known.name)
    if known.task == "translation":
        given |= {"digest": selected_of(known, known.tokens).digest} | dict(translation or {})
        return read_settings(ParallelText, given, known.name)
    raise UsageError(f"{known.name} has alignments only: nothing can be trained on it.")


def tokeniser_named(name: str) -> Any:
    """Return a tokeniser by its name."""
    if piece_count(name):
        raise UsageError(f"tokens={name} has no words of its own; choose one of {_NAMED}.")
    if name not in TOKENISERS:
        raise UsageError(f"No tokeniser {name!r}; {suggestion(name, (*TOKENISERS, 'pieces'))}")
    return TOKENISERS[name]


_NAMED = ", ".join(TOKENISERS)
_PIECES = re.compile(r"pieces(?:-([1-9]\d{1,5}))?")
PIECES = 8000
"""Types of ``tokens=pieces``, as many as snell's translators have."""


def piece_count(tokens: str) -> int | None:
    """Return how many pieces ``pieces`` or ``pieces-2000`` asks for, None for a tokeniser."""
    found = _PIECES.fullmatch(tokens)
    return None if found is None else int(found[1] or PIECES)


def selected_of(known: CorpusDefinition, tokens: str) -> Selected[Any]:
    """Return the selected examples of a corpus; a rewritten corpus is read again."""
    files = sorted(locate(known).path.iterdir())
    stamp = tuple((f.name, f.stat().st_mtime_ns, f.stat().st_size) for f in files)
    return _select_once(known, tokens, stamp)


@lru_cache(maxsize=4)
def _select_once(known: CorpusDefinition, tokens: str, stamp: tuple[Any, ...]) -> Selected[Any]:
    # The stamp: a corpus that is written anew is read anew. Pieces are learned from what is
    # selected, so that here a text is cut at blanks.
    return select(known, str.split if piece_count(tokens) else tokeniser_named(tokens))


def demand_digest(source: Source, where: str) -> None:
    """Raise if a stored source names a folder of this machine and not the text in it.

    A configuration of somebody else could name any folder, and its words would be shown.
    """
    if isinstance(source, Text) and not source.digest and source.corpus not in definitions():
        raise UsageError(
            f"{where} names the folder {source.corpus} without the digest of its text: it is not "
            "read."
        )


def checked(source: Text, tokens: str) -> Selected[Any]:
    """Return a source's selected examples; raise an error if they changed since training."""
    selected = selected_of(source.definition, tokens)
    if source.digest and source.digest != selected.digest:
        raise UsageError(
            f"The corpus {source.corpus} is not the one that this unit was trained on: "
            "its text has changed since."
        )
    return selected


@lru_cache(maxsize=3)
def _load_labelled(source: LabelledText) -> Loaded[LabelledRecord]:
    selected, cut, edged = checked(source, source.tokens), _cutter(source), _EDGES[source.edges]
    words = _labelled_pieces(source).words if piece_count(source.tokens) else _known_words(source)

    def numbered(records: Sequence[LabelledRecord]) -> list[Example]:
        texts = cut([record.text for record in records])
        return [
            Example(n, as_ids(words.encode(edged(text))), [0], [record.label])
            for n, (record, text) in enumerate(zip(records, texts, strict=True))
        ]

    return _loaded(source, selected, words, numbered)


def _counted_records(source: LabelledText) -> tuple[LabelledRecord, ...]:
    """Return the records whose words are known."""
    selected = checked(source, source.tokens)
    others = (*selected.val, *selected.test) if source.vocabulary == "all" else ()
    return (*selected.train, *others)


def _known_words(source: LabelledText) -> Vocabulary:
    cut = tokeniser_named(source.tokens)
    once = set if source.counted == "texts" else list
    counts = Counter(w for record in _counted_records(source) for w in once(cut(record.text)))
    known = set(read_vectors(source.vectors).words) if source.vectors else set()
    kept = sorted(w for w, count in counts.items() if count >= source.min_count or w in known)
    return Vocabulary((*SPECIALS, *(word for word in kept if word not in SPECIALS)), UNKNOWN)


def pieces_of(source: LabelledText) -> Pieces | None:
    """Return the SentencePiece model that cuts a source's texts, None where words do."""
    return _labelled_pieces(source) if piece_count(source.tokens) else None


def _labelled_pieces(source: LabelledText) -> Pieces:
    count, selected = piece_count(source.tokens), checked(source, source.tokens)
    assert count is not None
    texts = (record.text for record in _counted_records(source))
    return trained_pieces(f"{selected.digest}-{source.vocabulary}", texts, count)


def _cutter(source: LabelledText) -> Callable[[Sequence[str]], list[list[str]]]:
    """Return the function that cuts the texts of a source into words or pieces."""
    if piece_count(source.tokens):
        pieces = _labelled_pieces(source)
        return lambda texts: [pieces.words.decode(ids) for ids in pieces.encode(texts)]
    cut = tokeniser_named(source.tokens)
    return lambda texts: [cut(text) for text in texts]


@lru_cache(maxsize=3)
def _load_parallel(source: ParallelText) -> Loaded[Pair]:
    pieces = _pieces(source)
    bos, eos = pieces.words.encode([BOS, EOS])

    def numbered(records: Sequence[Pair]) -> list[Example]:
        sources = pieces.encode([record.source for record in records])
        targets = pieces.encode([record.target for record in records])
        return [
            Example(n, as_ids([bos, *x, eos]), as_ids([bos, *y]), as_ids([*y, eos]))
            for n, (x, y) in enumerate(zip(sources, targets, strict=True))
        ]

    selected = checked(source, source.definition.tokens)
    return _loaded(source, selected, pieces.words, numbered)


def _pieces(source: ParallelText) -> Pieces:
    selected = checked(source, source.definition.tokens)
    texts = (text for pair in selected.train for text in (pair.source, pair.target))
    return trained_pieces(selected.digest, texts, source.pieces)


def _loaded(
    source: Text,
    selected: Selected[Any],
    words: Vocabulary,
    numbered: Callable[[Any], list[Example]],
) -> Loaded[Any]:
    """Turn records into examples, and leave out those that are too long."""
    left_out = dict(selected.dropped)
    parts: dict[str, list[Example]] = {}
    longest = source.max_length or sys.maxsize
    held = {"train": selected.train, "val": selected.val, "test": selected.test}
    for split, records in held.items():
        every = numbered(records)
        kept = [e for e in every if max(len(e.inputs), len(e.targets)) <= longest]
        if records and not kept:
            raise UsageError(f"{source.dataset}: no {split} example has {longest} tokens or fewer.")
        if len(kept) < len(every):
            left_out[f"{split}: more than {longest} tokens"] = len(every) - len(kept)
        parts[split] = kept
    return Loaded(
        words,
        selected.labels,
        parts["train"],
        parts["val"],
        selected.train,
        selected.val,
        left_out,
        test=parts["test"],
        test_records=selected.test,
    )


def as_ids(ids: list[int]) -> np.ndarray:
    """Return ids in an eighth of a list's memory: a corpus has millions of words."""
    return np.array(ids, dtype=np.int32)
