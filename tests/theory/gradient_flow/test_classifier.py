"""The package's own classifiers move as the terms say."""

from __future__ import annotations

import pytest
import torch
from torch.func import functional_call

from attnscope.data.batch import Batch, Example, collate
from attnscope.data.tasks import KeywordTask
from attnscope.errors import MissingCapability
from attnscope.models.attentions import Additive, DotProduct, InstanceQuery
from attnscope.models.classifier import Classifier, ClassifierSpec, Output
from attnscope.models.encoders import Affine, Recurrent, WordStates
from attnscope.models.proxy import ProxySpec
from attnscope.theory.gradient_flow.classifier import classifier_flow, parameters_of
from attnscope.theory.gradient_flow.pulls import traced_pulls
from cases import for_each

SOURCE = KeywordTask(types=6)
SPECS = {
    "DP": ClassifierSpec(
        embedding=4,
        encoder=WordStates(),
        attention=DotProduct(scale=3.0),
        output=Output(bias="off"),
    ),
    "DP-A": ClassifierSpec(embedding=4, encoder=Affine(hidden=3), attention=DotProduct(scale=3.0)),
    "AD": ClassifierSpec(
        embedding=4,
        encoder=WordStates(),
        attention=Additive(hidden=3, activation="tanh", scale=3.0),
    ),
    "AD-relu": ClassifierSpec(embedding=4, encoder=WordStates(), attention=Additive(hidden=9)),
    "DP-root": ClassifierSpec(
        embedding=4, encoder=WordStates(), attention=DotProduct(scale="root"), dropout=0.5
    ),
}
LABELS = [2, 3]


def batches(labels: int) -> list[Batch]:
    texts = [[0, 1, 1, 2], [3], [2, 4, 0, 0, 4], [4, 3, 1]]
    examples = [Example(n, text, [0], [n % labels]) for n, text in enumerate(texts)]
    return [collate(examples[:3]), collate(examples[3:])]


def model_of(name: str, labels: int) -> Classifier:
    spec = SPECS[name]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        table = spec.vectors.table(SOURCE.input_words, spec.embedding)
        return Classifier(spec, table, labels).double()


@for_each("labels", LABELS)
@for_each("name", SPECS)
def test_a_classifiers_scores_move_as_its_terms_say(name, labels):
    model, alone = model_of(name, labels), collate([Example(n, [n], [0], [0]) for n in range(6)])
    weights = {key: value.detach() for key, value in model.named_parameters()}

    class Traced(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
            trace = self.model.trace(batch)
            return trace.logits[:, 0], trace.sites["cross"].logits[:, 0, 0, 0]

    def called(p: dict[str, torch.Tensor], batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        return functional_call(Traced(), {f"model.{k}": v for k, v in p.items()}, (batch,))

    def loss(p: dict[str, torch.Tensor]) -> torch.Tensor:
        losses = [
            torch.nn.functional.cross_entropy(called(p, b)[0], b.targets[:, 0], reduction="sum")
            for b in batches(labels)
        ]
        return torch.stack(losses).sum() / 4

    downhill = {key: -value for key, value in torch.func.grad(loss)(weights).items()}
    _, (polarity, attention) = torch.func.jvp(lambda p: called(p, alone), (weights,), (downhill,))
    parameters, _, terms = classifier_flow(model, batches(labels))
    rows = 1 if labels == 2 else labels
    torch.testing.assert_close(terms.polarity_rate, polarity[:, -rows:], rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(terms.attention_rate, attention, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(parameters.polarity, called(weights, alone)[0][:, -rows:])


@for_each("labels", LABELS)
@for_each("name", SPECS)
def test_pulls_read_off_traces_are_those_of_the_tables(name, labels):
    model = model_of(name, labels)
    _, pulls, _ = classifier_flow(model, batches(labels))
    traced = traced_pulls(model, batches(labels), 6)
    rows = pulls.polarity.shape[1]
    torch.testing.assert_close(traced.polarity[:, -rows:], pulls.polarity)
    torch.testing.assert_close(traced.attention, pulls.attention)
    assert traced.examples == pulls.examples == 4


def test_with_context_pulls_are_the_derivatives_by_what_stands_at_the_positions():
    spec = ClassifierSpec(embedding=4, encoder=Recurrent(hidden=3))
    model, batch = spec.build(SOURCE, 0).double(), batches(2)[0]
    trace = model.trace(batch)
    site, query = trace.sites["cross"], trace.query.expand(-1, batch.inputs.shape[1], -1)
    polarity = model.readout(site.values.transpose(1, 2), query)[..., 1]

    def loss(scores: torch.Tensor, polarity: torch.Tensor) -> torch.Tensor:
        weights = scores.masked_fill(~batch.input_mask, -torch.inf).softmax(-1)
        y = 2 * batch.targets[:, 0] - 1
        return -torch.nn.functional.logsigmoid(y * (weights * polarity).sum(1)).sum()

    given = site.logits[:, 0, 0].detach(), polarity.detach()
    by_attention, by_polarity = torch.func.grad(loss, (0, 1))(*given)
    found = traced_pulls(model, [batch], 6)
    for part, gradient in ((found.attention, by_attention), (found.polarity[:, 1], by_polarity)):
        expected = torch.zeros(6, dtype=torch.float64)
        expected.index_add_(0, batch.inputs.flatten(), -gradient.flatten())
        torch.testing.assert_close(part, expected)


def test_a_site_that_the_model_lacks_is_told():
    with pytest.raises(MissingCapability, match=r"no site 'self'; valid: cross\."):
        traced_pulls(model_of("DP", 2), batches(2), 6, site="self")


def test_parameters_are_apart_from_the_models_graph_and_in_double_precision():
    parameters = parameters_of(model_of("DP", 2).float())
    assert not parameters.polarity.requires_grad
    assert parameters.attention_scores.dtype == torch.float64
    assert parameters.attention.scale == 3.0


@for_each(
    ("spec", "words"),
    [
        (ClassifierSpec(embedding=4, encoder=Recurrent(hidden=3)), "states without context"),
        (
            ClassifierSpec(
                embedding=4, encoder=WordStates(), attention=DotProduct(keys="unit-length")
            ),
            "dot-product attention over the states",
        ),
        (
            ClassifierSpec(
                embedding=4, encoder=WordStates(), attention=DotProduct(query=InstanceQuery())
            ),
            "no single direction",
        ),
        (ProxySpec(embedding=4), "the package's classifier"),
    ],
)
def test_a_model_that_the_terms_do_not_cover_is_told_in_one_sentence(spec, words):
    with pytest.raises(MissingCapability, match=words):
        parameters_of(spec.build(SOURCE, 0))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@for_each("labels", LABELS)
@for_each("name", SPECS)
def test_terms_on_a_gpu_are_those_on_the_cpu_and_the_same_bytes_every_time(name, labels):
    model = model_of(name, labels)
    _, _, expected = classifier_flow(model, batches(labels))
    model.to("cuda")
    found, again = (classifier_flow(model, batches(labels))[2] for _ in range(2))
    torch.testing.assert_close(found.polarity_rate.cpu(), expected.polarity_rate)
    torch.testing.assert_close(found.attention_rate.cpu(), expected.attention_rate)
    assert found.polarity_rate.equal(again.polarity_rate)
    assert found.attention_rate.equal(again.attention_rate)
