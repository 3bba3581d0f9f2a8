"""`aitken/beyond`: the paper's analyses on any model, and when a finding carries over."""

from __future__ import annotations

import pytest
import torch

from attnscope.analysis.alignment_terms import MU_MU, TERM_NAMES
from attnscope.analysis.dictionary import pairs_of
from attnscope.analysis.headed_network import HeadedNetwork
from attnscope.analysis.measures.numbers import number as key
from attnscope.analysis.measures.terms import THREE
from attnscope.claims.catalogue import catalogue
from attnscope.data.escan import ExtendedScan
from attnscope.data.sequence_tasks import OneToOne
from attnscope.models.architectures import AED
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.models.transformer import TransformerSpec
from attnscope.recipes.extra.beyond import QUICK, Config, numbers, paths
from attnscope.recipes.extra.beyond_findings import FINDINGS, average_attention, carried_over
from attnscope.runs.result import Measurement
from cases import for_each

TASK = OneToOne(shortest=3, longest=6)
TRANSFORMER = TransformerSpec(width=12, heads=3, feed_forward=16)
TRANSLATOR = Seq2SeqSpec(
    embedding=6, hidden=8, layers=2, directions=2, readout="relu", embeddings="separate"
)
AED_SPEC = EncoderDecoderSpec(architecture=AED(), hidden=8)


def network(spec, task=TASK, count=30):
    return HeadedNetwork(spec.build(task, 1).double(), task, task.evaluation_batch(count))


def close(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("spec", "heads"), [(TRANSLATOR, 1), (TRANSFORMER, 3)], ids=["translator", "transformer"]
)
def test_every_head_has_nine_shares_that_sum_to_1_the_most_temporal_head_first(spec, heads):
    one = network(spec)
    found = numbers(one)
    for form in ("raw", "centred"):
        for head in range(1, heads + 1):
            shares = [
                found[key("term_share", form=form, term=term, head=head)] for term in TERM_NAMES
            ]
            assert sum(shares) == pytest.approx(1)
            three = found[key("term_share", form=form, term=THREE, head=head)]
            assert three == pytest.approx(sum(shares[:3]))
            gap = found[key("largest_gap", form=form, head=head)]
            assert gap == pytest.approx(shares[0] - max(shares[1:]))
    first = [
        found[key("term_share", form="raw", term=MU_MU, head=head)] for head in range(1, heads + 1)
    ]
    assert first == sorted(first, reverse=True)
    assert key("term_share", form="raw", term=MU_MU, head=heads + 1) not in found


def test_numbers_of_a_head_are_of_the_same_head_whatever_is_measured():
    one = network(TRANSFORMER)
    found = numbers(one)
    (trace,) = one.traces()
    closed = ~trace.batch.input_mask[:, None]
    for rank, head in enumerate(one.heads, 1):
        queries, keys = (
            side.temporal.unflatten(-1, (3, -1))[:, head]
            for side in (one.cross.decoder, one.cross.encoder)
        )
        alone = (queries @ keys.mT).expand(len(closed), -1, -1).masked_fill(closed, -torch.inf)
        full = trace.sites["cross"].logits[:, head].masked_fill(closed, -torch.inf)
        same = (alone.argmax(-1) == full.argmax(-1))[trace.batch.target_mask]
        agreement = found[key("temporal_agreement", head=rank)]
        assert agreement == pytest.approx(float(same.double().mean()))


def test_paths_are_given_for_every_head_and_both_sides():
    planes = list(paths("transformer", network(TRANSFORMER)))
    assert [plane.axes for plane in planes] == [
        {"model": "transformer", "head": head} for head in (1, 2, 3)
    ]
    for plane in planes:
        assert {point.group for point in plane.points} == {"encoder", "decoder"}


def test_dictionaries_are_those_of_the_tasks_and_text_has_none():
    def named(source):
        inputs, outputs = source.input_words.words, source.output_words.words
        return {outputs[out]: inputs[inp] for out, inp in pairs_of(source).items()}

    assert named(TASK) == {"O1": "I1", "O2": "I2", "O3": "I3"}
    assert named(ExtendedScan()) == {"RUN": "run", "WALK": "walk", "JUMP": "jump"}
    text = Config(**QUICK).tasks[-1]
    assert named(text) == {}


def row(name, value, spread=0.01, **axes):
    return Measurement(
        name=name,
        dataset="made up",
        axes=axes,
        value=value,
        low=value - spread,
        high=value + spread,
        n=3,
    )


def simple(agreement, delta, cosine, dictionary, drop):
    return [
        row("temporal_agreement", agreement, head=1),
        row("largest_gap", 0.1, form="raw", head=1),
        row("delta_share", delta, side="encoder"),
        row("delta_share", 0.9, side="decoder"),
        row("orthogonality", cosine, side="encoder"),
        row("dictionary", dictionary, head="all"),
        row("dictionary", 0.1, head=1),
        row("variance_drop", drop),
    ]


def decided(rows, dataset="one-to-one-3"):
    found = carried_over(rows, "transformer", dataset, (0, 1, 2), 3)
    return {one.axes["finding"].removeprefix("aitken."): one.value for one in found}


def test_findings_carry_over_by_the_thresholds_of_the_papers_claims():
    names = ("temporal-attention", "delta-small", "orthogonal", "dictionary", "word-variance")
    good = decided(simple(0.97, 0.05, 0.05, 1.0, 0.9))
    assert good == dict.fromkeys(names, 1.0)
    bad = decided(simple(0.9, 0.2, 0.2, 0.9, 0.5))
    assert bad == dict.fromkeys(names, 0.0)
    between = decided(simple(0.95, 0.1, 0.1, 1.0, 0.8))
    assert between == dict.fromkeys(names) | {"dictionary": 1.0}


@for_each(
    ("gap", "three", "expected"),
    [(0.1, 0.9, 1.0), (0.1, 0.7, 0.0), (-0.1, 0.9, 0.0), (0.1, 0.8, None), (0.0, 0.9, None)],
)
def test_escan_terms_carry_over_head_by_head(gap, three, expected):
    rows = [
        row("dictionary", 1.0, head="all"),
        row("variance_drop", 0.9),
        *(row("largest_gap", gap if head == 2 else 0.5, form="raw", head=head) for head in (1, 2)),
        *(
            row("term_share", three if head == 2 else 0.95, form="raw", term=THREE, head=head)
            for head in (1, 2)
        ),
    ]
    found = carried_over(rows, "transformer", "escan", (0, 1, 2), 3)
    terms = {
        one.axes["head"]: one.value for one in found if one.axes["finding"] == "aitken.escan-terms"
    }
    assert terms == {1: 1.0, 2: expected}


def test_on_text_small_drops_and_shares_below_one_half_carry_over():
    def rows(drop, largest):
        return [
            row("variance_drop", drop),
            row("largest_gap", 0.1, form="raw", head=1),
            row("largest_share", largest, form="raw", head=1),
        ]

    names = ("word-variance", "translation-terms")
    assert decided(rows(0.2, 0.4), "grammar-translation") == dict.fromkeys(names, 1.0)
    assert decided(rows(0.7, 0.6), "grammar-translation") == dict.fromkeys(names, 0.0)


def test_every_finding_says_in_a_sentence_what_became_of_it():
    found = carried_over(
        simple(0.97, 0.2, 0.1, 1.0, 0.9), "transformer", "one-to-one-3", (0, 1, 2), 3
    )
    said = {one.axes["finding"]: one.found["says"] for one in found}
    assert said["aitken.temporal-attention"] == (
        "That temporal components alone give the attention carries over: "
        "head 1 of the Transformer, one-to-one-3."
    )
    assert "does not carry over" in said["aitken.delta-small"]
    assert "is left open" in said["aitken.orthogonal"]


def test_without_an_accepted_network_nothing_is_said_to_carry_over():
    found = carried_over([], "translator", "escan", (), 5)
    assert {one.axes["finding"] for one in found} >= {"aitken.dictionary", "aitken.escan-terms"}
    assert all(one.value is None and one.n == 5 for one in found)
    assert all("no network was accepted" in str(one.found["says"]) for one in found)


def test_average_attention_carries_over_with_a_positive_rank_correlation():
    values = {
        value: average_attention(
            row("share_similarity_spearman", value, 0.1, model="translator")
        ).value
        for value in (0.5, 0.0, -0.5)
    }
    assert values == {0.5: 1.0, 0.0: None, -0.5: 0.0}


def test_every_finding_is_one_of_the_papers_claims():
    claims = {entry.id for entry in catalogue()}
    assert {finding.claim for finding in FINDINGS} <= claims


def test_the_translator_is_bidirectional_and_the_transformer_has_several_heads():
    models = Config().models
    assert (models["translator"].directions, models["translator"].layers) == (2, 2)
    assert models["transformer"].heads > 1
