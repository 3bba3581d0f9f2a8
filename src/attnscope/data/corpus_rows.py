"""A user's rows on their way into a corpus folder: two or three columns, checked one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from attnscope.data.folder import CorpusError
from attnscope.errors import UsageError

# Names that columns of tables have, and classes rarely.
_HEADER = {
    *("text", "texts", "sentence", "sentences", "review", "comment", "content", "message", "tweet"),
    *("document", "source", "target", "src", "trg", "tgt", "translation", "x", "y"),
    *("label", "labels", "class", "category", "sentiment", "polarity", "rating", "stars"),
    *("rationale", "rationales", "alignment", "links"),
}
_LINK = re.compile(r"(\d+)([-p?])(\d+)")
BOM = "\ufeff"


@dataclass(frozen=True)
class Row:
    """A row of a part: its place in words, its text, its other column, and its marks."""

    where: str
    text: str
    other: Any
    marks: Any = None

    @property
    def label(self) -> str:
        """The other column as the name of a class."""
        # A number of numpy's has its value as `item`.
        value = self.other.item() if hasattr(self.other, "item") else self.other
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return clean_text(self.where, 2, value)

    @property
    def sentences(self) -> tuple[str, str]:
        """Both columns as sentences of one line."""
        both = (self.text, clean_text(self.where, 2, self.other))
        for column, text in enumerate(both, 1):
            if "\n" in text or "\r" in text:
                raise CorpusError(f"{self.where}: column {column} has a line break.")
        return both

    @property
    def rationales(self) -> dict[str, Any]:
        """The third column as spans of words that a person has marked."""
        if self.marks is None:
            return {}
        count = len(self.text.split())
        try:
            spans = [[int(start), int(end)] for start, end in self.marks]
        except (TypeError, ValueError) as error:
            raise CorpusError(
                f"{self.where}: column 3 must be spans [(start, end), …] over the words, not "
                f"{self.marks!r}."
            ) from error
        for start, end in spans:
            if not 0 <= start < end <= count:
                raise CorpusError(
                    f"{self.where}: the span ({start}, {end}) is not within the {count} words."
                )
        return {"rationales": spans}

    @property
    def links(self) -> dict[str, Any]:
        """The third column as gold links in Pharaoh's format."""
        if not isinstance(self.marks, str):
            raise CorpusError(f"{self.where}: column 3 must be links as in '0-0 1-2'.")
        limits = [len(side.split()) for side in self.sentences]
        found: dict[str, list[list[int]]] = {"sure": [], "possible": []}
        for part in self.marks.split():
            match = _LINK.fullmatch(part)
            if match is None:
                raise CorpusError(f"{self.where}: {part!r} is not a link; write 0-0, or 1p2.")
            link = [int(match[1]), int(match[3])]
            if link[0] >= limits[0] or link[1] >= limits[1]:
                raise CorpusError(
                    f"{self.where}: the link {part} is beyond {limits[0]} and {limits[1]} words."
                )
            found["sure" if match[2] == "-" else "possible"].append(link)
        return found


def read_parts(
    rows: Any, parts: Mapping[str, Any], header: bool | None, blank: str
) -> dict[str, list[Row]]:
    """Return the rows of each part, cleaned; see `attnscope.write_corpus`."""
    given = {name: part for name, part in parts.items() if part is not None}
    if (rows is None) == (not given):
        raise UsageError("Give rows, or the parts train=, val= and test=.")
    if rows is None and "train" not in given:
        raise UsageError("A corpus needs a part to train on: give train=.")
    if rows is not None:
        return {"train": _part("Row", rows, header, blank)}
    return {name: _part(f"{name}, row", part, header, blank) for name, part in given.items()}


def _part(name: str, rows: Iterable[Any], header: bool | None, blank: str) -> list[Row]:
    table = _table(rows)
    # A data frame's header is not among its rows.
    named = hasattr(rows, "itertuples")
    if table and not named:
        table[0] = tuple(_without_mark(cell) for cell in table[0])
        if header is None and _looks_like_a_header(table[0]):
            shown = ", ".join(map(repr, table[0]))
            raise CorpusError(
                f"{name} 1 looks like a header ({shown}): give header=True to leave it out, or "
                "header=False if it is a text."
            )
    first = 2 if header and not named else 1
    made = []
    for number, row in enumerate(table[first - 1 :], first):
        if blank == "skip" and _is_blank(row):
            continue
        if not isinstance(row, tuple) or len(row) not in (2, 3):
            shown = repr(row) if len(repr(row)) <= 60 else f"{repr(row)[:57]}..."
            raise CorpusError(f"{name} {number} is not a pair of two columns: {shown}.")
        where = f"{name} {number}"
        marks = row[2] if len(row) == 3 else None
        made.append(Row(where, clean_text(where, 1, row[0]), row[1], marks))
    if not made:
        raise CorpusError("There are no rows to make a corpus from.")
    return made


def _table(rows: Iterable[Any]) -> list[Any]:
    if isinstance(rows, str | bytes | Mapping):
        raise UsageError("rows must be pairs of two columns; of a file, read it with csv.reader.")
    if hasattr(rows, "itertuples"):  # pandas
        return [tuple(row) for row in rows.itertuples(index=False, name=None)]
    return [tuple(row) if _is_row(row) else row for row in rows]


def _is_row(row: Any) -> bool:
    return isinstance(row, list | tuple) or hasattr(row, "tolist")


def _without_mark(cell: Any) -> Any:
    # Windows' editors put a byte order mark first.
    return cell.removeprefix(BOM) if isinstance(cell, str) else cell


def _looks_like_a_header(row: Any) -> bool:
    cells = [cell.strip().casefold() for cell in row if isinstance(cell, str)]
    return len(cells) >= 2 and len(cells) == len(row) and all(cell in _HEADER for cell in cells)


def _is_blank(row: Any) -> bool:
    if not isinstance(row, tuple):
        return False
    return any(cell is None or _is_missing(cell) for cell in row[:2]) or not row


def _is_missing(cell: Any) -> bool:
    if isinstance(cell, str):
        return not cell.strip()
    # Empty cells of pandas.
    return (isinstance(cell, float) and cell != cell) or type(cell).__name__ in (
        "NAType",
        "NaTType",
    )


def clean_text(where: str, column: int, value: Any) -> str:
    """Return a cell's text, or raise an error that names its place."""
    if _is_missing(value):
        raise CorpusError(f"{where}: column {column} is empty; blank='skip' leaves such rows out.")
    if not isinstance(value, str):
        raise CorpusError(f"{where}: column {column} must be text, not {value!r}.")
    text = value.strip()
    if "\0" in text:
        raise CorpusError(f"{where}: column {column} has a NUL character.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise CorpusError(f"{where}: column {column} is not valid Unicode.") from error
    return text
