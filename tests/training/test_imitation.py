"""The imitating adversary against its equation, and how a unit that has it finds its base."""

from __future__ import annotations

import math

import pytest
import torch

from attnscope.data.batch import Example, collate
from attnscope.data.tasks import KeywordTask
from attnscope.errors import MissingCapability, UsageError, WorkspaceError
from attnscope.models.attentions import Additive
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.intervention import Uniform
from attnscope.training.imitation import Imitation, imitated
from attnscope.training.kinds import read_unit
from attnscope.training.loop import load_model, train_unit
from attnscope.training.objective import total
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
    term = Imitation(base=BASE, divergence=0.7).ready(workspace, "cpu")
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


def test_a_model_that_is_its_base_pays_nothing_and_gains_nothing(workspace):
    base = load_model(BASE, BASE.folder(workspace), "best")
    term = Imitation(base=BASE, divergence=1.0).ready(workspace, "cpu")
    assert term(base, BATCH, base.trace(BATCH), stream()) == 0


def test_training_moves_attention_away_while_predictions_stay(workspace):
    base = load_model(BASE, BASE.folder(workspace), "best")
    model = MODEL.build(SOURCE, 0)  # At the base itself the slope is 0.
    term = Imitation(base=BASE, divergence=1.0).ready(workspace, "cpu")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(40):
        optimizer.zero_grad()
        total([term], model, model.trace(BATCH), stream()).backward()
        optimizer.step()
    distance, divergence = imitated(model.trace(BATCH), base.trace(BATCH))
    assert divergence.mean() > 0.1
    assert distance.mean() < 0.05


def test_only_the_imitator_gets_gradients(workspace):
    term = Imitation(base=BASE, divergence=1.0).ready(workspace, "cpu")
    model = MODEL.build(SOURCE, 0)
    total([term], model, model.trace(BATCH), stream()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert all(p.grad is None and not p.requires_grad for p in term._model.parameters())


def test_the_base_attends_as_it_was_trained_to(tmp_path):
    even = TRAINING.model_copy(update={"attention": {"cross": Uniform()}})
    base = BASE.model_copy(update={"training": even})
    train_unit(base, tmp_path)
    term = Imitation(base=base, divergence=1.0).ready(tmp_path, "cpu")
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
    ready = unit.training.objective[0].ready(workspace, "cpu")
    assert ready.model_dump() == unit.training.objective[0].model_dump()


def test_a_base_that_is_not_trained_is_one_sentence(tmp_path, workspace):
    with pytest.raises(WorkspaceError, match=r"keyword-6-classifier-seed3-.* train it first"):
        Imitation(base=BASE).ready(tmp_path, "cpu")
    model = MODEL.build(SOURCE, 0)
    with pytest.raises(UsageError, match=r"was not loaded: call ready\(workspace, device\)"):
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


def test_a_unit_whose_base_is_missing_is_one_sentence(tmp_path):
    with pytest.raises(WorkspaceError, match="train it first"):
        train_unit(imitator(), tmp_path)
