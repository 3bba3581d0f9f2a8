"""Polarity and attention score of word types, read alone and over their occurrences."""

from __future__ import annotations

import pytest
import torch

from attnscope.data.batch import Example, collate
from attnscope.data.corpus import GrammarSentiment
from attnscope.data.tasks import KeywordTask, SampledCopy
from attnscope.data.vocabulary import Vocabulary
from attnscope.errors import MissingCapability, UsageError
from attnscope.models.attentions import DotProduct
from attnscope.models.classifier import Classifier, ClassifierSpec
from attnscope.models.encoders import Affine, Recurrent, WordStates
from attnscope.models.proxy import ProxySpec
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.scores import polarity as word_types
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.polarity import mean_scores, scores_alone
from attnscope.scores.score import read_score

SOURCE = KeywordTask(types=6)
WORDS = ClassifierSpec(embedding=4, encoder=WordStates(), attention=DotProduct(scale=2.0))
CONTEXT = ClassifierSpec(embedding=4, encoder=Recurrent(hidden=3))
TEXTS = [[0, 1, 1, 2], [3], [2, 4, 0, 0, 4], [4, 3, 1]]  # Word 5 never occurs.


def batches(labels: int = 2):
    examples = [Example(n, text, [0], [n % labels]) for n, text in enumerate(TEXTS)]
    return [collate(examples[:3]), collate(examples[3:])]


def classifier(spec: ClassifierSpec, labels: int) -> Classifier:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        table = spec.vectors.table(SOURCE.input_words, spec.embedding)
        return Classifier(spec, table, labels).double()


@pytest.mark.parametrize("labels", [2, 3])
def test_without_context_scores_are_products_of_the_embedding(labels, monkeypatch):
    monkeypatch.setattr(word_types, "_TYPES", 4)
    model = classifier(WORDS, labels)
    found = scores_alone(model, 6)
    table, output = model.embedding.weight, model.output
    rows = 1 if labels == 2 else labels
    torch.testing.assert_close(found.logits[:, -rows:], table @ output.weight.T + output.bias)
    torch.testing.assert_close(found.attention, table @ model.attention.direction / 2)
    if labels == 2:
        torch.testing.assert_close(found.polarity, table @ output.weight[0] + output.bias)
    assert found.occurrences.tolist() == [1] * 6
    assert found.weights.tolist() == [1.0] * 6


@pytest.mark.parametrize("spec", [WORDS, WORDS.model_copy(update={"encoder": Affine(hidden=3)})])
def test_without_context_both_readings_agree(spec):
    model = classifier(spec, 2)
    alone, mean = scores_alone(model, 6), mean_scores(model, batches(), 6)
    torch.testing.assert_close(mean.polarity[:5], alone.polarity[:5], rtol=0, atol=1e-12)
    torch.testing.assert_close(mean.attention[:5], alone.attention[:5], rtol=0, atol=1e-12)
    assert mean.occurrences.tolist() == [3, 3, 2, 2, 3, 0]


def test_a_word_that_never_occurs_has_no_mean():
    found = mean_scores(classifier(WORDS, 2), batches(), 6)
    assert found.polarity[5].isnan()
    assert found.attention[5].isnan()
    assert not found.logits[:5].isnan().any()


@pytest.mark.parametrize("labels", [2, 3])
def test_with_context_means_are_over_every_occurrence(labels):
    model, logits, scores, weights = classifier(CONTEXT, labels), {}, {}, {}
    for n, text in enumerate(TEXTS):
        trace = model.trace(collate([Example(n, text, [0], [0])]))
        site = trace.sites["cross"]
        for place, word in enumerate(text):
            read = model.readout(site.values[0, :, place], trace.query[0, 0])
            logits.setdefault(word, []).append(read)
            scores.setdefault(word, []).append(site.logits[0, 0, 0, place])
            weights.setdefault(word, []).append(site.weights[0, 0, 0, place])
    found = mean_scores(model, batches(), 6)
    for word in range(5):
        torch.testing.assert_close(found.logits[word], torch.stack(logits[word]).mean(0))
        torch.testing.assert_close(found.attention[word], torch.stack(scores[word]).mean())
        torch.testing.assert_close(found.weights[word], torch.stack(weights[word]).mean())
    alone = scores_alone(model, 6)
    assert (alone.logits[:5] - found.logits[:5]).abs().max() > 1e-3
    single = model.trace(collate([Example(0, [3], [0], [0])]))
    torch.testing.assert_close(alone.logits[3], single.logits[0, 0])


@pytest.mark.parametrize("labels", [2, 3])
def test_the_polarity_lexicon_is_the_lexical_probe_of_a_model_without_context(labels):
    model = classifier(WORDS, labels)
    polarity, attention = scores_alone(model, 6).lexicons()
    for batch in batches(labels):
        probe = read_score(LexicalProbe(), model, batch)
        torch.testing.assert_close(polarity.score(batch).values, probe.values)
        site = model.trace(batch).sites["cross"]
        expected = site.logits[:, 0].masked_fill(~site.mask[:, None], 0.0)
        torch.testing.assert_close(attention.score(batch).values, expected)
    assert (polarity.name, attention.name) == ("polarity", "attention_score")


def test_any_classifier_of_the_contract_has_word_type_scores():
    source = GrammarSentiment()
    model = ProxySpec(embedding=3).build(source, 0)
    found = scores_alone(model, len(source.input_words))
    torch.testing.assert_close(found.logits, model.output(model.embedding.weight).double())


def test_a_table_has_a_row_a_word_and_a_column_a_label():
    table = scores_alone(classifier(WORDS, 3), 6).columns(
        Vocabulary(tuple("uvwxyz")), Vocabulary(("motor", "med", "guns"))
    )
    assert list(table) == [
        "word",
        "occurrences",
        "attention",
        "weight",
        "polarity.motor",
        "polarity.med",
        "polarity.guns",
    ]
    assert {len(column) for column in table.values()} == {6}
    assert table["word"].tolist() == list("uvwxyz")


def test_scores_are_apart_from_the_graph():
    assert not scores_alone(classifier(CONTEXT, 2), 6).logits.requires_grad


def test_three_labels_have_no_single_polarity():
    with pytest.raises(UsageError, match="Polarity is defined for two labels; use `logits` for 3"):
        _ = scores_alone(classifier(WORDS, 3), 6).polarity


def test_no_batch_is_one_sentence():
    with pytest.raises(UsageError, match="give at least one batch"):
        mean_scores(classifier(WORDS, 2), [], 6)


def test_a_model_that_writes_sequences_has_no_word_type_scores():
    task = SampledCopy(length=2, vocabulary=4)
    model = Seq2SeqSpec(embedding=3, hidden=3).build(task, 0)
    with pytest.raises(MissingCapability, match="need a classifier"):
        mean_scores(model, [task.training_batch(0, 0, 2)], 6)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("spec", [WORDS, CONTEXT], ids=["words", "context"])
def test_scores_on_a_gpu_are_those_on_the_cpu(spec):
    model = classifier(spec, 2)
    alone, mean = scores_alone(model, 6), mean_scores(model, batches(), 6)
    model.to("cuda")
    found = (
        scores_alone(model, 6, device="cuda"),
        mean_scores(model, (batch.to("cuda") for batch in batches()), 6),
    )
    for one, other in zip((alone, mean), found, strict=True):
        torch.testing.assert_close(one.logits, other.logits.cpu(), equal_nan=True)
        torch.testing.assert_close(one.attention, other.attention.cpu(), equal_nan=True)
