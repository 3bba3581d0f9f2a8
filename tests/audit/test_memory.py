"""Memory of an audit: a further example adds its numbers, not its states or weights."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attnscope.audits import idle, uniform
from attnscope.audits.subject import Subject
from attnscope.audits.texts import Texts


class Peak(TorchDispatchMode):
    """Counts the bytes of storages that live at once."""

    def __init__(self) -> None:
        super().__init__()
        self.alive: dict[int, int] = {}
        self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                key = storage._cdata
                if key not in self.alive:
                    self.alive[key] = storage.nbytes()
                    weakref.finalize(storage, self.alive.pop, key, None)
        self.peak = max(self.peak, sum(self.alive.values()))
        return made


def peak_of(measure, model, texts: list[str], labels: list[int]) -> int:
    data = Texts("planted", "all", tuple(texts), labels=tuple(labels))
    subject = Subject(model, data, model.batch(texts, labels), draws=1, positions=128)
    _ = subject.parts  # the texts themselves
    with Peak() as watch:
        measure(subject)
    return watch.peak


@pytest.mark.parametrize("question", [uniform, idle])
def test_a_further_example_adds_a_few_numbers_to_the_peak_of_tensors(question, keyword, labelled):
    texts, labels = labelled
    few = peak_of(question.measure, keyword, texts[:30], labels[:30])
    many = peak_of(question.measure, keyword, texts * 4, labels * 4)
    assert few > 30 * 64
    # The states of one text of five words would be 160 bytes, and its weights come with them.
    assert (many - few) / (len(texts) * 4 - 30) <= 64
