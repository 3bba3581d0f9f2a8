"""Corpora from the Hugging Face hub, through the optional extra ``hub``.

Each is written into the cache as a corpus folder like any other, so that nothing else knows of the
hub. Its ``meta.json`` says how it differs from the folder of the same name elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnscope.data.corpus_writer import corpora_folder, json_lines, place_folder
from attnscope.data.folder import CorpusError
from attnscope.errors import UsageError, suggestion

INSTALL = "pip install 'attnscope[hub]'"


@dataclass(frozen=True)
class HubCorpus:
    """Where a corpus is on the hub.

    Attributes
    ----------
    path
        Its name on the hub.
    splits
        Our split and the hub's.
    labels
        Names of the classes in the order of the hub's numbers; empty for translation.
    languages
        Names of the columns; empty for classification, whose columns are ``text`` and ``label``.
    differs
        How it differs from the folder of this name that other sources give.
    without
        The alternative where the extra is not installed.
    """

    path: str
    splits: tuple[tuple[str, str], ...]
    labels: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    differs: str = ""
    without: str = ""


_HALVES = (("train", "train"), ("test", "test"))

# By the name of the folder.
CORPORA = {
    "imdb": HubCorpus("stanfordnlp/imdb", _HALVES, ("negative", "positive")),
    "ag_news_part": HubCorpus(
        "fancyzhx/ag_news",
        _HALVES,
        ("World", "Sports", "Business", "Sci/Tech"),
        differs="All 120,000 training articles; texts are title and description.",
        without=", or take its test part alone with `attnscope data fetch ag_news_test`",
    ),
    "newsgroups20": HubCorpus(
        "SetFit/20_newsgroups",
        _HALVES,
        (
            "alt.atheism",
            "comp.graphics",
            "comp.os.ms-windows.misc",
            "comp.sys.ibm.pc.hardware",
            "comp.sys.mac.hardware",
            "comp.windows.x",
            "misc.forsale",
            "rec.autos",
            "rec.motorcycles",
            "rec.sport.baseball",
            "rec.sport.hockey",
            "sci.crypt",
            "sci.electronics",
            "sci.med",
            "sci.space",
            "soc.religion.christian",
            "talk.politics.guns",
            "talk.politics.mideast",
            "talk.politics.misc",
            "talk.religion.misc",
        ),
        differs="Messages may lack the headers, which the paper kept.",
    ),
    "multi30k": HubCorpus(
        "bentrevett/multi30k",
        (("train", "train"), ("val", "validation"), ("test_2016_flickr", "test")),
        languages=("en", "de"),
        differs="No French, and the test set of 2016 alone.",
    ),
}


def fetch(folder: str, *, source: str | Path | None = None) -> Path:
    """Download a corpus from the hub and write it into the cache.

    Parameters
    ----------
    folder
        The name of the corpus folder, a key of `CORPORA`.
    source
        Another name on the hub, or a local copy, with the same columns and splits.

    Returns
    -------
    Path
        The corpus folder.
    """
    if folder not in CORPORA:
        raise UsageError(f"No corpus {folder!r} is known on the hub; {suggestion(folder, CORPORA)}")
    corpus = CORPORA[folder]
    path = str(source or corpus.path)
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise UsageError(
            f"{path} is on the Hugging Face hub: {INSTALL}{corpus.without}."
        ) from error
    read = {ours: _rows(load_dataset, path, theirs) for ours, theirs in corpus.splits}
    files: dict[str, str] = {}
    stats: dict[str, dict[str, int]] = {}
    for split, rows in read.items():
        kept = [row for row in rows if _has_text(row, corpus)]
        if not kept:
            raise CorpusError(f"The hub's {path} has no usable row in its split for {split!r}.")
        stats[split] = {"n": len(kept), "empty_rows_left_out": len(rows) - len(kept)}
        files |= _files(split, kept, corpus, path)
    meta: dict[str, Any] = {"name": folder, "source": [{"hub": path}], "stats": stats}
    meta |= {"differs": corpus.differs} if corpus.differs else {}
    meta |= {"labels": list(corpus.labels)} if corpus.labels else {"langs": list(corpus.languages)}
    place = corpora_folder() / folder
    place_folder(place, meta, files)
    return place


def _rows(load: Callable[..., Any], path: str, split: str) -> list[Mapping[str, Any]]:
    try:
        return list(load(path, split=split))
    # The library raises whatever its network, file and Arrow layers do.
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise CorpusError(f"The hub's {path} ({split}) cannot be read: {reason}.") from error


def _has_text(row: Mapping[str, Any], corpus: HubCorpus) -> bool:
    columns = corpus.languages or ("text",)
    return all(str(row.get(column) or "").strip() for column in columns)


def _files(
    split: str, rows: Iterable[Mapping[str, Any]], corpus: HubCorpus, path: str
) -> dict[str, str]:
    if corpus.languages:
        # A sentence is a line: all its blanks become single ones.
        return {
            f"{split}.{name}": "".join(" ".join(str(row[name]).split()) + "\n" for row in rows)
            for name in corpus.languages
        }
    labelled = []
    for number, row in enumerate(rows):
        label = row.get("label")
        if type(label) is not int or not 0 <= label < len(corpus.labels):
            raise CorpusError(
                f"The hub's {path}, row {number} for {split!r}: label {label!r} is none of 0 to "
                f"{len(corpus.labels) - 1}."
            )
        labelled.append({"id": f"{split}-{number}", "label": label, "text": str(row["text"])})
    return {f"{split}.jsonl": json_lines(labelled)}
