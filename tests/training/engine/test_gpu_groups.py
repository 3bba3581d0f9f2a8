"""Groups that train as on a GPU, with graphs that a CPU pretends, have the numbers of single units.

Sources draw inputs and targets of several widths, which a GPU's backend pads further.
"""

from __future__ import annotations

from threading import Barrier
from typing import Literal

import numpy as np
import pytest
import torch

from attnscope.data.batch import Example, collate
from attnscope.data.corpus import GrammarSentiment, GrammarTranslation
from attnscope.data.randomness import generator
from attnscope.data.source import Source
from attnscope.data.tasks import KeywordTask
from attnscope.data.vocabulary import Vocabulary
from attnscope.models.attentions import DotProduct
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.runs.tensors import load_arrays
from attnscope.runs.unit import UnitFolder
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.training.bleu import Bleu
from attnscope.training.engine import cuda_graphs
from attnscope.training.engine.backend import CpuBackend, CudaBackend
from attnscope.training.engine.cuda_graphs import CudaGraphs, RecordedGradients
from attnscope.training.engine.groups import train_group
from attnscope.training.engine.vmapped import stack_batches
from attnscope.training.loop import train_unit
from attnscope.training.masked_lm import MaskedWords
from attnscope.training.objective import Likelihood
from attnscope.training.optimizer import Sgd

SEEDS = (4, 0)
BOS, EOS, TYPES = 1, 2, 12


class UnequalPairs(Source):
    """Pairs of sentences whose lengths are drawn; each seed's are longer than those of the last."""

    kind: Literal["unequal-pairs"] = "unequal-pairs"
    labels: bool = False

    @property
    def dataset(self):
        return "unequal-pairs"

    @property
    def input_words(self):
        return Vocabulary(tuple(str(word) for word in range(TYPES)))

    @property
    def output_words(self):
        return self.input_words

    @property
    def boundaries(self):
        return None if self.labels else (BOS, EOS)

    def training_batch(self, seed, step, size):
        stream = generator("unequal pairs", seed, step)
        lengths = torch.randint(2, 6, (size, 2), generator=stream) + seed
        words = torch.randint(3, TYPES, (size, 2, 6 + seed), generator=stream).tolist()
        examples = []
        for row, (inp, out) in enumerate(lengths.tolist()):
            read, said = words[row][0][:inp], words[row][1][:out]
            decoded, targets = ([0], said[:1]) if self.labels else ([BOS, *said], [*said, EOS])
            examples.append(Example(row, [*read, EOS], decoded, targets))
        return collate(examples)

    def evaluation_batch(self, count, split="val"):
        return self.training_batch(3, 0, count)


class RepeatedWork(CudaGraphs):
    """Graphs of a CPU: a replay does the work again, into the losses that were recorded."""

    def __init__(self):
        self.replays = 0

    def send(self, numbers, place):
        place.copy_(numbers)

    def run_on_stream(self, work):
        return work()

    def record(self, work):
        losses = work().clone()

        def replay():
            self.replays += 1
            losses.copy_(work())

        return losses, replay


@pytest.fixture(autouse=True)
def graphs(monkeypatch):
    """Let the backend of the CPU do as that of a GPU does."""
    made = RepeatedWork()
    monkeypatch.setattr(cuda_graphs, "_WARM", 0)
    monkeypatch.setattr(CpuBackend, "vmaps_evaluation", CudaBackend.vmaps_evaluation)
    monkeypatch.setattr(CpuBackend, "for_each", lambda self, *rows: CudaBackend().for_each(*rows))
    monkeypatch.setattr(
        CpuBackend, "gradients", lambda self, *parts: RecordedGradients(*parts, graphs=made)
    )
    return made


PAIRS, LABELLED = UnequalPairs(), UnequalPairs(labels=True)
LAYERS = {"layers": 2, "directions": 2, "dropout": 0.5}


def translator(**settings):
    return Seq2SeqSpec(embedding=5, hidden=4, embeddings="separate", **settings)


def classifier(**settings):
    return ClassifierSpec(
        embedding=4, encoder=Recurrent(hidden=2, **settings), attention=DotProduct(), dropout=0.3
    )


MASKED = {"objective": (Likelihood(), MaskedWords(weight=0.3))}
BLEU = {"metrics": (Bleu(),)}
CASES = {
    "translator": (PAIRS, translator(readout="relu", **LAYERS), BLEU),
    "gru": (PAIRS, translator(cell="gru", **LAYERS), {}),
    "one-layer": (PAIRS, translator(), {}),
    "two-directions": (PAIRS, translator(directions=2), {}),
    "heads": (PAIRS, translator(heads=3, join="averaged"), {}),
    "corpus": (GrammarTranslation(), translator(**LAYERS), {}),
    "classifier": (LABELLED, classifier(), {}),
    "classifier-layers": (LABELLED, classifier(cell="gru", layers=2, dropout=0.4), {}),
    "masked-words": (LABELLED, classifier(layers=2, dropout=0.4), MASKED),
    "masked-words-corpus": (GrammarSentiment(), classifier(), MASKED),
    "keyword": (KeywordTask(length=5, types=6), classifier(), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_group_in_graphs_has_the_numbers_of_its_units(tiny, tmp_path, graphs, case):
    assert_alike(tiny, tmp_path, graphs, case)


@pytest.mark.parametrize("case", ["translator", "masked-words"])
def test_a_group_of_long_texts_has_the_numbers_of_its_units(
    tiny, tmp_path, monkeypatch, graphs, case
):
    # Texts above this width are padded to one that many batches share.
    monkeypatch.setattr(cuda_graphs, "_NARROW", 8)
    assert_alike(tiny, tmp_path, graphs, case)


def assert_alike(tiny, tmp_path, graphs, case):
    source, model, settings = CASES[case]
    settings = {
        "steps": 4,
        "evaluate_at": (2,),
        "examples": 5,
        "dtype": "float64",
        "optimizer": Sgd(lr=0.5),
        "scores": (Attention(), LexicalProbe()),
    } | settings
    units = [tiny(source, model, seed, **settings) for seed in SEEDS]
    assert train_group(units, tmp_path / "together") == [None, None]
    assert graphs.replays == 4 + 1  # the room that is made is one
    for unit in units:
        alone, grouped = train_unit(unit, tmp_path / "alone"), unit.folder(tmp_path / "together")
        for one, other in zip(alone.log, grouped.log, strict=True):
            assert list(one) == list(other)
            for name in set(one) - {"seconds"}:
                assert other[name] == (one[name] and pytest.approx(one[name], rel=0, abs=1e-11))
        files = sorted(path.relative_to(alone.path) for path in alone.path.rglob("*.safetensors"))
        for file in files:
            (one, _), (other, _) = load_arrays(alone.path / file), load_arrays(grouped.path / file)
            assert sorted(one) == sorted(other)
            for name, array in one.items():
                np.testing.assert_allclose(other[name], array, rtol=0, atol=1e-11)


def test_a_gpu_waits_for_the_checkpoints_of_all_units_at_once(tiny, tmp_path, monkeypatch):
    both, save = Barrier(len(SEEDS), timeout=20), UnitFolder.save_checkpoint

    def save_with_the_others(*arguments):
        both.wait()
        save(*arguments)

    monkeypatch.setattr(UnitFolder, "save_checkpoint", save_with_the_others)
    units = [tiny(seed=seed, steps=2, evaluate_at=()) for seed in SEEDS]
    assert train_group(units, tmp_path) == [None, None]


def test_batches_are_never_cut_to_a_width():
    batches = [PAIRS.training_batch(seed, 0, 4) for seed in SEEDS]
    plain, columns = stack_batches(batches), stack_batches(batches, lambda _: 3, lambda _: 2)
    assert plain["inputs"].shape[-1] > 3
    for name, column in plain.items():
        assert columns[name].equal(column)
