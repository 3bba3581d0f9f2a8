"""Recording a training loop of one's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attnscope.audits.recorder import Recorder, growing


def test_recorded_steps_grow():
    assert [n for n in range(1, 600) if growing(n)] == [1, 2, 5, 10, 20, 50, 100, 200, 500]


def test_a_training_run_is_recorded_and_its_weights_are_kept(graded, labelled, tmp_path):
    texts, labels = labelled
    module = graded.module
    kept = {name: value.clone() for name, value in module.state_dict().items()}
    recorder = Recorder(graded, texts[:20], labels[:20], out=tmp_path, weights_at=[5])
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    batch = graded.batch(texts, labels)
    for step in range(1, 6):
        loss = nn.functional.cross_entropy(module(batch.inputs), batch.targets[:, 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recorder.step(step)
    curves = {(c.name, c.axes["score"]): c for c in recorder.curves()}
    agreement = curves["agreement_with_last", "attention"]
    assert agreement.x == (1, 2, 5)
    assert agreement.y[-1] == 1.0  # with itself
    assert curves["entropy", "attention"].x == (1, 2, 5)
    assert (tmp_path / "checkpoint-5" / "model.safetensors").exists()
    assert 0 < recorder.share < 1
    module.load_state_dict(kept)


def test_steps_of_another_run_in_the_same_folder_are_not_mixed_in(keyword, labelled, tmp_path):
    texts, labels = labelled
    for steps in ((1, 2, 5, 10), (1, 2)):
        recorder = Recorder(keyword, texts[:4], labels[:4], out=tmp_path)
        for step in steps:
            recorder.step(step)
    assert {curve.x for curve in recorder.curves()} == {(1, 2)}


class Bounded:
    """Puts a boundary before and after the words."""

    all_special_ids = (3, 4)

    def __call__(self, text=None, **_):
        ids = [3, *map(int, text.split()), 4]
        return {"input_ids": ids}

    def convert_ids_to_tokens(self, ids):
        return [f"▁{each}" for each in ids]


def test_the_entropy_of_uniform_attention_is_1_also_next_to_boundaries(uniform, labelled, tmp_path):
    texts, labels = labelled
    recorder = Recorder(uniform.module, texts[:4], labels[:4], tokenizer=Bounded(), out=tmp_path)
    recorder.step(1)
    (entropy,) = (curve for curve in recorder.curves() if curve.name == "entropy")
    assert entropy.y[0] == pytest.approx(1.0)


def test_the_recorder_is_a_callback_of_a_trainer(graded, labelled, tmp_path):
    transformers = pytest.importorskip("transformers")
    texts, labels = labelled
    recorder = Recorder(graded, texts[:4], labels[:4], out=tmp_path)
    callback = recorder.callback()
    assert isinstance(callback, transformers.TrainerCallback)
    callback.on_step_end(None, transformers.TrainerState(global_step=2), None)
    assert (tmp_path / "scores" / "step-00000002.safetensors").exists()
