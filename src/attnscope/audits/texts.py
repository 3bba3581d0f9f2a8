"""The texts of an audit: a known corpus, a corpus or `datasets` folder, a TSV or JSONL file.

A sample is drawn evenly: files are often sorted by class or by length.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from attnscope.audits.datasets_folder import Columns, is_dataset, read_columns, splits_of
from attnscope.data.folder import CorpusError, CorpusFolder
from attnscope.data.known import VALIDATION, CorpusDefinition, definition, definitions, locate
from attnscope.data.randomness import generator
from attnscope.errors import UsageError, suggestion

Link = tuple[int, int]
Pair = tuple[str, str]
# Pairs that IBM Model 1 learns from: some seconds of tokenising, and enough for frequent words.
STUDY = 10_000


@dataclass(frozen=True)
class Texts:
    """Texts with what belongs to them.

    Attributes
    ----------
    name, split
        Where they come from.
    texts
        Texts or source sentences.
    labels, targets
        Their labels, or their translations; None where there are none.
    rationales
        Spans of words that people marked, per text.
    sure, possible
        Gold links between words, per pair.
    ids
        Places in the whole.
    study
        Pairs of sentences that IBM Model 1 learns from: the training part of a corpus, or all
        pairs from which the texts were drawn.
    """

    name: str
    split: str
    texts: tuple[str, ...]
    labels: tuple[int, ...] | None = None
    targets: tuple[str, ...] | None = None
    rationales: tuple[tuple[Link, ...], ...] | None = None
    sure: tuple[frozenset[Link], ...] | None = None
    possible: tuple[frozenset[Link], ...] | None = None
    ids: tuple[int, ...] = field(default=())
    study: tuple[Pair, ...] = field(default=(), repr=False)

    @property
    def digest(self) -> str:
        """A hash of everything in it."""
        parts: list[Any] = [self.texts, self.labels, self.targets, self.rationales, self.study]
        if self.sure is not None:
            parts += [[sorted(each) for each in side or ()] for side in (self.sure, self.possible)]
        content = json.dumps(parts, ensure_ascii=True)
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def wanted(self) -> Sequence[int] | Sequence[str] | None:
        """Labels or translations."""
        return self.targets if self.targets is not None else self.labels

    def sample(self, count: int, seed: int) -> Texts:
        """Draw some texts, evenly and always the same."""
        if count < 1:
            raise UsageError(f"examples={count}: an audit needs texts.")
        if count >= len(self.texts):
            return replace(self, ids=tuple(range(len(self.texts))))
        order = torch.randperm(len(self.texts), generator=generator("audit", seed))
        chosen = order[:count].sort().values.tolist()
        return self.chosen(chosen)

    def chosen(self, places: Sequence[int]) -> Texts:
        """Return some of the texts; ids are their places in the whole."""

        def cut(values: tuple[Any, ...] | None) -> Any:
            return None if values is None else tuple(values[place] for place in places)

        numbers = self.ids or tuple(range(len(self.texts)))
        return replace(
            self,
            texts=cut(self.texts),
            labels=cut(self.labels),
            targets=cut(self.targets),
            rationales=cut(self.rationales),
            sure=cut(self.sure),
            possible=cut(self.possible),
            ids=cut(numbers),
            study=self.study or self._pairs(),
        )

    def _pairs(self) -> tuple[Pair, ...]:
        if self.targets is None:
            return ()
        return tuple(zip(self.texts[:STUDY], self.targets[:STUDY], strict=True))


def read_texts(data: str | Path, split: str | None = None) -> Texts:
    """Read the texts of an audit.

    Parameters
    ----------
    data
        A known corpus (``attnscope data list``), a corpus folder, a folder that Hugging Face
        `datasets` saved (``save_to_disk``; extra ``arrow``), or a file: TSV with a text and a label
        or a translation in each line, or JSONL with ``text`` and ``label``, or ``source`` and
        ``target``.
    split
        Of a corpus; by default the one that is held out.
    """
    path = Path(data)
    if path.is_file():
        _demand_no_split(path, split)
        return _read_file(path)
    if is_dataset(path):
        return _read_dataset(path, split)
    if not path.is_dir() and str(data) not in definitions():
        near = suggestion(str(data), definitions())
        raise UsageError(f"{data} is neither a file, a folder nor a known corpus; {near}")
    known = definition(data)
    return _read_corpus(known, locate(known), split)


def _chosen_split(path: Path, splits: Sequence[str], split: str | None) -> str:
    """Return the split that was asked for, by default one that is held out."""
    held_out = [name for name in VALIDATION if name in splits]
    split = split or (held_out or list(splits))[0]
    if split not in splits:
        raise UsageError(f"{path} has no split {split!r}; {suggestion(split, splits)}")
    return split


def _demand_no_split(path: Path, split: str | None) -> None:
    if split is not None:
        raise UsageError(f"{path} has no splits, and {split!r} was asked for.")


def _read_dataset(path: Path, split: str | None) -> Texts:
    splits = splits_of(path)
    if not splits:
        _demand_no_split(path, split)
        return _wanted(Texts(path.name, "all", ()), read_columns(path))
    chosen = _chosen_split(path, splits, split)
    return _wanted(Texts(path.name, chosen, ()), read_columns(path / chosen))


def _wanted(base: Texts, columns: Columns) -> Texts:
    """Return texts with their labels or translations."""
    with_texts = replace(base, texts=tuple(columns.texts))
    if columns.labels is not None:
        return replace(with_texts, labels=tuple(columns.labels))
    if columns.targets is not None:
        return replace(with_texts, targets=tuple(columns.targets))
    return with_texts


def _read_corpus(known: CorpusDefinition, folder: CorpusFolder, split: str | None) -> Texts:
    split = _chosen_split(folder.path, folder.splits, split)
    base = Texts(folder.name, split, ())
    if folder.kind == "classification":
        rows = folder.labelled(split)
        marked = any(row.rationales for row in rows)
        return replace(
            base,
            texts=tuple(row.text for row in rows),
            labels=tuple(row.label for row in rows),
            rationales=tuple(row.rationales or () for row in rows) if marked else None,
        )
    source, target = known.source or folder.languages[0], known.target or folder.languages[1]
    if folder.kind == "translation":
        pairs = folder.pairs(split, source, target)
        texts, targets = (tuple(getattr(p, side) for p in pairs) for side in ("source", "target"))
        study = folder.pairs("train", source, target)[:STUDY] if "train" in folder.splits else ()
        return replace(
            base, texts=texts, targets=targets, study=tuple((p.source, p.target) for p in study)
        )
    aligned = folder.aligned(split, source, target)
    return replace(
        base,
        texts=tuple(" ".join(row.source) for row in aligned),
        targets=tuple(" ".join(row.target) for row in aligned),
        sure=tuple(row.sure for row in aligned),
        possible=tuple(row.possible for row in aligned),
    )


def _read_file(path: Path) -> Texts:
    try:
        lines = path.read_text(encoding="utf-8-sig").replace("\r\n", "\n").strip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as UTF-8 text ({error}).") from error
    rows = [_row(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if path.suffix == ".tsv" and rows and rows[0][1] in ("label", "target"):
        rows = rows[1:]
    if not rows:
        raise UsageError(f"{path} has no texts.")
    texts, wanted = (tuple(column) for column in zip(*rows, strict=True))
    base = Texts(path.name.partition(".")[0], "all", texts)
    if all(each is None for each in wanted):
        return base
    if None in wanted:
        text = texts[wanted.index(None)]
        raise CorpusError(f"{path} has labels or translations, but none for {text[:40]!r}.")
    if all(_is_label(each) for each in wanted):
        return replace(base, labels=tuple(int(each) for each in wanted))
    return replace(base, targets=tuple(str(each) for each in wanted))


def _is_label(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and value.strip().isdigit())


def _row(path: Path, number: int, line: str) -> tuple[str, Any]:
    if path.suffix == ".jsonl":
        try:
            row = json.loads(line)
        except ValueError as error:
            raise CorpusError(f"{path}, line {number}: this is not JSON ({error}).") from error
        if not isinstance(row, dict):
            raise CorpusError(f"{path}, line {number}: this is not a JSON object.")
        text = row.get("text", row.get("source", row.get("sentence")))
        if not isinstance(text, str):
            raise CorpusError(f"{path}, line {number}: there is no 'text' or 'source'.")
        return text, row.get("label", row.get("target"))
    cells = line.split("\t")
    if len(cells) > 2:
        raise CorpusError(f"{path}, line {number}: {len(cells)} cells; a text and a label, say.")
    return cells[0], cells[1] if len(cells) == 2 else None
