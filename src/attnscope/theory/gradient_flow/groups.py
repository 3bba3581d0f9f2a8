"""Gradient flow by groups of words: which term moves which group, and who is alike whom.

sunlu argues about positive, negative and neutral words (§4); a training run records
a row of these numbers at each evaluation, which shows when each term has the predicted sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.theory.gradient_flow.pulls import Pulls
from attnscope.theory.gradient_flow.terms import Parameters, Terms, alignments

Groups = Mapping[str, Int[Tensor, " _"]]
# Dot products held at once.
_CHUNK = 2**22


@torch.no_grad()
def group_row(
    parameters: Parameters, pulls: Pulls, terms: Terms, groups: Groups
) -> dict[str, float]:
    """Return every quantity of gradient flow, summed up by group.

    Parameters
    ----------
    parameters, pulls, terms
        From `classifier_flow`.
    groups
        The word ids of each group, from `attnscope.data.token_groups`.

    Returns
    -------
    dict
        ``B.positive`` is the mean of term B over the positive words, ``B.positive.size`` that of
        its absolute value, ``B.positive.above`` the share of words where it is above 0; likewise
        for all terms, ``pi``, ``rho``, ``polarity`` and ``attention``. With K classes, quantities
        with one number per class are ``B[0].…``. ``dot.negative.positive`` is the share of
        positive dot products between embeddings of the two groups, and ``VW``, ``VV``, ``WW`` are
        `alignments`.
        Undefined numbers, such as the mean over an empty group, are left out.
    """
    tables = {
        **terms.polarity,
        **terms.attention,
        "pi": pulls.polarity,
        "rho": pulls.attention,
        "polarity": parameters.polarity,
        "attention": parameters.attention_scores,
    }
    row: dict[str, Tensor] = {}
    for name, column in _columns(tables):
        for group, ids in groups.items():
            values, key = column[ids.to(column.device)], f"{name}.{group}"
            row[key], row[f"{key}.size"] = values.mean(), values.abs().mean()
            row[f"{key}.above"] = (values > 0).double().mean()
    for pair, share in similarity_signs(parameters.embeddings, groups).items():
        row[".".join(["dot", *pair])] = share
    products = alignments(parameters)
    row |= dict(_numbers("VW", products["VW"])) | {"VV": products["VV"]}
    row |= dict(_numbers("WW", products["WW"].diagonal()))
    return {name: float(value) for name, value in row.items() if not value.isnan()}


@torch.no_grad()
def similarity_signs(
    embeddings: Float[Tensor, "type embedding"], groups: Groups
) -> dict[tuple[str, str], Float[Tensor, ""]]:
    """Return the share of pairs with e_iᵀe_k > 0 within each group and between any two.

    A word is not paired with itself; a group of one has no pair within it, which gives NaN.
    """
    shares: dict[tuple[str, str], Tensor] = {}
    for pair in combinations_with_replacement(groups, 2):
        first, second = (embeddings[groups[name].to(embeddings.device)] for name in pair)
        above = first.new_zeros((), dtype=torch.float64)
        for rows in first.split(max(1, _CHUNK // max(len(second), 1))):
            above += (rows @ second.T > 0).sum()
        pairs = len(first) * len(second)
        if pair[0] == pair[1]:
            above, pairs = above - (first.square().sum(1) > 0).sum(), pairs - len(first)
        shares[pair] = above / pairs
    return shares


def _columns(tables: Mapping[str, Tensor]) -> Iterator[tuple[str, Float[Tensor, " type"]]]:
    """Yield each table that has one number a type, and each class of those that have several."""
    for name, table in tables.items():
        if table.ndim == 1:
            yield name, table
        else:
            yield from _numbers(name, table.T)


def _numbers(name: str, rows: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield the only row under its name, or each of several with its number."""
    for index, row in enumerate(rows):
        yield (name if len(rows) == 1 else f"{name}[{index}]"), row
