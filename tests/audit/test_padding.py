"""Models whose output depends on padding, and those that look for it by its id."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnscope.analysis.faithfulness import SHARES
from attnscope.audits import finds, idle
from attnscope.audits.prepare import subject_of
from attnscope.audits.recorder import Recorder
from attnscope.audits.subject import Subject
from attnscope.audits.texts import Texts
from attnscope.models.adapted import Adapted
from attnscope.models.adapter import adapt
from attnscope.scores.leave_one_out import LeaveOneOut
from attnscope.scores.score import read_score

TYPES, PAD = 40, 39  # the padding of one of them is not 0
NAME = "comprehensiveness"


class Unpacked(nn.Module):
    """A recurrent classifier that reads padding like words: its backward pass starts there."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.embedding = nn.Embedding(TYPES, 8)
        self.states = nn.LSTM(8, 8, batch_first=True, bidirectional=True)
        self.score, self.output = nn.Linear(16, 1), nn.Linear(16, 2)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.6)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.states(self.embedding(ids))
        weights = self.score(torch.tanh(states)).squeeze(-1).softmax(-1)
        return self.output((weights.unsqueeze(1) @ states).squeeze(1))


class LastWord(nn.Module):
    """Attends from the last position that is not padding, which it finds by its id."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embedding, self.output = nn.Embedding(TYPES, 8), nn.Linear(16, 2)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.8)

    def forward(self, ids: Tensor) -> Tensor:
        states, real = self.embedding(ids), ids != PAD
        last = states[torch.arange(len(ids)), real.sum(1) - 1]
        logits = (states @ last[..., None]).squeeze(-1).masked_fill(~real, -1e9)
        context = (logits.softmax(-1).unsqueeze(1) @ states).squeeze(1)
        return self.output(torch.cat([context, last], -1))


def words(text: str) -> list[int]:
    return [int(word) for word in text.split()]


class Cut:
    """A tokeniser that pads with another id than 0."""

    pad_token_id = PAD

    def __call__(self, text: str) -> list[int]:
        return [min(each, PAD - 1) for each in words(text)]


@pytest.fixture(scope="module", params=["reads padding", "finds padding by its id"])
def model(request: pytest.FixtureRequest) -> Adapted:
    if request.param == "reads padding":
        return adapt(Unpacked().eval(), tokenizer=words)
    return adapt(LastWord().eval(), tokenizer=Cut())


@pytest.fixture
def subject(model: Adapted, labelled) -> Subject:
    texts, labels = (each[:24] for each in labelled)
    found = Texts("planted", "all", tuple(texts), labels=tuple(labels), ids=tuple(range(24)))
    return subject_of(model, found, 0, torch.device("cpu"))


def alone(model: Adapted, ids: list[int]) -> Tensor:
    """Return the logits of one text that is run by itself."""
    with torch.no_grad():
        return model.module(torch.tensor([ids]))[0]


def odds(logits: Tensor, label: int) -> float:
    return float(logits[label] - logits[1 - label])


def test_padding_matters_only_to_a_model_that_reads_it(model):
    assert model.padding_matters == isinstance(model.module, Unpacked)


def test_leave_one_out_is_what_each_text_loses_when_it_is_run_alone(model, subject):
    for (_, part), score in zip(subject.parts, subject.scores("leave_one_out"), strict=True):
        for row in range(len(part)):
            ids = part.inputs[row, : part.input_lengths[row]].tolist()
            label = int(alone(model, ids).argmax())
            for place in range(len(ids)):
                left = alone(model, ids[:place] + ids[place + 1 :])
                lost = odds(alone(model, ids), label) - odds(left, label)
                assert float(score.values[row, 0, place]) == pytest.approx(lost, abs=1e-5)


@pytest.mark.filterwarnings("ignore:Padding changes")
def test_texts_of_any_length_may_be_left_one_out_in_one_batch(model, labelled):
    texts, labels = (each[:8] for each in labelled)
    batch = model.batch(texts, labels)
    whole = read_score(LeaveOneOut(), model, batch)
    for row, text in enumerate(texts):
        one = read_score(LeaveOneOut(), model, model.batch([text], [labels[row]]))
        width = one.values.shape[-1]
        torch.testing.assert_close(whole.values[row, :, :width], one.values[0], atol=1e-5, rtol=0)


def test_comprehensiveness_is_that_of_texts_that_are_run_alone(model, subject):
    records = {r.axes.get("score"): r for r in finds.measure(subject) if r.name == NAME}
    expected = []
    for (_, part), score in zip(subject.parts, subject.scores("attention"), strict=True):
        for row in range(len(part)):
            ids = part.inputs[row, : part.input_lengths[row]].tolist()
            own = alone(model, ids)
            label = int(own.argmax())
            order = np.argsort(-score.values[row, 0, : len(ids)].numpy(), kind="stable")
            falls = []
            for share in SHARES:
                gone = set(order[: max(1, int(np.ceil(np.float32(len(ids)) * np.float32(share))))])
                left = alone(model, [each for n, each in enumerate(ids) if n not in gone])
                falls.append(float(own.softmax(-1)[label] - left.softmax(-1)[label]))
            expected.append(np.mean(falls))
    assert records["attention"].value == pytest.approx(np.mean(expected), abs=1e-5)


def test_a_random_word_is_taken_out_of_texts_that_are_run_alone(model, subject):
    (changed, *_) = idle.measure(subject)
    twin = subject_of(model, subject.texts, 0, torch.device("cpu"))
    twin.__dict__["parts"] = [
        (rows[n : n + 1], part.rows(slice(n, n + 1)).trimmed())
        for rows, part in subject.parts
        for n in range(len(part))
    ]
    assert changed.value == pytest.approx(idle.measure(twin)[0].value)


def test_a_trace_of_padded_texts_is_warned_of_where_padding_matters(model, labelled):
    texts, labels = (each[:4] for each in labelled)
    batch = model.batch(texts, labels)
    assert batch.padded
    if not model.padding_matters:
        model.trace(batch)
        return
    with pytest.warns(UserWarning, match="Padding changes this model's output"):
        model.trace(batch)


def test_texts_are_recorded_as_if_each_were_alone(model, tmp_path, labelled):
    texts, labels = (each[:6] for each in labelled)
    recorder = Recorder(model, texts, labels, out=tmp_path / "all", scores=["attention"])
    recorder.step(1)
    scores, _ = recorder._recorded()
    for row, text in enumerate(texts):
        one = Recorder(model, [text], [labels[row]], out=tmp_path / text, scores=["attention"])
        one.step(1)
        values = one._recorded()[0][1]["attention"].values[0]
        found = scores[1]["attention"].values[row, :, : values.shape[-1]]
        torch.testing.assert_close(found, values, atol=1e-6, rtol=0)
