"""Members of a group that are evaluated together have the numbers of each by itself."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.data.corpus import GrammarSentiment, GrammarTranslation
from attnscope.data.sequence_tasks import OneToOne
from attnscope.data.tasks import MixtureCopy, SampledCopy
from attnscope.models.architectures import VED
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.runs.tensors import load_arrays
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.saliency import Saliency
from attnscope.training import evaluation
from attnscope.training.engine import group_evaluation
from attnscope.training.engine.backend import CpuBackend
from attnscope.training.engine.groups import train_group
from attnscope.training.loop import train_unit
from attnscope.training.optimizer import Sgd

TRANSLATOR = Seq2SeqSpec(embedding=5, hidden=4, layers=2, directions=2, embeddings="separate")
SHORT = OneToOne(shortest=3, longest=6)
CASES = {
    "translator": (GrammarTranslation(), TRANSLATOR, {"splits": ("val", "train")}),
    "copying": (MixtureCopy(length=4), Seq2SeqSpec(embedding=5, hidden=4), {}),
    "classifier": (GrammarSentiment(), ClassifierSpec(encoder=Recurrent(hidden=3)), {}),
    "own-words": (SHORT, EncoderDecoderSpec(hidden=4, teacher_forcing="off"), {}),
    "no-site": (SHORT, EncoderDecoderSpec(architecture=VED(), hidden=4), {"scores": ()}),
}


@pytest.fixture(autouse=True)
def evaluated_together(monkeypatch):
    monkeypatch.setattr(CpuBackend, "vmaps_evaluation", True)


@pytest.fixture
def group(seeds):
    steps = {"steps": 4, "evaluate_at": (2,)}
    settings = steps | {"dtype": "float64", "final_scores": (), "optimizer": Sgd(lr=0.5)}
    scores = {"scores": (Attention(), LexicalProbe(), Saliency())}
    return lambda source, model, **more: seeds((4, 0), model, source, **settings | scores | more)


def assert_evaluated_alike(units, tmp_path):
    assert train_group(units, tmp_path / "together") == [None] * len(units)
    for unit in units:
        alone, grouped = train_unit(unit, tmp_path / "alone"), unit.folder(tmp_path / "together")
        for one, other in zip(alone.log, grouped.log, strict=True):
            assert list(one) == list(other)
            for name in set(one) - {"step", "seconds", "training_loss"}:
                assert other[name] == pytest.approx(one[name], rel=0, abs=1e-12)
        for file in (alone.path / "scores").iterdir():
            one, _ = load_arrays(file)
            other, _ = load_arrays(grouped.path / "scores" / file.name)
            assert sorted(one) == sorted(other)
            for name, array in one.items():
                np.testing.assert_allclose(other[name], array, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_rows_and_scores_are_those_of_each_unit_by_itself(group, tmp_path, case):
    source, model, settings = CASES[case]
    assert_evaluated_alike(group(source, model, **settings), tmp_path)


def test_scores_of_all_examples_are_those_of_each_unit_by_itself(group, tmp_path):
    source, model, settings = CASES["translator"]
    units = group(source, model, examples=6, stored=6, **settings)
    assert_evaluated_alike(units, tmp_path)
    kept = units[0].folder(tmp_path / "together").load_scores("examples")
    assert len(kept["ids"]) == 6


def test_units_of_two_tasks_are_evaluated_each_on_its_own(group, tmp_path):
    model = Seq2SeqSpec(embedding=5, hidden=4)
    tasks = MixtureCopy(length=4), SampledCopy(length=4, vocabulary=8)
    units = [unit for task in tasks for unit in group(task, model)]
    assert_evaluated_alike(units, tmp_path)
    files = [unit.folder(tmp_path / "together").load_scores("examples") for unit in units[::2]]
    assert not np.array_equal(files[0]["inputs"], files[1]["inputs"])


def test_examples_are_run_in_as_many_parts_as_members_and_memory_ask_for(
    group, tmp_path, monkeypatch
):
    monkeypatch.setattr(group_evaluation, "_GROUP_POSITIONS", 60)
    monkeypatch.setattr(evaluation, "_WIDTH", 64)
    source, model, settings = CASES["translator"]
    scores = Attention(), LexicalProbe()  # saliency takes a gradient for each output word
    assert_evaluated_alike(group(source, model, scores=scores, **settings), tmp_path)


def test_the_best_weights_are_on_disk_whenever_a_checkpoint_is(group, tmp_path):
    source, model, settings = CASES["copying"]
    units = group(source, model, steps=8, evaluate_at=(2, 4, 6), **settings)

    def report(steps):
        for unit in units:
            folder = unit.folder(tmp_path)
            step, state, _ = folder.load_checkpoint()
            if state is not None:
                best = max(row["accuracy"] for row in folder.log if row["step"] <= step)
                kept, _ = folder.load_weights("best")
                row = next(row for row in folder.log if row["step"] == kept)
                assert row["accuracy"] >= best

    assert train_group(units, tmp_path, report, checkpoint_seconds=0) == [None, None]
