"""The imitating adversary against its equation, and how a unit that has it finds its base."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attnscope.data.batch import Example, collate
from attnscope.data.tasks import KeywordTask
from attnscope.errors import MissingCapability, UsageError, WorkspaceError
from attnscope.models.attentions import Additive
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.intervention import Uniform
from attnscope.models.proxy import ProxySpec
from attnscope.training.engine.grouping import groups
from attnscope.training.engine.groups import train_group
from attnscope.training.imitation import Imitation, imitated
from attnscope.training.loop import load_model, model_loader, train_unit
from attnscope.training.objective import total
from attnscope.training.optimizer import Sgd
from attnscope.training.registry import read_unit
from attnscope.training.unit import Training, Unit

SOURCE = KeywordTask(length=6, types=5)
MODEL = ClassifierSpec(embedding=4, encoder=Recurrent(hidden=3), attention=Additive(hidden=3))
TRAINING = Training(steps=4, batch_size=8, evaluate_at=(), examples=8, stored=0)
BASE = Unit(source=SOURCE, model=MODEL, training=TRAINING, seed=3)
BATCH = collate([Example(0, [3, 1, 4, 1], [0], [1]), Example(1, [2, 0], [0], [0])])


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    place = tmp_path_factory.mktemp("workspace")
    train_unit(BASE, place)
    return place


def stream():
    return torch.Generator().manual_seed(0)


def test_the_term_is_equation_6_on_the_base_units_predictions_and_attention(workspace):
    base = load_model(BASE, BASE.folder(workspace), "best")
    model = MODEL.build(SOURCE, 0)
    trace, other = model.trace(BATCH), base.trace(BATCH)
    term = Imitation(base=BASE, divergence=0.7).ready(model_loader(workspace, "cpu"))
    expected = 0.0
    for row, length in enumerate(BATCH.input_lengths.tolist()):
        p, q = (t.logits[row, 0].softmax(-1).tolist() for t in (trace, other))
        expected += abs(p[1] - q[1])  # TVD of two classes
        a, b = (t.sites["cross"].weights[row, 0, 0, :length].tolist() for t in (trace, other))
        for x, y in zip(a, b, strict=True):
            middle = (x + y) / 2
            expected -= 0.7 * (x * math.log(x / middle) + y * math.log(y / middle)) / 2
    value = total([term], model, trace, stream())
    assert value.item() == pytest.approx(expected / 2, abs=1e-7)


def test_the_bases_weights_are_made_ready_once(workspace, monkeypatch):
    moved, apply = [], torch.nn.RNNBase._apply
    monkeypatch.setattr(
        torch.nn.RNNBase, "_apply", lambda self, *rest: (moved.append(self), apply(self, *rest))[1]
    )
    term = Imitation(base=BASE).ready(model_loader(workspace, "cpu"))
    model = MODEL.build(SOURCE, 0).double()
    term(model, BATCH, model.trace(BATCH), stream())
    made = len(moved)
    term(model, BATCH, model.trace(BATCH), stream())
    assert len(moved) == made


def test_a_model_that_is_its_base_pays_nothing_and_gains_nothing(workspace):
    base = load_model(BASE, BASE.folder(workspace), "best")
    term = Imitation(base=BASE, divergence=1.0).ready(model_loader(workspace, "cpu"))
    assert term(base, BATCH, base.trace(BATCH), stream()) == 0


def test_training_moves_attention_away_while_predictions_stay(workspace):
    base = load_model(BASE, BASE.folder(workspace), "best")
    model = MODEL.build(SOURCE, 0)  # At the base itself the slope is 0.
    term = Imitation(base=BASE, divergence=1.0).ready(model_loader(workspace, "cpu"))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(40):
        optimizer.zero_grad()
        total([term], model, model.trace(BATCH), stream()).backward()
        optimizer.step()
    distance, divergence = imitated(model.trace(BATCH), base.trace(BATCH))
    assert divergence.mean() > 0.1
    assert distance.mean() < 0.05


def test_only_the_imitator_gets_gradients(workspace):
    term = Imitation(base=BASE, divergence=1.0).ready(model_loader(workspace, "cpu"))
    model = MODEL.build(SOURCE, 0)
    total([term], model, model.trace(BATCH), stream()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert all(p.grad is None and not p.requires_grad for p in term._model.parameters())


def test_the_base_attends_as_it_was_trained_to(tmp_path):
    even = TRAINING.model_copy(update={"attention": {"cross": Uniform()}})
    base = BASE.model_copy(update={"training": even})
    train_unit(base, tmp_path)
    term = Imitation(base=base, divergence=1.0).ready(model_loader(tmp_path, "cpu"))
    model = load_model(base, base.folder(tmp_path), "best")
    assert term(model, BATCH, model.trace(BATCH, {"cross": Uniform()}), stream()) == 0


def imitator(**term) -> Unit:
    objective = TRAINING.model_copy(update={"objective": (Imitation(**{"base": BASE} | term),)})
    return Unit(source=SOURCE, model=MODEL, training=objective)


def test_the_base_is_part_of_what_names_the_imitator(tmp_path):
    units = [
        imitator(),
        imitator(divergence=0.1),
        imitator(which="last"),
        imitator(base=BASE.model_copy(update={"seed": 4})),
    ]
    assert len({unit.folder(tmp_path).name for unit in units}) == len(units)


def test_a_unit_with_an_imitation_is_read_back_as_itself(workspace):
    unit = imitator(divergence=0.1)
    assert read_unit(unit.config()) == unit
    # The loaded model is no setting.
    ready = unit.training.objective[0].ready(model_loader(workspace, "cpu"))
    assert ready.model_dump() == unit.training.objective[0].model_dump()


def test_a_base_that_is_not_trained_is_one_sentence(tmp_path, workspace):
    with pytest.raises(WorkspaceError, match=r"keyword-6-classifier-seed3-.* train it first"):
        Imitation(base=BASE).ready(model_loader(tmp_path, "cpu"))
    model = MODEL.build(SOURCE, 0)
    with pytest.raises(UsageError, match=r"was not loaded: call ready\("):
        Imitation(base=BASE)(model, BATCH, model.trace(BATCH), stream())


def test_other_output_types_cannot_be_imitated(workspace):
    trace = load_model(BASE, BASE.folder(workspace)).trace(BATCH)
    wider = torch.nn.functional.pad(trace.logits, (0, 1))
    other = type(trace)(BATCH, trace.embeddings, trace.encoder_states, None, trace.query, wider)
    with pytest.raises(MissingCapability, match="2 output types cannot imitate one of 3"):
        imitated(trace, other)


def test_a_unit_is_trained_against_its_base_and_once_more_to_the_same_bytes(workspace, numbers):
    unit = imitator(divergence=0.5)
    whole = train_unit(unit, workspace)
    bytes_of = numbers(whole.path)
    whole.path.joinpath("done.json").unlink()
    again = train_unit(unit, workspace, checkpoint_seconds=0)
    assert numbers(again.path) == bytes_of
    trained, base = (load_model(u, u.folder(workspace)) for u in (unit, BASE))
    initial = MODEL.build(SOURCE, 0)
    batch = SOURCE.evaluation_batch(50)
    before, after = (imitated(m.trace(batch), base.trace(batch)) for m in (initial, trained))
    assert after[0].mean() < before[0].mean()


def on_a_gpu(unit):
    return unit.model_copy(update={"device": "cuda"})


def test_on_a_gpu_imitators_of_one_base_are_a_group_and_on_a_cpu_none():
    bases = [BASE, BASE.model_copy(update={"seed": 4})]
    units = [imitator(base=base, divergence=x) for base in bases for x in (0.0, 0.5, 2.0)]
    placed = [on_a_gpu(unit) for unit in units]
    assert groups(placed) == [placed[:3], placed[3:]]
    assert groups(units) == [[unit] for unit in units]


def test_imitators_of_a_base_that_is_not_vectorised_form_no_group():
    base = BASE.model_copy(update={"model": ProxySpec()})
    units = [on_a_gpu(imitator(base=base, divergence=x)) for x in (0.0, 0.5)]
    assert groups(units) == [[unit] for unit in units]


def three_imitators():
    # Plain steps: Adam's make something of a gradient that is 0 up to rounding.
    exact = {"dtype": "float64", "optimizer": Sgd(lr=0.5), "steps": 8}
    return [
        unit.model_copy(update={"training": unit.training.model_copy(update=exact)})
        for unit in (imitator(divergence=x) for x in (0.0, 0.5, 2.0))
    ]


def test_imitators_of_one_program_are_those_trained_one_by_one(tmp_path):
    units = three_imitators()
    for place in ("together", "alone"):
        train_unit(BASE, tmp_path / place)
    assert train_group(units, tmp_path / "together") == [None] * 3
    ends = []
    for unit in units:
        alone = train_unit(unit, tmp_path / "alone").load_weights("last")[1]
        found = unit.folder(tmp_path / "together").load_weights("last")[1]
        for name, weights in alone.items():
            np.testing.assert_allclose(found[name], weights, rtol=0, atol=1e-12)
        ends.append(alone["output.weight"])
    assert abs(ends[0] - ends[2]).max() > 1e-6


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_imitators_in_a_cuda_graph_have_the_numbers_of_the_cpu(tmp_path):
    train_unit(BASE, tmp_path)
    here = three_imitators()
    there = [on_a_gpu(unit) for unit in here]
    for units in (here, there):
        assert train_group(units, tmp_path) == [None] * 3
    for one, other in zip(here, there, strict=True):
        expected, found = (u.folder(tmp_path).load_weights("last")[1] for u in (one, other))
        for name, weights in expected.items():
            np.testing.assert_allclose(found[name], weights, rtol=0, atol=1e-9)


def test_a_unit_whose_base_is_missing_is_one_sentence(tmp_path):
    with pytest.raises(WorkspaceError, match="train it first"):
        train_unit(imitator(), tmp_path)
