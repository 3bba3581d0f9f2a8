"""A score comes out whole: as words and arrays, and read back from CSV and npz."""

from __future__ import annotations

import csv

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st

from attnscope.data.batch import Example, collate
from attnscope.data.tasks import SampledCopy
from attnscope.data.vocabulary import Vocabulary
from attnscope.models.intervention import Uniform
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.scores.attention import Attention
from attnscope.scores.score import Score, read_score

BATCH = collate([Example(7, [0, 2, 1], [0, 1], [1, 2]), Example(3, [3], [0, 0, 1], [3, 0, 1])])
AWKWARD = Vocabulary(('comma, and "quote"', "two\nlines", "carriage\rreturn", "'\t ; é 𝒜 "))
words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=0, max_size=6)
in_place = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def score(dtype=torch.float32, input_words=AWKWARD, output_words=AWKWARD):
    stream = torch.Generator().manual_seed(0)
    values = 100 * torch.randn(2, 3, 3, dtype=dtype, generator=stream)
    mask = BATCH.target_mask[:, :, None] & BATCH.input_mask[:, None]
    values = values.masked_fill(~mask, 0.0)
    return Score("alpha", values, BATCH.input_mask, BATCH, input_words, output_words)


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines, strict=True))


def test_words_are_those_of_the_example_without_padding():
    spelled = AWKWARD.words
    assert score().words(0) == ([spelled[0], spelled[2], spelled[1]], [spelled[1], spelled[2]])
    assert score().words(1) == ([spelled[3]], [spelled[3], spelled[0], spelled[1]])


def test_words_without_a_vocabulary_are_ids():
    assert score(input_words=None, output_words=None).words(0) == (["0", "2", "1"], ["1", "2"])


def test_arrays_are_nan_outside_the_masks_and_whole_inside():
    whole = score()
    array, mask = whole.array(), whole.mask.numpy()
    assert np.isnan(array[~mask]).all()
    assert (array[mask] == whole.values.numpy()[mask]).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_csv_has_one_line_per_value_and_loses_no_digit(tmp_path, dtype):
    whole = score(dtype)
    whole.to_csv(tmp_path / "score.csv")
    rows = read_csv(tmp_path / "score.csv")
    assert list(rows[0]) == ["example", "t", "output", "l", "input", "alpha"]
    places = [(row["example"], int(row["t"]), int(row["l"])) for row in rows]
    assert places == [("7", t, place) for t in range(2) for place in range(3)] + [
        ("3", t, 0) for t in range(3)
    ]
    for row, (example, t, place) in zip(rows, places, strict=True):
        number = ["7", "3"].index(example)
        inputs, outputs = whole.words(number)
        assert (row["input"], row["output"]) == (inputs[place], outputs[t])
        value = torch.tensor(float(row["alpha"]), dtype=dtype)
        assert value == whole.values[number, t, place]


@in_place
@given(st.lists(words, min_size=4, max_size=4))
def test_any_word_comes_back_from_csv(tmp_path, spelled):
    vocabulary = Vocabulary(tuple(spelled))
    whole = score(input_words=vocabulary, output_words=vocabulary)
    whole.to_csv(tmp_path / "score.csv")
    rows = read_csv(tmp_path / "score.csv")
    assert [row["input"] for row in rows[:3]] == whole.words(0)[0]
    assert [row["output"] for row in rows[::3]] == [
        *whole.words(0)[1],
        whole.words(1)[1][0],
    ]
    assert len(rows) == 9


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_npz_brings_back_every_array_without_pickle(tmp_path, dtype):
    whole = score(dtype)
    whole.to_npz(tmp_path / "score.npz")
    with np.load(tmp_path / "score.npz", allow_pickle=False) as arrays:
        assert arrays["ids"].tolist() == [7, 3]
        assert arrays["inputs"].tolist() == [[0, 2, 1], [3, 0, 0]]
        assert arrays["targets"].tolist() == [[1, 2, 0], [3, 0, 1]]
        assert arrays["input_mask"].tolist() == [[True] * 3, [True, False, False]]
        assert arrays["target_mask"].tolist() == [[True, True, False], [True] * 3]
        np.testing.assert_array_equal(arrays["values"], whole.array())
        assert arrays["values"].dtype == whole.array().dtype


def test_a_score_of_a_model_in_training_comes_out_as_numbers(tmp_path):
    model = Seq2SeqSpec(embedding=4, hidden=4).build(SampledCopy(length=2, vocabulary=2), 0)
    whole = Attention().read(model, model.trace(BATCH))
    assert whole.values.requires_grad
    assert np.isfinite(whole.array()[whole.mask.numpy()]).all()
    whole.to_csv(tmp_path / "score.csv")
    whole.to_npz(tmp_path / "score.npz")


def test_a_score_can_be_read_under_an_intervention():
    model = Seq2SeqSpec(embedding=4, hidden=4).build(SampledCopy(length=2, vocabulary=2), 0)
    values = read_score(Attention(), model, BATCH, {"cross": Uniform()}).values
    torch.testing.assert_close(values[0, :2], torch.full((2, 3), 1 / 3))
    torch.testing.assert_close(values[1, :, 0], torch.ones(3))


def test_the_score_of_some_examples_has_their_values_and_no_padding_that_they_share():
    whole = score()
    second = whole.rows(slice(1, 2))
    assert second.batch.ids.tolist() == [3]
    assert second.values.shape == (1, 3, 1)
    assert second.values.equal(whole.values[1:, :3, :1])
    assert second.words(0) == whole.words(1)
    assert whole.rows(slice(5)).values.equal(whole.values)
