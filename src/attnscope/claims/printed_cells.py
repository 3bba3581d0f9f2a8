"""Which printed numbers are results, and the measurement that each of them is compared with.

Settings (batch sizes, dimensions), drawings that illustrate, and bounds of plots are not results.
Every other row of ``published/*.csv`` is a cell, and `queries` name its measurement: recipe, name,
data set, split, axes, and the factor that brings it to the printed unit. A cell without a query is
one that nothing here measures.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

from attnscope.claims.published import PublishedRow


@dataclass(frozen=True)
class CellQuery:
    """Where the measurement of a printed number is.

    Attributes
    ----------
    recipe, name, dataset, split, axes
        As in a result; an empty split is any.
    factor
        What the measured number is multiplied by to be in the printed unit.
    settings
        The settings that the printed number has; other runs are taken where there is none of them,
        and count as a part of the corpus.
    otherwise
        The measurement that is taken where there is none of this name.
    error
        Whether the measured number is the distance from the printed one.
    corpus
        How the data set relates to the paper's: ``own``, ``part`` or ``stand-in``.
    """

    recipe: str
    name: str
    dataset: str
    split: str = ""
    axes: Mapping[str, Any] = field(default_factory=dict)
    factor: float = 1.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    otherwise: str = ""
    error: bool = False
    corpus: str = "own"


_STATISTICS = ("median_length", "train_size", "val_size", "vocab_size")
# Tables (None: any metric) whose numbers are results.
_RESULTS: dict[str, dict[str, tuple[str, ...] | None]] = {
    "snell": {
        **{f"table{number}": None for number in range(2, 12)},
        "text-A.1": ("bleu", "A(alpha_opt,beta)", "beta", "alpha_opt"),
        "text-A.8": ("params",),
        "text-A.9": None,
        "text-s6.2": ("accuracy",),
        "fig4": None,
        "fig8": None,
    },
    "sunlu": {"table1": None, "table2": None},
    "tutek": {
        **dict.fromkeys(("table1", "table2", "table3", "table5", "table6"), None),
        "text-s4.1": ("f1",),
    },
    "aitken": {
        "text-s3": ("variance_explained(PCs)",),
        "text-s4": ("word_accuracy", "train_size", "vocab_size"),
        "text-s4.1": None,
        "text-s4.2": None,
    },
}


_STATISTICS_OF_CORPORA = {
    "snell": ("table9", "text-A.8", "text-A.9"),
    "sunlu": ("table1",),
    "tutek": ("table5",),
    "aitken": (),
}


def is_statistic(paper: str, row: PublishedRow) -> bool:
    """Return whether a printed number is of the corpus or the size of a model, and not measured."""
    return row.table in _STATISTICS_OF_CORPORA[paper] or row.metric in ("train_size", "vocab_size")


def is_result(paper: str, row: PublishedRow) -> bool:
    """Return whether a printed number is a result, not a setting or an illustration."""
    tables = _RESULTS[paper]
    metrics = tables.get(row.table, ())
    return metrics is None or row.metric in metrics


@cache
def corpora(paper: str) -> dict[str, list[tuple[str, str]]]:
    """Return data sets, the preferred first, each with how it relates to the paper's.

    By the paper's name. A corpus is ``own`` where its texts, its split and its lengths are the
    paper's, and a ``part`` where some of the texts, another split or other lengths are used.
    """
    path = files("attnscope.claims").joinpath("fidelity_corpora.csv")
    found: dict[str, list[tuple[str, str]]] = {}
    with path.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["paper"] == paper:
                found.setdefault(row["printed"], []).append((row["dataset"], row["corpus"]))
    return found


def printed_as(paper: str, dataset: str) -> str | None:
    """Return the paper's name of a data set, None if it has none."""
    known = corpora(paper).items()
    return next((name for name, found in known if dataset in dict(found)), None)


def queries(paper: str, row: PublishedRow, way: str = "text") -> list[CellQuery]:
    """Return where the measurement of a printed number may be, the preferred place first.

    Parameters
    ----------
    way
        ``text`` or ``code``: the procedure, where a paper's text and its authors' code differ.
    """
    found = []
    for dataset, corpus in corpora(paper).get(row.dataset, [("", "own")]):
        asked = _QUERIES[paper](row, dataset, dict(row.variant))
        if asked is not None:
            asked = replace(asked, corpus=corpus)
            found += _by_code(row, asked) if way == "code" else [asked]
    return found


def _by_code(row: PublishedRow, asked: CellQuery) -> list[CellQuery]:
    """Return the same by the authors' code; tables of BLEU have a checkpoint of their own."""
    if "way" not in asked.axes:
        return [asked]
    own = row.table in _BLEU and not row.metric.startswith("xi")
    ways = ("code-bleu", "code") if own else ("code",)
    return [replace(asked, axes={**asked.axes, "way": way}) for way in ways]


_KENDALL, _BLEU, _TRAIN = ("table3", "table4"), ("table4", "table6", "table8"), ("table7", "table8")
_TEXT = {"way": "text"}


def _snell(row: PublishedRow, dataset: str, variant: Mapping[str, str]) -> CellQuery | None:
    if row.table in ("fig4", "fig8"):
        of = {"fig4": "permutations-4", "fig8": "mixture-2x4"}[row.table]
        return CellQuery("snell/cooccurrence", "listed_sentences_off", of, error=True)
    if row.metric in _STATISTICS:
        side = {"side": variant["side"]} if "side" in variant else {}
        split = row.split or "train"
        return CellQuery("snell/table5", row.metric, dataset, split, side)
    if row.table == "text-A.8":
        return _parameters(row, dataset, variant)
    if row.table == "text-s6.2":
        axes = {"task": "copy", "step": 300}
        return CellQuery("snell/permutation-function", "accuracy", dataset, axes=axes, factor=100)
    if row.table == "text-A.1":
        return _optimal(row, dataset, variant)
    if row.table in ("table10", "table11"):
        factor = 0.01 if row.table == "table11" else 1.0
        return CellQuery(f"snell/{row.table}", row.metric, dataset, "val", _TEXT, factor)
    axes = dict(_TEXT)
    if row.metric.startswith("xi"):
        axes["agreement"] = "kendall_tau" if row.table in _KENDALL else "top5pct"
        axes["performance"] = "bleu" if row.table in _BLEU else "accuracy"
    split = "train" if row.table in _TRAIN else "val"
    return CellQuery("snell/table5", row.metric, dataset, split, axes)


def _parameters(row: PublishedRow, dataset: str, variant: Mapping[str, str]) -> CellQuery:
    if variant.get("embeddings") == "included":
        return CellQuery("snell/table5", "parameters", dataset, "train")
    any_of_task = "sst" if variant.get("task") == "classification" else "multi30k-de-en"
    return CellQuery("snell/table5", "parameters_without_embeddings", any_of_task, "train")


def _optimal(row: PublishedRow, dataset: str, variant: Mapping[str, str]) -> CellQuery:
    recipe = "snell/optimal-attention"
    if "position" in variant:
        return CellQuery(recipe, row.metric, dataset, axes={"position": int(variant["position"])})
    if row.metric == "bleu":
        return CellQuery(recipe, "bleu", dataset, axes=_TEXT | {"model": variant["model"]})
    # The authors' probe of this model leaves the decoder's state out.
    name, otherwise = "A(alpha_opt,beta_word)", "A(alpha_opt,beta)"
    return CellQuery(recipe, name, dataset, "", _TEXT, 0.01, otherwise=otherwise)


def _sunlu(row: PublishedRow, dataset: str, variant: Mapping[str, str]) -> CellQuery | None:
    if row.table == "table1":
        return CellQuery("sunlu/table2", row.metric, dataset, row.split, dict(variant))
    axes = {"model": variant["model"], "lambda": float(variant["lambda"])}
    return CellQuery("sunlu/table2", row.metric, dataset, "", axes)


def _tutek(row: PublishedRow, dataset: str, variant: Mapping[str, str]) -> CellQuery | None:
    if row.table.startswith("text"):
        return None  # a claim's, about MIMIC
    if row.table == "table5":
        return CellQuery("tutek/table1", row.metric, dataset)
    if row.table == "table6":
        layers = int(variant["layers"])
        axes = {"model": variant["model"], "layers": layers}
        if layers > 1:
            return CellQuery("tutek/table6", row.metric, dataset, axes=axes)
        # One layer with additive attention is table 1's model, there with five seeds.
        own = {"model": variant["model"], "attention": "additive"}
        return CellQuery("tutek/table1", row.metric, dataset, axes=own)
    return CellQuery(f"tutek/{row.table}", row.metric, dataset, axes=dict(variant))


_RECORDED = {"separator": "marked", "shortest_output": 10, "longest_output": 15}
_GRU = {"cell": "gru", "attention": "dot"}


def _aitken(row: PublishedRow, dataset: str, variant: Mapping[str, str]) -> CellQuery | None:
    model = {"model": variant["model"].lower()} if "model" in variant else {}
    axes = _GRU | model
    text = dataset != "escan"
    settings: Mapping[str, Any] = {} if text else _RECORDED
    share = row.metric.removeprefix("alignment_share(").removesuffix(")")
    if row.metric == "variance_explained(PCs)":
        own: dict[str, Any] = {**_GRU, "model": "aed", "of": "temporal", "axes": 3}
        return CellQuery("aitken/fig2", "explained_variance", dataset, axes=own, factor=100)
    if row.metric == "word_accuracy":
        # As the authors count it, where a network was accepted.
        found = ("aitken/fig3", "padded_accuracy", dataset)
        return CellQuery(*found, "", axes, 100, settings, otherwise="word_accuracy")
    if row.metric.startswith("alignment_share"):
        own = axes | {"form": "raw", "term": share}
        return CellQuery(
            "aitken/fig5", "term_share", dataset, axes=own, factor=100, settings=settings
        )
    if row.metric.startswith("variance_drop"):
        recipe = "aitken/fig4" if text else "aitken/fig5"
        return CellQuery(recipe, "variance_drop", dataset, "", axes, 100, settings)
    if row.metric == "target_length_excess":
        return CellQuery("aitken/fig4", row.metric, dataset, factor=100)
    if row.metric in ("train_size", "vocab_size"):
        return CellQuery("aitken/fig4", row.metric, dataset, axes=dict(variant))
    return None


_QUERIES: dict[str, Callable[[PublishedRow, str, Mapping[str, str]], CellQuery | None]] = {
    "snell": _snell,
    "sunlu": _sunlu,
    "tutek": _tutek,
    "aitken": _aitken,
}
