"""Masks that were drawn before do what masks drawn on the way do."""

from __future__ import annotations

import torch

from attnscope.models.dropout import dropped, masks_from, masks_given
from cases import for_each

VALUES = torch.randn(7, 3, 5, generator=torch.Generator().manual_seed(0)).double()


def stream(seed):
    return torch.Generator().manual_seed(seed)


@for_each("rate", [0.1, 0.5, 0.8])
def test_masks_drawn_before_are_those_drawn_on_the_way(rate):
    generator, masks = stream(3), masks_from(stream(3))
    expected = [dropped(values, rate, generator) for values in (VALUES, VALUES[:, :, :2])]
    drawn = [masks(values.shape, rate) for values in (VALUES, VALUES[:, :, :2])]
    given = masks_given(torch.cat([mask.flatten() for mask in drawn]))
    found = [dropped(values, rate, given) for values in (VALUES, VALUES[:, :, :2])]
    for one, other in zip(expected, found, strict=True):
        assert one.equal(other)
    assert not expected[0][:, :, :2].equal(expected[1])


def test_a_mask_hides_its_share():
    kept = masks_from(stream(0))(torch.Size((1000, 100)), 0.3)
    assert kept.dtype is torch.bool
    assert abs(kept.double().mean() - 0.7) < 4 * (0.3 * 0.7 / kept.numel()) ** 0.5


def test_nothing_is_asked_for_where_nothing_is_dropped():
    generator, before = stream(1), stream(1).get_state()
    assert dropped(VALUES, 0.0, generator).equal(VALUES)
    assert generator.get_state().equal(before)
    assert dropped(VALUES, 0.0, masks_given(torch.ones(0).bool())).equal(VALUES)
    assert dropped(VALUES, 0.5, None).equal(VALUES)
