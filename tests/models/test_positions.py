"""Positions: sinusoids by their formula, turned by one rotation that is a rotation."""

from __future__ import annotations

import math

import torch

from attnscope.models.positions import RotatedPositions, random_rotation, sinusoids
from cases import for_each


@for_each(("width", "period"), [(6, 20.0), (7, 100.0), (1, 20.0)])
def test_columns_are_sines_and_cosines_of_growing_wavelength(width, period):
    found = sinusoids(torch.arange(4, 12, dtype=torch.float64), width, period)
    expected = [
        [
            (math.cos if column % 2 else math.sin)(t / period ** (2 * (column // 2) / width))
            for column in range(width)
        ]
        for t in range(4, 12)
    ]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


@for_each("width", [1, 2, 5, 50, 100])
def test_a_rotation_keeps_lengths_and_orientation(width):
    for seed in range(4):
        rotation = random_rotation(width, seed)
        identity = torch.eye(width, dtype=torch.float64)
        torch.testing.assert_close(rotation @ rotation.T, identity, rtol=0, atol=1e-12)
        assert abs(float(torch.linalg.det(rotation)) - 1) < 1e-10


def test_a_rotation_is_that_of_its_seed_and_spares_the_global_generator():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    assert random_rotation(8, 1).equal(random_rotation(8, 1))
    assert not random_rotation(8, 1).equal(random_rotation(8, 2))
    assert torch.rand(3).equal(expected)


def test_rotations_prefer_no_axis():
    # On SO(d) every entry has the mean 0 and the variance 1/d.
    draws = torch.stack([random_rotation(3, seed) for seed in range(2000)])
    assert float(draws.mean(0).abs().max()) < 4 * (1 / 3 / 2000) ** 0.5
    torch.testing.assert_close(
        draws.var(0), torch.full((3, 3), 1 / 3, dtype=torch.float64), rtol=0.1, atol=0
    )


def test_positions_are_turned_sinusoids_whose_products_stay():
    positions = RotatedPositions(12, 20.0, seed=3)
    turned, plain = positions(2, 9), sinusoids(torch.arange(2.0, 11), 12, 20.0)
    torch.testing.assert_close(turned, (random_rotation(12, 3).float() @ plain.T).T)
    torch.testing.assert_close(turned @ turned.T, plain @ plain.T)


def test_positions_from_a_later_one_on_are_a_part_of_all():
    positions = RotatedPositions(10, 100.0, seed=0)
    torch.testing.assert_close(positions(4, 3), positions(0, 9)[4:7])


def test_positions_have_no_parameters_and_follow_the_models_precision():
    positions = RotatedPositions(4, 20.0, seed=0).double()
    assert not list(positions.parameters())
    assert positions(0, 2).dtype == torch.float64
