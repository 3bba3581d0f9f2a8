"""Audits of models that are not on the CPU: the same numbers, and nothing on two devices."""

from __future__ import annotations

import pytest
import torch

from attnscope.audits import replaceable
from attnscope.audits.running import audit
from attnscope.audits.texts import Texts
from attnscope.models.adapter import adapt
from other_device import DEVICE, other_device


@pytest.fixture(autouse=True)
def short_searches(monkeypatch) -> None:
    monkeypatch.setattr(replaceable, "STEPS", 3)


def audited(model, texts, out, device, **settings) -> dict[tuple[str, str], float]:
    model.to(device)
    done = audit(model, texts, out=out / device, device=device, **settings)
    return {(row.name, str(row.axes)): row.number for row in done.result.measurements}


def test_tensors_on_two_devices_are_refused_and_on_one_are_not():
    with other_device():
        there, here = torch.arange(6.0, device=DEVICE).view(2, 3), torch.ones(2, 3)
        assert (there + here.to(DEVICE)).tolist() == [[1, 2, 3], [4, 5, 6]]
        assert there[torch.tensor([1])].tolist() == [[3, 4, 5]]  # a GPU takes indices of the CPU
        for mixed in (lambda: there + here, lambda: here[there[0].long()]):
            with pytest.raises(RuntimeError, match="some tensors"):
                mixed()
        with pytest.raises(TypeError, match="numpy"):
            there.numpy()


def test_a_classifier_has_the_numbers_of_the_cpu(graded, uniform, labelled, tmp_path):
    some, labels = (tuple(each[:32]) for each in labelled)
    texts = Texts("planted", "all", some, labels=labels)
    here = audited(graded, texts, tmp_path, "cpu", against=[uniform])
    with other_device():
        uniform.to(DEVICE)
        there = audited(graded, texts, tmp_path, "meta", against=[uniform])
        for model in (graded, uniform):
            model.to("cpu")
    assert there == pytest.approx(here, abs=1e-6, nan_ok=True)


def test_a_translator_with_gold_links_has_the_numbers_of_the_cpu(reverse, parallel, tmp_path):
    sources, targets = (tuple(each[:30]) for each in parallel)
    lengths = [len(source.split()) for source in sources]
    links = tuple(frozenset((n, size - 1 - n) for n in range(size)) for size in lengths)
    texts = Texts("reversed", "all", sources, targets=targets, sure=links, possible=links)
    here = audited(reverse, texts, tmp_path, "cpu")
    with other_device():
        there = audited(reverse, texts, tmp_path, "meta")
        reverse.to("cpu")
    assert any(name == "gold_best_head" for name, _ in here)
    assert there == pytest.approx(here, abs=1e-6, nan_ok=True)


def test_a_transformer_that_writes_text_has_the_numbers_of_the_cpu(labelled, tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=50,
        n_positions=32,
        n_embd=16,
        n_layer=2,
        n_head=2,
        initializer_range=0.25,
        bos_token_id=1,
        eos_token_id=1,
    )
    torch.manual_seed(0)
    module = transformers.GPT2LMHeadModel(config).eval()
    model = adapt(module, tokenizer=lambda text: [int(word) for word in text.split()])
    texts = Texts("numbers", "all", tuple(labelled[0][:32]))
    here = audited(model, texts, tmp_path, "cpu")
    with other_device():
        there = audited(model, texts, tmp_path, "meta")
    assert there == pytest.approx(here, abs=1e-5, nan_ok=True)
