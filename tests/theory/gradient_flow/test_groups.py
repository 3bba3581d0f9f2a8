"""Terms by group of words, and the signs of dot products between groups."""

from __future__ import annotations

import math

import pytest
import torch

from attnscope.data.batch import Example, collate
from attnscope.theory.gradient_flow import groups as gradient_flow_groups
from attnscope.theory.gradient_flow.groups import group_row, similarity_signs
from attnscope.theory.gradient_flow.parts import DotFlow
from attnscope.theory.gradient_flow.pulls import corpus_pulls
from attnscope.theory.gradient_flow.terms import Parameters, flow_terms

GROUPS = {
    "positive": torch.tensor([0, 1]),
    "negative": torch.tensor([2]),
    "neutral": torch.arange(0),
}


def row(classes: int) -> tuple[dict[str, float], Parameters]:
    stream = torch.Generator().manual_seed(0)
    draw = [
        torch.randn(n, 3, generator=stream).double() for n in (4, 1 if classes == 2 else classes)
    ]
    parameters = Parameters(*draw, DotFlow(torch.tensor([1.0, 2.0, 0.0]).double(), 2.0))
    batch = collate([Example(n, [n, 3], [0], [n % classes]) for n in range(3)])
    pulls = corpus_pulls(parameters.polarity, parameters.attention_scores, [batch])
    return group_row(parameters, pulls, flow_terms(parameters, pulls), GROUPS), parameters


def test_a_groups_row_has_mean_size_and_sign_of_every_quantity():
    found, parameters = row(2)
    polarity = parameters.polarity[:2, 0]
    assert found["polarity.positive"] == pytest.approx(polarity.mean().item())
    assert found["polarity.positive.size"] == pytest.approx(polarity.abs().mean().item())
    assert found["polarity.positive.above"] == (polarity > 0).double().mean()
    for name in ("A", "B", "C", "D", "E", "F", "pi", "rho", "attention"):
        assert math.isfinite(found[f"{name}.negative"])
    w, v = parameters.output[0], parameters.attention.query
    assert found["VW"] == pytest.approx((v @ w).item())
    assert found["VV"] == pytest.approx(5)
    assert found["WW"] == pytest.approx((w @ w).item())


def test_an_empty_group_has_no_numbers_and_is_no_error():
    found, _ = row(2)
    assert not [name for name in found if "neutral" in name]
    assert all(map(math.isfinite, found.values()))


def test_each_class_has_a_column_of_its_own():
    found, parameters = row(3)
    for k in range(3):
        assert found[f"polarity[{k}].negative"] == pytest.approx(parameters.polarity[2, k].item())
        assert found[f"VW[{k}]"] == pytest.approx(
            (parameters.output[k] @ parameters.attention.query).item()
        )
    assert "polarity.negative" not in found


def test_signs_of_dot_products_are_counted_over_pairs_of_different_words(monkeypatch):
    monkeypatch.setattr(gradient_flow_groups, "_CHUNK", 3)
    table = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, -1.0], [-1.0, 0.0], [0.5, -1.0]])
    groups = {"up": torch.tensor([0, 1, 2]), "down": torch.tensor([3, 4])}
    shares = similarity_signs(table, groups)
    # 0·1 > 0, 0·2 = 0, 1·2 < 0.
    assert shares["up", "up"].item() == pytest.approx(1 / 3)
    assert shares["down", "down"].item() == 0
    # With 3: none. With 4: 0 and 2 (1·4 = -½).
    assert shares["up", "down"].item() == pytest.approx(2 / 6)
