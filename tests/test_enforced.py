"""Annotations are enforced while tests run: types, and one size for each dimension of a call."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from jaxtyping import Float, TypeCheckError
from torch import Tensor

import enforced
from attnscope.analysis.agreement import top_share_agreement
from cases import for_each


@enforced.enforced
def longer(row: Float[Tensor, "n"], other: Float[Tensor, "n"], times: float) -> Float[Tensor, "n"]:
    return (row + other).repeat(int(times))


def test_a_call_of_one_size_passes_and_the_next_has_a_size_of_its_own() -> None:
    for size in (2, 3):
        assert longer(torch.ones(size), torch.ones(size), 1).shape == (size,)


@for_each(
    ("row", "other", "times"),
    [
        (torch.ones(2), torch.ones(1), 1),  # two sizes of one dimension
        (torch.ones(2), torch.ones(2), 2),  # a result of another size
        (torch.ones(2, 2), torch.ones(2), 1),  # a dimension too many
        (torch.ones(2), torch.ones(2).long(), 1),  # another type of numbers
        (torch.ones(2), torch.ones(2), "1"),
    ],
)
def test_a_violated_annotation_is_an_error(row: Tensor, other: Tensor, times: float) -> None:
    with pytest.raises(TypeCheckError):
        longer(row, other, times)


def test_functions_and_data_classes_of_the_package_are_enforced() -> None:
    from attnscope.data.batch import Example

    assert dataclasses.is_dataclass(Example)
    with pytest.raises(TypeCheckError):
        Example("first", [1], [1], [1])
    with pytest.raises(TypeCheckError):
        top_share_agreement(1, 2, 3)
