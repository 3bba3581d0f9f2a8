"""Synthetic texts with known groups of words (sun & lu, supplement C)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from scipy import stats

from attnscope.data.polarity_texts import STRAY, PolarityTexts
from attnscope.data.token_groups import GroupRule, association, corpus_counts

ONE, TWO = PolarityTexts(), PolarityTexts(stray=STRAY)
SMALL = PolarityTexts(
    positives=30, negatives=60, held_out=11, neutral_types=12, polar_types=4, stray=0.25
)


def columns(source: PolarityTexts) -> tuple[np.ndarray, np.ndarray]:
    examples = source.training_examples
    return np.stack([e.inputs for e in examples]), np.array([e.targets[0] for e in examples])


def group_of(source: PolarityTexts, inputs: np.ndarray) -> np.ndarray:
    """0 for negative, 1 for positive, 2 for neutral words."""
    kinds = np.full(len(source.input_words), -1)
    for kind, ids in enumerate(source.groups.values()):
        kinds[ids.numpy()] = kind
    return kinds[inputs]


def test_the_first_data_set_is_the_papers():
    inputs, labels = columns(ONE)
    assert inputs.shape == (12_000, 12)
    assert np.bincount(labels).tolist() == [6000, 6000]
    kinds = group_of(ONE, inputs)
    assert ((kinds == 2).sum(1) == 10).all()
    assert ((kinds == labels[:, None]).sum(1) == 2).all()
    assert {name: len(ids) for name, ids in ONE.groups.items()} == {
        "negative": 50,
        "positive": 50,
        "neutral": 1000,
    }


@pytest.mark.parametrize("source", [ONE, TWO], ids=lambda source: source.dataset)
def test_the_words_of_a_text_differ_and_stand_anywhere(source):
    inputs, _ = columns(source)
    assert (np.diff(np.sort(inputs, 1), axis=1) > 0).all()
    assert np.unique(inputs).tolist() == list(range(1100))
    polar = (group_of(source, inputs) < 2).sum(0)
    assert stats.chisquare(polar).pvalue > 0.01


def test_words_of_a_group_are_equally_likely():
    inputs, _ = columns(ONE)
    counts = np.bincount(inputs.ravel(), minlength=1100)
    for ids in ONE.groups.values():
        assert stats.chisquare(counts[ids.numpy()]).pvalue > 0.01


def test_in_the_second_data_set_a_tenth_of_the_polar_words_are_in_the_wrong_class():
    inputs, labels = columns(TWO)
    kinds = group_of(TWO, inputs)
    polar, wrong = (kinds < 2).sum(), (kinds == 1 - labels[:, None]).sum()
    assert polar == 24_000
    assert stats.binomtest(int(wrong), int(polar), STRAY).pvalue > 0.01


@pytest.mark.parametrize("source", [ONE, TWO], ids=lambda source: source.dataset)
def test_counting_finds_the_polar_groups_that_texts_were_made_of(source):
    counts = corpus_counts(source)
    found = GroupRule().groups(counts, source.output_words.words)
    for name in ("negative", "positive"):
        # A word that is half as common as the others among 240 would still be above the bound.
        assert found[name].equal(source.groups[name])
    gamma = association(counts)[source.groups["positive"], 1].mean().item()
    assert gamma == pytest.approx(1 - 2 * source.stray, abs=0.01)


def test_texts_depend_on_the_draw_and_a_training_seed_only_orders_them():
    again, other = PolarityTexts(), PolarityTexts(draw=1)
    assert np.array_equal(columns(again)[0], columns(ONE)[0])
    assert not np.array_equal(columns(other)[0], columns(ONE)[0])
    first, second = (SMALL.training_batch(seed, 0, 90) for seed in (0, 1))
    assert not first.ids.equal(second.ids)
    assert first.ids.sort()[0].equal(second.ids.sort()[0])


def test_labels_may_be_unequal_and_held_out_texts_are_other_texts():
    _, labels = columns(SMALL)
    assert np.bincount(labels).tolist() == [60, 30]
    held_out = SMALL.validation_examples
    assert len(held_out) == 11
    trained = {tuple(e.inputs.tolist()) for e in SMALL.training_examples}
    assert not trained & {tuple(e.inputs.tolist()) for e in held_out}


def test_texts_are_written_and_read_with_their_words():
    assert SMALL.encode("neutral-0 negative-0 positive-3") == [0, 12, 19]
    assert len(SMALL.input_words) == 20
    assert (ONE.dataset, TWO.dataset) == ("polarity-I", "polarity-II")
    assert ONE.boundaries is None


def test_batches_need_no_padding():
    batch = SMALL.evaluation_batch(5)
    assert batch.input_mask.all()
    assert batch.targets.shape == (5, 1)
    assert batch.inputs.dtype == torch.int64


def test_too_few_types_are_told():
    with pytest.raises(ValidationError, match="polar_words=3 different words need at least"):
        PolarityTexts(polar_words=3, polar_types=2)
