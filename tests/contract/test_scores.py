"""The promises of every score on every model: padding and the rest of the batch change nothing.

Scores, interventions and models are listed by the kinds under which they are registered; a new kind
without an entry is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from attnscope.analysis.agreement import argmax_at, top_share_agreement
from attnscope.analysis.kendall import kendall_tau_b
from attnscope.data.batch import Batch, Example, collate
from attnscope.data.tasks import KeywordTask, PermutationCopy
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.intervention import Frozen, Given, Intervention, Learned, Permuted, Uniform
from attnscope.models.proxy import ProxySpec
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.scores.attention import Attention
from attnscope.scores.leave_one_out import LeaveOneOut
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.lexicon import Lexicon, proxy_lexicon
from attnscope.scores.rollout import Rollout
from attnscope.scores.saliency import Saliency
from attnscope.scores.score import Score, ScoreRule, read_score, read_scores
from attnscope.scores.value_norm import ValueNorm
from cases import for_each

TOLERANCE = {torch.float32: 1e-6, torch.float64: 1e-12}

RULES: dict[str, list[ScoreRule]] = {
    "attention": [Attention(heads=heads) for heads in ("mean", "max", 0, -1)],
    "lexical_probe": [
        LexicalProbe(reading=reading) for reading in ("log_odds", "log_probability", "probability")
    ],
    "saliency": [Saliency()],
    "value_norm": [ValueNorm()],
    "rollout": [Rollout()],
    "leave_one_out": [LeaveOneOut()],
}
INTERVENTIONS: dict[str, list[Intervention]] = {
    "learned": [Learned()],
    "uniform": [Uniform()],
    "permuted": [Permuted(seed=8)],
    "frozen": [Frozen()],
}
ALL_RULES = [rule for rules in RULES.values() for rule in rules]
ALL_INTERVENTIONS = [rule for rules in INTERVENTIONS.values() for rule in rules]


@dataclass
class GivenById:
    """Weights that belong to an example, put together for whatever batch it stands in."""

    weights: dict[tuple[int, int], Tensor] = field(default_factory=dict)

    def __call__(self, logits, mask, ids):
        given = torch.zeros_like(logits)
        for row, example in enumerate(ids.tolist()):
            real = int(mask[row].sum())
            key = example, real  # a word may be taken out
            known = self.weights.setdefault(key, self._draw(example, logits.shape[1], real))
            out = min(known.shape[1], logits.shape[2])
            given[row, :, :out, :real] = known[:, :out]
        return Given(given)(logits, mask, ids)

    @staticmethod
    def _draw(example: int, heads: int, real: int) -> Tensor:
        stream = torch.Generator().manual_seed(example)
        return torch.rand(heads, 20, real, dtype=torch.float64, generator=stream).softmax(-1)


def package_kinds(root):
    return {k for k, c in root.variants.items() if c.__module__.startswith("attnscope.")}


def test_every_kind_of_score_is_under_contract():
    assert package_kinds(ScoreRule) == RULES.keys()


def test_every_kind_of_intervention_is_under_contract():
    assert package_kinds(Intervention) == INTERVENTIONS.keys()


def padded_as_if_beside(neighbour: Example, examples: list[Example], pad: int) -> Batch:
    """Return the examples padded to a neighbour's lengths, without the neighbour."""
    return collate([*examples, neighbour], pad).rows(slice(len(examples)))


def arrangements(examples: list[Example]) -> list[list[Batch]]:
    """Return the same examples batched, ordered and padded in two other ways.

    The padding words differ too. In the first way three examples stand alone.
    """
    words = 1 if len(examples[0].targets) == 1 else 12
    long = Example(999, [1] * 15, [1] * words, [1] * words, [-1] * words)
    one, two, three, *rest = examples
    alone = [collate([one]), padded_as_if_beside(long, [two], pad=6), collate([three])]
    return [[*alone, collate(rest, pad=2)], [padded_as_if_beside(long, examples[::-1], pad=3)]]


def per_example(scores: list[Score]) -> dict[int, Tensor]:
    """Return each example's values at real positions, by its id."""
    found = {}
    for score in scores:
        for row, example in enumerate(score.batch.ids.tolist()):
            out, inp = score.batch.target_lengths[row], score.batch.input_lengths[row]
            assert not score.values[row].masked_fill(score.mask[row], 0.0).any(), "0 at padding"
            found[example] = score.values[row, :out, :inp]
    return found


def assert_same(found: dict[int, Tensor], expected: dict[int, Tensor], tolerance: float) -> None:
    assert found.keys() == expected.keys()
    for example, values in expected.items():
        torch.testing.assert_close(found[example], values, rtol=0, atol=tolerance)


def read_all(model, batches, attention):
    """Return every registered score, batch by batch."""
    by_batch = [read_scores(ALL_RULES, model, batch, attention) for batch in batches]
    return [list(scores) for scores in zip(*by_batch, strict=True)]


def assert_same_scores(case, dtype, intervention) -> None:
    model, examples, attention = case.build(dtype), case.examples, {"cross": intervention}
    together = read_all(model, [collate(examples)], attention)
    for batches in arrangements(examples):
        apart = read_all(model, batches, attention)
        for one, other in zip(apart, together, strict=True):
            assert_same(per_example(one), per_example(other), TOLERANCE[dtype])


def padding_and_batch_composition_never_change_a_score(case, dtype):
    assert_same_scores(case, dtype, Learned())


def padding_never_changes_a_score_where_attention_is_replaced(case, turn):
    # Models take the interventions in turn, so that each kind of model meets several of them.
    replaced = [*ALL_INTERVENTIONS[1:], GivenById()]
    assert_same_scores(case, torch.float64, replaced[turn % len(replaced)])


@pytest.mark.parametrize(
    ("spec", "source"),
    [
        (Seq2SeqSpec(), PermutationCopy()),
        (ClassifierSpec(), KeywordTask()),
        (ProxySpec(), PermutationCopy()),
    ],
    ids=["seq2seq", "classifier", "proxy"],
)
def test_padding_never_changes_a_score_at_the_papers_sizes(spec, source):
    model, examples = spec.build(source, 0), source.evaluation_batch(6)
    side = [] if source.boundaries is None else ["decoder_inputs", "targets", "gold"]
    padded = {name: pad(getattr(examples, name), (0, 9)) for name in ["inputs", *side]}
    for rule in (Attention(), LexicalProbe(reading="probability")):
        narrow, wide = (
            per_example([read_score(rule, model, batch)])
            for batch in (examples, replace(examples, **padded))
        )
        assert_same(wide, narrow, TOLERANCE[torch.float32])


def lexicon_of(source, dtype):
    """Return a lexicon with few different values, so that scores have ties."""
    shape = len(source.input_words), len(source.output_words)
    table = torch.randint(4, shape, generator=torch.Generator().manual_seed(1))
    return Lexicon("counts", table.to(dtype) / 3)


def with_repeated_words(examples: list[Example]) -> list[Example]:
    return [replace(example, inputs=[word % 4 for word in example.inputs]) for example in examples]


@pytest.mark.parametrize("kind", ["seq2seq", "classifier"])
def test_padding_and_batch_composition_never_change_a_lexicon_score(listed_models, kind, dtype):
    case = listed_models[kind][0]
    lexicon, examples = lexicon_of(case.source, dtype), with_repeated_words(case.examples)
    together = per_example([lexicon.score(collate(examples))])
    for batches in arrangements(examples):
        assert_same(per_example([lexicon.score(batch) for batch in batches]), together, 0.0)


def metrics(scores: list[Score]) -> dict[tuple[str, int], Tensor]:
    """Return every metric of scores of one batch, at real output positions, by example."""
    batch = scores[0].batch
    named = {f"argmax of {u.name}": argmax_at(u.values, batch.gold, u.input_mask) for u in scores}
    for u, v in zip(scores, [*scores[1:], scores[0]], strict=True):  # each once on either side
        both = u.values, v.values, u.input_mask
        named[f"agreement of {u.name} with {v.name}"] = top_share_agreement(*both, share=0.3)
        named[f"tau-b of {u.name} and {v.name}"] = kendall_tau_b(*both)
    return {
        (name, example): values[row, : batch.target_lengths[row]].nan_to_num(nan=9.0)
        for name, values in named.items()
        for row, example in enumerate(batch.ids.tolist())
    }


def assert_same_metrics(read, examples: list[Example]) -> None:
    together = metrics(read(collate(examples)))
    for batches in arrangements(examples):
        apart = {key: found for batch in batches for key, found in metrics(read(batch)).items()}
        assert apart.keys() == together.keys()
        for key, values in together.items():
            assert apart[key].equal(values), key


def padding_and_batch_composition_never_change_a_metric(case, turn):
    model, lexicon = case.build(torch.float64), lexicon_of(case.source, torch.float64)
    intervention = ALL_INTERVENTIONS[turn % len(ALL_INTERVENTIONS)]

    def read(batch):
        rules = [rules[0] for rules in RULES.values()]
        return [
            *read_scores(rules, model, batch, {"cross": intervention}),
            lexicon.score(batch),
        ]

    assert_same_metrics(read, case.examples)


def test_padding_and_batch_composition_never_change_a_metric_of_a_proxys_lexicon(listed_models):
    for case in listed_models["proxy"]:
        model = case.build(torch.float64)
        lexicons = [proxy_lexicon(model), lexicon_of(case.source, torch.float64)]
        assert_same_metrics(
            lambda batch, lexicons=lexicons: [lexicon.score(batch) for lexicon in lexicons],
            with_repeated_words(case.examples),
        )


def all_on(position: int, batch: Batch, heads: int, dtype: torch.dtype) -> Given:
    """Return all attention of every head on one position, or on the last one of a shorter input."""
    place = batch.input_lengths.sub(1).clamp(max=position)
    hot = one_hot(place, batch.inputs.shape[1]).to(dtype)
    shape = len(batch), heads, batch.targets.shape[1], batch.inputs.shape[1]
    return Given(hot[:, None, None].expand(shape).clone())


def the_lexical_probe_is_the_output_with_all_attention_on_one_position(case, dtype):
    model, batch = case.build(dtype), collate(case.examples)
    with torch.no_grad():
        trace = model.trace(batch)
        probe = LexicalProbe(reading="probability").read(model, trace)
        heads = trace.sites["cross"].weights.shape[1]
        for position in range(batch.inputs.shape[1]):
            reached = batch.input_lengths > position
            given = all_on(position, batch, heads, dtype)
            output = model.trace(batch, {"cross": given}).logits.softmax(-1)
            expected = output.gather(-1, batch.targets[..., None]).squeeze(-1)
            real = reached[:, None] & batch.target_mask
            torch.testing.assert_close(
                probe.values[:, :, position][real], expected[real], rtol=0, atol=TOLERANCE[dtype]
            )


def reading_a_score_leaves_no_graph_behind(case, turn):
    model, batch = case.build(torch.float64), collate(case.examples)
    scores = read_scores(ALL_RULES, model, batch)
    assert not any(score.values.requires_grad for score in scores)


IN_BOTH_PRECISIONS = [
    padding_and_batch_composition_never_change_a_score,
    the_lexical_probe_is_the_output_with_all_attention_on_one_position,
]
IN_DOUBLE_PRECISION = [
    padding_never_changes_a_score_where_attention_is_replaced,
    padding_and_batch_composition_never_change_a_metric,
    reading_a_score_leaves_no_graph_behind,
]


@for_each("promise", IN_BOTH_PRECISIONS, ids=lambda promise: promise.__name__)
def test_every_score_keeps_its_promises_on_every_model(case, dtype, promise):
    promise(case, dtype)


@for_each("promise", IN_DOUBLE_PRECISION, ids=lambda promise: promise.__name__)
def test_every_score_keeps_its_promises_on_every_model_in_double_precision(case, turn, promise):
    promise(case, turn)
