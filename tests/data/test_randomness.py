"""Randomness is a pure function of its key, and counter-based numbers are SplitMix64's."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from scipy import stats

from attnscope.data.randomness import counter_uniform, generator, seed_of, seeded
from cases import for_each

GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / golden ratio, SplitMix64's increment
counters = st.integers(0, 2**62)
devices = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
        ],
    ),
]


def splitmix64(state: int) -> int:
    """Mix a state, in Python's unbounded integers (Steele, Lea and Flood, 2014)."""
    state %= 2**64
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) % 2**64
    return state ^ (state >> 31)


def test_the_reference_has_the_known_first_numbers_of_seed_1234567():
    # https://rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [splitmix64(1234567 + n * GOLDEN) for n in (1, 2, 3)] == known


@given(st.integers(0, 2**63 - 1), st.lists(counters, min_size=1, max_size=4))
def test_counter_numbers_are_those_of_splitmix64(seed, given_counters):
    state = seed_of("counter", seed)
    for counter in given_counters:
        state = splitmix64(state + counter * GOLDEN)
    drawn = counter_uniform(seed, *(torch.tensor(counter) for counter in given_counters))
    assert drawn.item() == (state >> 11) / 2**53


@given(st.lists(counters, min_size=1, max_size=5), st.lists(counters, min_size=1, max_size=5))
def test_counter_numbers_do_not_depend_on_how_they_are_batched(first, second):
    together = counter_uniform(3, torch.tensor(first)[:, None], torch.tensor(second))
    for row, one in enumerate(first):
        for column, other in enumerate(second):
            alone = counter_uniform(3, torch.tensor([one]), torch.tensor([other]))
            assert together[row, column] == alone[0]


@pytest.mark.parametrize("device", devices)
def test_counter_numbers_are_the_same_on_every_device(device):
    ids, places = torch.arange(40, device=device), torch.arange(30, device=device)
    drawn = counter_uniform(5, ids[:, None], places)
    assert drawn.device.type == device
    state = seed_of("counter", 5)
    for example in (0, 17, 39):
        row = splitmix64(state + example * GOLDEN)
        expected = [(splitmix64(row + place * GOLDEN) >> 11) / 2**53 for place in range(30)]
        assert drawn[example].tolist() == expected


@for_each("seed", [0, 1, 2**40])
def test_counter_numbers_are_uniform_on_zero_to_one(seed):
    drawn = counter_uniform(seed, torch.arange(200)[:, None], torch.arange(100)).flatten().numpy()
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert stats.kstest(drawn, "uniform").pvalue > 0.01


def test_counter_numbers_of_neighbouring_counters_and_seeds_are_unrelated():
    grids = torch.stack(
        [counter_uniform(seed, torch.arange(150)[:, None], torch.arange(150)) for seed in range(3)]
    ).numpy()
    pairs = [
        (grids[:, 1:], grids[:, :-1]),
        (grids[..., 1:], grids[..., :-1]),
        (grids[0], grids[0].T),
        (grids[0], grids[1]),
        (grids[1], grids[2]),
    ]
    for one, other in pairs:
        correlation = np.corrcoef(one.ravel(), other.ravel())[0, 1]
        # Four standard errors of the smallest pair.
        assert abs(correlation) < 4 / 150


def test_counters_are_told_apart_by_their_place():
    one, two = torch.tensor(1), torch.tensor(2)
    drawn = {counter_uniform(0, one, two).item(), counter_uniform(0, two, one).item()}
    drawn |= {counter_uniform(1, one, two).item(), counter_uniform(0, one).item()}
    assert len(drawn) == 4


@given(st.lists(st.integers(), max_size=3), st.text(max_size=3))
def test_a_key_has_one_seed_of_63_bits(numbers, text):
    key = (text, *numbers)
    assert 0 <= seed_of(*key) < 2**63
    assert seed_of(*key) == seed_of(*key)


def test_different_keys_have_different_seeds():
    keys: list[tuple[str | int, ...]] = [
        ("a", 1),
        ("a", "1"),
        ("a1",),
        ("a", 1, 0),
        (1, "a"),
        ("a", -1),
        ("A", 1),
        ("a", 11),
    ]
    assert len({seed_of(*key) for key in keys}) == len(keys)


def test_a_generator_does_not_depend_on_what_ran_before_it():
    first = torch.rand(4, generator=generator("train", 3))
    torch.rand(7)
    generator("train", 4)
    assert torch.rand(4, generator=generator("train", 3)).equal(first)
    assert not torch.rand(4, generator=generator("train", 4)).equal(first)


def test_the_seeded_block_draws_from_its_key_and_gives_the_global_stream_back():
    torch.manual_seed(0)
    undisturbed = torch.rand(3)
    torch.manual_seed(0)
    with seeded("model", 1):
        drawn = torch.rand(3)
    assert torch.rand(3).equal(undisturbed)
    assert drawn.equal(torch.rand(3, generator=generator("model", 1)))


def test_the_global_stream_comes_back_from_a_block_that_fails():
    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), seeded("model", 1):
        torch.rand(1 // 0)
    assert torch.get_rng_state().equal(before)


def test_the_seeded_block_touches_no_stream_of_a_gpu(monkeypatch):
    reseeded: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", reseeded.append)
    with seeded("model", 1):
        torch.rand(1)
    assert reseeded == []


def test_seeds_are_the_same_in_every_process():
    code = "from attnscope.data.randomness import seed_of; print(seed_of('train', 'x', 3))"
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert int(found.stdout) == seed_of("train", "x", 3)
