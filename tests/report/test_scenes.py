import base64
import gzip

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from attnscope.report.scenes import MOST_INPUTS, Map, Scene, Shown, cut, packed, quantise


@given(arrays(np.float64, (3, 4), elements=st.floats(-1e3, 1e3) | st.just(np.nan)))
def test_a_byte_is_within_half_a_level_of_its_value(values):
    levels, low, high = quantise(values)
    back = np.where(levels == 255, np.nan, low + (high - low) * levels / 254.0)
    room = (high - low) / 254 * 0.51 + 1e-5 * max(abs(low), abs(high)) + 1e-300
    assert np.array_equal(np.isnan(back), np.isnan(values))
    assert np.nanmax(np.abs(back - values), initial=0) <= room


def test_nothing_looks_like_nothing():
    levels, low, high = quantise(np.array([[0.5, 0.9, 0.0]]))
    assert (low, high) == (0.0, 0.9)
    assert levels.tolist() == [[141, 254, 0]]


def test_infinity_is_no_value():
    levels, _, high = quantise(np.array([[np.inf, 1.0, -np.inf]]))
    assert levels.tolist() == [[255, 254, 255]]
    assert high == 1.0


def test_packing_is_the_same_every_time_and_comes_back():
    assert packed(b"abc") == packed(b"abc")
    assert gzip.decompress(base64.b64decode(packed(b"abc" * 1000))) == b"abc" * 1000


def test_very_long_words_are_cut():
    assert len(cut("x" * 10_000)) < 500
    assert cut("short") == "short"


def scene(words, values):
    shown = Shown("e", words, ["label"])
    return Scene("k", "t", "", [shown], [], [Map("attention", 0, [0, 1], [values])])


def test_long_inputs_are_cut_with_a_sentence():
    words = [f"w{i}" for i in range(MOST_INPUTS + 88)]
    made = scene(words, [np.ones((1, len(words))), None]).as_json()
    assert len(made["examples"][0]["inputs"]) == MOST_INPUTS
    assert "88 input" in made["examples"][0]["cut"]
    assert len(gzip.decompress(base64.b64decode(made["data"]))) == MOST_INPUTS


def test_a_step_without_values_takes_no_bytes():
    made = scene(["a", "b"], [None, np.array([[0.0, 1.0]])]).as_json()
    assert made["maps"][0]["ends"] == [None, [0.0, 1.0]]
    assert gzip.decompress(base64.b64decode(made["data"])) == bytes([0, 254])


@pytest.mark.parametrize(("outputs", "one"), [(["label"], True), (["a", "b"], False)])
def test_one_output_is_classification(outputs, one):
    assert Scene("k", "t", "", [Shown("e", ["x"], outputs)], [], []).classification is one
