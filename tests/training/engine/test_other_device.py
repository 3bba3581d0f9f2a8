"""Groups that train on a device that is not the CPU have the numbers of units trained on the CPU.

Steps are recorded, and done again in the same memory, as CUDA graphs do them; evaluations run on
the device too.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope.data.corpus import GrammarSentiment, GrammarTranslation
from attnscope.data.sequence_tasks import OneToOne
from attnscope.data.tasks import KeywordTask, MixtureCopy, PermutationCopy, SampledCopy
from attnscope.models.attentions import DotProduct
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.intervention import Uniform
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.runs.tensors import load_arrays
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.training.bleu import Bleu
from attnscope.training.engine import backend
from attnscope.training.engine.backend import CudaBackend
from attnscope.training.engine.cuda_graphs import CudaGraphs, RecordedGradients
from attnscope.training.engine.dropout_masks import in_turn
from attnscope.training.engine.grouping import groups
from attnscope.training.engine.groups import train_group
from attnscope.training.loop import train_unit
from attnscope.training.masked_lm import MaskedWords
from attnscope.training.objective import Likelihood
from attnscope.training.optimizer import Adagrad, Adam, AitkenAdam, Sgd
from attnscope.training.penalties import SquaredNorm
from group_runs import stop_at
from other_device import DEVICE, Recording, other_device

SEEDS = (4, 0)


class RecordedElsewhere(CudaGraphs):
    """Graphs of the other device."""

    def __init__(self):
        self.replays = 0

    def send(self, numbers, place):
        place.copy_(numbers)

    def run_on_stream(self, work):
        return work()

    def record(self, work):
        recording = Recording(work)

        def replay():
            self.replays += 1
            recording()

        # A recording is not yet done: whatever it has left has no meaning.
        recording.result.fill_(torch.nan)
        return recording.result, replay


class ElsewhereBackend(CudaBackend):
    """The backend of a GPU, on the other device."""

    def __init__(self):
        self.graphs = RecordedElsewhere()

    def gradients(self, *parts):
        return RecordedGradients(*parts, graphs=self.graphs)

    def for_each(self, function, *columns):
        in_turn(function, *columns)  # the other device is known to one thread


@pytest.fixture
def elsewhere(monkeypatch):
    """Train on the other device as on a GPU."""
    made = ElsewhereBackend()
    monkeypatch.setitem(backend.BACKENDS, DEVICE.type, made)
    with other_device():
        yield made


def translator(**settings):
    return Seq2SeqSpec(embedding=5, hidden=4, **{"embeddings": "separate"} | settings)


def classifier(**settings):
    encoder = Recurrent(hidden=2, **settings)
    return ClassifierSpec(embedding=4, encoder=encoder, attention=DotProduct(), dropout=0.3)


TEXT, LABELLED, KEYWORD = GrammarTranslation(), GrammarSentiment(), KeywordTask(length=5, types=6)
COPY = PermutationCopy(length=5)
UNIFORM = {"attention": {"cross": Uniform()}}
MASKED = {"objective": (Likelihood(), MaskedWords(weight=0.3))}
PENALISED = {"objective": (Likelihood(), SquaredNorm(weight=1e-3))}
CASES = {
    "copying": (COPY, translator(embeddings="shared"), {"optimizer": Adam()}),
    "lstm": (TEXT, translator(), {}),
    "lstm-two-directions": (TEXT, translator(directions=2), {}),
    "lstm-layers-dropout": (
        TEXT,
        translator(layers=2, directions=2, dropout=0.5, readout="relu"),
        {"metrics": (Bleu(),)},
    ),
    "gru": (TEXT, translator(cell="gru", readout="linear"), {}),
    "gru-layers-dropout": (
        TEXT,
        translator(cell="gru", layers=2, directions=2, dropout=0.3),
        {"optimizer": AitkenAdam(clip=0.5)},
    ),
    "heads-summed": (COPY, translator(heads=3), {}),
    "heads-averaged": (TEXT, translator(cell="gru", heads=3, join="averaged"), {}),
    "uniform": (COPY, translator(), UNIFORM),
    "keyword": (KEYWORD, classifier(), {}),
    "keyword-uniform": (KEYWORD, classifier(directions=2), UNIFORM),
    "classifier-gru": (LABELLED, classifier(cell="gru"), {}),
    "classifier-layers": (
        LABELLED,
        classifier(layers=2, dropout=0.4),
        MASKED | {"optimizer": Adagrad(lr=0.1)},
    ),
    "aed": (OneToOne(shortest=2, longest=4), EncoderDecoderSpec(hidden=5), PENALISED),
}


def unit_of(tiny, case, seed=0, **further):
    source, model, settings = CASES[case]
    settings = {
        "steps": 4,
        "evaluate_at": (),
        "examples": 4,
        "dtype": "float64",
        "optimizer": Sgd(lr=0.5),
        "scores": (Attention(), LexicalProbe()),
    } | settings
    return tiny(source, model, seed, **settings | further)


def there(units):
    return [unit.model_copy(update={"device": DEVICE.type}) for unit in units]


def assert_alike(units, tmp_path):
    for unit, other in zip(units, there(units), strict=True):
        alone, grouped = train_unit(unit, tmp_path / "here"), other.folder(tmp_path / "there")
        for one, again in zip(alone.log, grouped.log, strict=True):
            assert list(one) == list(again)
            for name in set(one) - {"seconds"}:
                assert again[name] == (one[name] and pytest.approx(one[name], rel=0, abs=1e-11))
        files = sorted(path.relative_to(alone.path) for path in alone.path.rglob("*.safetensors"))
        assert files
        for file in files:
            (one, _), (again, _) = load_arrays(alone.path / file), load_arrays(grouped.path / file)
            assert sorted(one) == sorted(again)
            for name, array in one.items():
                np.testing.assert_allclose(again[name], array, rtol=0, atol=1e-11)


@pytest.mark.parametrize("case", CASES)
def test_a_group_on_another_device_has_the_numbers_of_the_cpu(tiny, tmp_path, elsewhere, case):
    units = [unit_of(tiny, case, seed) for seed in SEEDS]
    assert train_group(there(units), tmp_path / "there") == [None, None]
    assert elsewhere.graphs.replays > 1
    assert_alike(units, tmp_path)


def test_tasks_and_draws_of_heads_share_a_program_on_another_device(tiny, tmp_path, elsewhere):
    sources = (MixtureCopy(length=3), SampledCopy(length=3, vocabulary=6))
    models = [translator(base_seed=7, head_seeds=seeds) for seeds in ((1, 2), (3, 4))]
    settings = {"steps": 4, "evaluate_at": (), "examples": 4, "dtype": "float64"}
    units = [
        tiny(source, model, optimizer=Sgd(lr=0.5), **settings)
        for source in sources
        for model in models
    ]
    assert [len(group) for group in groups(there(units))] == [4]
    assert train_group(there(units), tmp_path / "there") == [None] * 4
    assert_alike(units, tmp_path)


def test_a_resumed_group_on_another_device_has_the_bytes_of_one_never_stopped(
    tiny, tmp_path, elsewhere, all_numbers
):
    settings = {"metrics": (), "optimizer": Adam()}
    units = there([unit_of(tiny, "lstm-layers-dropout", seed, **settings) for seed in SEEDS])
    assert train_group(units, tmp_path / "whole") == [None, None]
    stop_at(units, tmp_path / "stopped", 2)
    assert train_group(units, tmp_path / "stopped") == [None, None]
    whole, stopped = (all_numbers(units, tmp_path / name) for name in ("whole", "stopped"))
    assert stopped == whole


def test_what_a_graph_cannot_hold_is_refused_and_what_it_reads_is_its_own_memory():
    with other_device():
        given, factor = torch.arange(3.0, device=DEVICE), torch.ones(3)
        recording = Recording(lambda: given * 2)
        given.fill_(5.0)
        recording()
        assert recording.result.tolist() == [10.0] * 3
        given = torch.zeros(3, device=DEVICE)  # a new tensor, of which a graph knows nothing
        recording()
        assert recording.result.tolist() == [10.0] * 3
        for work in (
            lambda: given * factor.to(DEVICE),
            lambda: given * float(given.sum()),
            lambda: given[given > 1],
            lambda: given.nonzero(),
            lambda: torch.tensor([1.0], device=DEVICE),
        ):
            with pytest.raises(RuntimeError, match="cannot wait"):
                Recording(work)
