"""Gradient flow recorded in training: the log's columns are the theory's numbers at that step."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from attnscope.data.corpus import GrammarSentiment, training_batches
from attnscope.data.polarity_texts import PolarityTexts
from attnscope.data.tasks import KeywordTask
from attnscope.data.token_groups import GroupRule, corpus_counts
from attnscope.errors import MissingCapability, UsageError
from attnscope.models.attentions import DotProduct
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent, WordStates
from attnscope.theory.gradient_flow.classifier import classifier_flow
from attnscope.theory.gradient_flow.groups import group_row
from attnscope.training.gradient_flow import GradientFlow
from attnscope.training.loop import build_model, load_model, train_unit
from attnscope.training.optimizer import Sgd
from attnscope.training.unit import Training, Unit

WORDS = ClassifierSpec(embedding=6, encoder=WordStates(), attention=DotProduct(scale=3.0))
TEXTS = PolarityTexts(
    positives=20, negatives=30, held_out=4, neutral_types=12, polar_types=3, neutral_words=4
)


def unit(source: PolarityTexts | GrammarSentiment, model: ClassifierSpec = WORDS) -> Unit:
    training = Training(
        steps=3,
        batch_size=10,
        evaluate_at=(),
        optimizer=Sgd(lr=1.0),
        metrics=(GradientFlow(),),
        examples=4,
        stored=0,
        scores=(),
    )
    return Unit(source=source, model=model, training=training)


def expected(source, model, groups) -> dict[str, float]:
    batches = training_batches(source)
    row = group_row(*classifier_flow(model, batches), groups)
    return {f"flow.{name}": value for name, value in row.items()}


def test_the_log_has_the_terms_of_the_whole_training_part_at_each_evaluation(tmp_path: Path):
    asked = unit(TEXTS)
    folder = train_unit(asked, tmp_path)
    first, last = folder.log
    start, end = build_model(asked), load_model(asked, folder)
    for row, model in ((first, start), (last, end)):
        columns = {name: value for name, value in row.items() if name.startswith("flow.")}
        assert columns == pytest.approx(expected(TEXTS, model, TEXTS.groups))
    assert {"flow.B.positive", "flow.F.neutral.size", "flow.dot.negative.positive"} <= set(last)
    assert first["flow.VW"] != last["flow.VW"]


def test_a_corpus_without_groups_of_its_own_gets_those_of_its_counts(tmp_path: Path):
    source = GrammarSentiment()
    log = train_unit(unit(source), tmp_path).log
    groups = GroupRule().groups(corpus_counts(source), source.output_words.words)
    wanted = expected(source, build_model(unit(source)), groups)
    assert log[0]["flow.E.positive"] == pytest.approx(wanted["flow.E.positive"])
    assert log[0]["flow.pi.neutral.size"] == pytest.approx(wanted["flow.pi.neutral.size"])


def test_what_has_no_whole_or_no_terms_is_one_sentence():
    task = KeywordTask()
    model = WORDS.build(TEXTS, 0)
    batch = task.evaluation_batch(2)
    with pytest.raises(UsageError, match="generated on the fly and has no fixed training set"):
        GradientFlow()(model, batch, task, "val")
    recurrent = WORDS.model_copy(update={"encoder": Recurrent(hidden=3)}).build(TEXTS, 0)
    with torch.no_grad(), pytest.raises(MissingCapability, match="states without context"):
        GradientFlow()(recurrent, TEXTS.evaluation_batch(2), TEXTS, "val")
