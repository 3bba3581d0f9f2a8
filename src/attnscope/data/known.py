"""The corpora that have names, and where they are: data folder, cache, or not here yet.

A definition (a row of ``known.json``) says which splits, classes and lengths of a folder the paper
uses (snell A.5, A.8), and in one sentence how the folder differs from the paper's corpus. A user's
own folder gets a definition that uses all of it.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from attnscope.data import hub, pinned
from attnscope.data.corpus_writer import corpora_folder
from attnscope.data.folder import CorpusError, CorpusFolder
from attnscope.errors import UsageError, suggestion
from attnscope.runs.spec import Settings

# The package's own corpora, made by a grammar.
GENERATED = ("grammar-sentiment", "grammar-translation")
VALIDATION = ("val", "valid", "validation", "dev", "test")


class CorpusPart(Settings):
    """A part of a corpus that is drawn at random from its splits, class by class.

    Parts are drawn in turn, and none has a text of another one.

    Attributes
    ----------
    of
        The splits that it is drawn from.
    size
        How many texts, each class having its share of them; None: all that is left.
    """

    of: tuple[str, ...]
    size: int | None = None


class CorpusDefinition(Settings):
    """Which part of a corpus folder is used, and how.

    Attributes
    ----------
    name
        What ``corpus=`` takes.
    folder
        The folder's name in the data folder; the whole path of a user's own folder.
    title
        What it is.
    published
        The paper's name of it among the published figures.
    task
        What is learned from it.
    train, val, test
        Names of the splits; ``train`` is empty where there is nothing to train on, ``test`` where
        nothing but ``val`` is held out.
    drawn
        Splits that the folder does not have, and how they are drawn: a paper's own, as nearly as
        it is known.
    classes
        New label and the old labels it replaces; empty: all labels as they are.
    source, target
        Languages; empty for classification.
    shorter_than
        Texts of as many words or more are left out.
    validation_limit
        How many validation examples are drawn at most.
    tokens, cleaning
        The tokeniser, and what is done to a text before it, by their names in
        `attnscope.data.tokens`.
    deviation
        How it differs from the paper's corpus; empty if it does not.
    """

    name: str
    folder: str
    title: str
    published: str | None = None
    task: Literal["classification", "translation", "alignment"]
    train: str
    val: str
    test: str = ""
    drawn: tuple[tuple[str, CorpusPart], ...] = ()
    classes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    source: str = ""
    target: str = ""
    shorter_than: int | None = None
    validation_limit: int | None = 4000
    tokens: Literal[
        "words",
        "plain-words",
        "words-no-numbers",
        "words-no-numbers-split",
        "words-and-marks-no-numbers",
        "blanks",
    ] = "words"
    cleaning: Literal["none", "line-breaks", "message-body"] = "none"
    deviation: str = ""


@cache
def definitions() -> dict[str, CorpusDefinition]:
    """Return every known corpus by its name."""
    rows = json.loads(files("attnscope.data").joinpath("known.json").read_text(encoding="utf8"))
    known = [CorpusDefinition.model_validate(row) for row in rows]
    return {definition.name: definition for definition in known}


def definition(name: str | Path) -> CorpusDefinition:
    """Return the definition of a known corpus or of the user's own folder.

    Parameters
    ----------
    name
        A known name, the path of a folder, or the name of a folder in the data folder.
    """
    known = definitions()
    if str(name) in known:
        return known[str(name)]
    here = [Path(os.path.expanduser(name)), *(place / name for place in _places())]
    found = next((path for path in here if path.is_dir()), None)
    if found is None:
        raise UsageError(
            f"There is no corpus {str(name)!r} and no such folder; {suggestion(str(name), known)}"
        )
    return _own(CorpusFolder.open(found))


def data_folder() -> Path | None:
    """Return the folder of corpora that ``ATTNSCOPE_DATA`` names."""
    given = os.environ.get("ATTNSCOPE_DATA")
    if not given:
        return None
    if not Path(given).is_dir():
        raise UsageError(f"ATTNSCOPE_DATA is {given}, which is not a folder.")
    return Path(given)


def locate(definition: CorpusDefinition) -> CorpusFolder:
    """Return the folder of a corpus: in the data folder, else in the cache of fetched corpora."""
    found = _found(definition.folder)
    if found is not None:
        return CorpusFolder.open(found)
    set_it = f"set ATTNSCOPE_DATA (or --data) to a folder that holds {definition.folder}/"
    if _fetchable(definition.folder):
        needs = "" if pinned.holds(definition.folder) else f" (needs {hub.INSTALL})"
        set_it += f", or run `attnscope data fetch {definition.name}`{needs}"
    raise UsageError(f"The corpus {definition.name} is not here: {set_it}.")


def fetch(name: str) -> list[Path]:
    """Fetch a corpus into the cache, pinned files first, else from the hub.

    Parameters
    ----------
    name
        A known corpus, or one of the folders that pinned files make, for example ``scan``.

    Returns
    -------
    list of Path
        The corpus folders that were written.
    """
    known = definitions()
    folder = known[name].folder if name in known else name
    if pinned.holds(folder):
        return pinned.fetch(pinned.dataset_of(folder))
    if folder in hub.CORPORA:
        return [hub.fetch(folder)]
    if name in known:
        raise UsageError(
            f"{name} is neither pinned nor on the hub: put {folder}/ into the folder that "
            f"ATTNSCOPE_DATA names."
        )
    names = {key for key, entry in known.items() if _fetchable(entry.folder)}
    valid = names | set(pinned.DATASETS)
    raise UsageError(f"There is nothing to fetch for {name!r}; {suggestion(name, valid)}")


@dataclass(frozen=True)
class Listed:
    """A corpus as ``attnscope data list`` shows it; sizes are None where unknown."""

    name: str
    task: str
    title: str
    where: str
    train: int | None
    val: int | None


# Generated by attnscope.data.grammar; their sizes are part of their definition.
_GENERATED = (
    Listed(
        "grammar-sentiment",
        "classification",
        "Reviews made by a grammar, negative or positive",
        "ships with attnscope",
        2000,
        400,
    ),
    Listed(
        "grammar-translation",
        "translation",
        "Sentences made by a grammar, German to English",
        "ships with attnscope",
        2000,
        200,
    ),
)


def listing() -> list[Listed]:
    """Return every corpus that can be named, and where it is.

    Sizes are those of the splits as ``meta.json`` gives them, before any selection.
    """
    known = list(definitions().values())
    taken = {entry.folder for entry in known} | set(definitions())
    # The first place goes last here, and so wins.
    places = [place for place in reversed(_places()) if place.is_dir()]
    present = {path.name: path for place in places for path in place.glob("[!.]*")}
    own = []
    for name in sorted(present.keys() - taken):
        # Other things may lie in a data folder, word vectors for example.
        with suppress(CorpusError):
            own.append(_own(CorpusFolder.open(present[name])))
    return [*_GENERATED, *(_listed(entry) for entry in [*known, *own])]


def _listed(entry: CorpusDefinition) -> Listed:
    sizes: tuple[int | None, int | None] = (None, None)
    found, where = _found(entry.folder), "not here"
    if found is not None:
        data = data_folder()
        in_data = data is not None and os.path.dirname(os.path.abspath(found)) == os.path.abspath(
            data
        )
        where = "data folder" if in_data else "cache"
        try:
            counts = CorpusFolder.open(found).sizes
            if not entry.drawn:
                sizes = (counts.get(entry.train), counts.get(entry.val))
        except CorpusError:
            where += ", malformed"
    elif pinned.holds(entry.folder):
        where = "to be fetched"
    elif entry.folder in hub.CORPORA:
        where = "hub"
    return Listed(entry.name, entry.task, entry.title, where, *sizes)


def _places() -> list[Path]:
    data = data_folder()
    try:
        cache = [corpora_folder()]
    except UsageError:  # A user without a home folder has fetched nothing.
        cache = []
    return cache if data is None else [data, *cache]


def _found(folder: str) -> Path | None:
    # The path of a user's own folder is absolute, and so stays itself behind any place.
    return next((place / folder for place in _places() if (place / folder).is_dir()), None)


def _fetchable(folder: str) -> bool:
    return pinned.holds(folder) or folder in hub.CORPORA


def _own(folder: CorpusFolder) -> CorpusDefinition:
    val = next((split for split in VALIDATION if split in folder.splits), None)
    aligned = folder.kind == "alignment"
    if val is None or ("train" not in folder.splits and not aligned):
        missing = "validation split" if val is None else "split 'train'"
        have = ", ".join(folder.splits) or "none"
        raise CorpusError(
            f"{folder.path} has no {missing}; a corpus has train and one of "
            f"{', '.join(VALIDATION)} (found: {have})."
        )
    labelled = folder.kind == "classification"
    source, target = ("", "") if labelled else folder.languages[:2]
    return CorpusDefinition(
        name=folder.name,
        folder=os.path.abspath(folder.path),
        title="A folder of the user's",
        task=folder.kind,
        train="" if aligned else "train",
        val=val,
        test="test" if labelled and val != "test" and "test" in folder.splits else "",
        source=source,
        target=target,
        validation_limit=4000 if labelled else None,
        tokens="words" if labelled else "blanks",
    )
