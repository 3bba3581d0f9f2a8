"""Table 9: what a corpus looks like, and how large its model is."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from attnscope.claims.published import published_value
from attnscope.data.batch import Example
from attnscope.data.corpus import Corpus
from attnscope.data.text import Text
from attnscope.models.base import parameter_count
from attnscope.recipes.snell.text_units import TextConfig, is_classification, left_out, model_of
from attnscope.runs.result import Measurement

# Boundaries are not counted: the paper's medians are those of the words.
_BOUNDARIES = {"inputs": 2, "targets": 1}


def statistics_rows(config: TextConfig, source: Corpus) -> list[Measurement]:
    """Return sizes, median lengths, vocabulary, parameters, and what was left out."""
    parts = {"train": source.training_examples, "val": source.validation_examples}
    rows = []
    for split, examples in parts.items():
        rows.append(_row(source, f"{split}_size", len(examples), split))
        sides = {"": "inputs"} if is_classification(source) else {"src": "inputs", "trg": "targets"}
        for side, name in sides.items():
            length = _median_length(examples, name, source)
            axes = {"side": side} if side else {}
            rows.append(_row(source, "median_length", length, split, **axes))
    model = model_of(config, source).build(source, 0)
    embeddings = {id(p): p.numel() for name, p in model.named_parameters() if "embedding" in name}
    parameters = parameter_count(model)
    rows.append(_row(source, "vocab_size", len(source.input_words), ""))
    rows.append(_row(source, "parameters", parameters, ""))
    rows.append(
        _row(source, "parameters_without_embeddings", parameters - sum(embeddings.values()), "")
    )
    for reason, count in (left_out(source) or {"train: anything": 0}).items():
        split, _, why = reason.partition(": ")
        rows.append(_row(source, "left_out", count, split, reason=why))
    return rows


def _median_length(examples: Sequence[Example], side: str, source: Corpus) -> float:
    boundaries = _BOUNDARIES[side] if isinstance(source, Text) else 1
    return median(len(getattr(example, side)) for example in examples) - boundaries


def _row(source: Corpus, name: str, value: float, split: str, **axes: str) -> Measurement:
    printed = source.definition.published if isinstance(source, Text) else None
    published = None
    if printed and name == "parameters":
        published = published_value("snell", "text-A.8", printed, "params")
    elif printed and name != "left_out":
        published = published_value("snell", "table9", printed, name, split=split, **axes)
    return Measurement(
        name=name,
        dataset=source.dataset,
        split=split or "train",
        axes=axes,
        value=value,
        n=len(source.training_examples),
        published=published,
    )
