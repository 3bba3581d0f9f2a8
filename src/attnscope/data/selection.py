"""Selection of a corpus' examples by the paper's rules (snell A.5, A.8), with counts.

Classes, lengths, cleaning, drawn splits and the sample of validation examples come from the
corpus's definition; whatever they leave out is counted by its reason.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

from attnscope.data.folder import META, CorpusError, CorpusFolder, LabelledRecord, Pair
from attnscope.data.known import CorpusDefinition, definition, locate
from attnscope.data.randomness import generator
from attnscope.data.tokens import CLEANING, TOKENISERS
from attnscope.errors import UsageError, suggestion

R = TypeVar("R", LabelledRecord, Pair)
Words = Callable[[str], Sequence[str]]


@dataclass(frozen=True)
class Selected(Generic[R]):
    """The examples that are used.

    Attributes
    ----------
    train, val, test
        Labelled texts, their labels counted among ``labels``, or pairs, in the order of the files;
        ``test`` is empty where the definition has none.
    labels
        Names of the classes; empty for pairs.
    dropped
        How many were left out, by split and reason.
    digest
        Twelve hexadecimal digits that change when labels, texts or their order do.
    """

    train: tuple[R, ...]
    val: tuple[R, ...]
    test: tuple[R, ...]
    labels: tuple[str, ...]
    dropped: Mapping[str, int]
    digest: str


def select(definition: CorpusDefinition, words: Words) -> Selected[LabelledRecord] | Selected[Pair]:
    """Read a corpus and keep the examples that its definition selects.

    Parameters
    ----------
    definition
        The corpus.
    words
        The tokeniser: it decides how long a text is and whether it has a word at all.
    """
    folder = locate(definition)
    if definition.task == "alignment":
        raise UsageError(
            f"{definition.name} has gold alignments and nothing to train on; give it to "
            f"snell/alignment."
        )
    dropped: dict[str, int] = {}
    if definition.task == "translation":
        languages = (definition.source, definition.target)
        return _selected(
            definition,
            lambda split: folder.pairs(split, *languages),
            lambda pair: (pair.source, pair.target),
            words,
            (),
            dropped,
        )
    new = _renumbering(definition, folder)
    labels = tuple(label for label, _ in definition.classes) or folder.labels

    clean = CLEANING[definition.cleaning]

    def labelled(split: str) -> list[LabelledRecord]:
        texts = folder.labelled(split)
        kept = [
            replace(text, label=new[text.label], text=clean(text.text))
            for text in texts
            if text.label in new
        ]
        _count(dropped, definition, split, "class not used", len(texts) - len(kept))
        return kept

    return _selected(definition, labelled, lambda text: (text.text,), words, labels, dropped)


def _selected(
    definition: CorpusDefinition,
    read: Callable[[str], list[R]],
    texts_of: Callable[[R], tuple[str, ...]],
    words: Words,
    labels: tuple[str, ...],
    dropped: dict[str, int],
) -> Selected[R]:
    def usable(split: str) -> list[R]:
        return _with_words(read(split), texts_of, words, definition, split, dropped)

    found = _drawn(definition, usable) if definition.drawn else {}
    parts: list[tuple[R, ...]] = []
    for split in filter(None, (definition.train, definition.val, definition.test)):
        kept = found[split] if split in found else usable(split)
        if split == definition.val:
            kept = _sampled(kept, definition, split, dropped)
        if not kept:
            raise CorpusError(
                f"The selection of {definition.name} leaves nothing of its split {split!r} "
                f"({', '.join(f'{count} × {reason}' for reason, count in dropped.items())})."
            )
        parts.append(tuple(kept))
    train, val = parts[:2]
    test = parts[2] if definition.test else ()
    return Selected(train, val, test, labels, dropped, _digest(labels, *parts))


def _drawn(definition: CorpusDefinition, read: Callable[[str], list[R]]) -> dict[str, list[R]]:
    """Draw the definition's parts, those of a given size first; records stay in their order."""
    splits = dict.fromkeys(split for _, part in definition.drawn for split in part.of)
    pool = [(split, record) for split in splits for record in read(split)]
    free = torch.ones(len(pool), dtype=torch.bool)
    parts = {}
    for name, part in sorted(definition.drawn, key=lambda item: item[1].size is None):
        # Pairs have no classes and count as one.
        classes = torch.tensor(
            [getattr(record, "label", 0) if split in part.of else -1 for split, record in pool]
        )
        classes[~free] = -1
        chosen = _each_class(classes, part.size, generator("part", definition.name, name))
        free[chosen] = False
        parts[name] = [pool[place][1] for place in chosen.tolist()]
    return parts


def _each_class(
    classes: Int[Tensor, " record"], size: int | None, stream: torch.Generator
) -> Int[Tensor, " chosen"]:
    """Choose records at random, each class (from 0) by its share of them, up to rounding."""
    order = torch.randperm(len(classes), generator=stream)
    order = order[classes[order] >= 0]
    if size is None:
        return order.sort()[0]
    counts = classes[order].bincount()
    wanted = counts * min(size, len(order)) / max(len(order), 1)
    quota = wanted.floor()
    rest = min(size, len(order)) - int(quota.sum())
    quota[(wanted - quota).argsort(descending=True, stable=True)[:rest]] += 1
    grouped = order[classes[order].argsort(stable=True)]
    members = zip(grouped.split(counts.tolist()), quota.int().tolist(), strict=True)
    return torch.cat([part[:count] for part, count in members]).sort()[0]


def _with_words(
    records: list[R],
    texts_of: Callable[[R], tuple[str, ...]],
    words: Words,
    definition: CorpusDefinition,
    split: str,
    dropped: dict[str, int],
) -> list[R]:
    lengths = [[len(words(text)) for text in texts_of(record)] for record in records]
    limit = definition.shorter_than
    empty = [min(counts) == 0 for counts in lengths]
    long = [limit is not None and max(counts) >= limit for counts in lengths]
    _count(dropped, definition, split, "no word in the text", sum(empty))
    _count(dropped, definition, split, f"{limit} words or more", sum(long))
    return [
        record
        for record, without, beyond in zip(records, empty, long, strict=True)
        if not without and not beyond
    ]


def _sampled(
    records: list[R], definition: CorpusDefinition, split: str, dropped: dict[str, int]
) -> list[R]:
    limit = definition.validation_limit
    if limit is None or len(records) <= limit:
        return records
    _count(dropped, definition, split, f"beyond {limit} sampled", len(records) - limit)
    order = torch.randperm(len(records), generator=generator("validation", definition.name))
    return [records[place] for place in sorted(order[:limit].tolist())]


def _count(
    dropped: dict[str, int], definition: CorpusDefinition, split: str, reason: str, count: int
) -> None:
    names = {definition.test: "test", definition.val: "val", definition.train: "train"}
    part = names.get(split, split)
    if count:
        dropped[f"{part}: {reason}"] = count


def _renumbering(definition: CorpusDefinition, folder: CorpusFolder) -> dict[int, int]:
    """Return the new index of each old label that is used."""
    if not definition.classes:
        return {index: index for index in range(len(folder.labels))}
    old = {name: index for index, name in enumerate(folder.labels)}
    for _, names in definition.classes:
        for name in names:
            if name not in old:
                raise CorpusError(
                    f"{folder.path / META} names no label {name!r}, which {definition.name} uses; "
                    f"{suggestion(name, old)}"
                )
    classes = enumerate(definition.classes)
    return {old[name]: index for index, (_, names) in classes for name in names}


def _digest(labels: tuple[str, ...], *parts: Iterable[LabelledRecord | Pair]) -> str:
    digest = hashlib.sha256(json.dumps(labels).encode())
    for part in parts:
        rows = [
            (row.label, row.text) if isinstance(row, LabelledRecord) else (row.source, row.target)
            for row in part
        ]
        digest.update(json.dumps(rows).encode())
    return digest.hexdigest()[:12]


@dataclass(frozen=True)
class Count:
    """How many examples, and how many of each class (or links of each sort, for alignments)."""

    n: int
    of: Mapping[str, int]


@dataclass(frozen=True)
class Checked:
    """A corpus that was read from end to end.

    Attributes
    ----------
    name, path, task, deviation
        As in its definition.
    splits
        What the files hold.
    selected
        What is used.
    dropped, digest
        As in `Selected`; empty for alignments.
    """

    name: str
    path: str
    task: str
    deviation: str
    splits: Mapping[str, Count]
    selected: Mapping[str, Count]
    dropped: Mapping[str, int]
    digest: str


def check(name: str | Path) -> Checked:
    """Read a whole corpus and count what is in it, what is used and what is left out.

    Parameters
    ----------
    name
        A known corpus or the user's own folder.

    Raises
    ------
    CorpusError
        If anything in it is malformed.
    """
    corpus = definition(name)
    folder = locate(corpus)
    splits = {split: _counted(folder, split) for split in folder.splits}
    about = (corpus.name, str(folder.path), corpus.task, corpus.deviation, splits)
    if corpus.task == "alignment":
        return Checked(*about, {"val": splits[corpus.val]}, {}, "")
    selected = select(corpus, TOKENISERS[corpus.tokens])
    used = {
        "train": _per_class(selected.train, selected.labels),
        "val": _per_class(selected.val, selected.labels),
    }
    if selected.test:
        used["test"] = _per_class(selected.test, selected.labels)
    return Checked(*about, used, selected.dropped, selected.digest)


def _counted(folder: CorpusFolder, split: str) -> Count:
    if folder.kind == "classification":
        return _per_class(folder.labelled(split), folder.labels)
    first, *others = folder.languages
    if folder.kind == "translation":
        read = [folder.pairs(split, first, other) for other in others]
        return _per_class(read[0], ())
    aligned = folder.aligned(split, first, others[0])
    sure = sum(len(pair.sure) for pair in aligned)
    possible = sum(len(pair.possible) for pair in aligned)
    return Count(len(aligned), {"sure links": sure, "possible links": possible})


def _per_class(records: Sequence[LabelledRecord | Pair], labels: tuple[str, ...]) -> Count:
    counts = Counter(row.label for row in records if isinstance(row, LabelledRecord))
    return Count(len(records), {name: counts[index] for index, name in enumerate(labels)})
