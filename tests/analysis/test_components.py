"""The geometry of components, against scikit-learn and figures whose measures are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from torch import Tensor

from attnscope.analysis import components as module
from attnscope.analysis.components import (
    by_offset,
    circle,
    mass_around,
    most_aligned_step,
    nearest_other_step,
    nearest_point,
    offset_moments,
    peak_offset,
    principal_axes,
    readout_dictionary,
    rows_scaled,
    simplex_cosines,
)
from attnscope.analysis.decomposition import Components
from attnscope.errors import UsageError


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


def round_path(steps: int, turns: float = 1.0) -> Tensor:
    angle = torch.arange(steps).double() / steps * turns * 2 * math.pi
    return torch.stack([angle.cos(), angle.sin()], -1)


def words(table: Tensor) -> Components:
    """Return components with these input components; NaN rows were never read."""
    counts = (~table.isnan().any(-1)).long()
    return Components(table[:0], table, counts[:0], counts)


def test_principal_axes_are_those_of_scikit_learn() -> None:
    encoder, decoder = drawn(9, 5), drawn(4, 5, seed=1)
    found = principal_axes(encoder, decoder)
    points = torch.cat([encoder, decoder])
    expected = PCA().fit(points.numpy())
    np.testing.assert_allclose(found.explained, expected.explained_variance_ratio_, atol=1e-12)
    projected = expected.transform(points.numpy())[:, :2]
    np.testing.assert_allclose(found.project(points).abs(), np.abs(projected), atol=1e-12)
    assert (found.axes.amax(1) == found.axes.abs().amax(1)).all()


def test_words_without_a_component_do_not_enter_the_principal_axes() -> None:
    table = drawn(6, 3)
    holes = torch.cat([table, torch.full((2, 3), torch.nan).double()])
    torch.testing.assert_close(principal_axes(holes).axes, principal_axes(table).axes)


def test_a_single_component_has_no_principal_axes() -> None:
    with pytest.raises(UsageError, match="1 components have no principal axes"):
        principal_axes(drawn(1, 3))


def test_points_in_a_plane_are_explained_by_two_axes() -> None:
    plane = drawn(20, 2) @ drawn(2, 7, seed=1)
    assert float(principal_axes(plane).explained[:2].sum()) == pytest.approx(1)


@pytest.mark.parametrize("order", [1, -1])
def test_a_circle_has_no_radius_variation_and_turns_one_way(order: int) -> None:
    found = circle(5 * round_path(20)[torch.arange(20) * order] + 3)
    assert found.radius_variation == pytest.approx(0, abs=1e-12)
    assert found.monotone == 1


def test_a_step_back_on_the_circle_is_one_step_that_turns_the_other_way() -> None:
    path = round_path(20)
    path[[7, 8]] = path[[8, 7]]
    assert circle(path).monotone == pytest.approx(18 / 19)


def test_a_straight_line_is_no_circle() -> None:
    line = torch.stack([torch.arange(20.0), torch.zeros(20)], -1)
    assert circle(line).radius_variation > 0.5


def test_components_that_follow_each_other_align_at_the_same_step() -> None:
    path = round_path(12)
    assert most_aligned_step(0.2 * path, 9 * path).tolist() == list(range(12))
    assert most_aligned_step(path, path.flip(0)).tolist() == list(range(11, -1, -1))


def test_on_a_path_the_nearest_other_step_is_an_adjacent_one() -> None:
    gap = (nearest_other_step(round_path(30, turns=0.9)) - torch.arange(30)).abs()
    assert (gap == 1).all()


def test_the_nearest_point_is_never_one_without_a_component() -> None:
    others = torch.tensor([[5.0, 0], [math.nan, 0], [0, 1]])
    assert nearest_point(torch.tensor([[4.0, 0], [0, 0]]), others).tolist() == [0, 2]


@pytest.mark.parametrize("count", [3, 5])
def test_vertices_of_a_simplex_have_equal_negative_cosines(count: int) -> None:
    cosines = simplex_cosines(2 * torch.eye(count, count + 4).double() + 1)
    assert len(cosines) == count * (count - 1) // 2
    torch.testing.assert_close(cosines, torch.full_like(cosines, -1 / (count - 1)))


def test_readouts_find_the_words_they_were_made_from(monkeypatch: pytest.MonkeyPatch) -> None:
    table = torch.eye(8).double()
    table[3] = torch.nan
    translation = torch.tensor([7, 0, 2, 2, 5])
    readout = 3 * table[translation] + 0.1 * drawn(5, 8)
    assert readout_dictionary(readout, words(table)).equal(translation)
    monkeypatch.setattr(module, "_CELLS", 1)
    assert readout_dictionary(readout.float(), words(table)).equal(translation)


def test_a_dictionary_keeps_to_the_words_that_are_asked_for() -> None:
    table = torch.eye(4).double()
    found = readout_dictionary(torch.tensor([[4.0, 3, 2, 1]]), words(table), torch.tensor([3, 2]))
    assert found.tolist() == [2]
    table[3] = torch.nan
    with pytest.raises(UsageError, match="never read has no component"):
        readout_dictionary(table[:1], words(table), torch.tensor([0, 3]))
    with pytest.raises(UsageError, match="never read has no component"):
        readout_dictionary(table[:1], words(table), torch.tensor([0, 9]))


def test_rows_are_scaled_from_minimum_to_maximum() -> None:
    scaled = rows_scaled(torch.tensor([[1.0, 2, 3], [0.5, 0.0, 2.0]]))
    torch.testing.assert_close(scaled, torch.tensor([[0.0, 0.5, 1], [0.25, 0, 1]]))


def test_offsets_of_shifted_and_spread_rows() -> None:
    attention = torch.tensor([[0.0, 0.5, 0, 0.5], [0, 0, 1, 0], [1, 0, 0, 0]])
    assert peak_offset(attention).tolist() == [1, 1, -2]
    mean, deviation = offset_moments(attention)
    torch.testing.assert_close(mean, torch.tensor([2.0, 1, -2]).double())
    torch.testing.assert_close(deviation, torch.tensor([1.0, 0, 0]).double())


def test_mass_around_a_diagonal_counts_neighbours_within_the_width() -> None:
    attention = torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.0, 0.0, 1.0]])
    diagonal = torch.arange(3)
    torch.testing.assert_close(mass_around(attention, diagonal), torch.tensor([0.7, 0.3, 1.0]))
    torch.testing.assert_close(mass_around(attention, diagonal, 1), torch.tensor([0.9, 1.0, 1.0]))
    other = mass_around(attention, diagonal.flip(0))
    torch.testing.assert_close(other, torch.tensor([0.1, 0.3, 0.0]))


def test_values_by_offset_are_those_next_to_the_diagonal_and_nan_outside():
    values = torch.arange(6.0).view(1, 2, 3)
    nan = torch.nan
    expected = torch.tensor([[[nan, 0.0, 1, 2], [3, 4, 5, nan]]])
    torch.testing.assert_close(by_offset(values, range(-1, 3)), expected, equal_nan=True)
