"""Models whose answers are known in advance, and texts for them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attnscope.data.batch import Batch
from attnscope.models.adapted import Adapted, Facts
from attnscope.models.adapter import adapt

TYPES, KEYS, LABELS = 40, (5, 6), 2
FILLERS = range(10, TYPES)


def tokens(text: str) -> list[int]:
    """Words are numbers: their ids."""
    return [int(word) for word in text.split()]


def keyword_texts(count: int = 60) -> tuple[list[str], list[int]]:
    """Return texts of fillers with one keyword somewhere, which is the label."""
    stream = torch.Generator().manual_seed(1)
    texts, labels = [], []
    for number in range(count):
        length = int(torch.randint(5, 11, (), generator=stream))
        words = torch.randint(FILLERS.start, FILLERS.stop, (length,), generator=stream).tolist()
        words[int(torch.randint(length, (), generator=stream))] = KEYS[number % 2]
        texts.append(" ".join(map(str, words)))
        labels.append(number % 2)
    return texts, labels


class Keyword(nn.Module):
    """One attention over words; ``sharp`` is how much keywords stand out, 0 is uniform."""

    def __init__(self, sharp: float) -> None:
        super().__init__()
        stream = torch.Generator().manual_seed(0)
        table = 0.01 * torch.randn(TYPES, 8, generator=stream)
        table[KEYS[0], :2] = torch.tensor([1.0, -1.0])
        table[KEYS[1], :2] = torch.tensor([1.0, 1.0])
        self.embedding = nn.Embedding.from_pretrained(table, freeze=False)
        self.sharp = sharp
        self.output = nn.Linear(8, LABELS, bias=False)
        with torch.no_grad():
            self.output.weight.zero_()
            self.output.weight[:, 1] = torch.tensor([-30.0, 30.0])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        states = self.embedding(ids)
        logits = (self.sharp * states[..., 0]).masked_fill(ids == 0, -1e9)
        weights = logits.softmax(-1)
        return self.output((weights.unsqueeze(1) @ states).squeeze(1))


class Idle(Keyword):
    """The output is a mean of words; what is attended to is multiplied with 0."""

    def __init__(self) -> None:
        super().__init__(sharp=3.0)
        self.merge = nn.Linear(8, 8, bias=False)
        nn.init.zeros_(self.merge.weight)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        states = self.embedding(ids)
        real = (ids > 0)[..., None]
        logits = (self.sharp * states[..., 2]).masked_fill(ids == 0, -1e9)
        context = (logits.softmax(-1).unsqueeze(1) @ states).squeeze(1)
        return self.output((states * real).sum(1) / real.sum(1) + self.merge(context))


class Reverse(nn.Module):
    """Writes its source backwards: head 1 attends to the right word, head 0 to all of them."""

    def __init__(self, longest: int = 16) -> None:
        super().__init__()
        self.words = nn.Embedding.from_pretrained(torch.eye(TYPES), freeze=False)
        self.scale = nn.Parameter(torch.tensor(30.0))
        self.places = longest

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        states, real = self.words(source), source > 0
        length = real.sum(1)
        wanted = length[:, None] - 1 - torch.arange(target.shape[1], device=source.device)
        queries = nn.functional.one_hot(wanted.clamp(min=0), self.places).to(states)
        places = torch.arange(source.shape[1], device=source.device)
        keys = nn.functional.one_hot(places, self.places).to(states).expand(len(source), -1, -1)
        heads = torch.stack([0 * queries, self.scale * queries], 1)
        logits = heads @ keys[:, None].transpose(-1, -2)
        weights = logits.masked_fill(~real[:, None, None], -1e9).softmax(-1)
        context = weights @ states[:, None]
        return 10 * context[:, 1] + 0 * context[:, 0]


def write(module: nn.Module, batch: Batch) -> torch.Tensor:
    return module(batch.inputs, batch.decoder_inputs)


def reversed_texts(count: int = 40) -> tuple[list[str], list[str]]:
    stream = torch.Generator().manual_seed(2)
    sources = []
    for _ in range(count):
        length = int(torch.randint(4, 9, (), generator=stream))
        order = torch.randperm(len(FILLERS), generator=stream)[:length] + FILLERS.start
        sources.append(" ".join(map(str, order.tolist())))
    return sources, [" ".join(reversed(each.split())) for each in sources]


def adapted_classifier(module: nn.Module) -> Adapted:
    from attnscope.data.tokenised import Tokeniser, tokenise

    texts, labels = keyword_texts(6)
    example = tokenise(Tokeniser(tokens), "labels", texts, labels).batch
    return adapt(module, tokenizer=tokens, example=example)


def adapted_translator() -> Adapted:
    from attnscope.data.tokenised import Tokeniser, tokenise

    sources, targets = reversed_texts(5)
    cut = Tokeniser(tokens)
    example = tokenise(cut, "translation", [f"{s} 3" for s in sources], targets, start=1).batch
    model = adapt(Reverse(), tokenizer=tokens, call=write, example=example)
    model.facts = Facts(task="translation", start=1)
    return model


@pytest.fixture(scope="session")
def keyword() -> Adapted:
    return adapted_classifier(Keyword(sharp=8.0))


@pytest.fixture(scope="session")
def graded() -> Adapted:
    """A keyword classifier whose probability follows the weight on the keyword."""
    module = Keyword(sharp=8.0)
    with torch.no_grad():
        module.output.weight /= 30
    return adapted_classifier(module)


@pytest.fixture(scope="session")
def uniform() -> Adapted:
    return adapted_classifier(Keyword(sharp=0.0))


@pytest.fixture(scope="session")
def idle() -> Adapted:
    return adapted_classifier(Idle())


@pytest.fixture(scope="session")
def reverse() -> Adapted:
    return adapted_translator()


@pytest.fixture(scope="session")
def labelled() -> tuple[list[str], list[int]]:
    return keyword_texts()


@pytest.fixture(scope="session")
def parallel() -> tuple[list[str], list[str]]:
    return reversed_texts()
