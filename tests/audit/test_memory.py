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
    subject = Subject(model, data, model.batch(texts, labels), draws=1, positions=256)
    _ = subject.parts  # the texts themselves
    with Peak() as watch:
        measure(subject)
    return watch.peak


def growth(measure, model, texts: list[str], labels: list[int]) -> float:
    """Return the bytes by which the peak grows with each further text."""
    few, many = (peak_of(measure, model, texts * n, labels * n) for n in (4, 8))
    return (many - few) / (4 * len(texts))


# Numbers of a text in float64: of uniform one head's entropy and the share of boundaries; of idle
# uniform, one permutation of the whole site, and one of its single head.
NUMBERS = {uniform: 2, idle: 3}


@pytest.mark.parametrize("question", NUMBERS, ids=["uniform", "idle"])
def test_a_further_text_adds_its_numbers_and_its_place_and_nothing_else(
    question, keyword, labelled
):
    texts, labels = labelled
    twice = [f"{text} {text}" for text in texts]
    added = growth(question.measure, keyword, twice, labels)
    # Numbers stand in their parts, then joined, then in the order of the texts, and so does the
    # text's place. The states of these texts, of ten words and more, are at least 320 bytes each.
    assert 8 * NUMBERS[question] <= added <= 3 * 8 * (NUMBERS[question] + 1)
