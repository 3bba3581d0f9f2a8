"""Which units train together follows from the units alone."""

from __future__ import annotations

import itertools
from typing import Literal

import pytest

from attnscope.data.corpus import GrammarSentiment
from attnscope.data.tasks import MixtureCopy, PermutationCopy, SampledCopy
from attnscope.models.architectures import VED
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.models.encoders import Concat, Recurrent, WordStates
from attnscope.models.proxy import ProxySpec
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.training.engine.backend import CudaBackend
from attnscope.training.engine.grouping import groups, is_vmapped
from attnscope.training.engine.workers import train_units
from attnscope.training.masked_lm import MaskedWords
from attnscope.training.objective import Likelihood, Term
from attnscope.training.penalties import SquaredNorm


def sizes(units):
    return [len(group) for group in groups(list(units))]


def test_only_units_that_differ_in_nothing_but_their_seed_are_put_together(seeds):
    aed, ved = seeds(range(3)), seeds(range(3), EncoderDecoderSpec(architecture=VED(), hidden=5))
    longer = seeds(range(2), steps=9)
    mixed = [*itertools.chain(*zip(aed, ved, strict=True)), *longer]
    assert groups(mixed) == [aed, ved, longer]


def on_a_gpu(units):
    return [unit.model_copy(update={"device": "cuda"}) for unit in units]


def test_a_unit_by_itself_is_vmapped_where_its_steps_are_recorded(seeds, dropping):
    units = seeds((1,), dropping, GrammarSentiment())
    assert is_vmapped(on_a_gpu(units))
    assert not is_vmapped(units)
    assert not is_vmapped(on_a_gpu(seeds((1,), ProxySpec(), GrammarSentiment())))


def test_on_a_gpu_long_texts_are_split_into_groups_that_fit_its_memory(seeds, monkeypatch):
    units = on_a_gpu(
        seeds(range(6), ClassifierSpec(encoder=WordStates()), GrammarSentiment(), batch_size=4)
    )
    longest = max(len(example.inputs) for example in GrammarSentiment().training_examples)
    monkeypatch.setattr(CudaBackend, "_POSITIONS", 2 * 4 * longest)
    assert sizes(units) == [2, 2, 2]
    monkeypatch.setattr(CudaBackend, "_POSITIONS", 6 * 4 * longest)
    assert sizes(units) == [6]
    monkeypatch.setattr(CudaBackend, "_POSITIONS", 6 * 4 * longest - 1)
    assert sizes(units) == [3, 3]


def test_on_a_gpu_texts_that_are_read_twice_are_twice_as_long(seeds, monkeypatch):
    source, terms = GrammarSentiment(), (Likelihood(), MaskedWords())
    units = on_a_gpu(
        seeds(range(6), ClassifierSpec(encoder=WordStates()), source, batch_size=4, objective=terms)
    )
    monkeypatch.setattr(CudaBackend, "_POSITIONS", 6 * 4 * source.widest_input)
    assert sizes(units) == [3, 3]


def test_seeds_with_dropout_are_one_group(droppers):
    units = on_a_gpu(droppers)
    assert groups(units) == [units]


@pytest.mark.parametrize(
    "model",
    [
        ClassifierSpec(encoder=Recurrent(hidden=2, cell="gru")),
        ClassifierSpec(encoder=Concat(encoder=Recurrent(hidden=2, layers=2, dropout=0.1))),
        Seq2SeqSpec(hidden=2),
    ],
    ids=["gru", "lstm-dropout", "seq2seq"],
)
def test_seeds_with_a_recurrence_are_one_group_on_a_gpu_and_none_on_a_cpu(seeds, model):
    units = seeds(model=model, source=GrammarSentiment())
    assert sizes(on_a_gpu(units)) == [3]
    assert sizes(units) == [1, 1, 1]


def test_on_a_gpu_units_that_differ_in_lambda_and_seed_are_one_group_seed_by_seed(scaled):
    units = on_a_gpu(scaled)
    assert groups(units) == [by_seed(units)]


def test_on_a_cpu_units_that_differ_in_lambda_are_kept_apart(scaled):
    for group in groups(scaled):
        assert len({unit.model.attention.scale for unit in group}) == 1


def by_seed(scaled):
    return [*scaled[::2], *scaled[1::2]]


def test_units_of_several_lambda_that_differ_in_more_are_kept_apart(seeds, scales):
    few = {"source": GrammarSentiment(), "count": (4, 0)}
    alike = [unit for model in scales for unit in seeds(model=model, **few)]
    unpenalised = seeds(model=scales[0], objective=(Likelihood(),), **few)
    wider = seeds(model=scales[0].model_copy(update={"embedding": 6}), **few)
    proxies = seeds(model=ProxySpec(), **few)
    parts = [on_a_gpu(units) for units in (alike, unpenalised, wider, proxies)]
    made = groups(list(itertools.chain(*parts)))
    assert [len(group) for group in made] == [6, 2, 2, 1, 1]
    assert made[1:] == [*parts[1:3], *([unit] for unit in parts[3])]


def weighted(seeds, model, term, **more):
    """Make units with a term of three weights, each with two seeds."""
    settings = {"source": GrammarSentiment(), "dtype": "float64"} | more
    return [
        unit
        for weight in (0.1, 1.0, 7.0)
        for unit in seeds((4, 0), model, objective=(Likelihood(), term(weight=weight)), **settings)
    ]


def test_units_that_differ_in_a_terms_weight_are_one_group_on_a_gpu_alone(seeds, dropping):
    units = weighted(seeds, dropping, SquaredNorm)
    assert groups(on_a_gpu(units)) == [by_seed(on_a_gpu(units))]
    for group in groups(units):
        assert len({unit.training.objective for unit in group}) == 1


def test_a_model_that_is_not_vectorised_forms_no_group(tiny):
    units = [tiny(GrammarSentiment(), ProxySpec(), seed) for seed in range(3)]
    assert sizes(units) == sizes(on_a_gpu(units)) == [1, 1, 1]


def test_on_a_cpu_groups_are_of_five_at_most_and_of_like_size(seeds):
    ten = seeds(range(10))
    assert groups(ten) == [ten[:5], ten[5:]]
    assert sizes(seeds(range(5))) == [5]
    assert sorted(sizes(seeds(range(11)))) == [3, 4, 4]


def test_on_a_gpu_ten_seeds_are_one_group(seeds):
    assert sizes(on_a_gpu(seeds(range(10)))) == [10]


class MeanAttention(Term):
    """A user's term: it indexes with a boolean mask, which vmap cannot do."""

    kind: Literal["mean-attention"] = "mean-attention"

    def __call__(self, model, batch, trace, randomness):
        return trace.sites["cross"].weights.mean((1, 2))[batch.input_mask].mean()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_units_with_a_term_that_does_not_opt_in_form_no_group(seeds, device):
    units = seeds(objective=(Likelihood(), MeanAttention()))
    assert sizes([unit.model_copy(update={"device": device}) for unit in units]) == [1, 1, 1]


def test_units_with_a_term_that_does_not_opt_in_train_with_several_seeds(seeds, tmp_path):
    units = seeds(objective=(Likelihood(), MeanAttention(weight=0.1)))
    assert [one.log[-1]["step"] for one in train_units(units, tmp_path)] == [8, 8, 8]


def test_on_a_gpu_tasks_of_as_many_words_share_a_group_and_others_do_not(seeds):
    model = Seq2SeqSpec(embedding=4, hidden=4)
    tasks = (
        MixtureCopy(length=4),
        SampledCopy(length=4, vocabulary=8),
        PermutationCopy(length=4),
        SampledCopy(length=6, vocabulary=8),
    )
    units = [unit for task in tasks for unit in seeds((4, 0), model, task)]
    assert sizes(on_a_gpu(units)) == [6, 2]
    assert sizes(units) == [1] * 8


def test_on_a_gpu_models_of_several_heads_share_a_group_if_they_have_as_many(seeds):
    drawn = [
        Seq2SeqSpec(embedding=4, hidden=4, base_seed=base, head_seeds=heads)
        for base, heads in ((0, (1, 2)), (0, (5, 6)), (3, (1, 2)), (0, (1, 2, 3)))
    ]
    units = [unit for model in drawn for unit in seeds((4,), model, PermutationCopy(length=4))]
    assert sizes(on_a_gpu(units)) == [3, 1]
