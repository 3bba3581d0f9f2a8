"""An example as it is shown: its words, and which pieces make a word together."""

from __future__ import annotations

from attnscope.data.batch import Batch
from attnscope.data.source import Source
from attnscope.data.tokens import SPECIALS
from attnscope.errors import AttnscopeError
from attnscope.report.scene import Shown
from attnscope.scores.subwords import WORD_START, word_groups


def shown_example(source: Source, batch: Batch, row: int, key: str, why: str = "") -> Shown:
    """Return an example with its words; ids where the vocabulary cannot be had any more."""
    inputs = batch.inputs[row, : int(batch.input_lengths[row])].tolist()
    targets = batch.targets[row, : int(batch.target_lengths[row])].tolist()
    try:
        words, outputs = source.input_words.decode(inputs), source.output_words.decode(targets)
    except (AttnscopeError, IndexError):
        words, outputs = ([f"#{index}" for index in side] for side in (inputs, targets))
    groups: tuple[list[int] | None, list[int] | None] = (None, None)
    if any(word.startswith(WORD_START) for word in words):
        groups = word_groups(words, SPECIALS), word_groups(outputs, SPECIALS)
    gold = batch.gold[row, : len(targets)].tolist()
    return Shown(key, words, outputs, *groups, gold, why)
