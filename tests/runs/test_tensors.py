"""Arrays in a file that knows when it was truncated or altered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as arrays

from attnscope.errors import DamagedFile
from attnscope.runs.tensors import load_arrays, save_arrays
from cases import for_each

# One folder serves all examples of a property: each writes its file anew.
one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

dtypes = st.sampled_from([np.float32, np.float64, np.int64, np.bool_])
any_array = dtypes.flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0))
)
names = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=12)
named = st.dictionaries(names.filter(lambda name: name != "__metadata__"), any_array, max_size=4)


def small_file(folder: Path) -> Path:
    """One array of each kind that a checkpoint has, a fact, and a header padded with spaces."""
    path = folder / "small.safetensors"
    state = {
        "weight": np.arange(6, dtype=np.float32).reshape(2, 3),
        "moment": np.array(3.0),
        "mask": np.array([True, False]),
        "ids": np.arange(3),
    }
    save_arrays(path, state, {"step": "12"})
    return path


def altered(path: Path, content: bytes) -> bool:
    path.write_bytes(content)
    try:
        load_arrays(path)
    except DamagedFile as error:
        return str(path) in str(error)
    return False


@one_folder
@given(named, st.dictionaries(names, st.text(max_size=8), max_size=3))
def test_arrays_and_facts_come_back_exactly(tmp_path, state, facts):
    path = tmp_path / "state.safetensors"
    save_arrays(path, state, facts)
    loaded, known = load_arrays(path)
    assert known == facts
    assert loaded.keys() == state.keys()
    for name, array in state.items():
        assert loaded[name].dtype == array.dtype
        assert loaded[name].shape == array.shape
        assert loaded[name].tobytes() == array.tobytes()


def test_array_of_no_dimension_keeps_its_shape(tmp_path):
    save_arrays(tmp_path / "file", {"step": np.array(7.0)}, {})
    assert load_arrays(tmp_path / "file")[0]["step"].shape == ()


@for_each("view", [np.transpose, lambda array: array[:, ::2], np.flip])
def test_views_are_stored_as_they_read_not_as_they_lie(tmp_path, view):
    array = view(np.arange(12.0).reshape(3, 4))
    save_arrays(tmp_path / "file", {"array": array}, {})
    np.testing.assert_array_equal(load_arrays(tmp_path / "file")[0]["array"], array)


def test_same_arrays_and_facts_are_always_the_same_bytes(tmp_path):
    pairs = [(f"array {index}", np.full(3, index)) for index in range(5)]
    facts = [(f"fact {index}", str(index)) for index in range(5)]
    contents = set()
    for turn in range(20):
        order = 1 if turn % 2 else -1
        save_arrays(tmp_path / "file", dict(pairs[::order]), dict(facts[::order]))
        contents.add((tmp_path / "file").read_bytes())
    assert len(contents) == 1


@one_folder
@given(st.data())
def test_any_altered_byte_is_detected_and_the_file_named(tmp_path, data):
    path = small_file(tmp_path)
    content = bytearray(path.read_bytes())
    offset = data.draw(st.integers(0, len(content) - 1))
    content[offset] ^= data.draw(st.integers(1, 255))
    assert altered(path, bytes(content))


@for_each("flip", [0x01, ord(" ") ^ ord("\t"), 0x80])
def test_an_altered_byte_is_detected_wherever_it_lies(tmp_path, flip):
    path = small_file(tmp_path)
    content = path.read_bytes()
    for offset in range(len(content)):
        changed = bytes([content[offset] ^ flip])
        assert altered(path, content[:offset] + changed + content[offset + 1 :]), offset


def test_truncation_is_detected_at_every_length(tmp_path):
    path = small_file(tmp_path)
    content = path.read_bytes()
    for length in range(len(content)):
        assert altered(path, content[:length]), length


def test_appended_bytes_are_detected(tmp_path):
    path = small_file(tmp_path)
    assert altered(path, path.read_bytes() + b"\0")


def test_exchanged_arrays_are_detected(tmp_path):
    path = tmp_path / "file"
    save_arrays(path, {"a": np.zeros(2), "b": np.ones(2)}, {})
    content = path.read_bytes()
    exchanged = content[:-32] + content[-16:] + content[-32:-16]
    assert exchanged != content
    assert altered(path, exchanged)


def test_file_of_another_program_is_refused(tmp_path):
    from safetensors.numpy import save_file

    save_file({"a": np.zeros(2)}, tmp_path / "file")
    with pytest.raises(DamagedFile, match="file"):
        load_arrays(tmp_path / "file")


def test_missing_file_is_named(tmp_path):
    with pytest.raises(DamagedFile, match="absent"):
        load_arrays(tmp_path / "absent")
