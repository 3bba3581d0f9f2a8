"""Which parameters move: not the frozen ones, and not attention's under uniform attention."""

from __future__ import annotations

import pytest
import torch

from attnscope.data.tasks import KeywordTask
from attnscope.errors import UsageError
from attnscope.models.attentions import Additive
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.intervention import Frozen, Uniform
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.training.loop import build_model, load_model, train_unit
from cases import for_each

QUERY_MAPS = "attention.query_maps"


def moved(unit, workspace):
    """Return the names of the parameters that training changed, and of all others."""
    before = dict(build_model(unit).named_parameters())
    after = dict(load_model(unit, train_unit(unit, workspace)).named_parameters())
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    return changed, set(before) - changed


def starting(names, *prefixes):
    return {name for name in names if name.startswith(prefixes)}


def test_without_freezing_every_parameter_moves(tiny, tmp_path):
    assert moved(tiny(), tmp_path)[1] == set()


@for_each("prefixes", [("encoder",), ("attention", "output.bias"), ("hidden",)])
def test_frozen_parts_stay_while_all_others_move(tiny, tmp_path, prefixes):
    changed, still = moved(tiny(frozen=prefixes), tmp_path)
    assert still
    assert still == starting(changed | still, *prefixes)


def test_frozen_parts_of_nothing_are_an_error_that_lists_the_parameters(tiny, tmp_path):
    unit = tiny(frozen=("atention",))
    with pytest.raises(UsageError) as raised:
        train_unit(unit, tmp_path)
    assert "'atention'" in str(raised.value)
    for name, _ in build_model(tiny()).named_parameters():
        assert name in str(raised.value)


def test_freezing_everything_is_an_error(tiny, tmp_path):
    with pytest.raises(UsageError, match="no parameter is left to train"):
        train_unit(tiny(frozen=("",)), tmp_path)


def test_uniform_training_never_moves_what_decides_attention(tiny, tmp_path):
    changed, still = moved(tiny(attention={"cross": Uniform()}), tmp_path)
    assert still == starting(changed | still, QUERY_MAPS)


def test_frozen_attention_weights_never_move_what_decides_them(tiny, tmp_path):
    changed, still = moved(tiny(attention={"cross": Frozen()}), tmp_path)
    assert still == starting(changed | still, QUERY_MAPS)


@for_each("rule", [Uniform(), Frozen()])
@for_each(
    ("source", "model"),
    [
        (
            KeywordTask(length=5, types=6),
            ClassifierSpec(embedding=8, encoder=Recurrent(hidden=8), attention=Additive(hidden=8)),
        ),
        (
            KeywordTask(length=5, types=6),
            ClassifierSpec(embedding=8, encoder=Recurrent(hidden=8, directions=1)),
        ),
    ],
)
def test_classifier_attention_stays_as_well(tiny, tmp_path, rule, source, model):
    changed, still = moved(tiny(source, model, attention={"cross": rule}), tmp_path)
    assert changed
    assert still == starting(changed | still, "attention")


@pytest.mark.parametrize("join", ["summed", "averaged"])
def test_attention_parameters_have_no_gradient_under_uniform_attention(tiny, join):
    unit = tiny(model=Seq2SeqSpec(embedding=8, hidden=8, heads=2, join=join))
    model = build_model(unit)
    batch = unit.source.training_batch(0, 0, 4)
    for rule, idle in ((None, False), (Uniform(), True)):
        model.zero_grad(set_to_none=True)
        model.trace(batch, {"cross": rule} if rule else None).logits.square().sum().backward()
        for name, parameter in model.named_parameters():
            flat = parameter.grad is None or not parameter.grad.any()
            assert flat == (idle and name.startswith(QUERY_MAPS)), name


def test_uniform_training_is_evaluated_and_scored_under_uniform_attention(tiny, tmp_path):
    folder = train_unit(tiny(attention={"cross": Uniform()}), tmp_path)
    stored = folder.load_scores("step-00000006")["attention"]
    assert (stored == stored.dtype.type(1 / 6)).all()  # Five words and EOS.
